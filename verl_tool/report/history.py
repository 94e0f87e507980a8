"""The metrics of a run by name and step, over all its attempts."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_tool.report.lines import Skipped, json_object, raw_lines

MOST_STEPS = 5000  # held at once; a longer run is thinned out evenly, those with a validation last

Step = int
Data = dict[str, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One metric: the steps it was logged at, in order, and its values there."""

    steps: tuple[Step, ...]
    values: tuple[float, ...]

    @property
    def first(self) -> float:
        """The value at the first step."""
        return self.values[0]

    @property
    def last(self) -> float:
        """The value at the last step."""
        return self.values[-1]


@dataclass(frozen=True, slots=True)
class History:
    """All metrics; a series is never empty."""

    series: Mapping[str, Series]
    resumed_after: tuple[Step, ...] = ()  # the step each later attempt went on from
    skipped: tuple[Skipped, ...] = ()
    thinned: bool = False

    def get(self, name: str) -> Series | None:
        """The metric of that name, if it was ever logged."""
        return self.series.get(name)

    @property
    def last_step(self) -> Step | None:
        """The last step that anything is known of."""
        return max((series.steps[-1] for series in self.series.values()), default=None)


def read_history(files: Sequence[Path]) -> History:
    """Joins the attempts' files, the oldest first: what a later attempt did again replaces what came before."""
    steps: dict[Step, Data] = {}
    skipped: list[Skipped] = []
    resumed: list[Step] = []
    every = 1
    for file in files:
        begun = False
        for line, raw in raw_lines(file):
            entry = _entry(raw)
            if entry is None:
                skipped.append(Skipped(file.name, line))
                continue
            step, data = entry
            if not begun and steps:
                resumed.append(step if _is_validation_only(data) else step - 1)
                for undone in [past for past in steps if past > resumed[-1]]:
                    del steps[undone]
            begun = True
            steps[step] = steps.get(step, {}) | data
            if len(steps) > 2 * MOST_STEPS:
                steps, every = _thin(steps, every)
    steps, every = _thin(steps, every)
    return History(_by_name(steps), tuple(resumed), tuple(skipped), thinned=every > 1)


def _thin(steps: dict[Step, Data], every: int) -> tuple[dict[Step, Data], int]:
    """Every so many of the steps, at least `every`, so that MOST_STEPS are left; and how many that were."""
    last = max(steps, default=0)

    def kept(step: Step, data: Data) -> bool:
        validated = any(name.startswith("val-") for name in data)
        return step % (max(1, every // 32) if validated else every) == 0 or step == last

    while every > 1 or len(steps) > MOST_STEPS:
        steps = {step: data for step, data in steps.items() if kept(step, data)}
        if len(steps) <= MOST_STEPS:
            break
        every *= 2
    return steps, every


def _is_validation_only(data: Data) -> bool:
    return bool(data) and all(name.startswith("val-") for name in data)


def _entry(raw: bytes | None) -> tuple[Step, Data] | None:
    """Step and numbers of a line; None for a line that is none of the logger's."""
    match json_object(raw):
        case {"step": int(step), "data": dict(data)} if abs(step) < 2**53:
            return step, {str(name): value for name, given in data.items() if (value := _finite(given)) is not None}
    return None


def _finite(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond any float
        return None


def _by_name(steps: Mapping[Step, Data]) -> dict[str, Series]:
    points: defaultdict[str, list[tuple[Step, float]]] = defaultdict(list)
    for step in sorted(steps):
        for name, value in steps[step].items():
            points[name].append((step, value))
    return {name: _series(series) for name, series in sorted(points.items())}


def _series(points: Iterable[tuple[Step, float]]) -> Series:
    steps, values = zip(*points, strict=True)
    return Series(steps, values)
