"""verl's TrainingWorker for device `cpu`: it starts gloo by itself, and brings the CPU engines along.

verl/utils/distributed.py builds the backend string "cpu:gloo,<device>:<backend>", which torch refuses when the device
is `cpu` (a duplicate). It is skipped when torch.distributed is up, so it is brought up before.
"""

import os
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from verl.workers.engine_workers import TrainingWorker

from verl_cpu_platform import engines  # noqa: F401  registers the engines for device "cpu"

COLLECTIVE_LIMIT = timedelta(minutes=30)


class CpuTrainingWorker(TrainingWorker):
    """Stands where verl has TrainingWorker: as actor, reference and critic."""

    def __init__(self, config: Any) -> None:
        start_gloo()
        super().__init__(config)


def start_gloo() -> None:
    """Brings torch.distributed up over gloo, from the environment verl's worker group sets, unless it is up."""
    if dist.is_initialized():
        return
    dist.init_process_group(
        backend="cpu:gloo",
        rank=int(os.environ.get("RANK", "0")),
        world_size=int(os.environ.get("WORLD_SIZE", "1")),
        init_method=os.environ.get("DIST_INIT_METHOD"),
        timeout=COLLECTIVE_LIMIT,
    )
