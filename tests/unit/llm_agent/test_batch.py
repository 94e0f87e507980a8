"""From rows to tensors: masks by position, widths within limits, loss where it belongs."""

from typing import Any

import pytest

from tests.unit.llm_agent.builders import (
    a_config,
    a_runner,
    a_task,
    a_tokenizer,
    an_engine,
    calls_python,
    says,
    some_limits,
    tools_say,
)
from verl_tool.errors import DataError
from verl_tool.llm_agent.batch import compose_columns, compose_tensors, gets_loss, trajectory_record
from verl_tool.llm_agent.chat import ChatTemplate
from verl_tool.llm_agent.engine import EngineFinish
from verl_tool.llm_agent.metrics import METRICS, row_stats, summarise
from verl_tool.llm_agent.prompts import make_task, plain_json
from verl_tool.llm_agent.record import TrajectoryRecord
from verl_tool.llm_agent.trajectory import FinishReason, Trajectory

LIMITS = some_limits(prompt=16, response=64, response_width=64)


async def a_row(config: Any = None, **tool: Any) -> Trajectory:
    return await a_runner(an_engine(calls_python(), says("3")), tools_say("[3]", **tool), config=config).run(a_task())


async def test_tensors_hold_the_row_by_position() -> None:
    row = await a_row()
    config = a_config()
    tensors = compose_tensors([row, row], config=config, limits=LIMITS, pad_id=0)
    prompt, response = row.stream.prompt, row.stream.response
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == {
        "prompts": (2, 16),
        "responses": (2, 64),
        "responses_with_loss_mask": (2, 64),
        "input_ids": (2, 80),
        "attention_mask": (2, 80),
        "position_ids": (2, 80),
        "loss_mask": (2, 80),
        "response_mask": (2, 64),
        "rollout_log_probs": (2, 64),
        "tool_rewards": (2, 64),
    }
    start, stop = 16 - len(prompt), 16 + len(response)
    assert tensors["input_ids"][0, start:stop].tolist() == prompt + response
    assert tensors["attention_mask"][0].nonzero().flatten().tolist() == list(range(start, stop))
    assert tensors["position_ids"][0, start:stop].tolist() == list(range(len(prompt) + len(response)))
    assert tensors["loss_mask"][0, 16:].tolist() == tensors["response_mask"][0].tolist()
    trained = tensors["response_mask"][0].bool()
    assert tensors["responses"][0][trained].tolist() == [*calls_python().token_ids, *says("3").token_ids]
    assert (tensors["rollout_log_probs"][0][trained] == -0.25).all()
    assert (tensors["rollout_log_probs"][0][~trained] == 0).all()
    assert (tensors["responses_with_loss_mask"][0][~trained] == 0).all()


@pytest.mark.parametrize("mask_observations", [True, False])
async def test_observations_get_loss_only_if_asked_for_and_the_prompt_never(mask_observations: bool) -> None:
    """R3"""
    config = a_config(mask_observations=mask_observations)
    row = await a_row(config)
    tensors = compose_tensors([row], config=config, limits=LIMITS, pad_id=0)
    observed = len(a_tokenizer().encode("[3]", add_special_tokens=False))
    sampled = row.stream.sampled_count()
    assert tensors["response_mask"].sum() == sampled + (0 if mask_observations else observed)
    assert tensors["loss_mask"][0, :16].sum() == 0


async def test_real_end_tokens_keep_attention_and_loss_where_pad_is_eos() -> None:
    """R12"""
    row = await a_row()
    eos = a_tokenizer().eos_token_id
    tensors = compose_tensors([row], config=a_config(), limits=LIMITS, pad_id=eos)
    last = len(row.stream.response) - 1
    assert tensors["responses"][0, last] == eos
    assert tensors["response_mask"][0, last] == 1
    assert tensors["attention_mask"][0, 16 + last] == 1
    assert tensors["attention_mask"][0, 16 + last + 1 :].sum() == 0


@pytest.mark.parametrize(
    ("finish", "settings", "trained"),
    [
        (FinishReason.ANSWERED, {}, True),
        (FinishReason.TRUNCATED, {}, True),
        (FinishReason.TRUNCATED, {"mask_overlong_loss": True}, False),
        (FinishReason.TRUNCATED, {"mask_void_traj": True}, True),
        (FinishReason.TOOL_ERROR, {}, False),
        (FinishReason.ENGINE_ERROR, {}, False),
    ],
)
async def test_which_rows_get_loss(finish: FinishReason, settings: dict[str, Any], trained: bool) -> None:
    row = await a_row()
    row.finish = finish
    assert gets_loss(row, a_config(**settings)) is trained


