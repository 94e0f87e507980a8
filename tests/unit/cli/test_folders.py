"""Which folder a run has."""

from pathlib import Path

import pytest

from verl_tool.cli import folders
from verl_tool.errors import ConfigError, RunError


def test_runs_of_a_job_are_counted_and_latest_points_to_the_newest(tmp_path: Path) -> None:
    assert [folders.new_folder(tmp_path, "job").root.name for _ in range(2)] == ["1", "2"]
    assert (tmp_path / "job" / "latest").resolve().name == "2"
    assert folders.newest_folder(tmp_path, "job").root.name == "2"


def test_ten_comes_behind_nine(tmp_path: Path) -> None:
    for number in (9, 10):
        (tmp_path / "job" / str(number)).mkdir(parents=True)
    assert folders.new_folder(tmp_path, "job").root.name == "11"


def test_there_is_nothing_to_resume_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no run of job"):
        folders.newest_folder(tmp_path, "job")


def test_a_given_folder_with_a_run_in_it_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").touch()
    with pytest.raises(ConfigError, match="is not empty"):
        folders.given_folder(tmp_path, resume=False)
    assert folders.given_folder(tmp_path, resume=True).root == tmp_path


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(RunError, match="runs"):
        folders.new_folder(tmp_path / "runs", "job")
