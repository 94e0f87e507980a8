"""Rewards of finished trajectories, from the job's reward function in verl's reward workers."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import ray
from verl import DataProto

from verl_tool.errors import RewardError
from verl_tool.trainer.ppo.records import Score, chat_turns
from verl_tool.trainer.ppo.rows import Row, objects

SCORING_LIMIT_S = 3600.0  # for a whole batch: a reward function may ask another model
_TENSORS = ("prompts", "responses", "attention_mask", "input_ids", "position_ids", "response_mask")


def score(rows: Sequence[Row], output: DataProto, workers: Sequence[Any]) -> list[Score]:
    """One score a row, in order. Raises RewardError when the reward function raises or gives no number."""
    if not rows:
        return []
    data = scoring_input(rows, output)
    count = min(len(workers), len(rows))
    bounds = [len(rows) * part // count for part in range(count + 1)]
    calls = [
        worker.compute_score_batch.remote(data[start:stop])
        for worker, start, stop in zip(workers, bounds, bounds[1:], strict=False)
    ]
    try:
        answers = ray.get(calls, timeout=SCORING_LIMIT_S)
    except ray.exceptions.GetTimeoutError as fault:
        raise RewardError(f"the reward function took longer than {SCORING_LIMIT_S:.0f} s for a batch") from fault
    except ray.exceptions.RayTaskError as fault:
        raise RewardError(f"the reward function raised {type(fault.cause).__name__}: {fault.cause}") from fault.cause
    return [as_score(answer) for answers_of_worker in answers for answer in answers_of_worker]


def scoring_input(rows: Sequence[Row], output: DataProto) -> DataProto:
    """What verl's reward manager reads: the tokens, the data set's fields, and what the rollout knows of the row."""
    fields: dict[str, list[Any]] = {
        name: [copy.deepcopy(row.fields[name]) for row in rows]  # copies: the manager writes into extra_info
        for name, value in rows[0].fields.items()
        if not hasattr(value, "shape")
    }
    known = output.non_tensor_batch
    fields["extra_info"] = [dict(extra or {}) for extra in fields.get("extra_info", [None] * len(rows))]
    fields["__num_turns__"] = [chat_turns(int(turns)) for turns in known["turns_stats"]]
    fields["tool_extra_fields"] = [
        {
            "turn_rewards": known["turn_rewards"][index],
            "tool_interact_info": known["tool_interact_info"][index],
            "finish_reason": str(known["finish_reason"][index]),
        }
        for index in range(len(rows))
    ]
    return DataProto.from_dict(
        tensors={name: output.batch[name] for name in _TENSORS},
        non_tensors={name: objects(values) for name, values in fields.items()},
    )


def as_score(answer: dict[str, Any]) -> Score:
    """A reward worker's answer. Raises RewardError when the reward is not a finite number."""
    given = answer["reward_score"]
    try:
        reward = float(given)
    except (TypeError, ValueError):
        raise RewardError(f"the reward function gave {given!r}, which is no number") from None
    if not math.isfinite(reward):
        raise RewardError(f"the reward function gave {reward}; a reward is a finite number")
    return Score(reward, dict(answer.get("reward_extra_info") or {}))
