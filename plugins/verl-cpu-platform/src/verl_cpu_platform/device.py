"""The device module of a machine without accelerator: `torch.cpu` and what verl calls on an accelerator besides.

verl reaches its device through `get_torch_device()` and calls the memory and RNG functions of `torch.cuda` without
asking whether there is an accelerator (verl/workers/engine_workers.py, verl/utils/memory_utils.py,
verl/workers/engine/fsdp/transformer_impl.py). Memory figures are those of the process; the rest does nothing.
"""

import types
from typing import Any

import psutil
import torch


class CpuDeviceModule(types.ModuleType):
    """A module, since verl's platform promises one; what is not defined here is `torch.cpu`'s."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    # Presence. `is_available` is "is there an accelerator", so no.
    def is_available(self) -> bool:
        return False

    def device_count(self) -> int:
        return 1

    def current_device(self) -> torch.device:
        return torch.device("cpu")  # verl does tensor.to(get_device_id())

    def set_device(self, *_device: object) -> None:
        return None

    def get_device_name(self, *_device: object) -> str:
        return "CPU"

    # Streams and caches: nothing to wait for, nothing cached.
    def synchronize(self, *_device: object) -> None:
        return None

    def empty_cache(self) -> None:
        return None

    def ipc_collect(self) -> None:
        return None

    # Memory
    def memory_allocated(self, *_device: object) -> int:
        return int(psutil.Process().memory_info().rss)

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def reset_peak_memory_stats(self, *_device: object) -> None:
        return None

    def mem_get_info(self, *_device: object) -> tuple[int, int]:
        memory = psutil.virtual_memory()
        return int(memory.available), int(memory.total)

    # Randomness
    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self, *_device: object) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_device: object) -> None:
        torch.set_rng_state(state)


DEVICE_MODULE = CpuDeviceModule("verl_cpu_platform.device_module")
