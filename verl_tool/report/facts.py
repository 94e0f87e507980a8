"""What a run's folder says about the run as a whole: name, model, times, end, settings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from verl_tool.job.run_folder import RunFolder

MOST_TEXT = 80_000  # characters of a file shown
_MOST_BYTES = 4 * 1024 * 1024  # of a file read
_LATEST = 4e9  # a later time is none of a run's


class End(StrEnum):
    """How a run ended, as far as its folder says."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    RUNNING = "running"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Facts:
    """None and "" where the folder does not say."""

    name: str
    model: str
    end: End
    reason: str  # of a run that failed
    started: float | None  # seconds since the epoch
    ended: float | None
    planned_steps: int | None
    settings: tuple[tuple[str, str], ...]
    config: str  # the file's text, cut
    config_left_out: int  # characters


def read_facts(folder: RunFolder) -> Facts:
    """Whatever can be read; a file that is missing or is not YAML counts as empty."""
    job, config, state = _mapping(folder.job), _mapping(folder.config), _mapping(folder.state)
    text = _text(folder.config) or _text(folder.job)
    return Facts(
        name=str(_at(job, "metadata", "name") or folder.root.resolve().name),
        model=str(_at(job, "spec", "model", "path") or _at(config, "actor_rollout_ref", "model", "path") or ""),
        end=_end(state),
        reason=str(state.get("error") or "")[:2000],
        started=_time(state.get("started")) or _modified(folder.config) or _modified(folder.job),
        ended=_time(state.get("ended")) or _modified(folder.metrics),
        planned_steps=_whole(state.get("steps") or _at(config, "trainer", "total_training_steps")),
        settings=tuple(_settings(config)),
        config=text[:MOST_TEXT],
        config_left_out=max(0, len(text) - MOST_TEXT),
    )


def _end(state: Mapping[str, Any]) -> End:
    try:
        return End(str(state.get("outcome") or End.UNKNOWN))
    except ValueError:
        return End.UNKNOWN


def _settings(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a reader asks for first, in few words."""
    actor, rollout, agent = (_at(config, "actor_rollout_ref", *path) for path in (("actor",), ("rollout",), ("agent",)))
    wanted = [
        ("algorithm", _at(config, "algorithm", "adv_estimator")),
        ("prompts a step", _at(config, "data", "train_batch_size")),
        ("samples a prompt", _at(rollout, "n")),
        ("learning rate", _at(actor, "optim", "lr")),
        ("temperature", _at(rollout, "temperature")),
        ("most turns", _at(agent, "max_turns")),
        ("schedule", _at(agent, "rollout_mode")),
        ("response tokens", _at(config, "data", "max_response_length")),
    ]
    return [(label, str(value)) for label, value in wanted if isinstance(value, str | int | float)]


def _at(tree: Any, *path: str) -> Any:
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _mapping(path: Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = _text(path)
        value = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=loader)
    except (ValueError, RecursionError, yaml.YAMLError):
        return {}
    return value if isinstance(value, dict) else {}


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _time(value: Any) -> float | None:
    """Seconds since the epoch, from such a number or an ISO date."""
    try:
        given = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return given if 0 < given < _LATEST else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 < value < 1e12 else None
