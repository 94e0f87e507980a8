"""verl's own trainer and agent loop, unchanged, on this machine: what `step_time` compares with.

    python -m benchmarks.stock_verl key=value …

As `python -m verl.trainer.main_ppo`; only the workers are told to use the platform's TrainingWorker, without which verl
does not run on a CPU.
"""

from typing import Any

import hydra
import ray
from omegaconf import OmegaConf
from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
from verl.trainer.ppo.utils import Role
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.workers.engine_workers import ActorRolloutRefWorker

from verl_tool.job.verl_config import verl_config_folder
from verl_tool.worker.fsdp_workers import training_worker_class

_PlainTaskRunner: Any = TaskRunnerV1.__ray_metadata__.modified_class  # the class behind verl's @ray.remote


class PlatformWorker(ActorRolloutRefWorker):
    """verl's worker with the platform's TrainingWorker."""

    actor_worker_cls = training_worker_class()
    ref_worker_cls = training_worker_class()


class PlatformTrainer(PPOTrainerSync):
    """verl's trainer with such workers."""

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            own = training_worker_class() if role == Role.Critic else PlatformWorker
            self.role_worker_mapping[role] = ray.remote(own)


class TaskRunner(_PlainTaskRunner):
    """verl's task runner, whose `run` takes its trainer from a table that cannot be added to under the name `sync`."""

    def run(self, config: Any) -> None:
        """As TaskRunnerV1.run."""
        import transfer_queue as tq

        config.transfer_queue.enable = True
        OmegaConf.resolve(config)
        self.config = config
        tq.init(config.transfer_queue)
        try:
            self.trainer = PlatformTrainer(config=config)
            self.trainer.init()
            self.init_agent_loop_manager()
            self.trainer.fit(self.agent_loop_manager)
        finally:
            tq.close()


@hydra.main(config_path=str(verl_config_folder()), config_name="ppo_trainer", version_base=None)
def main(config: Any) -> None:
    """Trains."""
    run_ppo(config, task_runner_class=ray.remote(TaskRunner))


if __name__ == "__main__":
    main()
