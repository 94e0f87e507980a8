"""A small job in a folder, and `verl-tool` run on it as a person would."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.integration.training.runs import read, shared_memory
from tests.integration.training.tiny import make_data, make_model, make_reward
from tests.unit.job.builders import a_manifest, changed, text_of

LIMIT_S = 540.0
MANIFEST = a_manifest(
    {
        "metadata.name": "tiny",
        "spec.model.path": "./model",
        "spec.data": {"train": ["./train.parquet"], "validation": ["./val.parquet"]},
        "spec.checkpoints.every": 1000,
        "spec.config": {
            "algorithm": {"adv_estimator": "grpo"},
            "data": {"train_batch_size": 4, "max_prompt_length": 32, "max_response_length": 128},
            "actor_rollout_ref": {
                "actor": {"ppo_mini_batch_size": 4, "optim": {"lr": 1e-4}},
                "rollout": {"n": 2, "max_model_len": 512},
                "agent": {
                    "enable_mtrl": True,
                    "action_stop_tokens": ["S", "f", "m", "O", "N", "p"],
                    "max_turns": 2,
                    "max_action_length": 12,
                },
            },
            "trainer": {"val_before_train": False, "test_freq": -1, "total_epochs": 1000},
        },
    }
)


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    left: list[int]
    shared_memory: set[str]

    def refused(self, *words: str) -> None:
        """Asserts a short error with these words, and that nothing stays behind."""
        assert self.code == 1, self.err
        assert "Traceback" not in self.err and "error: " in self.err, self.err
        told = " ".join(line for line in self.err.splitlines() if line.startswith("error: "))
        assert len(told) < 1500, told
        assert not [word for word in words if word not in told], told
        self.nothing_left()

    def nothing_left(self) -> None:
        assert self.left == [] and self.shared_memory == set()


@dataclass
class Command:
    """A `verl-tool` under way."""

    process: subprocess.Popen[str]
    err: Path
    mark: str
    before: set[str] = field(default_factory=shared_memory)

    def wait(self, limit: float = LIMIT_S) -> Ended:
        out, _ = self.process.communicate(timeout=limit)
        # At the moment that it has ended: nothing is given time to go
        return Ended(
            self.process.returncode, out, self.err.read_text(), self.processes(), shared_memory() - self.before
        )

    def wait_until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not reached():
            assert self.process.poll() is None and time.monotonic() < end, self.err.read_text()
            time.sleep(0.2)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def processes(self) -> list[int]:
        """What came of it and is still there, wherever it has gone."""
        needle = f"TEST_RUN_MARK={self.mark}".encode()
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if needle in read(path)]


@dataclass
class Folder:
    """A job's folder."""

    path: Path
    changes: Mapping[str, Any] = field(default_factory=dict)

    def set(self, **changes: Any) -> "Folder":
        """Changes the manifest: `spec__model__path="x"`; `...` removes."""
        data = yaml.safe_load((self.path / "job.yaml").read_text())
        changed(data, {dotted.replace("__", "."): value for dotted, value in changes.items()})
        (self.path / "job.yaml").write_text(text_of(data))
        return self

    def start(self, *arguments: str) -> Command:
        mark = uuid.uuid4().hex
        err = self.path / f"{mark}.err"
        environment = {**os.environ, "TEST_RUN_MARK": mark, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        program = Path(sys.executable).parent / "verl-tool"
        before = shared_memory()
        with err.open("wb") as errors:
            process = subprocess.Popen(
                [program, *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=self.path,
                env=environment,
                start_new_session=True,
            )
        return Command(process, err, mark, before)

    def verl_tool(self, *arguments: str) -> Ended:
        return self.start(*arguments).wait()

    def steps(self, run: str = "1") -> list[int]:
        path = self.path / "runs" / "tiny" / run / "metrics.jsonl"
        return [json.loads(line)["step"] for line in path.read_bytes().splitlines()] if path.exists() else []


def make_folder(path: Path, model: Path) -> Folder:
    """A job that can be run."""
    (path / "model").symlink_to(model)
    make_data(path / "train.parquet", rows=16)
    make_data(path / "val.parquet", rows=3)
    make_reward(path / "reward.py")
    (path / "job.yaml").write_text(text_of(MANIFEST))
    return Folder(path)


def make_tiny_model(path: Path) -> Path:
    return make_model(path, tied=True)
