"""A finished trajectory as people read it: text in coloured pieces. Written by the trainer, read by the report."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class SegmentKind(StrEnum):
    """Where a stretch of tokens came from; only sampled ones are trained on (unless mask_observations is off)."""

    SAMPLED = "sampled"
    OBSERVATION = "observation"
    FORCED = "forced"  # put there by the loop: a missing end token, a request to go on


class Segment(BaseModel):
    """A run of tokens of one origin."""

    model_config = ConfigDict(frozen=True)

    kind: SegmentKind
    text: str
    tokens: int = Field(description="how many tokens")
    trained: bool = Field(description="whether these tokens get loss")
    mean_log_prob: float | None = Field(default=None, description="mean engine log-probability; sampled tokens only")


class ToolCallRecord(BaseModel):
    """One action that was sent to the tool server, and what came back."""

    model_config = ConfigDict(frozen=True)

    turn: int
    action: str
    observation: str
    valid: bool
    done: bool
    reward: float | None = None
    error: str | None = None
    seconds: float


class TrajectoryRecord(BaseModel):
    """One line of `trajectories/<train|validation>/<step>.jsonl`."""

    model_config = ConfigDict(frozen=True)

    step: int
    uid: str = Field(description="the prompt's id; the samples of one prompt share it")
    session: int = Field(description="which of the prompt's samples this is")
    prompt: str
    segments: list[Segment]
    tool_calls: list[ToolCallRecord]
    finish_reason: str = Field(description="a value of verl_tool.llm_agent.trajectory.FinishReason")
    turns: int
    reward: float | None = None
    ground_truth: str | None = None
