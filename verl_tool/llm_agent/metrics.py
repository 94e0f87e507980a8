"""What a rollout tells verl's logger: a few numbers a row, summed up over the real rows of a batch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from verl_tool.llm_agent.trajectory import FinishReason, Trajectory

METRICS: dict[str, str] = {
    "agent/turns/mean": "tool turns of a trajectory, mean",
    "agent/turns/max": "tool turns of a trajectory, most",
    "agent/turns/min": "tool turns of a trajectory, fewest",
    "agent/actions/valid_share": "share of the actions that a tool accepted; absent without actions",
    "agent/actions/per_trajectory": "actions sent to the tool server, a trajectory",
    "agent/asked_to_go_on": "requests to go on (min_turns), a trajectory",
    "agent/observation_tokens/mean": "tokens of an observation, mean; absent without observations",
    "agent/observation_tokens/max": "tokens of an observation, most",
    "agent/generation_tokens/mean": "tokens of one generation, mean",
    "agent/generation_tokens/max": "tokens of one generation, most",
    "agent/tokens/sampled": "tokens the engine sampled, all trajectories",
    "agent/tokens/observed": "tokens of observations, all trajectories",
    "agent/tool/seconds_p50": "seconds a row waited for a tool's answer, median; absent without calls",
    "agent/tool/seconds_p95": "the same, 95th percentile",
    "agent/tool/errors": "calls in which the tool itself failed",
    "agent/tool/reward_mean": "rewards given with observations, sum of a trajectory, mean; absent without any",
    "agent/failed_share": "share of trajectories that the engine or the tool server failed",
    "agent/preemptions": "times the engine put a request back, all trajectories",
    **{
        f"agent/finish/{reason.value}": f"share of trajectories that ended as {reason.value}" for reason in FinishReason
    },
    "agent/logprob_gap/mean": "mean gap in nats between the engine's and the trainer's log-probabilities",
    "agent/logprob_gap/max": "largest such gap of one token",
}


class RowStats(TypedDict):
    """One row's numbers, plain values so that they travel in a DataProto."""

    turns: int
    valid: list[bool]
    asked_to_go_on: int
    generation_tokens: list[int]
    observation_tokens: list[int]
    sampled: int
    tool_seconds: list[float]
    tool_errors: int
    tool_rewards: list[float]
    finish: str
    failed: bool
    preemptions: int


def row_stats(row: Trajectory) -> RowStats:
    """The numbers of one ended row."""
    finish = row.finish or FinishReason.ENGINE_ERROR
    return RowStats(
        turns=row.tool_turns,
        valid=[result.valid for _, result in row.calls],
        asked_to_go_on=row.asked_to_go_on,
        generation_tokens=row.action_lengths,
        observation_tokens=row.observation_lengths,
        sampled=row.stream.sampled_count(),
        tool_seconds=[result.seconds for _, result in row.calls],
        tool_errors=sum(result.error is not None for _, result in row.calls),
        tool_rewards=[reward for _, reward in row.tool_rewards],
        finish=finish.value,
        failed=finish.failed,
        preemptions=row.preemptions,
    )


def summarise(rows: Sequence[RowStats | Mapping[str, Any]]) -> dict[str, float]:
    """The metrics of METRICS (the log-probability gap excepted) over real rows: the caller leaves padding out."""
    if not rows:
        return {}
    count = len(rows)
    turns = [row["turns"] for row in rows]
    valid = _flat(row["valid"] for row in rows)
    generated = _flat(row["generation_tokens"] for row in rows)
    observed = _flat(row["observation_tokens"] for row in rows)
    seconds = _flat(row["tool_seconds"] for row in rows)
    finishes = Counter(row["finish"] for row in rows)
    metrics = {
        "agent/turns/mean": float(np.mean(turns)),
        "agent/turns/max": float(max(turns)),
        "agent/turns/min": float(min(turns)),
        "agent/actions/per_trajectory": len(valid) / count,
        "agent/asked_to_go_on": sum(row["asked_to_go_on"] for row in rows) / count,
        "agent/tokens/sampled": float(sum(row["sampled"] for row in rows)),
        "agent/tokens/observed": float(sum(observed)),
        "agent/tool/errors": float(sum(row["tool_errors"] for row in rows)),
        "agent/failed_share": sum(row["failed"] for row in rows) / count,
        "agent/preemptions": float(sum(row["preemptions"] for row in rows)),
        **{f"agent/finish/{reason.value}": finishes[reason.value] / count for reason in FinishReason},
    }
    if valid:
        metrics["agent/actions/valid_share"] = float(np.mean(valid))
    if generated:
        metrics |= _mean_max("agent/generation_tokens", generated)
    if observed:
        metrics |= _mean_max("agent/observation_tokens", observed)
    if seconds:
        p50, p95 = np.percentile(seconds, [50, 95])
        metrics |= {"agent/tool/seconds_p50": float(p50), "agent/tool/seconds_p95": float(p95)}
    if any(row["tool_rewards"] for row in rows):
        metrics["agent/tool/reward_mean"] = sum(sum(row["tool_rewards"]) for row in rows) / count
    return metrics


def _mean_max(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}/mean": float(np.mean(values)), f"{name}/max": float(max(values))}


def _flat(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return [value for values in lists for value in values]
