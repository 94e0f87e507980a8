"""What this machine trains on: its NVIDIA GPUs, or its CPU by way of verl-cpu-platform. Asks no torch."""

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from verl_tool.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Machine:
    """GPUs for the trainer (Ray's logical ones on a CPU), and what the platform adds to a run."""

    gpus: int
    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()


def this_machine(wanted: int | None) -> Machine:
    """The machine, for a job that wants so many GPUs (None: whatever there is). Raises ConfigError for too few."""
    found = gpu_count(os.environ, Path("/dev"))
    if found:
        if (wanted or found) > found:
            raise ConfigError(f"spec.workers.gpus: {wanted}; this machine has {found}: set {found} or less")
        return Machine(wanted or found, f"{wanted or found} of {found} GPUs")
    if importlib.util.find_spec("verl_cpu_platform") is None:
        raise ConfigError(
            "this machine has no NVIDIA GPU, and verl-cpu-platform is not installed; install it from plugins/, or set "
            "CUDA_VISIBLE_DEVICES to the GPUs to use"
        )
    from verl_cpu_platform import settings

    workers = wanted or 1
    return Machine(
        workers,
        f"CPU, {workers} training process{'es' * (workers > 1)}",
        settings.environment(),
        (*settings.overrides(),),
    )


def gpu_count(environment: Mapping[str, str], devices: Path) -> int:
    """The GPUs that CUDA would see."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    there = sum(bool(re.fullmatch(r"nvidia\d+", entry.name)) for entry in devices.glob("nvidia*"))
    if visible is None:
        return there
    chosen = [one for one in visible.split(",") if one.strip() not in ("", "-1")]
    return min(there, len(chosen))
