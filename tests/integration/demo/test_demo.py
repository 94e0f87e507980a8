"""The demo in short form, through the command a newcomer types: the reward rises, and it is the tool that raises it."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MANIFEST = ROOT / "examples" / "calculator" / "job.yaml"
STEPS = 10  # half of the manifest's
RUN_LIMIT_S = 900.0  # a machine that does other things at the same time is slow

pytestmark = pytest.mark.timeout(2 * RUN_LIMIT_S)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def trained(runs: Path) -> Path:
    """The folder of a run of the demo's manifest, prepared model and all."""
    settings = (f"trainer.total_training_steps={STEPS}", f"trainer.test_freq={STEPS}")
    return verl_tool_run(runs, "trained", *settings)


@pytest.fixture(scope="module")
def without_tools(runs: Path, trained: Path) -> Path:
    """The trained model of that run, validated with the tools off."""
    model = trained / "checkpoints" / f"global_step_{STEPS}" / "actor" / "huggingface"
    return verl_tool_run(
        runs,
        "without-tools",
        f"actor_rollout_ref.model.path={model}",
        "actor_rollout_ref.agent.max_turns=0",
        "trainer.val_only=true",
    )


def test_the_reward_on_held_out_tasks_rises(trained: Path) -> None:
    before, after = (held_out_reward(metrics(trained)[step]) for step in (0, STEPS))

    assert before < 0.5
    assert after > before + 0.25 and after > 0.65


def test_the_model_comes_to_use_its_tool_more(trained: Path) -> None:
    steps = metrics(trained)

    assert steps[STEPS]["agent/turns/mean"] > steps[1]["agent/turns/mean"]


def test_engine_and_trainer_agree_and_the_model_is_sure_enough_of_itself_for_that_to_mean_something(
    trained: Path,
) -> None:
    steps = metrics(trained)

    assert max(steps[step]["agent/logprob_gap/max"] for step in range(1, STEPS + 1)) < 1e-4
    assert steps[STEPS]["actor/entropy"] < 0.5


def test_the_run_ends_with_a_report(trained: Path) -> None:
    assert "<html" in (trained / "report.html").read_text(encoding="utf-8")


def test_with_the_tools_off_the_trained_model_cannot_do_the_tasks(without_tools: Path) -> None:
    assert held_out_reward(metrics(without_tools)[0]) < 0.2
    lines = (without_tools / "trajectories" / "validation" / "0.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 128
    assert not any(json.loads(line)["tool_calls"] for line in lines)


def verl_tool_run(runs: Path, name: str, *settings: str) -> Path:
    """Runs the manifest with some settings changed; the run's folder."""
    folder = runs / name
    command = [sys.executable, "-m", "verl_tool.cli.main", "run", str(MANIFEST), "--runs", str(runs)]
    command += ["--folder", str(folder), *(word for setting in settings for word in ("--set", setting))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_LIMIT_S)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def metrics(run: Path) -> dict[int, dict[str, Any]]:
    """What was logged, by step; step 0 is the validation before training."""
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_bytes().splitlines()]
    return {entry["step"]: entry["data"] for entry in entries}


def held_out_reward(step: dict[str, Any]) -> float:
    """Mean of the data sources, each of which has as many tasks."""
    return fmean(value for name, value in step.items() if name.startswith("val-core/") and name.endswith("/acc/mean@1"))
