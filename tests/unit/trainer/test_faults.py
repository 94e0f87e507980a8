"""What a person is told of a fault."""

import errno

import pytest
from ray.exceptions import RayTaskError

from verl_tool.errors import DataError, RolloutError
from verl_tool.trainer.faults import told


def a_ray_fault(cause: Exception) -> Exception:
    return RayTaskError("generate_sequences", "a long remote traceback", cause).as_instanceof_cause()


def test_a_fault_raised_in_a_worker_is_told_in_its_own_words() -> None:
    assert str(told(a_ray_fault(RolloutError("half of the rows failed")))) == "half of the rows failed"


def test_a_fault_of_ours_behind_one_of_python_is_found() -> None:
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = DataError("no rows")

    assert str(told(wrapped)) == "no rows"


def test_a_fault_of_the_program_is_left_as_it_is() -> None:
    assert told(a_ray_fault(KeyError("x"))) is None


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        a_ray_fault(
            RuntimeError("[enforce fail at inline_container.cc:857] . PytorchStreamWriter failed writing file")
        ),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_told_as_such_whoever_found_it(fault: Exception) -> None:
    assert "disk of the run's folder is full; make room" in str(told(fault))
