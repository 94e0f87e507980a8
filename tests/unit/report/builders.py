"""Run folders and trajectories as small as a test needs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verl_tool.job.run_folder import RunFolder
from verl_tool.llm_agent.record import Segment, SegmentKind, ToolCallRecord, TrajectoryRecord


def sampled(text: str, **fields: Any) -> Segment:
    """What the model said."""
    given = {"kind": SegmentKind.SAMPLED, "text": text, "tokens": 5, "trained": True, "mean_log_prob": -0.5}
    return Segment(**given | fields)


def observed(text: str, **fields: Any) -> Segment:
    """What the tool answered."""
    return Segment(**{"kind": SegmentKind.OBSERVATION, "text": text, "tokens": 3, "trained": False} | fields)


def a_call(action: str, **fields: Any) -> ToolCallRecord:
    """A call the tool accepted."""
    given = {"turn": 0, "action": action, "observation": "4", "valid": True, "done": False, "seconds": 0.01}
    return ToolCallRecord(**given | fields)


def a_record(**fields: Any) -> TrajectoryRecord:
    """A trajectory of one call and an answer."""
    given = {
        "step": 1,
        "uid": "a",
        "session": 0,
        "prompt": "<|im_start|>user\n2+2<|im_end|>\n<|im_start|>assistant\n",
        "segments": [sampled("<python>print(2+2)</python>"), observed("\n4\n"), sampled("Answer: 4<|im_end|>")],
        "tool_calls": [a_call("<python>print(2+2)</python>")],
        "finish_reason": "answered",
        "turns": 1,
        "reward": 1.0,
        "ground_truth": "4",
    }
    return TrajectoryRecord(**given | fields)


def metric_lines(steps: Mapping[int, Mapping[str, Any]]) -> str:
    """What the trainer's logger writes."""
    return "".join(json.dumps({"step": step, "data": data}) + "\n" for step, data in steps.items())


def a_run(
    root: Path,
    *,
    metrics: Mapping[int, Mapping[str, Any]] | str | None = None,
    earlier: Sequence[Mapping[int, Mapping[str, Any]]] = (),
    training: Mapping[int, Sequence[TrajectoryRecord | str]] | None = None,
    validation: Mapping[int, Sequence[TrajectoryRecord | str]] | None = None,
    state: Mapping[str, Any] | None = None,
    config: str | None = None,
) -> RunFolder:
    """A folder that holds what is given, and nothing else."""
    folder = RunFolder(root)
    if metrics is not None:
        folder.metrics.write_text(metrics if isinstance(metrics, str) else metric_lines(metrics))
    for number, attempt in enumerate(earlier, start=1):
        (root / f"metrics.{number}.jsonl").write_text(metric_lines(attempt))
    for place, batches in ((folder.train_trajectories, training), (folder.validation_trajectories, validation)):
        for step, records in (batches or {}).items():
            place.mkdir(parents=True, exist_ok=True)
            lines = [record if isinstance(record, str) else record.model_dump_json() for record in records]
            (place / f"{step}.jsonl").write_text("\n".join(lines) + "\n")
    if state is not None:
        folder.state.write_text(json.dumps(state))
    if config is not None:
        folder.config.write_text(config)
    return folder
