"""The loop's Engine over verl's rollout servers: one replica's own, or all of them behind verl's load balancer."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any

from verl_tool.errors import TrajectoryError
from verl_tool.llm_agent.engine import EngineFinish, Generation, TokenId

sticky_id: ContextVar[str | None] = ContextVar("sticky_id", default=None)  # the trajectory that is being run


class ServerEngine:
    """The server of one replica, as a Ray actor handle. The handle is looked up at the first generation."""

    def __init__(self, server: Callable[[], Any]) -> None:
        self._server = server

    async def generate(
        self, *, request_id: str, prompt_ids: Sequence[TokenId], sampling_params: dict[str, Any]
    ) -> Generation:
        """Samples on this replica."""
        output = await self._server().generate.remote(
            prompt_ids=list(prompt_ids), sampling_params=dict(sampling_params, logprobs=True), request_id=request_id
        )
        return as_generation(output)


class BalancedEngine:
    """verl's LLMServerClient: a load balancer picks the replica, the same one for all calls of a trajectory."""

    def __init__(self, client_generate: Callable[..., Awaitable[Any]]) -> None:
        self._generate = client_generate

    async def generate(
        self, *, request_id: str, prompt_ids: Sequence[TokenId], sampling_params: dict[str, Any]
    ) -> Generation:
        """Samples on the replica picked by `sticky_id`; verl gives the request an id of its own, a new one a call."""
        output = await self._generate(
            request_id=sticky_id.get() or request_id,
            prompt_ids=list(prompt_ids),
            sampling_params=dict(sampling_params, logprobs=True),
        )
        return as_generation(output)


def as_generation(output: Any) -> Generation:
    """verl's TokenOutput as a Generation. Raises TrajectoryError when the engine leaves something out."""
    if output.log_probs is None and output.token_ids:
        raise TrajectoryError("the engine gave no log-probabilities; set actor_rollout_ref.rollout.calculate_log_probs")
    return Generation(
        token_ids=output.token_ids,
        log_probs=output.log_probs or [],
        finish=EngineFinish(output.stop_reason),
        weights_version=output.extra_fields.get("global_steps"),
        num_preempted=output.num_preempted or 0,
    )
