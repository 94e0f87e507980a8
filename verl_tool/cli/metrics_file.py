"""`metrics.jsonl` while it grows: what each step was worth."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_tool.job.run_folder import RunFolder
from verl_tool.report.wanted import TRAIN_REWARD, VALIDATION_REWARD

STEP_SECONDS = "timing_s/step"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the file; None for what the line does not have."""

    number: int
    reward: float | None
    validation: float | None
    seconds: float | None


class MetricsFile:
    """Reads on from where it stopped; a line half written waits."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def new_steps(self) -> Iterator[Step]:
        """The steps written since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return
        whole, newline, _ = text.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in whole.splitlines():
            if (step := parse(line)) is not None:
                yield step


def parse(line: bytes) -> Step | None:
    """A line of verl's file logger, None for what is none."""
    try:
        entry = json.loads(line)
        number, data = int(entry["step"]), entry["data"]
        validation = validation_reward(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Step(number, _number(data.get(TRAIN_REWARD)), validation, _number(data.get(STEP_SECONDS)))


def validation_reward(data: Mapping[str, Any]) -> float | None:
    """The mean over the data sources of what verl calls `val-aux/SOURCE/reward/mean@N`, or `val-core/…`."""
    matches = ((VALIDATION_REWARD.match(name), value) for name, value in data.items())
    found = [value for match, value in matches if match is not None and match["what"] == "reward"]
    numbers = [number for value in found if (number := _number(value)) is not None]
    return sum(numbers) / len(numbers) if numbers else None


def keep_earlier(folder: RunFolder) -> None:
    """Puts the metrics of the attempt before out of the way: verl's logger begins its file anew."""
    if folder.metrics.exists() and folder.metrics.stat().st_size:
        folder.metrics.rename(folder.root / f"metrics.{len(folder.earlier_metrics) + 1}.jsonl")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