async def test_a_row_without_end_and_without_a_valid_action_is_void() -> None:
    row = await a_runner(an_engine(says("x", finish=EngineFinish.LENGTH)), tools_say("")).run(a_task())
    assert not gets_loss(row, a_config(mask_void_traj=True))


async def test_a_tools_rewards_lie_on_their_actions() -> None:
    row = await a_row(reward=0.5)
    tensors = compose_tensors([row], config=a_config(), limits=LIMITS, pad_id=0)
    assert tensors["tool_rewards"][0].nonzero().tolist() == [[len(calls_python().token_ids) - 1]]
    assert tensors["tool_rewards"].sum() == 0.5


async def test_columns_tell_each_rows_story() -> None:
    row = await a_row(reward=0.5)
    columns = compose_columns([row, row], weights_version=7)
    assert columns["turn_rewards"][0] == [0.5]
    assert columns["obs_lengths"][0] == [len(a_tokenizer().encode("[3]", add_special_tokens=False))]
    assert columns["action_lengths"][1] == [len(calls_python().token_ids), len(says("3").token_ids)]
    assert columns["weights_version_min"].tolist() == [1, 1]
    assert columns["tool_interact_info"][0][0]["obs"] == "[3]"
    assert columns["finish_reason"].tolist() == ["answered", "answered"]


async def test_a_record_shows_what_was_sampled_and_what_was_observed() -> None:
    row = await a_row()
    record = TrajectoryRecord(
        step=1, uid="u", session=0, **trajectory_record(row, config=a_config(), decode=a_tokenizer().decode)
    )
    assert [(segment.kind.value, segment.trained) for segment in record.segments] == [
        ("sampled", True),
        ("observation", False),
        ("sampled", True),
    ]
    assert record.segments[0].mean_log_prob == -0.25
    assert sum(segment.tokens for segment in record.segments) == len(row.stream.response)
    assert record.tool_calls[0].observation == "[3]"


async def test_metrics_of_a_batch_are_all_documented_and_count_what_happened() -> None:
    rows = [await a_row(), await a_row(valid=False), await a_row(error="boom")]
    metrics = summarise([row_stats(row) for row in rows])
    assert set(metrics) <= set(METRICS)
    assert metrics["agent/turns/mean"] == 1
    assert metrics["agent/actions/valid_share"] == pytest.approx(2 / 3)
    assert metrics["agent/tool/errors"] == 1
    assert metrics["agent/finish/answered"] == pytest.approx(2 / 3)
    assert metrics["agent/failed_share"] == pytest.approx(1 / 3)
    assert metrics["agent/tokens/sampled"] == sum(row.stream.sampled_count() for row in rows)
    assert sum(value for name, value in metrics.items() if name.startswith("agent/finish/")) == pytest.approx(1)


def test_a_batch_without_rows_has_no_metrics() -> None:
    assert summarise([]) == {}


@pytest.mark.parametrize(("truncation", "kept"), [("left", slice(-4, None)), ("right", slice(0, 4))])
def test_a_prompt_past_the_limit_is_cut_as_the_data_settings_say(truncation: Any, kept: slice) -> None:
    chat = ChatTemplate(a_tokenizer())
    messages = [{"role": "user", "content": "hello world hello world"}]
    task = make_task(chat, messages, trajectory_id="r", extra_info=None, limit=4, truncation=truncation)
    assert task.prompt_ids == chat.prompt_ids(messages)[kept]


def test_a_prompt_past_the_limit_is_refused_with_its_length_and_the_remedy() -> None:
    chat = ChatTemplate(a_tokenizer())
    with pytest.raises(
        DataError, match=r"the prompt of r7 has \d+ tokens, 4 are allowed: raise data.max_prompt_length"
    ):
        make_task(
            chat,
            [{"role": "user", "content": "hello world"}],
            trajectory_id="r7",
            extra_info=None,
            limit=4,
            truncation="error",
        )


def test_a_data_sets_values_become_json() -> None:
    import numpy as np

    value = {"a": np.int64(3), "b": np.array([1.5, 2.5]), "c": float("nan"), 4: (1, {2})}
    assert plain_json(value) == {"a": 3, "b": [1.5, 2.5], "c": None, "4": [1, [2]]}
