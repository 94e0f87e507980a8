"""Rewards of finished trajectories: the job's reward function, run by verl's reward manager."""

import asyncio
import copy
import math
from collections.abc import Sequence
from typing import Any, Protocol

import ray
from omegaconf import DictConfig
from verl import DataProto
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

from verl_tool.errors import RewardError
from verl_tool.trainer.ppo.records import Score, chat_turns
from verl_tool.trainer.ppo.rows import Row, objects

SCORING_LIMIT_S = 3600.0  # for a whole batch: a reward function may ask another model
_TENSORS = ("prompts", "responses", "attention_mask", "input_ids", "position_ids", "response_mask")


class Scorer(Protocol):
    """Runs the reward function over rows; raises whatever that raises."""

    def __call__(self, data: DataProto) -> list[dict[str, Any]]: ...


class WorkerScorer:
    """In verl's reward workers, each its share of the rows."""

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = workers

    def __call__(self, data: DataProto) -> list[dict[str, Any]]:
        count = min(len(self._workers), len(data))
        bounds = [len(data) * part // count for part in range(count + 1)]
        calls = [
            worker.compute_score_batch.remote(data[start:stop])
            for worker, start, stop in zip(self._workers, bounds, bounds[1:], strict=False)
        ]
        try:
            return [answer for answers in ray.get(calls, timeout=SCORING_LIMIT_S) for answer in answers]
        except ray.exceptions.GetTimeoutError as fault:
            raise TimeoutError from fault
        except ray.exceptions.RayTaskError as fault:
            raise fault.cause from fault


class LocalScorer:
    """In this process, by verl's reward worker without an actor around it (`reward.num_workers=0`)."""

    def __init__(self, config: DictConfig) -> None:
        self._loop = asyncio.new_event_loop()  # kept: verl's reward manager holds on to the one it is made under
        asyncio.set_event_loop(self._loop)
        try:
            self._worker = RewardLoopWorker(config)
        except Exception as fault:
            raise RewardError(f"the reward function cannot be loaded: {type(fault).__name__}: {fault}") from fault

    def __call__(self, data: DataProto) -> list[dict[str, Any]]:
        scoring = asyncio.wait_for(self._worker.compute_score_batch(data), SCORING_LIMIT_S)
        answers: list[dict[str, Any]] = self._loop.run_until_complete(scoring)
        return answers


def score(rows: Sequence[Row], output: DataProto, scorer: Scorer) -> list[Score]:
    """One score a row, in order. Raises RewardError when the reward function raises or gives no number."""
    if not rows:
        return []
    try:
        answers = scorer(scoring_input(rows, output))
    except TimeoutError as fault:
        raise RewardError(f"the reward function took longer than {SCORING_LIMIT_S:.0f} s for a batch") from fault
    except Exception as fault:
        raise RewardError(raised(fault)) from fault
    return [as_score(answer) for answer in answers]


def raised(fault: BaseException) -> str:
    """What is said of a reward function that raised."""
    return f"the reward function raised {type(fault).__name__}: {fault}"


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
