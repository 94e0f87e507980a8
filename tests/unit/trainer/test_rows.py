"""From a batch of prompts to rows, and to what the workers take."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from verl.utils import tensordict_utils as tu

from verl_tool.trainer.ppo.rows import as_prompts, padded, rows_of


def a_batch(uids: list[str], **columns: list[Any]) -> Any:
    prompts = [[{"role": "user", "content": f"question {uid}"}] for uid in uids]
    fields = {
        "uid": objects(uids),
        "raw_prompt": objects(prompts),
        "extra_info": objects([{"index": i} for i in range(len(uids))]),
        **{name: objects(values) for name, values in columns.items()},
    }
    batch = tu.get_tensordict(fields)
    tu.assign_non_tensor_data(batch, "global_steps", 3)
    tu.assign_non_tensor_data(batch, "validate", True)
    return batch


def objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_each_prompt_runs_as_often_as_asked_and_nowhere_else_again() -> None:  # R4
    rows = rows_of(a_batch(["a", "b"]), samples=2)

    assert [(row.uid, row.session) for row in rows] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert [row.key for row in rows] == ["a_0_0", "a_1_0", "b_0_0", "b_1_0"]
    prompts = as_prompts(rows, validate=True, global_steps=3, record=False)
    assert len(prompts) == 4, "the worker is given the rows, and no number of samples"
    assert "n" not in prompts.meta_info


def test_a_prompts_own_number_of_samples_goes_before_the_batchs() -> None:
    rows = rows_of(a_batch(["a", "b"], __rollout_n__=[3, 1]), samples=2)

    assert [row.uid for row in rows] == ["a", "a", "a", "b"]
    assert "__rollout_n__" not in rows[0].fields


def test_a_rows_fields_are_the_data_sets_without_what_is_said_once_a_batch() -> None:
    row = rows_of(a_batch(["a"]), samples=1)[0]

    assert row.fields["raw_prompt"] == [{"role": "user", "content": "question a"}]
    assert not {"validate", "global_steps"} & row.fields.keys()


@given(rows=st.integers(1, 9), divisor=st.integers(1, 6))
def test_padding_makes_the_rows_divisible_and_comes_last(rows: int, divisor: int) -> None:  # R14
    real = rows_of(a_batch([f"u{i}" for i in range(rows)]), samples=1)

    given_out = padded(real, divisor=divisor)

    assert len(given_out) % divisor == 0
    assert len(given_out) - rows < divisor
    assert given_out[:rows] == real
    assert len({row.trajectory_id for row in given_out}) == len(given_out), "no padding shares another row's session"


def test_fewer_rows_than_replicas_give_each_replica_one() -> None:  # R14
    real = rows_of(a_batch(["a"]), samples=1)

    assert [row.padding for row in padded(real, divisor=4)] == [0, 1, 2, 3]


def test_rows_of_one_prompt_do_not_share_what_a_tool_may_write_into() -> None:
    prompts = as_prompts(rows_of(a_batch(["a"]), samples=2), validate=False, global_steps=1, record=False)

    first, second = prompts.non_tensor_batch["extra_info"]
    first["seen"] = True
    assert "seen" not in second


def test_prompts_carry_what_the_worker_needs_to_know() -> None:
    prompts = as_prompts(rows_of(a_batch(["a"]), samples=1), validate=True, global_steps=3, record=True)

    assert prompts.non_tensor_batch["traj_ids"].tolist() == ["a_0"]
    assert prompts.meta_info == {"validate": True, "global_steps": 3, "do_sample": True, "record_trajectories": True}


@pytest.mark.parametrize("samples", [1, 4])
def test_no_row_is_lost_or_doubled(samples: int) -> None:
    rows = rows_of(a_batch(list("abcde")), samples=samples)

    assert len({row.key for row in rows}) == len(rows) == 5 * samples
