"""verl's actor–rollout–reference worker with the agent in it: the loop runs here, on a replica's share of a batch."""

from typing import Any

from verl import DataProto
from verl.plugin.platform import get_platform
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, make_nd_compute_dataproto_dispatch_fn, register
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

from verl_tool.worker.agent import agent_config, make_manager, without_tools
from verl_tool.worker.mesh import ROLLOUT_MESH
from verl_tool.worker.meta import AgentActorRolloutRefWorkerMeta
from verl_tool.worker.rollout import AgentRollout


class AgentActorRolloutRefWorker(Worker, ActorRolloutRefWorker, metaclass=AgentActorRolloutRefWorkerMeta):
    """One rank of the trainer; the first rank of each replica runs the trajectories of its shard."""

    rollout: Any  # of verl's class until init_model is through, then an AgentRollout

    def __agent_init__(self, config: Any, role: str) -> None:
        """Called by the metaclass behind verl's `__init__`."""
        self.agent_config = agent_config(config)
        self.enable_agent = self.agent_config.enable_agent
        self.actor_worker_cls = self.ref_worker_cls = training_worker_class()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> None:
        """As verl's; then the rollout, which a shard of the batch goes to, and the agent over it."""
        super().init_model()
        if not self._is_rollout:
            return
        self.rollout = AgentRollout.in_place_of(self.rollout)
        self.rollout.plain = make_manager(
            self.config, without_tools(self.agent_config), self.rollout.model_config, self.rollout.engine
        )
        if self.enable_agent:
            self.manager = make_manager(self.config, self.agent_config, self.rollout.model_config, self.rollout.engine)
        settings = self.rollout.config
        ranks = (
            settings.tensor_model_parallel_size * settings.data_parallel_size * settings.pipeline_model_parallel_size
        )
        self._register_dispatch_collect_info(
            ROLLOUT_MESH, dp_rank=self.rank // ranks, is_collect=self.rank % ranks == 0
        )

    @register(dispatch_mode=make_nd_compute_dataproto_dispatch_fn(mesh_name=ROLLOUT_MESH))
    async def generate_sequences(self, prompts: DataProto) -> DataProto:
        """The trajectories of this replica's shard. Ranks that do not lead a replica give nothing."""
        if not self.rollout.leads:
            return DataProto()
        if not self.enable_agent:
            return await self.rollout.generate_sequences(prompts=prompts)
        return await self.manager.run_llm_loop(prompts)


def training_worker_class() -> type[TrainingWorker]:
    """verl's TrainingWorker, or the one that the platform in use brings along (verl-cpu-platform does)."""
    own: type[TrainingWorker] = getattr(get_platform(), "training_worker_cls", TrainingWorker)
    return own
