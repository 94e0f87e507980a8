"""Rewards: what the reward function is told, and what it may give."""

import math
from typing import Any

import pytest
import torch
from verl import DataProto

from verl_tool.errors import RewardError
from verl_tool.trainer.ppo.rows import Row, objects
from verl_tool.trainer.ppo.scoring import as_score, scoring_input


def an_output(rows: int) -> DataProto:
    names = ("prompts", "responses", "attention_mask", "input_ids", "position_ids", "response_mask")
    known: dict[str, list[Any]] = {
        "turns_stats": [1] * rows,
        "turn_rewards": [[0.5]] * rows,
        "tool_interact_info": [[{"action": "x"}]] * rows,
        "finish_reason": ["answered"] * rows,
    }
    return DataProto.from_dict(
        tensors={name: torch.ones(rows, 2, dtype=torch.int64) for name in names},
        non_tensors={name: objects(values) for name, values in known.items()},
    )


def test_the_reward_function_is_told_of_the_tools_and_of_the_end() -> None:
    row = Row("u", 0, {"data_source": "sums", "reward_model": {"ground_truth": "3"}, "extra_info": {"index": 4}})

    data = scoring_input([row], an_output(1))

    assert data.non_tensor_batch["tool_extra_fields"][0] == {
        "turn_rewards": [0.5],
        "tool_interact_info": [{"action": "x"}],
        "finish_reason": "answered",
    }
    assert data.non_tensor_batch["reward_model"][0] == {"ground_truth": "3"}


def test_samples_of_one_prompt_do_not_share_extra_info() -> None:
    """verl's reward manager writes each row's own fields into it while others are still being scored."""
    shared: dict[str, Any] = {"index": 4}
    rows = [Row("u", session, {"data_source": "sums", "extra_info": shared}) for session in range(2)]

    first, second = scoring_input(rows, an_output(2)).non_tensor_batch["extra_info"]

    first["finish_reason"] = "answered"
    assert second == {"index": 4} == shared


def test_a_number_is_a_reward_and_what_comes_with_it_is_kept() -> None:
    score = as_score({"reward_score": True, "reward_extra_info": {"acc": 1.0}})

    assert (score.reward, score.extra) == (1.0, {"acc": 1.0})


@pytest.mark.parametrize("given", [None, "right", math.nan, math.inf, [1.0]])
def test_what_is_no_finite_number_is_refused_in_one_clear_error(given: Any) -> None:
    with pytest.raises(RewardError, match="reward function gave"):
        as_score({"reward_score": given})
