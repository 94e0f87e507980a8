"""Arithmetic from reasoning-gym as rows of verl's data sets: training and validation share no question."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import reasoning_gym

# Too long for a small network to work out digit by digit, trivial for one line of Python.
SOURCES: Final[Mapping[str, Mapping[str, Any]]] = {
    "products": {"min_terms": 2, "max_terms": 2, "min_digits": 3, "max_digits": 4},
    "chain_sum": {"min_terms": 2, "max_terms": 2, "min_digits": 3, "max_digits": 4},
}


@dataclass(frozen=True)
class Task:
    """One question with its answer, and the bare expression behind it."""

    source: str
    question: str
    expression: str
    answer: str


def make_tasks(size: int, *, seed: int, without: Collection[Task] = ()) -> list[Task]:
    """`size` different tasks, the sources in turn, none of whose questions is among those of `without`."""
    seen = {task.question for task in without}
    streams = [_stream(source, seed=seed) for source in SOURCES]
    tasks: list[Task] = []
    while len(tasks) < size:
        task = next(streams[len(tasks) % len(streams)])
        if task.question not in seen:
            seen.add(task.question)
            tasks.append(task)
    return tasks


def write_parquet(tasks: Sequence[Task], path: Path, *, split: str) -> None:
    """The tasks as a file that verl's data loader reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [verl_row(task, index=index, split=split) for index, task in enumerate(tasks)]
    pq.write_table(pa.Table.from_pylist(rows), path)


def verl_row(task: Task, *, index: int, split: str) -> dict[str, Any]:
    """One row in verl's columns."""
    return {
        "data_source": task.source,
        "prompt": [{"role": "user", "content": task.question}],
        "ability": "arithmetic",
        "reward_model": {"style": "rule", "ground_truth": task.answer},
        "extra_info": {"index": index, "split": split, "question": task.question},
    }


_CHUNK = 1_000_000  # reasoning-gym draws item i from the seed `seed + i`: neighbouring seeds would share their items


def _stream(source: str, *, seed: int) -> Iterator[Task]:
    data = reasoning_gym.create_dataset(source, seed=seed * _CHUNK, size=_CHUNK, **SOURCES[source])
    for item in data:
        yield Task(source, item["question"], item["metadata"]["expression"], item["answer"])
