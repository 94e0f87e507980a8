"""The worker's hold on its replica's engine: weights in, generations out."""

from typing import Any

import torch
from verl import DataProto
from verl.workers.rollout.vllm_rollout import ServerAdapter

from verl_tool.llm_agent.engine import Engine
from verl_tool.llm_agent.manager import AgentActorManager
from verl_tool.worker.engine import ServerEngine
from verl_tool.worker.weight_sender import WatchedWeightSender


class AgentRollout(ServerAdapter):
    """verl's ServerAdapter, which can generate (verl's refuses to) and ends a weight update that will not end."""

    plain: AgentActorManager  # set by the worker: the loop without tools

    @classmethod
    def in_place_of(cls, adapter: ServerAdapter) -> "AgentRollout":
        """The same hold, on the same replica."""
        return cls(adapter.config, adapter.model_config, adapter.device_mesh)

    @property
    def leads(self) -> bool:
        """Whether this rank speaks for its replica; the others of a tensor-parallel replica only hold weights."""
        return bool(self._has_server)

    @property
    def engine(self) -> Engine:
        """This replica's engine for the loop."""
        return ServerEngine(self._server)

    async def generate_sequences(self, prompts: DataProto) -> DataProto:
        """One plain generation a prompt, without tools."""
        return await self.plain.run_llm_loop(prompts)

    @torch.no_grad()
    async def update_weights(
        self, weights: Any, global_steps: int | None = None, wire_format: str = "named_tensors", **kwargs: Any
    ) -> None:
        """As verl's for full tensors, with a sender that notices a receiver which is gone."""
        if wire_format != "named_tensors":
            await super().update_weights(weights, global_steps=global_steps, wire_format=wire_format, **kwargs)
            return
        received = await self._execute_method(
            "update_weights_from_ipc", non_block=True, kwargs={**kwargs, "use_shm": self.use_shm}
        )
        sender = WatchedWeightSender(
            receiver=received,
            zmq_handle=self.zmq_handle,
            bucket_size_mb=self.config.checkpoint_engine.update_weights_bucket_megabytes,
            use_shm=self.use_shm,
        )
        await sender.async_send_weights(weights)
        if received is not None:
            await received
        if self.leads:
            await self._server().clear_kv_cache.remote()
            if global_steps is not None:
                await self._server().set_global_steps.remote(global_steps)

    def _server(self) -> Any:
        self._ensure_server_handle()
        return self.server_handle
