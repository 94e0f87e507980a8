"""The real command `verl-tool` in a process of its own, and what it leaves behind."""

import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.integration.training.runs import read, shared_memory
from tests.integration.training.tiny import make_data, make_model, make_reward

COMMAND = Path(sys.executable).parent / "verl-tool"


@dataclass
class Ended:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str
    processes: list[int]
    shared_memory: set[str]

    @property
    def errors(self) -> list[str]:
        """What a person was told."""
        return [line.removeprefix("error: ") for line in self.stderr.splitlines() if line.startswith("error: ")]

    def assert_refused(self) -> None:
        """A short error, no traceback, nothing left."""
        assert self.status == 1, self.stderr
        assert self.errors, self.stderr
        assert "Traceback" not in self.stderr
        assert self.processes == []
        assert self.shared_memory == set()


class Command:
    """A command under way."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self._mark = uuid.uuid4().hex
        self._before = shared_memory()
        self.folder = folder
        environment = {**os.environ, "TEST_RUN_MARK": self._mark, "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
        self._output, self._errors = folder / f"{self._mark}.out", folder / f"{self._mark}.err"
        with self._output.open("wb") as out, self._errors.open("wb") as err:
            self.process = subprocess.Popen(
                [str(COMMAND), *arguments], stdout=out, stderr=err, env=environment, cwd=folder, start_new_session=True
            )

    @property
    def stderr(self) -> str:
        """As far as written."""
        return self._errors.read_text(errors="replace")

    def wait(self, limit: float = 300.0) -> Ended:
        """Waits for its end; ended by force at the limit."""
        try:
            status = self.process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"took longer than {limit:.0f} s\n{self.stderr[-3000:]}") from None
        end = time.monotonic() + 10
        while (left := self._processes()) and time.monotonic() < end:
            time.sleep(0.1)
        return Ended(status, self._output.read_text(), self.stderr, left, shared_memory() - self._before)

    def _processes(self) -> list[int]:
        needle = f"TEST_RUN_MARK={self._mark}".encode()
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if needle in read(path)]


def call(*arguments: str, folder: Path) -> Ended:
    """Runs a command to its end."""
    return Command(*arguments, folder=folder).wait()


def make_job(folder: Path, changes: dict[str, Any] | None = None) -> Path:
    """A small job with its model, data and reward; settings changed by dotted path. Gives the manifest."""
    make_data(folder / "train.parquet", rows=16)
    make_data(folder / "validation.parquet", rows=3)
    make_reward(folder / "reward.py")
    make_model(folder / "model", tied=True)
    return write_manifest(folder, changes)


def write_manifest(folder: Path, changes: dict[str, Any] | None = None) -> Path:
    """The manifest alone."""
    rollout = {"n": 2, "max_model_len": 512}
    agent = {
        "enable_mtrl": True,
        "action_stop_tokens": ["S", "f", "m", "O", "N", "p"],
        "max_turns": 2,
        "max_action_length": 12,
    }
    config = {
        "algorithm": {"adv_estimator": "grpo"},
        "data": {"train_batch_size": 4, "max_prompt_length": 32, "max_response_length": 128},
        "actor_rollout_ref": {
            "actor": {"ppo_mini_batch_size": 4, "use_dynamic_bsz": True, "optim": {"lr": 1e-4}},
            "rollout": rollout,
            "agent": agent,
        },
        "trainer": {"total_training_steps": 3, "total_epochs": 1000, "val_before_train": False, "test_freq": -1},
    }
    manifest: dict[str, Any] = {
        "apiVersion": "training.verl-tool.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "tiny"},
        "spec": {
            "model": {"path": "model"},
            "data": {"train": ["train.parquet"], "validation": ["validation.parquet"]},
            "config": config,
            "reward": {"file": "reward.py"},
            "toolServer": {"tools": ["python_code"]},
            "checkpoints": {"every": 1000},
        },
    }
    for path, value in (changes or {}).items():
        *groups, last = path.split(".")
        place = manifest
        for name in groups:
            place = place.setdefault(name, {})
        place[last] = value
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(manifest, sort_keys=False))
    return file
