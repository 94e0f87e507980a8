"""The page as one HTML text: everything in it is computed here or before, the template only lays it out."""

import time
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from verl_tool.report import numbers
from verl_tool.report.curves import key_charts, reward_chart, rewards, step_range
from verl_tool.report.endings import MEANING, endings
from verl_tool.report.facts import End
from verl_tool.report.history import History, Series
from verl_tool.report.plot import sparkline
from verl_tool.report.run import Run
from verl_tool.report.trajectories import Chosen, choose
from verl_tool.report.transcript import MOST_CHARS, SPECIAL, Transcript, transcript

MOST_BYTES = 2_000_000
_MOST_METRICS = 400  # in the table of all
_BUDGETS = (MOST_CHARS, MOST_CHARS // 4, MOST_CHARS // 32)  # characters a trajectory, the first that fits
_ENDS = {
    End.FINISHED: ("good", "finished"),
    End.INTERRUPTED: ("mid", "interrupted"),
    End.FAILED: ("bad", "failed"),
    End.RUNNING: ("mid", "still going"),
    End.UNKNOWN: ("mid", "end not recorded"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that matters, where it began and where it is."""

    label: str
    value: str
    before: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A trajectory with what its head says."""

    chosen: Chosen
    transcript: Transcript
    reward: str
    tool_reward: str  # sum of those given with observations
    meaning: str  # of its finish reason
    task: str  # the last line of the prompt that says something


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric in the table of all."""

    name: str
    line: str
    first: str
    last: str
    low: str
    high: str


def render(run: Run, *, now: float | None = None) -> str:
    """The page, under MOST_BYTES whatever the run holds."""
    now = time.time() if now is None else now
    page = ""
    for budget in _BUDGETS:
        page = _render(run, now, budget)
        if len(page.encode()) < MOST_BYTES:
            break
    return page


def _render(run: Run, now: float, budget: int) -> str:
    environment = Environment(
        loader=PackageLoader("verl_tool.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": numbers.number,
        "percent": numbers.percent,
        "seconds": numbers.seconds,
    }
    facts, history = run.facts, run.history
    look, ended = _ENDS[facts.end]
    return environment.get_template("report.html").render(
        facts=facts,
        look=look,
        ended=ended,
        summary=_summary(run, now),
        figures=_figures(history),
        notes=_notes(run),
        reward=reward_chart(history),
        charts=key_charts(history),
        endings=endings(history),
        groups=[
            (group.title, [_card(chosen, budget) for chosen in group.chosen])
            for group in choose(run.training, run.validation)
        ],
        metrics=_all_metrics(history),
        made=numbers.moment(now),
    )


def _summary(run: Run, now: float) -> list[str]:
    """When, how long, how far."""
    facts, last = run.facts, run.history.last_step
    said = []
    if last is not None:
        of = f" of {facts.planned_steps}" if facts.planned_steps else ""
        said.append(f"step {last}{of}")
    if facts.started is not None:
        said.append(f"started {numbers.moment(facts.started)}")
        until = now if facts.end is End.RUNNING else facts.ended
        if until is not None and until > facts.started:
            said.append(f"took {numbers.duration(until - facts.started)}")
    attempts = len(run.history.resumed_after)
    if attempts:
        after = ", ".join(map(str, run.history.resumed_after[-8:]))
        said.append(f"resumed after step {after}")
    return said


def _figures(history: History) -> list[Figure]:
    found = []
    known = rewards(history)
    for source, series in list(known.validation.items())[:2]:
        label = "Validation reward" if len(known.validation) == 1 else f"Validation reward, {source}"
        found.append(_from_to(label, series, numbers.number))
    if known.train:
        found.append(_from_to("Training reward", known.train, numbers.number))
    if valid := history.get("agent/actions/valid_share"):
        found.append(_from_to("Valid actions", valid, numbers.percent))
    if gap := history.get("agent/logprob_gap/mean"):
        found.append(
            Figure("Log-probability gap", numbers.number(max(gap.values)), note="largest mean of a step, nats")
        )
    if step := history.get("timing_s/step"):
        middle = sorted(step.values)[len(step.values) // 2]
        found.append(Figure("Time a step", numbers.seconds(middle), note="median"))
    return found


def _from_to(label: str, series: Series, text: numbers.Format) -> Figure:
    first, last = series.steps[0], series.steps[-1]
    if first == last:
        return Figure(label, text(series.last), note=f"step {last}")
    return Figure(label, text(series.last), before=text(series.first), note=f"step {first} to {last}")


def _notes(run: Run) -> list[str]:
    """What is missing or was left out."""
    notes = []
    if not run.history.series:
        going = run.facts.end in (End.RUNNING, End.UNKNOWN)
        notes.append(
            "There are no metrics yet: no step has ended." if going else "No step ended, so there are no metrics."
        )
    if not run.training and not run.validation:
        notes.append("There are no trajectories in this run's folder.")
    if skipped := [*run.history.skipped, *(each for batch in run.batches for each in batch.skipped)]:
        places = ", ".join(f"{each.file} line {each.line}" for each in skipped[:5])
        lines = "1 line" if len(skipped) == 1 else f"{len(skipped)} lines"
        notes.append(f"{lines} could not be read and left out: {places}{', …' if len(skipped) > 5 else ''}.")
    if run.history.thinned:
        notes.append("The run is long: its curves show a part of its steps, evenly spread.")
    if partly := [batch for batch in run.batches if batch.partly_read]:
        named = ", ".join(f"{batch.split} step {batch.step} (first {len(batch.records)})" for batch in partly)
        notes.append(f"Trajectories were chosen among part of a step's: {named}.")
    return notes


def _card(chosen: Chosen, budget: int) -> Card:
    record = chosen.record
    given = [call.reward for call in record.tool_calls if call.reward is not None]
    words = [line.strip() for line in SPECIAL.sub("\n", record.prompt[-20_000:]).splitlines()]
    return Card(
        chosen=chosen,
        transcript=transcript(record, most_chars=budget),
        reward="none" if record.reward is None else numbers.number(record.reward),
        tool_reward=numbers.number(sum(given)) if given else "",
        meaning=MEANING.get(record.finish_reason, ""),
        task=next((line for line in reversed(words) if line and line != "assistant"), "")[:160],
    )


def _all_metrics(history: History) -> list[MetricRow]:
    if not history.series:
        return []
    steps = step_range(history)
    return [
        MetricRow(
            name=name[:120],
            line=sparkline(series, steps=steps),
            first=numbers.number(series.first),
            last=numbers.number(series.last),
            low=numbers.number(min(series.values)),
            high=numbers.number(max(series.values)),
        )
        for name, series in list(history.series.items())[:_MOST_METRICS]
    ]
