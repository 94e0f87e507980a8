"""A run of the real trainer in a process of its own, and what it leaves."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from verl_cpu_platform import settings

RUN_LIMIT_S = 540.0
SHARED_MEMORY = Path("/dev/shm")
AGENT, ROLLOUT, ACTOR = "actor_rollout_ref.agent", "actor_rollout_ref.rollout", "actor_rollout_ref.actor"


@dataclass(frozen=True)
class Job:
    """A folder with a model, data and a reward, and the settings that go with them."""

    folder: Path
    model: Path

    def overrides(self, *more: str) -> list[str]:
        """Hydra overrides; `more` wins."""
        return [
            *settings.overrides(),
            "algorithm.adv_estimator=grpo",
            f"data.train_files={self.folder / 'train.parquet'}",
            f"data.val_files={self.folder / 'val.parquet'}",
            "data.train_batch_size=4",
            "data.max_prompt_length=32",
            "data.max_response_length=256",
            f"actor_rollout_ref.model.path={self.model}",
            f"{ACTOR}.ppo_mini_batch_size=4",
            f"{ACTOR}.optim.lr=1e-4",
            f"{ROLLOUT}.n=2",
            f"{ROLLOUT}.max_model_len=512",
            f"reward.custom_reward_function.path={self.folder / 'reward.py'}",
            "trainer.logger=[file]",
            "trainer.val_before_train=False",
            "trainer.test_freq=-1",
            "trainer.save_freq=-1",
            f"trainer.default_local_dir={self.folder / 'checkpoints'}",
            f"trainer.rollout_data_dir={self.folder / 'trajectories' / 'train'}",
            f"trainer.validation_data_dir={self.folder / 'trajectories' / 'validation'}",
            f"hydra.run.dir={self.folder / 'hydra'}",
            *more,
        ]

    def start(self, name: str, *more: str) -> "Run":
        """Starts a run; its metrics and logs are named after it."""
        mark = uuid.uuid4().hex
        metrics, log, errors = (self.folder / f"{name}.{ending}" for ending in ("jsonl", "log", "err"))
        environment = {
            **os.environ,
            **settings.environment(),
            "HF_HUB_OFFLINE": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "VERL_FILE_LOGGER_PATH": str(metrics),
            "TEST_RUN_MARK": mark,
        }
        before = shared_memory()
        with log.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "verl_tool.trainer.main_ppo", *self.overrides(*more)],
                stdout=out,
                stderr=err,
                env=environment,
                cwd=self.folder,
                start_new_session=True,
            )
        return Run(self, process, metrics, log, errors, mark, before)

    def run(self, name: str, *more: str) -> "Run":
        """Starts a run and waits for its end."""
        run = self.start(name, *more)
        run.wait()
        return run


@dataclass
class Run:
    """A run, under way or ended."""

    job: Job
    process: subprocess.Popen[bytes]
    metrics_file: Path
    log: Path
    errors: Path
    mark: str
    shared_memory_before: set[str]
    began: float = field(default_factory=time.monotonic)

    def wait(self) -> int:
        """Its exit status; ended by force at the limit."""
        try:
            return self.process.wait(timeout=RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"the run took longer than {RUN_LIMIT_S:.0f} s\n{self.tail()}") from None

    def wait_for(self, reached: Callable[["Run"], bool]) -> None:
        """Waits until something can be seen of the run, at most as long as for its end."""
        while not reached(self):
            if self.process.poll() is not None or time.monotonic() - self.began > RUN_LIMIT_S:
                raise AssertionError(f"the run ended before it was reached\n{self.tail()}")
            time.sleep(0.2)

    def interrupt(self) -> int:
        """As Ctrl-C; its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def steps(self) -> dict[int, dict[str, Any]]:
        """Metrics by step, as far as written."""
        if not self.metrics_file.exists():
            return {}
        entries = [json.loads(line) for line in self.metrics_file.read_bytes().splitlines()]
        return {entry["step"]: entry["data"] for entry in entries}

    @cached_property
    def metrics(self) -> dict[int, dict[str, Any]]:
        """Metrics by step, of a run that has ended well."""
        assert self.process.poll() == 0, self.tail()
        return self.steps()

    def trajectories(self, part: str, step: int) -> list[dict[str, Any]]:
        """The lines of a step's file."""
        path = self.job.folder / "trajectories" / part / f"{step}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def told(self) -> list[str]:
        """What a person was told: the lines on stderr that begin with `error:`."""
        return [line for line in self.errors.read_text().splitlines() if line.startswith("error:")]

    def processes(self) -> list[int]:
        """Processes of the run that are still there, wherever they have gone."""
        needle = f"TEST_RUN_MARK={self.mark}".encode()
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if needle in read(path)]

    def processes_after(self, seconds: float) -> list[int]:
        """The same, once they have had some time to end."""
        end = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def shared_memory_left(self) -> set[str]:
        """Files in shared memory that came with the run and did not go."""
        return shared_memory() - self.shared_memory_before

    def tail(self) -> str:
        """The end of its logs, for an assertion's message."""
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in (self.log, self.errors))


def gaps(metrics: Sequence[dict[str, Any]]) -> list[float]:
    """The largest log-probability gap of each step."""
    return [step["agent/logprob_gap/max"] for step in metrics]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # ended meanwhile, or another user's
        return b""


def shared_memory() -> set[str]:
    return {path.name for path in SHARED_MEMORY.iterdir()}
