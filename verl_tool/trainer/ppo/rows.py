"""The trajectories a batch of prompts asks for, one row each; pure."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tensordict import NonTensorData, NonTensorStack, TensorDict
from verl import DataProto

_BATCH_WIDE = ("validate", "global_steps")  # said once a batch
_SAMPLES = "__rollout_n__"  # verl's name for a prompt's own number of samples


@dataclass(frozen=True, slots=True)
class Row:
    """One trajectory to run: the data set's fields of its prompt, and which of the prompt's samples it is."""

    uid: str
    session: int
    fields: dict[str, Any]
    padding: int = 0  # not 0: run only so that every replica gets as many rows, then dropped

    @property
    def trajectory_id(self) -> str:
        """Names the trajectory to the tool server; padding must not enter another row's session."""
        return f"{self.uid}_{self.session}" + (f"_pad{self.padding}" if self.padding else "")

    @property
    def key(self) -> str:
        """Its key in verl's TransferQueue."""
        return f"{self.uid}_{self.session}_0"


def rows_of(batch: TensorDict, *, samples: int) -> list[Row]:
    """Each prompt of the batch `samples` times, the samples of one prompt together; once and nowhere else repeated."""
    rows = []
    for fields in _prompts(batch):
        count = int(fields.pop(_SAMPLES, samples))
        rows += [Row(str(fields["uid"]), session, fields) for session in range(count)]
    return rows


def padded(rows: Sequence[Row], *, divisor: int) -> list[Row]:
    """The rows, followed by as many copies as make their number divisible."""
    missing = -len(rows) % divisor
    return [*rows, *(replace(rows[index % len(rows)], padding=index + 1) for index in range(missing))]


def as_prompts(rows: Sequence[Row], *, validate: bool, global_steps: int, record: bool) -> DataProto:
    """What the worker's `generate_sequences` takes."""
    return DataProto.from_dict(
        tensors={"row": torch.arange(len(rows))},
        non_tensors={
            "raw_prompt": objects([list(row.fields["raw_prompt"]) for row in rows]),
            "traj_ids": objects([row.trajectory_id for row in rows]),
            "extra_info": objects([copy.deepcopy(row.fields.get("extra_info") or {}) for row in rows]),
        },
        meta_info={
            "validate": validate,
            "global_steps": global_steps,
            "do_sample": True,
            "record_trajectories": record,
        },
    )


def objects(values: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.object_]]:
    """A one-dimensional array of Python objects, lists left whole."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _prompts(batch: TensorDict) -> Iterator[dict[str, Any]]:
    for index in range(len(batch)):
        yield {name: _value(batch, name, index) for name in sorted(batch.keys()) if name not in _BATCH_WIDE}


def _value(batch: TensorDict, name: str, index: int) -> Any:
    column = batch.get(name)
    if isinstance(column, NonTensorStack):
        return column[index].data
    if isinstance(column, NonTensorData):
        return column.data
    return column[index]
