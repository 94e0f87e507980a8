"""Real runs through the command: a tool server that dies, an interrupt, a resume, a reward that raises."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.integration.cli.jobs import Command, Ended, Folder, make_folder
from tests.integration.training.runs import read
from tests.integration.training.tiny import make_data

pytestmark = pytest.mark.timeout(600)
SAVED_STEPS = 3


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Folder:
    return make_folder(tmp_path_factory.mktemp("job"), model)


@pytest.fixture(scope="module")
def interrupted(job: Folder) -> Ended:
    """A run whose tool server dies behind the first step, and that is interrupted some steps later."""
    command = job.start("run", "job.yaml")
    command.wait_until(lambda: len(job.steps()) >= 1)
    os.kill(tool_server_of(command), signal.SIGKILL)
    command.wait_until(lambda: len(job.steps()) >= SAVED_STEPS)
    command.interrupt()
    return command.wait()


@pytest.fixture(scope="module")
def resumed(job: Folder, interrupted: Ended) -> Ended:
    """Goes on from there to its end."""
    assert interrupted.code == 130, interrupted.err
    last = max(job.steps()) + 2
    return job.verl_tool("run", "job.yaml", "--resume", "--set", f"trainer.total_training_steps={last}")


def test_an_interrupted_run_leaves_a_checkpoint_and_nothing_else(interrupted: Ended, job: Folder) -> None:
    assert interrupted.code == 130
    assert "--resume" in interrupted.err and "Traceback" not in interrupted.err
    assert list((job.path / "runs/tiny/1/checkpoints").glob("global_step_*/whole"))
    interrupted.nothing_left()


def test_a_tool_server_that_dies_half_way_is_started_again_and_the_run_goes_on(interrupted: Ended) -> None:  # R16
    assert "warning: the tool server" in interrupted.err and "starting it again" in interrupted.err
    last = re.search(r"checkpoint: .*/global_step_(\d+)", interrupted.err)
    assert last is not None and int(last[1]) >= SAVED_STEPS, interrupted.err


def test_a_resumed_run_goes_on_behind_the_last_step_and_keeps_the_earlier_metrics(resumed: Ended, job: Folder) -> None:
    assert resumed.code == 0, resumed.err
    root = job.path / "runs/tiny/1"
    before = [int(line.split(b'"step":')[1].split(b",")[0]) for line in read(root / "metrics.1.jsonl").splitlines()]
    assert before[0] == 1 and min(job.steps()) == max(before) + 1
    assert (root / "report.html").stat().st_size > 10_000
    assert "report: runs/tiny/1/report.html" in resumed.err and "mean reward a step" in resumed.err
    resumed.nothing_left()


def test_a_report_is_written_anew(resumed: Ended, job: Folder) -> None:
    page = job.path / "runs/tiny/1/report.html"
    page.unlink()
    ended = job.verl_tool("report", "runs/tiny/latest")
    assert ended.code == 0 and ended.out.strip().endswith("report.html") and page.exists()


def test_a_reward_function_that_raises_ends_the_run_with_its_words_and_keeps_what_there_was(folder: Folder) -> None:
    make_data(folder.path / "val.parquet", rows=3, ground_truth="raise")
    folder.set(spec__config__trainer__test_freq=2, spec__checkpoints__every=1)
    ended = folder.verl_tool("run", "job.yaml", "--no-report")
    ended.refused("the reward of this row cannot be computed")
    assert folder.steps()[:1] == [1]
    assert (folder.path / "runs/tiny/1/checkpoints/global_step_1/whole").exists()
    assert not (folder.path / "runs/tiny/1/report.html").exists()


def tool_server_of(command: Command) -> int:
    """Its process: the tool server gets nothing of our environment, so it is found below the command."""
    parents = {int(path.parent.name): path for path in Path("/proc").glob("[0-9]*/stat")}
    children: dict[int, list[int]] = {}
    for pid, path in parents.items():
        if fields := read(path).rpartition(b")")[2].split():
            children.setdefault(int(fields[1]), []).append(pid)
    pending = [command.process.pid]
    while pending:
        pid = pending.pop()
        words = read(Path(f"/proc/{pid}/cmdline")).split(b"\0")
        if b"verl_tool.tool_server" in words and not any(word.endswith(b"guard.py") for word in words):
            return pid
        pending += children.get(pid, [])
    raise AssertionError("no tool server runs")
