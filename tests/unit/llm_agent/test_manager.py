"""The manager: a verl batch in, a verl batch out."""

from typing import Any

import numpy as np
import pytest
from aiohttp import web

from tests.unit.llm_agent.builders import ScriptedEngine, a_config, a_tokenizer, calls_python, says, text_of
from tests.unit.llm_agent.templates import FORGETS
from tests.unit.llm_agent.test_tool_client import a_server, an_answer
from verl_tool.errors import ConfigError, RolloutError
from verl_tool.llm_agent.batch import object_array
from verl_tool.llm_agent.manager import AgentActorManager

DATA = {"max_prompt_length": 32, "max_response_length": 64}
ROLLOUT = {
    "n": 1,
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 50,
    "val_kwargs": {"temperature": 0, "do_sample": False, "n": 2},
}


def a_batch(count: int, **meta: Any) -> Any:
    from verl import DataProto

    return DataProto.from_dict(
        tensors={},
        non_tensors={
            "raw_prompt": object_array([[{"role": "user", "content": f"hello {number}"}] for number in range(count)]),
            "traj_ids": object_array([f"u{number}_0" for number in range(count)]),
            "extra_info": object_array([{"index": np.int64(number)} for number in range(count)]),
        },
        meta_info=meta,
    )


def an_engine() -> ScriptedEngine:
    return ScriptedEngine(lambda prompt, _: says("3") if "[3]" in text_of(prompt) else calls_python())


async def results(request: web.Request) -> web.Response:
    body = await request.json()
    return web.json_response(an_answer(len(body["actions"]), observations=["[3]"] * len(body["actions"])))


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_each_row_of_a_batch_becomes_a_trajectory(mode: str) -> None:
    async with a_server(results) as url:
        manager = AgentActorManager(
            a_config(tool_server_url=url, rollout_mode=mode), a_tokenizer(), an_engine(), rollout=ROLLOUT, data=DATA
        )
        out = await manager.run_llm_loop(a_batch(5, validate=False, global_steps=3, record_trajectories=True))
    assert len(out) == 5
    assert out.non_tensor_batch["traj_ids"].tolist() == [f"u{number}_0" for number in range(5)]
    for number, row in enumerate(out):
        length = int(row.batch["attention_mask"][32:].sum())
        assert text_of(row.batch["responses"][:length].tolist()) == "<python>print(1+2)</python>[3]3<|im_end|>"
        assert f"hello {number}" in row.non_tensor_batch["trajectory_record"]["prompt"]
    assert out.meta_info["global_steps"] == 3


async def test_training_samples_as_set_and_validation_as_set_for_it() -> None:
    engine = an_engine()
    async with a_server(results) as url:
        manager = AgentActorManager(a_config(tool_server_url=url), a_tokenizer(), engine, rollout=ROLLOUT, data=DATA)
        await manager.run_llm_loop(a_batch(1, validate=False))
        await manager.run_llm_loop(a_batch(1, validate=True))
    train, validation = engine.requests[0], engine.requests[2]
    assert (train["temperature"], train["top_p"], train["top_k"], train["logprobs"]) == (0.7, 0.9, 50, True)
    assert (validation["temperature"], validation["top_p"], validation["top_k"]) == (0, 1.0, -1)


async def test_a_rows_of_a_validation_batch_are_taken_as_repeated_already() -> None:
    """R4: n = 2 for the agent and in val_kwargs: who makes the batch repeats, the loop does not once more."""
    engine = an_engine()
    async with a_server(results) as url:
        manager = AgentActorManager(
            a_config(tool_server_url=url, n=2), a_tokenizer(), engine, rollout=ROLLOUT | {"n": 2}, data=DATA
        )
        assert len(await manager.run_llm_loop(a_batch(4, validate=True))) == 4
    assert len(engine.requests) == 8  # two turns a row


async def test_a_row_that_failed_before_its_first_token_still_has_a_place() -> None:
    engine = ScriptedEngine(lambda prompt, _: RuntimeError("lost") if "hello 0" in text_of(prompt) else says("3"))
    manager = AgentActorManager(a_config(), a_tokenizer(), engine, rollout=ROLLOUT, data=DATA)
    out = await manager.run_llm_loop(a_batch(4))
    assert out.non_tensor_batch["finish_reason"].tolist() == ["engine_error", "answered", "answered", "answered"]
    assert out.batch["attention_mask"][0, 32:].sum() == 1
    assert out.batch["response_mask"][0].sum() == 0


async def test_a_dead_tool_server_ends_the_rollout_naming_its_address() -> None:
    """R16: never a silent epoch of empty rollouts."""
    config = a_config(tool_server_url="http://127.0.0.1:9", tool_call_max_retries=0)
    manager = AgentActorManager(config, a_tokenizer(), an_engine(), rollout=ROLLOUT, data=DATA)
    with pytest.raises(RolloutError, match=r"127.0.0.1:9"):
        await manager.run_llm_loop(a_batch(8))


async def test_one_trajectory_alone_goes_the_same_way() -> None:
    async with a_server(results) as url:
        manager = AgentActorManager(
            a_config(tool_server_url=url), a_tokenizer(), an_engine(), rollout=ROLLOUT, data=DATA
        )
        row = await manager.run_trajectory([{"role": "user", "content": "hello"}], trajectory_id="u_0")
        await manager.aclose()
    assert text_of(row.stream.response) == "<python>print(1+2)</python>[3]3<|im_end|>"


def test_contradictions_and_a_template_that_refuses_are_told_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="tool_server_url: missing"):
        AgentActorManager(a_config(tool_server_url=None), a_tokenizer(), an_engine(), rollout=ROLLOUT, data=DATA)
    with pytest.raises(ConfigError, match="mtrl_role"):
        AgentActorManager(
            a_config(enable_mtrl=True, mtrl_role="tool"), a_tokenizer(FORGETS), an_engine(), rollout=ROLLOUT, data=DATA
        )
