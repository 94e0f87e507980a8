"""Curves as geometry: axes, ticks and paths. Numbers in, strings for an SVG out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from verl_tool.report.history import Series
from verl_tool.report.numbers import Format

WIDTH, HEIGHT = 2000, 1000  # of the SVG's own grid, stretched to whatever room there is
MOST_POINTS = 400  # of a line
FEW_POINTS = 40  # up to here each point has a dot


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`, linear or by powers of ten."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        low, high, value = (
            (math.log10(each) for each in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return (value - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float  # per cent of its length
    text: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot."""

    path: str
    dots: str  # a path of points, "" where there are too many
    steps: str  # what the pointer reads, as numbers with spaces between
    values: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot's lines and axes."""

    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    first: int  # the steps at the ends of the x axis
    last: int
    marks: tuple[float, ...] = ()  # per cent of the x axis


def plot(
    series: Sequence[Series],
    *,
    steps: tuple[int, int],
    text: Format,
    bounds: tuple[float, float] | None = None,
    log: bool = False,
    marks: Sequence[int] = (),
) -> Plot:
    """Lines over common axes; `bounds` is shown whole where the values are within it."""
    first, last = steps
    x = Axis(first - 0.5, last + 0.5) if first == last else Axis(first, last)
    values = [value for line in series for value in line.values]
    y, y_ticks = _value_axis(values, bounds, log)
    return Plot(
        curves=tuple(_curve(thinned(line), x, y) for line in series),
        x_ticks=tuple(Tick(_percent(x, tick), str(tick)) for tick in step_ticks(first, last)),
        y_ticks=tuple(Tick(_percent(y, tick), text(tick)) for tick in y_ticks),
        first=first,
        last=last,
        marks=tuple(_percent(x, mark) for mark in marks if x.low <= mark <= x.high),
    )


def sparkline(series: Series, *, steps: tuple[int, int], bounds: tuple[float, float] | None = None) -> str:
    """The path of a small line without axes."""
    first, last = steps
    x = Axis(first - 0.5, last + 0.5) if first == last else Axis(first, last)
    low, high = bounds or (min(series.values), max(series.values))
    y = Axis(low, high) if high > low else Axis(low - 1, low + 1)
    return _path(thinned(series, 60), x, y)


def smoothed(series: Series) -> Series | None:
    """A running mean over about a fifteenth of the points, None where there are too few for that to help."""
    if len(series.values) < FEW_POINTS:
        return None
    reach = max(2, len(series.values) // 30)
    sums = [0.0]
    for value in series.values:
        sums.append(sums[-1] + value)
    ends = [(max(0, at - reach), min(len(series.values), at + reach + 1)) for at in range(len(series.values))]
    return Series(series.steps, tuple((sums[end] - sums[start]) / (end - start) for start, end in ends))


def thinned(series: Series, most: int = MOST_POINTS) -> Series:
    """At most `most` points: of each stretch its lowest and its highest, so that no spike is lost."""
    count = len(series.values)
    if count <= most:
        return series
    stretches = most // 2 - 1
    kept = {0, count - 1}
    for stretch in range(stretches):
        places = range(stretch * count // stretches, (stretch + 1) * count // stretches)
        kept |= {min(places, key=series.values.__getitem__), max(places, key=series.values.__getitem__)}
    order = sorted(kept)
    return Series(tuple(series.steps[at] for at in order), tuple(series.values[at] for at in order))


def step_ticks(first: int, last: int, about: int = 6) -> list[int]:
    """Round steps, the ends left to chance."""
    if first == last:
        return [first]
    size = max(1, round(_nice((last - first) / about)))
    return list(range(-(-first // size) * size, last + 1, size))


def value_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round values from below `low` to above `high`; the axis ends at the outer ones."""
    size = _nice((high - low) / about)
    bottom, top = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return [tick * size for tick in range(bottom, top + 1)]


def _nice(size: float) -> float:
    """1, 2 or 5 times a power of ten, near the size."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(factor * power for factor in (1, 2, 5, 10) if size <= factor * power * 1.2)


def _value_axis(values: Sequence[float], bounds: tuple[float, float] | None, log: bool) -> tuple[Axis, list[float]]:
    low, high = min(values), max(values)
    if bounds and bounds[0] <= low and high <= bounds[1]:
        low, high = bounds
    elif log and low > 0:
        bottom, top = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        top = max(top, bottom + 1)
        every = max(1, math.ceil((top - bottom) / 4))
        return Axis(10.0**bottom, 10.0**top, log=True), [10.0**power for power in range(bottom, top + 1, every)]
    if not _can_be_told_apart(low, high):
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin if low < 0 or low - margin > 0 else 0.0, high + margin
    if 0 < low < 0.4 * high:
        low = 0.0
    ticks = value_ticks(low, high)
    return Axis(ticks[0], ticks[-1]), ticks


def _can_be_told_apart(low: float, high: float) -> bool:
    return high - low > 1e-9 * max(abs(low), abs(high))


def _curve(series: Series, x: Axis, y: Axis) -> Curve:
    return Curve(
        path=_path(series, x, y),
        dots=_dots(series, x, y) if len(series.values) <= FEW_POINTS else "",
        steps=" ".join(map(str, series.steps)),
        values=" ".join(f"{value:.4g}" for value in series.values),
    )


def _path(series: Series, x: Axis, y: Axis) -> str:
    points = [_point(step, value, x, y) for step, value in zip(series.steps, series.values, strict=True)]
    return "M" + "L".join(points)


def _dots(series: Series, x: Axis, y: Axis) -> str:
    """Lines of no length: with round ends they are round dots, however the grid is stretched."""
    points = [_point(step, value, x, y) for step, value in zip(series.steps, series.values, strict=True)]
    return "".join(f"M{point}h0" for point in points)


def _point(step: int, value: float, x: Axis, y: Axis) -> str:
    if y.log:
        value = max(value, y.low)
    return f"{round(x.place(step) * WIDTH)} {round((1 - y.place(value)) * HEIGHT)}"


def _percent(axis: Axis, value: float) -> float:
    return round(100 * axis.place(value), 2)
