"""What goes over the wire of `POST /get_observation`: typed request and answer, for server and clients alike.

The field names and the answer's shape are those of the original verl-tool. What the original let through (lists of
different lengths, unknown fields, wrong types) is refused here with the name of the field.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    SkipValidation,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError


# A JSON string may hold a lone surrogate (`"\ud800"`), which pydantic's own `str` refuses for the whole request.
# Here it is the fault of one item, so the text is let through and looked at item by item.
def _any_text(value: object) -> object:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    return value


WireText = Annotated[SkipValidation[str], BeforeValidator(_any_text), WithJsonSchema({"type": "string"})]


class ObservationRequest(BaseModel):
    """One turn of one or more trajectories; the lists are parallel."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    trajectory_ids: list[WireText] = Field(min_length=1, description="whose turn each item is; repeats are allowed")
    actions: list[WireText] = Field(min_length=1, description="the model's raw text of this turn, tags and all")
    extra_fields: list[dict[WireText, Any]] | None = Field(
        default=None,
        description="per-item data: the data set's `extra_info`, `current_step`, …; `stdin` is read by python_code",
    )
    finish: list[bool] | None = Field(default=None, description="true: run no tool, close the trajectory's sessions")
    is_last_step: list[bool] | None = Field(
        default=None, description="true: run the tool, then close the trajectory's sessions"
    )

    @model_validator(mode="after")
    def _lists_are_parallel(self) -> Self:
        expected = len(self.trajectory_ids)
        for name in ("actions", "extra_fields", "finish", "is_last_step"):
            values: Sequence[object] | None = getattr(self, name)
            if values is not None and len(values) != expected:
                raise PydanticCustomError(
                    "lengths_differ",
                    "{name} has {found} items, but trajectory_ids has {expected}; the lists must be of one length",
                    {"name": name, "found": len(values), "expected": expected},
                )
        return self

    def __len__(self) -> int:
        return len(self.trajectory_ids)


class ObservationObject(BaseModel):
    """An observation that says more than its text. Fields without a value are left out of the answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    obs: str = Field(description="the text that the model reads")
    reward: float | None = Field(default=None, allow_inf_nan=False, description="a reward given with this observation")
    image: list[str] | None = Field(default=None, description="images, as data URLs")
    video: list[str] | None = None
    metrics: dict[str, FiniteFloat] | None = Field(default=None, description="numbers for the training's metrics")
    timeout: bool | None = None
    invalid_reason: str | None = Field(default=None, description="why the action was not valid")
    available_tools: list[str] | None = None
    error: str | None = Field(default=None, description="the tool's own failure, not the model's")
    tool_type: str | None = Field(default=None, description="the tool that failed")


class ObservationResponse(BaseModel):
    """The answer, in the order of the request."""

    model_config = ConfigDict(frozen=True)

    observations: list[str | ObservationObject]
    dones: list[bool]
    valids: list[bool]
    processing_time_ms: float
    queue_time_ms: float = Field(description="the longest that one of the items waited for a slot")

    @model_validator(mode="after")
    def _lists_are_parallel(self) -> Self:
        if len({len(self.observations), len(self.dones), len(self.valids)}) != 1:
            raise ValueError("observations, dones and valids must have as many items each")
        return self


class Health(BaseModel):
    """The answer of `/health`."""

    model_config = ConfigDict(frozen=True)

    status: str
    tools: list[str]
    concurrent_requests: int
    active_tasks: int = Field(description="tool calls that run now")
    waiting: int = Field(description="tool calls that wait for a slot")
    max_concurrent: int
    queue_limit: int
    uptime_seconds: float


class Refusal(BaseModel):
    """Any answer that is not 2xx."""

    model_config = ConfigDict(frozen=True)

    error: str = Field(description="one line that names the field and the remedy")
    detail: list[dict[str, Any]] = Field(default_factory=list, description="each fault: loc, msg, type")
