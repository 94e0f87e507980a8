"""From ended trajectories to the tensors that verl trains on; the keys are those of the original's DataProto."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.engine import TokenId
from verl_tool.llm_agent.limits import Limits
from verl_tool.llm_agent.metrics import row_stats
from verl_tool.llm_agent.record import Segment, SegmentKind, ToolCallRecord
from verl_tool.llm_agent.tokens import Span
from verl_tool.llm_agent.trajectory import FinishReason, Trajectory

Decode = Callable[[Sequence[TokenId]], str]
ObjectArray = npt.NDArray[np.object_]


def gets_loss(row: Trajectory, config: AgentActorConfig) -> bool:
    """Whether any token of the row is trained on: not when something else than the model failed it."""
    assert row.finish is not None, "the trajectory has not ended"
    if row.finish.failed:
        return False
    if config.mask_overlong_loss and row.finish is FinishReason.TRUNCATED:
        return False
    void = row.finish in (FinishReason.TRUNCATED, FinishReason.MAX_TURNS) and row.valid_actions == 0
    return not (config.mask_void_traj and void)


def trained_spans(row: Trajectory, config: AgentActorConfig) -> list[Span]:
    """The stretches of the response that get loss."""
    if not gets_loss(row, config):
        return []
    return row.stream.trained_spans(train_on_observations=not config.mask_observations)


def compose_tensors(
    rows: Sequence[Trajectory], *, config: AgentActorConfig, limits: Limits, pad_id: TokenId
) -> dict[str, torch.Tensor]:
    """Padded tensors of B rows; P = limits.prompt, R = limits.response_width.

    int64: `prompts` (B, P) left-padded, `responses` (B, R) right-padded, `responses_with_loss_mask` the same with pad
    in place of what gets no loss, `response_mask` (B, R); over both parts, (B, P+R), `input_ids`, `attention_mask`,
    `position_ids`, `loss_mask`. float32: `rollout_log_probs` (B, R), 0 where nothing was sampled, and `tool_rewards`
    (B, R), each at the last token of the action it answers.

    All masks come from positions: a pad id inside a row is a token like any other.
    """
    count, prompt_width, width = len(rows), limits.prompt, limits.response_width
    prompts = np.full((count, prompt_width), pad_id, dtype=np.int64)
    responses = np.full((count, width), pad_id, dtype=np.int64)
    attention = np.zeros((count, prompt_width + width), dtype=np.int64)
    response_mask = np.zeros((count, width), dtype=np.int64)
    log_probs = np.zeros((count, width), dtype=np.float32)
    tool_rewards = np.zeros((count, width), dtype=np.float32)
    for i, row in enumerate(rows):
        prompt, response = row.stream.prompt, row.stream.response
        start, stop = prompt_width - len(prompt), len(response)
        prompts[i, start:] = prompt
        responses[i, :stop] = response
        attention[i, start : prompt_width + stop] = 1
        for span in trained_spans(row, config):
            response_mask[i, span.start : span.stop] = 1
        log_probs[i, :stop] = row.stream.log_probs
        for position, reward in row.tool_rewards:
            tool_rewards[i, position] += reward
    loss_mask = np.concatenate([np.zeros((count, prompt_width), dtype=np.int64), response_mask], axis=1)
    arrays = {
        "prompts": prompts,
        "responses": responses,
        "responses_with_loss_mask": np.where(response_mask == 1, responses, pad_id),
        "input_ids": np.concatenate([prompts, responses], axis=1),
        "attention_mask": attention,
        "position_ids": np.maximum(np.cumsum(attention, axis=1) - 1, 0) * attention,
        "loss_mask": loss_mask,
        "response_mask": response_mask,
        "rollout_log_probs": log_probs,
        "tool_rewards": tool_rewards,
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def compose_columns(rows: Sequence[Trajectory], *, weights_version: int) -> dict[str, ObjectArray]:
    """The non-tensor columns of B rows. `weights_version` stands in for an engine that does not tell its own."""
    columns: dict[str, list[Any]] = {
        "traj_ids": [row.task.trajectory_id for row in rows],
        "turns_stats": [row.tool_turns for row in rows],
        "valid_action_stats": [row.valid_actions for row in rows],
        "active_mask": [row.finish is FinishReason.MAX_TURNS for row in rows],
        "action_lengths": [row.action_lengths for row in rows],
        "obs_lengths": [row.observation_lengths for row in rows],
        "turn_rewards": [[result.reward for _, result in row.calls] for row in rows],
        "tool_interact_info": [_interactions(row) for row in rows],
        "finish_reason": [(row.finish or FinishReason.ENGINE_ERROR).value for row in rows],
        "rollout_stats": [dict(row_stats(row)) for row in rows],
        "weights_version_min": [min(row.weights_versions, default=weights_version) for row in rows],
        "weights_version_max": [max(row.weights_versions, default=weights_version) for row in rows],
        "multi_modal_inputs": [{} for _ in rows],
    }
    return {name: object_array(values) for name, values in columns.items()}


def trajectory_record(row: Trajectory, *, config: AgentActorConfig, decode: Decode) -> dict[str, Any]:
    """The row as the fields `prompt`, `segments`, `tool_calls`, `finish_reason`, `turns` of a TrajectoryRecord."""
    trained = set(trained_spans(row, config))
    stream = row.stream
    segments = []
    for span in stream.spans:
        kind, start, stop = span
        sampled = kind is SegmentKind.SAMPLED
        segments.append(
            Segment(
                kind=kind,
                text=decode(stream.response[start:stop]),
                tokens=stop - start,
                trained=span in trained,
                mean_log_prob=sum(stream.log_probs[start:stop]) / (stop - start) if sampled else None,
            )
        )
    calls = [
        ToolCallRecord(
            turn=turn,
            action=call.action,
            observation=result.observation,
            valid=result.valid,
            done=result.done,
            reward=result.reward,
            error=result.error or result.invalid_reason,
            seconds=result.seconds,
        )
        for turn, (call, result) in enumerate(row.calls)
    ]
    return {
        "prompt": decode(stream.prompt),
        "segments": [segment.model_dump(mode="json") for segment in segments],
        "tool_calls": [call.model_dump(mode="json") for call in calls],
        "finish_reason": (row.finish or FinishReason.ENGINE_ERROR).value,
        "turns": row.tool_turns,
    }


def object_array(values: Sequence[Any]) -> ObjectArray:
    """A one-dimensional array of objects, also where every value is a list of the same length."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _interactions(row: Trajectory) -> list[dict[str, Any]]:
    return [
        {
            "trajectory_id": call.trajectory_id,
            "action": call.action,
            "obs": result.observation,
            "reward": result.reward,
            "done": result.done,
            "valid_action": result.valid,
            "is_last_step": call.is_last_step,
            "finish": call.finish,
            "invalid_reason": result.invalid_reason,
            "error": result.error,
            **result.info,
        }
        for call, result in row.calls
    ]
