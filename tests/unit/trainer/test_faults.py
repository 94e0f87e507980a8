"""What a person is told of a fault."""

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
