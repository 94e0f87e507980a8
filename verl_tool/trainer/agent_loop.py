"""The agent behind verl's own agent-loop interface: verl's workers and load balancer schedule the trajectories.

Used with `actor_rollout_ref.agent.rollout_via=agent_loop`. A trajectory is the same one that the rollout worker runs.
`ToolAgentLoop` is registered under AGENT_NAME and serves verl's stock workers as well; the worker and the manager here
add only what the trainer wants to know of a batch.
"""

from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import ray
from omegaconf import DictConfig
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils.config import omega_conf_to_dataclass

from verl_tool.errors import RewardError
from verl_tool.llm_agent.manager import AgentActorManager
from verl_tool.llm_agent.metrics import RowStats, row_stats
from verl_tool.trainer.ppo.agent_output import AGENT_NAME, ToolAgentLoopOutput, output_of
from verl_tool.trainer.ppo.scoring import raised
from verl_tool.trainer.ppo.trajectory_files import records_wanted
from verl_tool.worker.agent import agent_config, make_manager
from verl_tool.worker.engine import BalancedEngine, sticky_id

_PlainWorker: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class  # the class behind verl's @ray.remote


class Desk:
    """What the trajectories of one agent-loop worker share: the manager, and what became of them."""

    def __init__(self, config: DictConfig, client: Any) -> None:
        model_config = omega_conf_to_dataclass(config.actor_rollout_ref.model)
        settings = agent_config(config.actor_rollout_ref)
        engine = BalancedEngine(client.generate)
        self.manager: AgentActorManager = make_manager(config.actor_rollout_ref, settings, model_config, engine)
        self.stats: list[RowStats] = []
        self.faults: list[Exception] = []

    def take_report(self) -> tuple[list[RowStats], list[Exception]]:
        """Numbers of the rows that ended, and what was raised, since the last time."""
        report, self.stats, self.faults = (self.stats, self.faults), [], []
        return report


_validating: ContextVar[bool] = ContextVar("validating", default=False)  # verl tells its worker, not the agent loop
_desks: WeakKeyDictionary[Any, Desk] = WeakKeyDictionary()  # by verl's client, one a worker process


def desk_of(client: Any, config: DictConfig) -> Desk:
    """The desk of the worker that `client` belongs to."""
    if client not in _desks:
        _desks[client] = Desk(config, client)
    return _desks[client]


@register(AGENT_NAME)
class ToolAgentLoop(AgentLoopBase):
    """One trajectory, as verl's agent-loop worker runs it."""

    def __init__(self, trainer_config: Any, server_manager: Any, **kwargs: Any) -> None:
        super().__init__(trainer_config=trainer_config, server_manager=server_manager, **kwargs)
        self._desk = desk_of(server_manager, trainer_config.config)

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        """Runs it; `fields` are the data set's. In training, a row that failed gives nothing, as in the worker."""
        desk, validate = self._desk, _validating.get()
        trajectory_id = f"{fields['uid']}_{fields['session_id']}"
        sticky_id.set(trajectory_id)
        row = await desk.manager.run_trajectory(
            fields["raw_prompt"],
            trajectory_id=trajectory_id,
            extra_info=fields.get("extra_info"),
            validate=validate,
        )
        desk.stats.append(row_stats(row))
        if row.finish is not None and row.finish.failed and not validate:
            return []
        wanted = records_wanted(self.config.trainer, validate=validate)
        return output_of(row, desk.manager, record=wanted, global_steps=int(fields["global_steps"]))


class ToolAgentLoopWorker(_PlainWorker):
    """verl's worker, which tells the trainer what it otherwise only writes to its log."""

    async def _run_agent_loop(self, sampling_params: dict[str, Any], trajectory: dict[str, Any], **fields: Any) -> Any:
        _validating.set(bool(trajectory["validate"]))
        try:
            return await super()._run_agent_loop(sampling_params, trajectory, **fields)
        except Exception as fault:
            desk_of(self.llm_client, self.config).faults.append(fault)
            raise

    async def _compute_score(self, outputs: list[ToolAgentLoopOutput], kwargs: dict[str, Any]) -> None:
        try:
            await super()._compute_score(outputs, kwargs)
        except ray.exceptions.RayTaskError as fault:
            raise RewardError(raised(fault.cause)) from None

    async def take_report(self) -> tuple[list[RowStats], list[Exception]]:
        """The report of this worker's desk."""
        return desk_of(self.llm_client, self.config).take_report()


class ToolAgentLoopManager(AgentLoopManagerTQ):
    """verl's manager over the worker above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ToolAgentLoopWorker)

    def take_report(self) -> tuple[list[RowStats], list[Exception]]:
        """What became of the rows since the last time, over all workers."""
        reports = ray.get([worker.take_report.remote() for worker in self.agent_loop_workers], timeout=60)
        return [row for stats, _ in reports for row in stats], [fault for _, faults in reports for fault in faults]
