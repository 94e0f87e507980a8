"""The agent's part of verl's settings: names, values, and what does not go together."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from verl_tool.errors import ConfigError
from verl_tool.job.config_tree import AGENT, OWNED, ROOT, verl_defaults
from verl_tool.job.faults import Fault, shown, unknown
from verl_tool.job.launch import with_current_names
from verl_tool.llm_agent.config import AGENT_PATH, AgentActorConfig
from verl_tool.llm_agent.limits import check_agent


def agent_faults(config: Mapping[str, Any]) -> Iterator[Fault]:
    """What AgentActorConfig refuses of `spec.config`."""
    outer, inner = AGENT
    rollout = config.get(outer)
    given = rollout.get(inner) if isinstance(rollout, dict) else None
    if not isinstance(given, dict):
        return
    place = (*ROOT, *AGENT)
    agent = with_current_names(config)[outer][inner]
    if len(agent) < len(given):
        yield Fault(place, "one setting is given under its old and its new name; remove the old one")
    agent = {name: value for name, value in agent.items() if f"{AGENT_PATH}.{name}" not in OWNED}
    known = verl_defaults()[outer][inner]
    for name in agent.keys() - known.keys():
        yield Fault((*place, name), unknown(name, known))
    try:
        AgentActorConfig.model_validate(
            {name: agent[name] for name in agent if name in known and not _interpolated(agent[name])}
        )
    except ValidationError as refused:
        for error in refused.errors(include_url=False):
            reason = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
            yield Fault((*place, *error["loc"][:1]), f"{shown(error['input'])} {reason[0].lower()}{reason[1:]}")


def agent_contradictions(tree: Mapping[str, Any]) -> Iterator[Fault]:
    """Settings of the agent that do not go together with each other or with verl's, in a whole tree."""
    outer, inner = AGENT
    try:
        agent = AgentActorConfig.parse(tree[outer][inner])
        lines = check_agent(agent, rollout=tree[outer]["rollout"], data=tree["data"])
    except ConfigError as fault:
        lines = str(fault).splitlines()
    for line in lines:
        name, _, message = line.partition(": ")
        yield Fault((*ROOT, *name.split(".")), message)


def _interpolated(value: Any) -> bool:
    return isinstance(value, str) and "${" in value
