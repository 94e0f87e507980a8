"""A finished trajectory as verl's TransferQueue holds it; pure.

The fields and tags are those that verl's own agent loop writes (verl/trainer/ppo/v1/agent_loop_tq.py): everything from
advantage to metrics reads them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from verl import DataProto

from verl_tool.llm_agent.trajectory import FinishReason
from verl_tool.trainer.ppo.rows import Row

TRAJECTORY_RECORD = "trajectory_record"  # the record's JSON, where verl keeps what a reward function adds


@dataclass(frozen=True, slots=True)
class Score:
    """What the reward function says of one trajectory."""

    reward: float
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of the TransferQueue."""

    key: str
    fields: dict[str, Any]
    tag: dict[str, Any]


def record_of(row: Row, output: DataProto, index: int, score: Score | None, *, global_steps: int) -> Record:
    """Row `index` of the worker's output, without the padding of its tensors.

    `score` is None where verl computes rewards later, with a reward model on the trainer's own devices.
    """
    width = output.batch["prompts"].shape[1]
    present = output.batch["attention_mask"][index].bool()
    prompt = output.batch["prompts"][index][present[:width]]
    kept = present[width:]
    response = output.batch["responses"][index][kept]
    known = output.non_tensor_batch
    oldest, newest = int(known["weights_version_min"][index]), int(known["weights_version_max"][index])
    mask = output.batch["response_mask"][index][kept].to(torch.int64)
    input_ids = torch.cat([prompt, response])
    fields = {
        **row.fields,
        "session_id": row.session,
        "prompts": prompt,
        "responses": response,
        "response_mask": mask,
        "loss_mask": mask,
        "rollout_log_probs": output.batch["rollout_log_probs"][index][kept].to(torch.float32),
        "input_ids": input_ids,
        "position_ids": torch.arange(len(input_ids)),
        "multi_modal_inputs": {},
        "num_turns": chat_turns(int(known["turns_stats"][index])),
        "extra_fields": {
            "min_global_steps": oldest,
            "max_global_steps": newest,
            "reward_extra_info": dict(score.extra) if score else {},
            "finish_reason": str(known["finish_reason"][index]),
        },
    }
    if score is not None:
        fields["rm_scores"] = token_scores(score.reward, output.batch["tool_rewards"][index][kept])
    tag = {
        "status": "success",
        "prompt_len": len(prompt),
        "response_len": len(response),
        "seq_len": len(input_ids),
        "global_steps": global_steps,
        "min_global_steps": oldest,
        "max_global_steps": newest,
    }
    return Record(row.key, fields, tag)


def token_scores(reward: float, tool_rewards: torch.Tensor) -> torch.Tensor:
    """A tool's rewards on the tokens of the actions it answered, and the reward function's on the last token."""
    scores = tool_rewards.to(torch.float32).clone()
    scores[-1] += reward
    return scores


def is_failed(output: DataProto, index: int) -> bool:
    """Whether something other than the model is to blame for the row's end."""
    return FinishReason(output.non_tensor_batch["finish_reason"][index]).failed


def chat_turns(tool_turns: int) -> int:
    """verl counts turns of the chat: the user's, then the model's and the tool's by turns."""
    return 2 + 2 * tool_turns


def columns(records: Sequence[Record]) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    """Keys, fields and tags."""
    return [r.key for r in records], [r.fields for r in records], [r.tag for r in records]
