"""Small manifests, changed where a test wants them to be."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from verl_tool.job.check import read_job
from verl_tool.job.launch import Launch
from verl_tool.job.model import TrainingJob
from verl_tool.job.places import Places
from verl_tool.job.run_folder import RunFolder

MINIMAL: dict[str, Any] = {
    "apiVersion": "training.verl-tool.dev/v1alpha1",
    "kind": "TrainingJob",
    "metadata": {"name": "calculator"},
    "spec": {
        "model": {"path": "model"},
        "data": {"train": ["train.parquet"], "validation": ["validation.parquet"]},
        "config": {
            "algorithm": {"adv_estimator": "grpo"},
            "data": {"train_batch_size": 8},
            "actor_rollout_ref": {
                "actor": {"ppo_mini_batch_size": 8, "use_dynamic_bsz": True},
                "rollout": {"n": 4},
                "agent": {"max_turns": 2, "action_stop_tokens": ["</python>"]},
            },
        },
        "reward": {"file": "reward.py"},
        "toolServer": {"tools": ["python_code"]},
    },
}


def a_manifest(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """MINIMAL, changed."""
    return changed(copy.deepcopy(MINIMAL), changes or {})


def changed(data: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with settings set by dotted path; a value of `...` removes."""
    for path, value in changes.items():
        *groups, last = path.split(".")
        place = data
        for name in groups:
            place = place.setdefault(name, {})
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return data


def text_of(data: dict[str, Any]) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def a_job(changes: dict[str, Any] | None = None) -> TrainingJob:
    return read_job(text_of(a_manifest(changes)))[0]


def a_launch(root: Path = Path("/nowhere"), **changes: Any) -> Launch:
    settings: dict[str, Any] = {
        "places": Places(manifest=root / "job", volume=root / "volume"),
        "folder": RunFolder(root / "run"),
        "tool_server_url": "http://127.0.0.1:5000",
    }
    return Launch(**{**settings, **changes})
