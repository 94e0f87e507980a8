"""The agent of one worker: the loop's manager, made from the settings a worker of verl is given."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.engine import Engine
from verl_tool.llm_agent.manager import AgentActorManager

# What a plain generation is, in the agent's terms: one turn of the model that no tool answers.
PLAIN: dict[str, Any] = {
    "enable_agent": False,
    "max_turns": 0,
    "val_max_turns": None,
    "min_turns": 0,
    "call_tool_first": False,
    "enable_mtrl": False,
    "action_stop_tokens": None,
}


def agent_config(actor_rollout_ref: DictConfig) -> AgentActorConfig:
    """The agent's settings in a worker's configuration. Raises ConfigError."""
    return AgentActorConfig.parse(_plain_dict(actor_rollout_ref.agent))


def make_manager(
    actor_rollout_ref: DictConfig, config: AgentActorConfig, model_config: Any, engine: Engine
) -> AgentActorManager:
    """A manager over `engine`; `model_config` is verl's HFModelConfig."""
    tokenizer = model_config.tokenizer
    if model_config.get("custom_chat_template", None):
        tokenizer.chat_template = model_config.custom_chat_template
    return AgentActorManager(
        config,
        tokenizer,
        engine,
        rollout=_plain_dict(actor_rollout_ref.rollout),
        data=_plain_dict(actor_rollout_ref.data),
        eos_token_id=getattr(model_config.generation_config, "eos_token_id", None),
    )


def without_tools(config: AgentActorConfig) -> AgentActorConfig:
    """The same settings for one plain generation a prompt."""
    return config.model_copy(update=PLAIN)


def _plain_dict(section: DictConfig) -> dict[str, Any]:
    container = OmegaConf.to_container(section, resolve=True)
    assert isinstance(container, dict)
    return {str(name): value for name, value in container.items()}
