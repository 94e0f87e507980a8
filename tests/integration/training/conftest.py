"""Runs of the real trainer and engine, each made once for all tests: a launch takes most of a minute."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.training.runs import AGENT, ROLLOUT, Job, Run
from tests.integration.training.tiny import make_data, make_model, make_reward

ROWS, BATCH = 16, 4
STEPS_AN_EPOCH = ROWS // BATCH
# Every turn of the model that one of these letters ends is an action; no tool accepts it, and it is told so in a turn.
TOOL_TURNS = (
    f"{AGENT}.enable_mtrl=true",
    f"{AGENT}.action_stop_tokens=[S,f,m,O,N,p]",
    f"{AGENT}.max_turns=2",
    f"{AGENT}.max_action_length=12",
)


@pytest.fixture(scope="session")
def tool_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real tool server."""
    port = tmp_path_factory.mktemp("tool-server") / "port"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "verl_tool.tool_server",
            "--tools",
            "python_code",
            "--port",
            "0",
            "--port-file",
            str(port),
        ]
    )
    try:
        end = time.monotonic() + 60
        while not (port.exists() and port.read_text().strip()):
            assert process.poll() is None and time.monotonic() < end, "the tool server did not start"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port.read_text().strip()}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def a_job(folder: Path, *, tied: bool, validation_rows: int = 3, validation_truth: str | None = None) -> Job:
    make_data(folder / "train.parquet", rows=ROWS)
    make_data(folder / "val.parquet", rows=validation_rows, ground_truth=validation_truth)
    make_reward(folder / "reward.py")
    return Job(folder, make_model(folder / "model", tied=tied))


@pytest.fixture(scope="session")
def tied_job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return a_job(tmp_path_factory.mktemp("tied"), tied=True)


@pytest.fixture(scope="session")
def first_run(tied_job: Job, tool_server: str) -> Run:
    """An epoch with tool turns, saved and validated at its last step, tied embeddings."""
    return tied_job.run(
        "first",
        *TOOL_TURNS,
        f"{AGENT}.tool_server_url={tool_server}",
        f"{ROLLOUT}.val_kwargs.n=2",
        f"{ROLLOUT}.val_kwargs.do_sample=True",
        f"trainer.total_training_steps={STEPS_AN_EPOCH}",
        f"trainer.save_freq={STEPS_AN_EPOCH}",
        f"trainer.test_freq={STEPS_AN_EPOCH}",
        "trainer.total_epochs=2",
    )


@pytest.fixture(scope="session")
def resumed_run(tied_job: Job, tool_server: str, first_run: Run) -> Run:
    """Goes on from the end of that epoch, through another one, and is then interrupted."""
    assert first_run.process.returncode == 0, first_run.tail()
    run = tied_job.start(
        "resumed",
        *TOOL_TURNS,
        f"{AGENT}.tool_server_url={tool_server}",
        f"{AGENT}.rollout_mode=sync",
        "trainer.save_freq=1000",
        "trainer.total_epochs=1000",
    )
    run.wait_for(lambda run: 2 * STEPS_AN_EPOCH in run.steps())
    run.interrupt()
    return run


@pytest.fixture(scope="session")
def untied_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Plain generation on two replicas, untied embeddings, and fewer rows to validate than replicas."""
    job = a_job(tmp_path_factory.mktemp("untied"), tied=False, validation_rows=1)
    return job.run(
        "untied",
        f"{AGENT}.enable_agent=false",
        "trainer.n_gpus_per_node=2",
        "data.max_response_length=32",
        "trainer.total_training_steps=2",
        "trainer.test_freq=2",
    )


@pytest.fixture(scope="session")
def agent_loop_run(tmp_path_factory: pytest.TempPathFactory, tool_server: str) -> Run:
    """Through verl's agent-loop interface; the reward of what is validated behind the second step raises."""
    job = a_job(tmp_path_factory.mktemp("agent-loop"), tied=True, validation_truth="raise")
    return job.run(
        "agent-loop",
        *TOOL_TURNS,
        f"{AGENT}.tool_server_url={tool_server}",
        f"{AGENT}.rollout_via=agent_loop",
        "trainer.total_training_steps=3",
        "trainer.test_freq=2",
    )
