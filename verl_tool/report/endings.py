"""Why trajectories ended, from the shares that are logged with every step."""

from dataclasses import dataclass

from verl_tool.report.curves import step_range
from verl_tool.report.history import History, Series
from verl_tool.report.numbers import percent
from verl_tool.report.plot import sparkline

_PREFIX = "agent/finish/"
MEANING = {
    "answered": "the model ended its turn and asked for no tool",
    "tool_done": "the tool said that the task is done",
    "max_turns": "the last turn's action was run",
    "truncated": "a length was used up",
    "tool_error": "the tool failed; not trained on",
    "tool_server_error": "the tool server gave no usable answer; not trained on",
    "engine_error": "the engine failed, took too long or gave up; not trained on",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """A reason, and the share of trajectories that ended by it."""

    reason: str
    meaning: str
    first: str  # at the first step of training
    last: str
    mean: str  # over all steps
    mean_percent: float
    line: str  # an SVG path over the steps, from 0 to 1
    validation: str  # at the last validation, "" without one


def endings(history: History) -> list[Ending]:
    """The reasons that ever occurred, the most frequent first."""
    found = [
        (name.removeprefix(_PREFIX), series) for name, series in history.series.items() if name.startswith(_PREFIX)
    ]
    rows = []
    for reason, series in found:
        validation = history.get(f"val-{_PREFIX}{reason}")
        if any(series.values) or (validation and any(validation.values)):
            rows.append(_ending(reason, series, validation, history))
    return sorted(rows, key=lambda row: -row.mean_percent)


def _ending(reason: str, series: Series, validation: Series | None, history: History) -> Ending:
    mean = sum(series.values) / len(series.values)
    return Ending(
        reason=reason,
        meaning=MEANING.get(reason, ""),
        first=percent(series.first),
        last=percent(series.last),
        mean=percent(mean),
        mean_percent=round(100 * min(max(mean, 0.0), 1.0), 1),
        line=sparkline(series, steps=step_range(history), bounds=(0, 1)),
        validation=percent(validation.last) if validation else "",
    )
