"""A finished trajectory in the form that verl's agent-loop worker takes."""

import json
from typing import Any

from verl.experimental.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics

from verl_tool.llm_agent.batch import trained_spans
from verl_tool.llm_agent.manager import AgentActorManager
from verl_tool.llm_agent.trajectory import Trajectory
from verl_tool.trainer.ppo.records import TRAJECTORY_RECORD, chat_turns

AGENT_NAME = "verl_tool"  # the agent's, among verl's agent loops


class ToolAgentLoopOutput(AgentLoopOutput):
    """verl's output, with the tool's rewards at their places and the record for people to read."""

    tool_rewards: list[tuple[int, float]]
    record: str | None

    def as_dict(self) -> dict[str, Any]:
        """The fields for verl's TransferQueue."""
        fields: dict[str, Any] = super().as_dict()
        record = fields.pop("record")
        for position, reward in fields.pop("tool_rewards"):
            fields["rm_scores"][position] += reward
        if record is not None:
            fields["extra_fields"].setdefault("reward_extra_info", {})[TRAJECTORY_RECORD] = record
        return fields


def output_of(row: Trajectory, manager: AgentActorManager, *, record: bool, global_steps: int) -> ToolAgentLoopOutput:
    """`global_steps` stands in for an engine that does not tell the version of its weights."""
    versions = row.weights_versions or {global_steps}
    mask = [0] * len(row.stream.response)
    for span in trained_spans(row, manager.config):
        mask[span.start : span.stop] = [1] * (span.stop - span.start)
    return ToolAgentLoopOutput(
        prompt_ids=row.stream.prompt,
        response_ids=row.stream.response,
        response_mask=mask,
        response_logprobs=row.stream.log_probs,
        num_turns=chat_turns(row.tool_turns),
        metrics=AgentLoopMetrics(num_preempted=row.preemptions),
        extra_fields={
            "min_global_steps": min(versions),
            "max_global_steps": max(versions),
            "finish_reason": None if row.finish is None else row.finish.value,
            "turn_rewards": [result.reward for _, result in row.calls],
        },
        tool_rewards=row.tool_rewards,
        record=json.dumps(manager.record(row)) if record else None,
    )
