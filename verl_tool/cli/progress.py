"""How far a run is: a bar where someone watches, a line a step where a log is kept."""

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from verl_tool.cli.console import stderr
from verl_tool.cli.metrics_file import Step

RECENT = 5  # steps whose mean the time left is reckoned with


class RunProgress:
    """A context manager. Before the first step it tells what is being done; then steps, rewards and the time left."""

    def __init__(self, title: str) -> None:
        self._watched = stderr.is_terminal
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[more]}"),
            console=stderr,
            transient=True,
            disable=not self._watched,
        )
        self._task: TaskID = self._bar.add_task(title, total=None, more="")
        self._title, self._begun = title, time.monotonic()
        self._total: int | None = None
        self._reward = self._validation = ""
        self._seconds: list[float] = []

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def stage(self, text: str) -> None:
        """What is being done now."""
        self._bar.update(self._task, more=text)
        if not self._watched:
            stderr.print(f"[dim]{self._elapsed()}[/] {text}")

    def expect(self, steps: int | None, *, done: int = 0) -> None:
        """How many steps there are in all, None where nobody knows."""
        self._total = steps
        self._bar.update(self._task, total=steps, completed=done)

    def step(self, step: Step) -> None:
        """A step is through."""
        if step.reward is not None:
            self._reward = f"reward {step.reward:.3f}"
        if step.validation is not None:
            self._validation = f"validation {step.validation:.3f}"
        if step.seconds is not None:
            self._seconds.append(step.seconds)
        left = self._left(step.number)
        text = "  ".join(filter(None, (self._reward, self._validation, left)))
        self._bar.update(self._task, completed=step.number, more=text)
        if not self._watched:
            total = f"/{self._total}" if self._total else ""
            stderr.print(f"[dim]{self._elapsed()}[/] step {step.number}{total}  {text}")

    def _left(self, done: int) -> str:
        if self._total is None or not self._seconds or done >= self._total:
            return ""
        recent = self._seconds[-RECENT:]
        return f"{clock((self._total - done) * sum(recent) / len(recent))} left"

    def _elapsed(self) -> str:
        return clock(time.monotonic() - self._begun)


def clock(seconds: float) -> str:
    """`1:05` or `2:03:04`."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
