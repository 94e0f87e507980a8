"""verl's vLLM server, telling how each generation ended in the engine's own word.

verl's `vLLMHttpServer.generate` folds vLLM's `stop` and `length` into "completed"
(verl/workers/rollout/vllm_rollout/vllm_async_server.py), and whether a row was cut off cannot be guessed from its last
token. The engine behind the server is watched instead, and the word put where verl has its own.
"""

from collections.abc import AsyncIterator
from typing import Any

import ray
from verl.workers.rollout.replica import RolloutReplicaRegistry, TokenOutput
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer, vLLMReplica

from verl_tool.llm_agent.engine import EngineFinish


class FinishWatch:
    """Stands before vLLM's AsyncLLM and keeps how each request ended until it is asked; all else is the engine's."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._finish: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def generate(self, *, request_id: str, **kwargs: Any) -> AsyncIterator[Any]:
        """As AsyncLLM's, called with keywords alone as verl does."""
        async for output in self._engine.generate(request_id=request_id, **kwargs):
            if output.finished and output.outputs:
                self._finish[request_id] = output.outputs[0].finish_reason
            yield output

    def take_finish(self, request_id: str) -> str | None:
        """How the request ended, once; None when it ended without output."""
        return self._finish.pop(request_id, None)


class AgentHttpServer(vLLMHttpServer):
    """A replica's server. Run as a Ray actor by `AgentReplica`."""

    engine: Any  # of verl's class, put there by run_server

    async def run_server(self, args: Any) -> None:
        await super().run_server(args)
        self.engine = FinishWatch(self.engine)

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **kwargs: Any
    ) -> TokenOutput:
        """As verl's, with `stop_reason` a value of EngineFinish."""
        try:
            output = await super().generate(prompt_ids, sampling_params, request_id, **kwargs)
        finally:
            finish = self.engine.take_finish(request_id)
        output.stop_reason = finish or EngineFinish.ABORT.value
        return output


class AgentReplica(vLLMReplica):
    """verl's replica with the server above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(AgentHttpServer)


def register_replica() -> None:
    """Makes verl's registry of replicas give `AgentReplica` for `rollout.name=vllm`, in this process."""
    RolloutReplicaRegistry.register("vllm", lambda: AgentReplica)
