"""verl's platform named `cpu`. Loaded by `VERL_USE_EXTERNAL_MODULES`, and only ever chosen by `VERL_PLATFORM=cpu`.

verl/plugin/platform/platform_manager.py knows CUDA, ROCm and NPU, and falls back to CUDA where it finds none.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

from verl_cpu_platform.device import DEVICE_MODULE


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    """A machine without accelerator. Ray's logical GPU stands for one training process."""

    device_name = "cpu"
    vendor_name = "cpu"

    @property
    def training_worker_cls(self) -> type:
        """The TrainingWorker that works on this platform; not part of verl's PlatformBase, asked for by its user.

        Imported late: the platform is loaded while `import verl` is still under way.
        """
        from verl_cpu_platform.training_worker import CpuTrainingWorker

        return CpuTrainingWorker

    # Presence
    def is_available(self) -> bool:
        return False

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return False  # never found by search

    # Device
    @property
    def device_module(self) -> ModuleType:
        return DEVICE_MODULE

    def current_device(self) -> torch.device:
        return DEVICE_MODULE.current_device()

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        return None

    def synchronize(self, device_index: int | None = None) -> None:
        return None

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        return None

    def empty_cache(self) -> None:
        return None

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    # Communication
    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "VERL_CPU_VISIBLE_DEVICES"

    def is_ipc_supported(self) -> bool:
        return False  # weights go to the engine through shared memory

    # Ray: verl/single_controller/ray/base.py counts "GPU" and "NPU" alone, so processes are counted as logical GPUs.
    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def rollout_env_vars(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name.startswith("VLLM_CPU_")}

    # Profiling
    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        return None

    def profiler_stop(self) -> None:
        return None

    def cudart(self) -> Any:
        return None
