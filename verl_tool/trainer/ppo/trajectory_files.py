"""`<folder>/<step>.jsonl`: the trajectories of a step, one TrajectoryRecord a line, for people and for the report."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from verl_tool.llm_agent.record import TrajectoryRecord


def trajectory_line(record: str, *, key: str, step: int, reward: float | None, ground_truth: Any) -> TrajectoryRecord:
    """The record as the worker wrote it, with what the trainer knows; `key` is `{uid}_{session}_{index}`."""
    uid, session, _ = key.rsplit("_", 2)
    return TrajectoryRecord.model_validate(
        {
            **json.loads(record),
            "step": step,
            "uid": uid,
            "session": int(session),
            "reward": reward,
            "ground_truth": None if ground_truth is None else str(ground_truth),
        }
    )


def records_wanted(trainer: Mapping[str, Any], *, validate: bool) -> bool:
    """Whether verl's `trainer` settings name a folder for the trajectories."""
    return bool(trainer.get("validation_data_dir" if validate else "rollout_data_dir"))


def write_trajectories(folder: str | Path, step: int, lines: Iterable[TrajectoryRecord]) -> Path:
    """Writes the file whole or not at all."""
    path = Path(folder) / f"{step}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".jsonl.part")
    unfinished.write_text("".join(f"{line.model_dump_json()}\n" for line in lines), encoding="utf-8")
    os.replace(unfinished, path)
    return path
