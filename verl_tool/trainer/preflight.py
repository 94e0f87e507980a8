"""What is refused before anything starts: settings that contradict each other, files that are not there. No torch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from verl_tool.errors import ConfigError, DataError
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.limits import check_agent

_LOCAL = ("/", "./", "../", "~")  # a model path that begins so is no name on a hub


def check(config: DictConfig) -> AgentActorConfig:
    """The agent's settings. Raises ConfigError or DataError with every fault of its kind, one a line."""
    actor_rollout_ref = config.actor_rollout_ref
    agent = AgentActorConfig.parse(plain(actor_rollout_ref.agent))
    rollout, data = plain(actor_rollout_ref.rollout), plain(config.data)
    faults = [*check_agent(agent, rollout=rollout, data=data), *_trainer_faults(config)]
    if faults:
        raise ConfigError("\n".join(faults))
    if missing := list(_missing_files(config)):
        raise DataError("\n".join(missing))
    return agent


def plain(section: Any) -> dict[str, Any]:
    """A section of the configuration as a dict, interpolations resolved."""
    container = OmegaConf.to_container(section, resolve=True)
    assert isinstance(container, dict)
    return {str(name): value for name, value in container.items()}


def _trainer_faults(config: DictConfig) -> Iterator[str]:
    """Settings of verl's that this trainer cannot honour."""
    rollout, trainer = plain(config.actor_rollout_ref.rollout), config.trainer
    if rollout["name"] != "vllm":
        yield f"actor_rollout_ref.rollout.name: {rollout['name']!r}; set vllm, which tells how a generation ended"
    if not trainer.get("use_v1", True):
        yield "trainer.use_v1: false; set true, verl's former trainer is not supported"
    if trainer.v1.trainer_mode != "sync":
        yield f"trainer.v1.trainer_mode: {trainer.v1.trainer_mode!r}; set sync"
    if not rollout["calculate_log_probs"]:
        yield "actor_rollout_ref.rollout.calculate_log_probs: false; set true, the log-probability guard needs them"
    if not config.actor_rollout_ref.hybrid_engine:
        yield "actor_rollout_ref.hybrid_engine: false; set true, the loop runs in the trainer's workers"


def _missing_files(config: DictConfig) -> Iterator[str]:
    model = config.actor_rollout_ref.model.path
    if model and str(model).startswith(_LOCAL) and not Path(model).expanduser().exists():
        yield f"actor_rollout_ref.model.path: there is no {model}"
    for name in ("train_files", "val_files"):
        given = config.data.get(name)
        for path in [given] if isinstance(given, str) else given or []:
            if "://" not in path and not Path(path).expanduser().exists():
                yield f"data.{name}: there is no {path}"
    reward = OmegaConf.select(config, "reward.custom_reward_function.path")
    if reward and not str(reward).startswith("pkg://") and not Path(reward).expanduser().exists():
        yield f"reward.custom_reward_function.path: there is no {reward}"
