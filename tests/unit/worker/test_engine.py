"""verl's outputs as the loop's generations, and how they ended."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from verl_tool.errors import TrajectoryError
from verl_tool.llm_agent.engine import EngineFinish
from verl_tool.worker.engine import BalancedEngine, ServerEngine, as_generation, sticky_id


def an_output(**fields: Any) -> SimpleNamespace:
    given = {
        "token_ids": [5, 6],
        "log_probs": [-0.5, -0.25],
        "stop_reason": "stop",
        "extra_fields": {"global_steps": 7},
        "num_preempted": None,
    }
    return SimpleNamespace(**{**given, **fields})


def test_a_generation_carries_tokens_log_probabilities_and_the_version_of_the_weights() -> None:
    generation = as_generation(an_output())

    assert (generation.token_ids, generation.log_probs) == ([5, 6], [-0.5, -0.25])
    assert (generation.finish, generation.weights_version) == (EngineFinish.STOP, 7)


@pytest.mark.parametrize("word", ["stop", "length", "abort"])
def test_the_end_of_a_generation_is_the_engines_own_word(word: str) -> None:  # R17
    assert as_generation(an_output(stop_reason=word)).finish == word


def test_a_word_that_folds_two_ends_into_one_is_refused() -> None:  # R17: verl's own server says "completed" for both
    with pytest.raises(ValueError, match="completed"):
        as_generation(an_output(stop_reason="completed"))


def test_tokens_without_log_probabilities_fail_the_row() -> None:
    with pytest.raises(TrajectoryError, match="log-probabilities"):
        as_generation(an_output(log_probs=None))


class RecordingCall:
    """A Ray method: called with `.remote`, gives something to await."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def remote(self, **arguments: Any) -> SimpleNamespace:
        self.calls.append(arguments)
        return an_output()


async def test_a_replicas_engine_asks_for_log_probabilities_and_passes_the_requests_id_on() -> None:  # R9
    server = SimpleNamespace(generate=RecordingCall())
    params = {"temperature": 1.0, "max_tokens": 4}

    await ServerEngine(lambda: server).generate(request_id="r-1", prompt_ids=[1], sampling_params=params)

    assert server.generate.calls == [
        {"prompt_ids": [1], "sampling_params": {**params, "logprobs": True}, "request_id": "r-1"}
    ]
    assert "logprobs" not in params, "the caller's parameters are its own"


async def test_behind_the_balancer_all_calls_of_a_trajectory_go_to_one_replica() -> None:
    call = RecordingCall()
    engine = BalancedEngine(call.remote)
    sticky_id.set("trajectory-1")

    for request in ("r-1", "r-2"):
        await engine.generate(request_id=request, prompt_ids=[1], sampling_params={})

    assert [arguments["request_id"] for arguments in call.calls] == ["trajectory-1", "trajectory-1"]


async def test_the_watch_before_the_engine_keeps_how_each_request_ended_once() -> None:  # R17
    from verl_tool.worker.server import FinishWatch

    class TwoRequests:
        async def generate(self, *, request_id: str, **_: Any) -> AsyncIterator[SimpleNamespace]:
            yield SimpleNamespace(finished=False, outputs=[SimpleNamespace(finish_reason=None)])
            reason = {"a": "length", "b": "stop"}[request_id]
            yield SimpleNamespace(finished=True, outputs=[SimpleNamespace(finish_reason=reason)])

    watch = FinishWatch(TwoRequests())
    for request in ("a", "b"):
        assert len([output async for output in watch.generate(request_id=request, prompt=None)]) == 2

    assert [watch.take_finish(request) for request in ("b", "a", "a")] == ["stop", "length", None]
