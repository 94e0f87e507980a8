"""One training run in this process: Ray, verl's TransferQueue, the trainer, and the end of all three.

verl runs its trainer in a Ray actor (verl/trainer/main_ppo.py, TaskRunnerV1). Here it is the driver itself: one process
less to start, a fault is an exception and not a remote traceback, and an interrupt reaches it.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import structlog
from omegaconf import DictConfig, OmegaConf

from verl_tool.errors import ConfigError
from verl_tool.trainer.interrupts import Interrupted, Interrupts

if TYPE_CHECKING:
    from verl_tool.trainer.ppo.ray_trainer import AgentRayPPOTrainer

log = structlog.get_logger(__name__)

QUEUE_LIMIT_S = 300.0  # for the TransferQueue's processes to start


def run(config: DictConfig, trainer_class: type["AgentRayPPOTrainer"]) -> None:
    """Trains. Whatever is raised, nothing of the run is left running.

    Raises Interrupted on SIGINT or SIGTERM, with the last whole step saved.
    """
    import ray
    import transfer_queue as tq
    from verl.utils.logging_utils import configure_verl_logging

    configure_verl_logging()
    validate(config)
    config.transfer_queue.enable = True
    own_cluster = start_ray(config)
    interrupts = Interrupts.installed()
    OmegaConf.resolve(config)
    trainer: AgentRayPPOTrainer | None = None
    finished = False
    # The queue's processes start while the trainer's do. It is asked for only once trajectories are there.
    helper = ThreadPoolExecutor(max_workers=1, thread_name_prefix="transfer-queue")
    queue = helper.submit(tq.init, config.transfer_queue)
    try:
        trainer = trainer_class(config, interrupts)
        trainer.init()
        queue.result(timeout=QUEUE_LIMIT_S)
        trainer.fit(trainer.rollout_manager())
        interrupts.release()
        finished = True
    except Interrupted as interrupted:
        if trainer is not None and not interrupted.at_once:
            trainer.save_interrupted()
        raise
    finally:
        if tracking := getattr(trainer, "logger", None):
            tracking.finish(exit_code=0 if finished else 1)
        helper.shutdown(wait=True, cancel_futures=True)
        tq.close()
        if own_cluster:
            ray.shutdown()


def validate(config: DictConfig) -> None:
    """verl's own checks of its settings. Raises ConfigError with verl's words."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config
    from verl.utils.device import auto_set_device

    auto_set_device(config)
    try:
        validate_config(
            config=config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config)
        )
    except (AssertionError, ValueError) as fault:
        raise ConfigError(str(fault)) from fault


def start_ray(config: DictConfig) -> bool:
    """Connects to the cluster in `ray_kwargs.ray_init.address` or RAY_ADDRESS, else starts one; True: ours to end."""
    import ray
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    if ray.is_initialized():
        return False
    given = config.ray_kwargs.get("ray_init") or {}
    default_env: dict[str, Any] = get_ppo_ray_runtime_env(config)
    default_env.setdefault("env_vars", {})["TRANSFER_QUEUE_ENABLE"] = "1"
    merged = OmegaConf.create({**given, "runtime_env": OmegaConf.merge(default_env, given.get("runtime_env") or {})})
    arguments = OmegaConf.to_container(merged, resolve=True)
    assert isinstance(arguments, dict)
    log.info("starting ray", **{str(name): value for name, value in arguments.items()})
    ray.init(**{str(name): value for name, value in arguments.items()})
    return True
