"""`spec.config` held against verl's own tree: unknown names, wrong kinds, settings that have a place elsewhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from verl_tool.job.faults import Fault, Path, dotted, nearest, shown, unknown
from verl_tool.job.verl_config import defaults
from verl_tool.job.verl_fields import dataclass_fields
from verl_tool.llm_agent.config import AGENT_PATH

ROOT: Path = ("spec", "config")
AGENT = tuple(AGENT_PATH.split("."))

# What the manifest says in a place of its own, or the run folder decides.
OWNED: Mapping[str, str] = {
    "actor_rollout_ref.model.path": "set spec.model.path",
    "data.train_files": "set spec.data.train",
    "data.val_files": "set spec.data.validation",
    "reward.custom_reward_function": "set spec.reward",
    "custom_reward_function": "set spec.reward",
    f"{AGENT_PATH}.tool_server_url": "set spec.toolServer.url",
    "trainer.nnodes": "set spec.workers.replicas",
    "trainer.n_gpus_per_node": "set spec.workers.gpus",
    "trainer.save_freq": "set spec.checkpoints.every",
    "trainer.max_actor_ckpt_to_keep": "set spec.checkpoints.keep",
    "trainer.max_critic_ckpt_to_keep": "set spec.checkpoints.keep",
    "trainer.default_local_dir": "remove it: checkpoints lie in the run's folder",
    "trainer.default_hdfs_dir": "remove it: checkpoints lie in the run's folder",
    "trainer.rollout_data_dir": "remove it: trajectories lie in the run's folder",
    "trainer.validation_data_dir": "remove it: trajectories lie in the run's folder",
    "trainer.resume_mode": "remove it: a resumed run goes on, any other starts afresh",
    "trainer.resume_from_path": "remove it: a run resumes from its own newest checkpoint",
}
# Groups that verl hands on to somebody else as they are, beyond those that are empty in its YAML.
OPEN = frozenset({"ray_kwargs.ray_init", "ray_kwargs.ray_init.runtime_env", "actor_rollout_ref.rollout.engine_kwargs"})
# Settings that verl reads though neither its YAML nor a dataclass has them.
ALSO_READ: Mapping[str, frozenset[str]] = {
    "data": frozenset({"cache_dir", "chat_template_func", "need_tools_kwargs", "filter_prompts", "sampler"}),
    "reward": frozenset({"reward_kwargs"}),
    "actor_rollout_ref.actor.fsdp_config": frozenset({"mixed_precision"}),
    "actor_rollout_ref.ref.fsdp_config": frozenset({"mixed_precision"}),
}
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NO_KEYS = frozenset({"null", "true", "false", "nan", "inf"})


def tree_faults(tree: Mapping[str, Any]) -> list[Fault]:
    """Everything that verl would not know or could not read, with the nearest right name."""
    return [*_in_group(tree, verl_defaults(), ())]


@cache
def verl_defaults() -> Mapping[str, Any]:
    """verl's tree and the agent's as plain data, interpolations resolved; `???` is what must be set."""
    plain = OmegaConf.to_container(defaults(), resolve=True, throw_on_missing=False)
    assert isinstance(plain, dict)
    return {str(name): value for name, value in plain.items()}


def known_to_verl(path: Sequence[str]) -> bool:
    """Whether the tree has this setting; Hydra wants the others announced."""
    group: Any = verl_defaults()
    for name in path:
        if not isinstance(group, Mapping) or name not in group:
            return False
        group = group[name]
    return True


def _in_group(tree: Mapping[str, Any], known: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Fault]:
    group = ".".join(path)
    also = dataclass_fields(str(known.get("_target_", ""))) | ALSO_READ.get(group, frozenset())
    is_open = group in OPEN or (not known and bool(path))
    for name, value in tree.items():
        here = (*path, name)
        if (remedy := OWNED.get(".".join(here))) is not None:
            yield Fault((*ROOT, *here), f"has a place of its own in a manifest; {remedy}")
        elif path == AGENT:
            yield from _deliverable(value, here)  # names and kinds are AgentActorConfig's to judge
        elif name not in known:
            if is_open or name in also:
                yield from _key(here)
                yield from _deliverable(value, here)
            else:
                yield Fault((*ROOT, *here), _unknown(name, {*known, *also} - {"_target_"}))
        elif isinstance(known[name], Mapping) and isinstance(value, Mapping):
            yield from _in_group(value, known[name], here)
        else:
            if (wrong := _wrong_kind(value, known[name])) is not None:
                yield Fault((*ROOT, *here), wrong)
            yield from _deliverable(value, here)


def _unknown(name: str, siblings: set[str]) -> str:
    if nearest(name, siblings) is None and (elsewhere := _places(name)):
        return f"unknown here; did you mean {' or '.join(elsewhere[:2])}?"
    return unknown(name, siblings)


def _places(name: str) -> list[str]:
    """Where else in the tree a setting of this name stands, the shallowest first."""

    def search(group: Mapping[str, Any], path: Path) -> Iterator[Path]:
        for key, value in group.items():
            if key == name:
                yield (*path, key)
            if isinstance(value, Mapping):
                yield from search(value, (*path, key))

    return [dotted((*ROOT, *path)) for path in sorted(search(verl_defaults(), ()), key=len)]


def _wrong_kind(value: Any, default: Any) -> str | None:
    """Why `value` cannot stand where verl has `default`; kinds only, bounds are verl's to know."""
    if value is None or default is None or default == "???" or (isinstance(value, str) and "${" in value):
        return None
    match default:
        case bool():
            right, kind = isinstance(value, bool), "true or false"
        case int() | float():
            right, kind = isinstance(value, int | float) and not isinstance(value, bool), "a number"
        case str():
            right, kind = isinstance(value, str | list), "text"
        case list():
            right, kind = isinstance(value, str | list), "a list"
        case _:
            right, kind = isinstance(value, Mapping), "a group of settings"
    if right:
        return None
    if isinstance(default, Mapping):
        return f"{shown(value)} is not {kind}; put its settings beneath it, among them {', '.join(_own(default)[:3])}"
    quotes = " without quotes" if isinstance(value, str) and isinstance(default, bool | int | float) else ""
    return f"{shown(value)} is not {kind}; write {kind}{quotes}, as verl's default {shown(default)} is"


def _own(group: Mapping[str, Any]) -> list[str]:
    return [name for name in group if name != "_target_"]


def _deliverable(value: Any, path: Path) -> Iterator[Fault]:
    """What cannot go through a command line and Hydra as it stands."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _key((*path, name))
            yield from _deliverable(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _deliverable(inner, (*path, index))
    elif isinstance(value, str) and (fault := text_fault(value)) is not None:
        yield Fault((*ROOT, *path), fault)


def _key(path: Path) -> Iterator[Fault]:
    name = str(path[-1])
    if not _KEY.fullmatch(name) or name.casefold() in _NO_KEYS:
        yield Fault((*ROOT, *path), "a name here has letters, digits, _ and -, a letter first, and is not true or null")


def text_fault(text: str) -> str | None:
    """Why a text cannot reach the trainer as written."""
    if "\0" in text:
        return "has a NUL character, which no command line carries; remove it"
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        return "has half of a surrogate pair, which is no character; remove it"
    if text == "???":
        return "'???' stands for a missing value in verl's files; set the value"
    return None
