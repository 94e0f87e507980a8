"""Finished trajectories as verl's TransferQueue holds them."""

from typing import Any

import pytest
import torch
from verl import DataProto

from verl_tool.trainer.ppo.records import Score, is_failed, record_of
from verl_tool.trainer.ppo.rows import Row, objects

PAD = 0


def an_output(**columns: list[Any]) -> DataProto:
    """Two rows: a prompt of 2 and 3 tokens (width 4), a response of 4 and 1 (width 5); a real token has pad's id."""
    known: dict[str, list[Any]] = {
        "turns_stats": [1, 0],
        "finish_reason": ["answered", "engine_error"],
        "weights_version_min": [6, 6],
        "weights_version_max": [7, 6],
        **columns,
    }
    return DataProto.from_dict(
        tensors={
            "prompts": torch.tensor([[PAD, PAD, 11, 12], [PAD, 21, 22, 23]]),
            "responses": torch.tensor([[31, 32, 33, PAD, PAD], [41, PAD, PAD, PAD, PAD]]),
            "attention_mask": torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 0, 0, 0, 0]]),
            "response_mask": torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]]),
            "rollout_log_probs": torch.tensor([[-0.1, 0.0, -0.3, -0.4, 0.0], [0.0] * 5]),
            "tool_rewards": torch.tensor([[0.25, 0.0, 0.0, 0.0, 0.0], [0.0] * 5]),
        },
        non_tensors={name: objects(values) for name, values in known.items()},
    )


def a_row(**fields: Any) -> Row:
    return Row("u", 1, {"data_source": "sums", "uid": "u", **fields})


def test_padding_goes_by_position_and_a_token_with_the_pads_id_stays() -> None:  # R12
    fields = record_of(a_row(), an_output(), 0, Score(1.0), global_steps=7).fields

    assert fields["prompts"].tolist() == [11, 12]
    assert fields["responses"].tolist() == [31, 32, 33, PAD]
    assert fields["input_ids"].tolist() == [11, 12, 31, 32, 33, PAD]
    assert fields["position_ids"].tolist() == [0, 1, 2, 3, 4, 5]


def test_mask_and_log_probabilities_stay_aligned_with_the_tokens() -> None:
    fields = record_of(a_row(), an_output(), 0, Score(1.0), global_steps=7).fields

    assert fields["response_mask"].tolist() == fields["loss_mask"].tolist() == [1, 0, 1, 1]
    assert fields["rollout_log_probs"].tolist() == pytest.approx([-0.1, 0.0, -0.3, -0.4])


def test_a_tools_reward_is_at_its_action_and_the_functions_at_the_last_token() -> None:
    fields = record_of(a_row(), an_output(), 0, Score(1.0), global_steps=7).fields

    assert fields["rm_scores"].tolist() == [0.25, 0.0, 0.0, 1.0]


def test_without_a_score_verl_is_left_to_compute_it() -> None:
    assert "rm_scores" not in record_of(a_row(), an_output(), 0, None, global_steps=7).fields


def test_the_tag_tells_lengths_and_the_versions_of_the_weights() -> None:
    record = record_of(a_row(), an_output(), 0, Score(1.0), global_steps=7)

    assert record.key == "u_1_0"
    assert record.tag == {
        "status": "success",
        "prompt_len": 2,
        "response_len": 4,
        "seq_len": 6,
        "global_steps": 7,
        "min_global_steps": 6,
        "max_global_steps": 7,
    }


def test_the_data_sets_fields_and_the_reward_functions_extras_are_kept() -> None:
    fields = record_of(a_row(ground_truth="3"), an_output(), 0, Score(1.0, {"acc": 1.0}), global_steps=7).fields

    assert fields["data_source"] == "sums"
    assert fields["extra_fields"]["reward_extra_info"] == {"acc": 1.0}
    assert fields["extra_fields"]["finish_reason"] == "answered"
    assert fields["num_turns"] == 4


def test_a_row_is_failed_only_where_the_model_is_not_to_blame() -> None:
    assert [is_failed(an_output(), index) for index in (0, 1)] == [False, True]
