"""Lengths as budgets: what verl's tree and the agent's settings allow one row, and what is left of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verl_tool.errors import ConfigError
from verl_tool.llm_agent.config import AGENT_PATH, AgentActorConfig, RolloutMode, RolloutVia
from verl_tool.llm_agent.stop_strings import parse_stop_strings


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds in tokens (turns for `max_turns`), the same for every row of a rollout."""

    prompt: int  # kept of the prompt; width of the padded prompts
    response: int  # behind the prompt, observations included
    model: int  # prompt and response together
    action: int  # one generation
    observation: int  # one observation
    max_turns: int
    response_width: int  # width of the padded responses, the same in training and validation

    def generation_budget(self, *, prompt: int, response: int) -> int:
        """Tokens the next generation of a row with so many prompt and response tokens may take; 0 or less: none."""
        return min(self.action, self.response - response, self.model - prompt - response)

    def observation_budget(self, *, prompt: int, response: int) -> int:
        """Tokens the next observation may add to such a row, its wrapping included."""
        return min(self.response - response, self.model - prompt - response)


def resolve_limits(
    config: AgentActorConfig, *, rollout: Mapping[str, Any], data: Mapping[str, Any], validate: bool
) -> Limits:
    """The limits of a rollout; what the agent leaves open comes from verl's `rollout` and `data`.

    Raises ConfigError naming the key when a length is nowhere given or two contradict each other.
    """
    prompt = _first("max_prompt_length", config.max_prompt_length, data.get("max_prompt_length"))
    width = _first("max_response_length", config.max_response_length, data.get("max_response_length"))
    start = min(config.max_start_length or prompt, prompt)
    model = config.max_model_len or rollout.get("max_model_len") or start + width
    own = config.val_max_response_length if validate else config.train_max_response_length
    response = own or width
    if response > width:
        name = "val_max_response_length" if validate else "train_max_response_length"
        raise ConfigError(f"{AGENT_PATH}.{name}: {response} is more than max_response_length, {width}; raise that one")
    engine = rollout.get("max_model_len")
    if engine and model > engine:
        raise ConfigError(f"{AGENT_PATH}.max_model_len: {model} is more than rollout.max_model_len, {engine}; lower it")
    if start >= model:
        raise ConfigError(
            f"{AGENT_PATH}.max_model_len: {model} leaves no room behind a prompt of {start} tokens; "
            "raise it, or lower max_start_length"
        )
    turns = config.val_max_turns if validate and config.val_max_turns is not None else config.max_turns
    return Limits(
        prompt=start,
        response=response,
        model=int(model),
        action=config.max_action_length or response,
        observation=config.max_obs_length or response,
        max_turns=turns,
        response_width=width,
    )


def check_agent(config: AgentActorConfig, *, rollout: Mapping[str, Any], data: Mapping[str, Any]) -> list[str]:
    """Every contradiction between the agent's settings and verl's tree, as `path: what, remedy` lines."""
    faults: list[str] = []
    for validate in (False, True):
        try:
            resolve_limits(config, rollout=rollout, data=data, validate=validate)
        except ConfigError as fault:
            faults.append(str(fault))
    if not config.enable_agent:
        return list(dict.fromkeys(faults))
    try:
        parse_stop_strings(config.action_stop_tokens)
    except ConfigError as fault:
        faults.append(str(fault))
    most_turns = max(config.max_turns, config.val_max_turns or 0)
    if (most_turns > 0 or config.call_tool_first) and not config.tool_server_url:
        faults.append(f"{AGENT_PATH}.tool_server_url: missing; tool turns need a tool server, or set max_turns to 0")
    if config.min_turns > config.max_turns:
        faults.append(
            f"{AGENT_PATH}.min_turns: {config.min_turns} is more than max_turns, {config.max_turns}; lower it"
        )
    if config.n is not None and config.n != rollout.get("n", 1):
        faults.append(f"{AGENT_PATH}.n: {config.n} is not rollout.n, {rollout.get('n', 1)}; set rollout.n alone")
    if config.mtrl_sep is not None and "{obs}" not in config.mtrl_sep:
        faults.append(f"{AGENT_PATH}.mtrl_sep: {config.mtrl_sep!r} has no {{obs}} in it; put it where the text belongs")
    if config.rollout_via is RolloutVia.AGENT_LOOP and config.rollout_mode is RolloutMode.SYNC:
        faults.append(f"{AGENT_PATH}.rollout_via: agent_loop goes with rollout_mode async only; set rollout_mode=async")
    if not config.enable_mtrl and not config.action_stop_tokens and most_turns > 0:
        faults.append(
            f"{AGENT_PATH}.action_stop_tokens: missing; without stop strings no action is ever found "
            "(with enable_mtrl every response is one)"
        )
    return list(dict.fromkeys(faults))


def _first(name: str, *values: Any) -> int:
    for value in values:
        if value is not None:
            return int(value)
    raise ConfigError(f"{AGENT_PATH}.{name}: given neither here nor as data.{name}; set one of them")
