"""Which checkpoint a resume takes."""

from pathlib import Path

import pytest

from verl_tool.trainer.ppo.checkpoints import TRACKER, mark_whole, newest_whole, remove_shells, repair_tracker


def a_checkpoint(root: Path, step: int, *, whole: bool) -> None:
    (root / f"global_step_{step}" / "actor").mkdir(parents=True)
    if whole:
        mark_whole(root, step)


def test_a_save_that_was_interrupted_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    a_checkpoint(tmp_path, 2, whole=True)
    a_checkpoint(tmp_path, 10, whole=True)
    a_checkpoint(tmp_path, 12, whole=False)

    assert newest_whole(tmp_path) == 10


@pytest.mark.parametrize("left", ["", "12", "not a step"])
def test_verls_file_is_put_right_before_a_resume(tmp_path: Path, left: str) -> None:
    a_checkpoint(tmp_path, 10, whole=True)
    (tmp_path / TRACKER).write_text(left)

    assert repair_tracker(tmp_path) == 10
    assert (tmp_path / TRACKER).read_text() == "10"


def test_checkpoints_that_verl_alone_wrote_are_left_to_it(tmp_path: Path) -> None:
    a_checkpoint(tmp_path, 10, whole=False)
    (tmp_path / TRACKER).write_text("10")

    assert repair_tracker(tmp_path) is None
    assert (tmp_path / TRACKER).read_text() == "10"


def test_a_folder_that_is_not_there_has_no_checkpoint(tmp_path: Path) -> None:
    assert repair_tracker(tmp_path / "none") is None


def test_of_checkpoints_that_verl_no_longer_keeps_nothing_is_left(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        a_checkpoint(tmp_path, step, whole=step < 3)
    (tmp_path / "global_step_1" / "actor").rmdir()
    (tmp_path / "global_step_3" / "actor").rmdir()

    remove_shells(tmp_path)

    # the third is not marked as whole: it may be under way
    assert sorted(path.name for path in tmp_path.iterdir()) == ["global_step_2", "global_step_3"]
