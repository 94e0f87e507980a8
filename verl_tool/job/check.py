"""From a manifest's text to a job that can be started, or to everything that is wrong with it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from verl_tool.errors import ConfigError
from verl_tool.job.agent_faults import agent_contradictions, agent_faults
from verl_tool.job.config_tree import AGENT, OWNED, ROOT, known_to_verl, tree_faults, verl_defaults
from verl_tool.job.contradictions import contradictions
from verl_tool.job.faults import Fault, Refused, dotted, unknown
from verl_tool.job.launch import Launch, trainer_overrides
from verl_tool.job.model import TrainingJob
from verl_tool.job.model_faults import model_faults
from verl_tool.job.verl_config import compose
from verl_tool.job.yaml_source import Document, parse_yaml

Tree = dict[str, Any]


def read_job(text: str) -> tuple[TrainingJob, Document]:
    """The job of a manifest. Raises Refused with every wrong field, setting and name in it."""
    document = parse_yaml(text)
    if not isinstance(document.data, dict):
        raise Refused(document.faults or [Fault((), "a manifest is a mapping: apiVersion, kind, metadata, spec", 1)])
    faults = [*document.faults, *model_faults(document.data), *_of_settings(document.data)]
    if faults:
        raise Refused(in_file(faults, document))
    return TrainingJob.model_validate(document.data), document


def check_launch(job: TrainingJob, launch: Launch, document: Document | None = None) -> Tree:
    """verl's whole tree for this start, resolved. Raises Refused for settings that do not go together."""
    if launch.extra:
        _check_extra(launch.extra)
    try:
        tree = resolved(trainer_overrides(job, launch))
    except ConfigError as fault:
        raise Refused([Fault(ROOT, str(fault))]) from fault
    faults = [Fault((*ROOT, *one.settings[0].split(".")), one.message) for one in contradictions(tree)]
    faults += agent_contradictions(tree)
    if faults:
        raise Refused(in_file(faults, document) if document else faults)
    return tree


def resolved(overrides: Sequence[str]) -> Tree:
    """verl's tree with `overrides`, as plain data. Raises ConfigError naming what cannot be composed or resolved."""
    try:
        plain = OmegaConf.to_container(compose(overrides), resolve=True, throw_on_missing=False)
    except InterpolationResolutionError as fault:
        name = f"{fault.full_key}: " if fault.full_key else ""
        raise ConfigError(
            f"{name}{fault.msg or fault}".splitlines()[0] + "; `${…}` is read as in verl's files"
        ) from fault
    except OmegaConfBaseException as fault:
        raise ConfigError(" ".join(str(fault).split())) from fault
    assert isinstance(plain, dict)
    return {str(name): value for name, value in plain.items()}


def in_file(faults: Iterable[Fault], document: Document) -> list[Fault]:
    """The faults with their lines, in the order of the file, each said once."""
    placed = [fault if fault.line else fault.at(document.line(fault.path)) for fault in faults]
    return sorted(dict.fromkeys(placed), key=lambda fault: fault.line or 0)


def _of_settings(data: Tree) -> Iterator[Fault]:
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return
    if isinstance(config := spec.get("config"), dict):
        yield from tree_faults(config)
        yield from agent_faults(config)
    reward = spec.get("reward")
    arguments = reward.get("arguments") if isinstance(reward, dict) else None
    if isinstance(arguments, dict):
        for fault in tree_faults({"reward": {"reward_kwargs": arguments}}):
            yield Fault(("spec", "reward", "arguments", *fault.path[4:]), fault.message)


def _check_extra(extra: Sequence[str]) -> None:
    faults: list[str] = []
    for one in extra:
        name = one.split("=", 1)[0].lstrip("+~")
        parts = tuple(name.split("."))
        remedy = OWNED.get(name, "")
        if remedy.startswith("remove"):
            faults.append(f"--set {one}: {remedy}")
        elif not one.startswith(("+", "~")) and "=" in one and not known_to_verl(parts):
            faults.append(f"--set {one}: {name} is {_nearest_setting(parts)}")
        else:
            try:
                compose([one])
            except ConfigError as fault:
                faults.append(f"--set {one}: {fault}")
    if faults:
        raise ConfigError("\n".join(faults))


def _nearest_setting(parts: tuple[str, ...]) -> str:
    tree: Tree = {}
    group = tree
    for part in parts[:-1]:
        group = group.setdefault(part, {})
    group[parts[-1]] = None
    found = tree_faults(tree)
    if parts[: len(AGENT)] == AGENT:
        return unknown(parts[-1], verl_defaults()[AGENT[0]][AGENT[1]])
    return found[0].message.replace(dotted(ROOT) + ".", "") if found else "unknown; write +NAME=VALUE to add it"
