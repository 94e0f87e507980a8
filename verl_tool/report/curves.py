"""The charts of a run: its metrics, drawn where they were logged."""

from collections.abc import Sequence
from dataclasses import dataclass

from verl_tool.report import numbers
from verl_tool.report.history import History, Series
from verl_tool.report.numbers import Format
from verl_tool.report.plot import Plot, plot, smoothed
from verl_tool.report.wanted import KEY_CHARTS, TRAIN_REWARD, VALIDATION, VALIDATION_REWARD, Wanted

_MOST_SOURCES = 3  # of validation data, in one plot

FORMATS: dict[str, Format] = {
    "number": numbers.number,
    "percent": numbers.percent,
    "seconds": numbers.seconds,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line's name and look."""

    label: str
    look: str  # a CSS class
    last: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot with what stands around it."""

    title: str
    unit: str
    hint: str
    lines: tuple[Line, ...]
    plot: Plot


@dataclass(frozen=True, slots=True)
class Rewards:
    """The curves that matter most."""

    train: Series | None
    validation: dict[str, Series]  # by the data's name


def rewards(history: History) -> Rewards:
    """The reward of training and of each kind of validation data: `reward`, else what stands for it."""
    found: dict[str, tuple[tuple[int, int], Series]] = {}
    for name, series in history.series.items():
        if match := VALIDATION_REWARD.match(name):
            rank = ("acc", "score", "reward").index(match["what"]), int(match["samples"][:9])
            if match["source"] not in found or rank > found[match["source"]][0]:
                found[match["source"]] = rank, series
    return Rewards(history.get(TRAIN_REWARD), {source: series for source, (_, series) in sorted(found.items())})


def step_range(history: History) -> tuple[int, int]:
    """The ends of every chart's x axis."""
    firsts, lasts = zip(*((each.steps[0], each.steps[-1]) for each in history.series.values()), strict=True)
    return min(firsts), max(lasts)


def reward_chart(history: History) -> Chart | None:
    """Training and validation over the steps; None when neither was logged."""
    known = rewards(history)
    lines: list[tuple[Series, Line]] = []
    if known.train:
        mean = smoothed(known.train)
        last = numbers.number(known.train.last)
        lines.append((known.train, Line("training, mean of a step", "c1 raw" if mean else "c1", last)))
        if mean:
            lines.append((mean, Line("running mean", "c1", numbers.number(mean.last))))
    several = len(known.validation) > 1
    for place, (source, series) in enumerate(list(known.validation.items())[:_MOST_SOURCES]):
        label = f"validation, {source}" if several else "validation"
        lines.append((series, Line(label, VALIDATION.replace("2", str(2 + place)), numbers.number(series.last))))
    if not lines:
        return None
    return _chart(Wanted("Reward", "", (), bounds=(0, 1)), lines, history)


def key_charts(history: History) -> list[Chart]:
    """Those of KEY_CHARTS that have something to show."""
    charts = []
    for wanted in KEY_CHARTS:
        text = FORMATS[wanted.unit]
        lines = [
            (series, Line(line.label, line.look, text(series.last)))
            for line in wanted.lines
            if (series := history.get(line.metric))
        ]
        highest = max((max(series.values) for series, _ in lines), default=None)
        if highest is None or (wanted.if_ever_above is not None and highest <= wanted.if_ever_above):
            continue
        charts.append(_chart(wanted, lines, history))
    return charts


def _chart(wanted: Wanted, lines: Sequence[tuple[Series, Line]], history: History) -> Chart:
    drawn = plot(
        [series for series, _ in lines],
        steps=step_range(history),
        text=FORMATS[wanted.unit],
        bounds=wanted.bounds,
        log=wanted.log,
        marks=history.resumed_after,
    )
    return Chart(wanted.title, wanted.unit, wanted.hint, tuple(line for _, line in lines), drawn)
