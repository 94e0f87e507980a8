"""What a run ends with in the terminal: the reward curve, and validation before and after."""

from collections.abc import Sequence
from itertools import pairwise

from verl_tool.cli.metrics_file import validation_reward
from verl_tool.report.history import History
from verl_tool.report.wanted import TRAIN_REWARD

HEIGHT, MOST_COLUMNS = 8, 64
Points = Sequence[tuple[int, float]]


def curve(points: Points, *, height: int = HEIGHT, columns: int = MOST_COLUMNS) -> list[str]:
    """The values over the steps as lines of text; with more steps than columns, each column is a mean."""
    if not points:
        return []
    shown = _thinned(points, columns)
    wide = max(1, min(3, columns // len(shown)))
    values = [value for _, value in shown]
    low, high = min(0.0, *values), max(1.0, *values) if max(values) <= 1.0 else max(values)
    levels = [round((value - low) / ((high - low) or 1.0) * height * 8) for value in values]
    lines = []
    for row in reversed(range(height)):
        blocks = (" ▁▂▃▄▅▆▇█"[max(0, min(8, level - row * 8))] * wide for level in levels)
        label = high if row == height - 1 else low if row == 0 else None
        lines.append(f"{'' if label is None else f'{label:.2f}':>7} │{''.join(blocks)}")
    first, last = str(points[0][0]), str(points[-1][0])
    room = max(len(shown) * wide - len(first), len(last) + 1)
    return [*lines, f"{'':>7} └{'─' * (len(shown) * wide)}", f"{'step':>7}  {first}{last:>{room}}"]


def train_rewards(history: History) -> list[tuple[int, float]]:
    """The mean reward of each step."""
    series = history.get(TRAIN_REWARD)
    return list(zip(series.steps, series.values, strict=True)) if series else []


def validations(history: History) -> list[tuple[int, float]]:
    """The mean validation reward of the steps that were validated."""
    steps: dict[int, dict[str, float]] = {}
    for name, series in history.series.items():
        for number, value in zip(series.steps, series.values, strict=True):
            steps.setdefault(number, {})[name] = value
    found = [(number, validation_reward(data)) for number, data in sorted(steps.items())]
    return [(number, value) for number, value in found if value is not None]


def _thinned(points: Points, columns: int) -> list[tuple[int, float]]:
    if len(points) <= columns:
        return list(points)
    bounds = [len(points) * column // columns for column in range(columns + 1)]
    parts = [points[start:stop] for start, stop in pairwise(bounds)]
    return [(part[0][0], sum(value for _, value in part) / len(part)) for part in parts]
