"""A process of a run, started under its guard: logged to a file, stopped in order, nothing of it left behind."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from verl_tool.cli import guard
from verl_tool.errors import RunError

SWEEP_SECONDS = guard.TERM_SECONDS + guard.KILL_SECONDS + 5


class Child:
    """One guarded command. `name` is what people call it."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path, grace: float) -> None:
        self.name, self.log = name, log
        self._process, self._grace = process, grace

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        folder: Path,
        grace: float = 30.0,
        scratch: Path | None = None,
    ) -> Self:
        """Starts `command` in `folder`; `grace` is the time it has to end by itself when it is stopped."""
        options = ["--grace", str(grace), *(["--scratch", str(scratch)] if scratch else [])]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", guard.__file__, *options, "--", *command,
                stdin=asyncio.subprocess.PIPE,  # its end tells the guard that we have gone
                stdout=output,
                stderr=output,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,  # a Ctrl-C at the terminal is ours to hand on
            )  # fmt: skip
        return cls(name, process, log, grace)

    async def wait(self) -> int:
        """The exit code; 128 + n after signal n."""
        return await self._process.wait()

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def stop(self, *, at_once: bool = False) -> None:
        """Ends it and all that came of it; returns when that is done. Cancelled meanwhile, it ends it at once."""
        if not self.running:
            return
        try:
            await self._end(signal.SIGINT if at_once else signal.SIGTERM, 0 if at_once else self._grace)
        except asyncio.CancelledError:
            await self._end(signal.SIGINT, 0)
            raise

    async def _end(self, number: signal.Signals, grace: float) -> None:
        self._signal(number)
        limit = SWEEP_SECONDS + grace
        try:
            await asyncio.wait_for(self.wait(), limit)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            raise RunError(f"{self.name} could not be ended within {limit:.0f} s; see {self.log}") from None

    def failure(self, code: int) -> RunError:
        """Its end in a sentence: its own last error, or the signal that ended it."""
        if (said := last_error(self.log)) is not None:
            return RunError(said)
        if code == 128 + signal.SIGKILL:
            return RunError(f"{self.name} was killed, most likely for want of memory; see {self.log}")
        how = f"by {signal.Signals(code - 128).name}" if code - 128 in set(signal.Signals) else f"with code {code}"
        return RunError(f"{self.name} ended {how}; see {self.log}")

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def last_error(log: Path) -> str | None:
    """The text of the last `error: …` line near the end of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 65536))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return next((line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")), None)
