"""What is wrong with a reward function, before a model is loaded."""

from pathlib import Path

import pytest

from verl_tool.preflight.reward import check_reward


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nothing_of_that_name", "nothing_of_that_name"),
        ("def", "SyntaxError"),
        ("def score(): ...", "it has score"),
        ("def compute_score(answer): ...", "does not take data_source"),
        ("compute_score = 3", "no function 'compute_score'"),
    ],
)
def test_what_verl_could_not_call_is_a_fault(tmp_path: Path, code: str, words: str) -> None:
    path = tmp_path / "reward.py"
    path.write_text(code)
    (fault,) = check_reward(str(path), "compute_score", {})
    assert fault.startswith("spec.reward: ") and words in fault


def test_arguments_of_the_job_belong_to_the_call(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text("def compute_score(data_source, solution_str, ground_truth, extra_info, *, bonus): ...")
    assert check_reward(str(path), "compute_score", {"bonus": 1}) == []
    assert "bonus" in check_reward(str(path), "compute_score", {})[0]


def test_a_function_of_a_package_is_found() -> None:
    assert "dumps" in check_reward("pkg://json", "compute_score", {})[0]
