"""Trajectories of a run that are worth a look: a bounded number read, a few of those chosen."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from verl_tool.llm_agent.record import TrajectoryRecord
from verl_tool.report.lines import Skipped, raw_lines

MOST_READ = 512  # of each file: the first and the last step of training and of validation
MOST_BYTES = 64 * 1024 * 1024  # of each file


@dataclass(frozen=True, slots=True)
class Batch:
    """What was read of one step's file."""

    split: str  # "training" or "validation"
    step: int
    records: tuple[TrajectoryRecord, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    partly_read: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """A trajectory, and why it is shown."""

    why: str
    split: str
    record: TrajectoryRecord

    @property
    def key(self) -> tuple[str, int, str, int]:
        """Which one it is."""
        return self.split, self.record.step, self.record.uid, self.record.session


@dataclass(frozen=True, slots=True)
class Group:
    """Trajectories that are shown beside each other."""

    title: str
    chosen: tuple[Chosen, ...]


def read_first_and_last(folder: Path, split: str) -> list[Batch]:
    """The batches of the first and of the last step there is, one if they are the same, none without files."""
    files = sorted((int(file.stem), file) for file in folder.glob("*.jsonl") if file.stem.isdecimal())
    ends = [files[0], files[-1]] if len(files) > 1 else files
    return [read_batch(file, split, step) for step, file in ends]


def read_batch(file: Path, split: str, step: int) -> Batch:
    """The first trajectories of a file; a line that is no trajectory is left out and told of."""
    records: list[TrajectoryRecord] = []
    skipped: list[Skipped] = []
    size = 0
    for line, raw in raw_lines(file):
        size += len(raw or b"")
        if len(records) + len(skipped) >= MOST_READ or size > MOST_BYTES:
            return Batch(split, step, tuple(records), tuple(skipped), partly_read=True)
        try:
            records.append(TrajectoryRecord.model_validate_json(raw or b""))
        except ValueError:
            skipped.append(Skipped(f"{split} {file.name}", line))
    return Batch(split, step, tuple(records), tuple(skipped))


def choose(training: Sequence[Batch], validation: Sequence[Batch]) -> list[Group]:
    """One task before and after training, then the best and the worst of each batch; none is shown twice."""
    groups = [
        _before_and_after(validation) or _before_and_after(training),
        *(_ends(batch, _title(batch, training)) for batch in training),
        *(_ends(batch, _title(batch, validation)) for batch in validation[-1:]),
        _faults([*training, *validation]),
    ]
    return list(_without_repeats(group for group in groups if group is not None))


def _title(batch: Batch, batches: Sequence[Batch]) -> str:
    place = "" if len(batches) < 2 else " last" if batch is batches[-1] else " first"
    return f"{batch.split},{place} step ({batch.step})"


def _before_and_after(batches: Sequence[Batch]) -> Group | None:
    """The prompt whose reward rose most between two batches, first its worst row and then its best."""
    if len(batches) < 2:
        return None
    first, last = batches
    before = {record.prompt: record for record in reversed(_by_reward(first.records))}
    after = {record.prompt: record for record in _by_reward(last.records)}
    pairs = [(before[prompt], after[prompt]) for prompt in before.keys() & after.keys()]
    if not pairs:
        return None
    early, late = max(
        pairs, key=lambda pair: (_reward(pair[1]) - _reward(pair[0]), len(pair[1].tool_calls), pair[1].uid)
    )
    return Group(
        f"The same {first.split} task before and after",
        (Chosen("before", first.split, early), Chosen("after", last.split, late)),
    )


def _ends(batch: Batch, title: str) -> Group | None:
    """The best and the worst trajectory of a batch, one of them if all have the same reward."""
    ranked = _by_reward(batch.records)
    if not ranked:
        return None
    worst, best = ranked[0], ranked[-1]
    if _reward(worst) == _reward(best):
        told = "no reward recorded" if best.reward is None else "all have this reward"
        return Group(title, (Chosen(told, batch.split, best),))
    return Group(title, (Chosen("best reward", batch.split, best), Chosen("worst reward", batch.split, worst)))


def _faults(batches: Iterable[Batch]) -> Group | None:
    """A row in which the tool failed, and one in which the tool itself gave a reward."""
    rows = [(batch.split, record) for batch in batches for record in batch.records]
    failed = next((row for row in rows if row[1].finish_reason.endswith("_error")), None)
    rewarded = next((row for row in rows if any(call.reward for call in row[1].tool_calls)), None)
    chosen = [
        *([Chosen("a row that failed", *failed)] if failed else []),
        *([Chosen("rewarded by the tool", *rewarded)] if rewarded else []),
    ]
    return Group("Also of interest", tuple(chosen)) if chosen else None


def _by_reward(records: Iterable[TrajectoryRecord]) -> list[TrajectoryRecord]:
    """From the worst to the best; among equals those with tool calls are further out at both ends."""
    records = list(records)
    if not records:
        return []
    middle = sorted(_reward(record) for record in records)[len(records) // 2]

    def rank(record: TrajectoryRecord) -> tuple[float, int, str, int]:
        calls = len(record.tool_calls)
        return _reward(record), calls if _reward(record) >= middle else -calls, record.uid, record.session

    return sorted(records, key=rank)


def _reward(record: TrajectoryRecord) -> float:
    return record.reward if record.reward is not None and math.isfinite(record.reward) else 0.0


def _without_repeats(groups: Iterable[Group]) -> Iterator[Group]:
    seen: set[tuple[str, int, str, int]] = set()
    for group in groups:
        fresh = tuple(chosen for chosen in group.chosen if chosen.key not in seen)
        seen.update(chosen.key for chosen in fresh)
        if fresh:
            yield replace(group, chosen=fresh)
