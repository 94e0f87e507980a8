"""What a machine has, without asking torch."""

from pathlib import Path

import pytest

from verl_tool.cli.machine import gpu_count


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, 2),
        ({"CUDA_VISIBLE_DEVICES": "1"}, 1),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
    ],
)
def test_gpus_are_the_devices_that_cuda_may_see(devices: Path, variables: dict[str, str], count: int) -> None:
    assert gpu_count(variables, devices) == count


def test_a_machine_without_devices_has_none_whatever_is_visible(tmp_path: Path) -> None:
    assert gpu_count({"CUDA_VISIBLE_DEVICES": "0,1"}, tmp_path) == 0
