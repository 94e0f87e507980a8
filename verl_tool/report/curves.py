"""Which curves the page shows: a few that tell how a run goes, by the names its logger gives them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from verl_tool.report import numbers
from verl_tool.report.history import History, Series
from verl_tool.report.numbers import Format
from verl_tool.report.plot import Plot, plot, smoothed

TRAIN_REWARD = "critic/score/mean"
VALIDATION = "c2 points"  # the look of validation in every chart
_VALIDATION_REWARD = re.compile(r"^val-(?:core|aux)/(?P<source>.+)/(?P<what>reward|score|acc)/mean@(?P<samples>\d+)$")
_MOST_SOURCES = 3  # of validation data, in one plot

FORMATS: dict[str, Format] = {
    "number": numbers.number,
    "percent": numbers.percent,
    "seconds": numbers.seconds,
}


class WantedLine(NamedTuple):
    """A metric, its label, and its look (CSS classes): c1 is the main line, soft an extreme beside it."""

    metric: str
    label: str
    look: str = "c1"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A chart, drawn with those of its lines that were logged."""

    title: str
    hint: str
    lines: tuple[WantedLine, ...]
    unit: str = "number"
    log: bool = False
    bounds: tuple[float, float] | None = None
    if_ever_above: float | None = None  # shown only then


KEY_CHARTS = (
    Wanted(
        "Log-probability gap",
        "engine against trainer on the same tokens, nats",
        (WantedLine("agent/logprob_gap/max", "max", "soft"), WantedLine("agent/logprob_gap/mean", "mean")),
        log=True,
    ),
    Wanted(
        "Tool turns",
        "a trajectory, mean",
        (WantedLine("agent/turns/mean", "training"), WantedLine("val-agent/turns/mean", "validation", VALIDATION)),
    ),
    Wanted(
        "Valid actions",
        "share of the calls that a tool accepted",
        (
            WantedLine("agent/actions/valid_share", "training"),
            WantedLine("val-agent/actions/valid_share", "validation", VALIDATION),
        ),
        unit="percent",
        bounds=(0, 1),
    ),
    Wanted(
        "Response length",
        "tokens, observations among them",
        (WantedLine("response_length/max", "max", "soft"), WantedLine("response_length/mean", "mean")),
    ),
    Wanted(
        "Tool latency",
        "how long a row waited for a tool's answer",
        (WantedLine("agent/tool/seconds_p95", "p95", "soft"), WantedLine("agent/tool/seconds_p50", "p50")),
        unit="seconds",
    ),
    Wanted("Entropy", "of the policy, nats a token", (WantedLine("actor/entropy", "entropy"),)),
    Wanted("Gradient norm", "before clipping", (WantedLine("actor/grad_norm", "norm"),)),
    Wanted(
        "Policy change",
        "KL, nats",
        (WantedLine("actor/ppo_kl", "since sampling"), WantedLine("actor/kl_loss", "from reference", "c3")),
    ),
    Wanted(
        "Time a step",
        "all of it, and its largest parts",
        (
            WantedLine("timing_s/step", "step"),
            WantedLine("timing_s/gen", "rollout", "c2"),
            WantedLine("timing_s/update_actor", "update", "c3"),
        ),
        unit="seconds",
    ),
    Wanted(
        "Turn length",
        "tokens, mean",
        (
            WantedLine("agent/generation_tokens/mean", "generation"),
            WantedLine("agent/observation_tokens/mean", "observation", "c2"),
        ),
    ),
    Wanted("Throughput", "tokens a second, prompts among them", (WantedLine("perf/throughput", "tokens/s"),)),
    Wanted("Memory", "of the machine, GB", (WantedLine("actor/perf/cpu_memory_used_gb", "used"),)),
    Wanted(
        "Tool rewards", "given with observations, a trajectory", (WantedLine("agent/tool/reward_mean", "mean sum"),)
    ),
    Wanted(
        "Failed rows",
        "share that the engine or the tool server failed",
        (WantedLine("agent/failed_share", "training"), WantedLine("val-agent/failed_share", "validation", VALIDATION)),
        unit="percent",
        if_ever_above=0.0,
    ),
    Wanted(
        "Tool errors",
        "calls in which the tool itself failed",
        (WantedLine("agent/tool/errors", "calls"),),
        if_ever_above=0.0,
    ),
)


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
        if match := _VALIDATION_REWARD.match(name):
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
