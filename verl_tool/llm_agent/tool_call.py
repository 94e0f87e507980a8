"""What goes to the tool server for one row and what comes back; typed, checked once, at the border."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class ToolCall(NamedTuple):
    """What the model asked for in one turn."""

    trajectory_id: str
    action: str  # the model's raw text of this turn, tags and all
    extra_fields: Mapping[str, Any]
    finish: bool = False  # run nothing, end the trajectory's session
    is_last_step: bool = False  # run it, then end the session


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The tool server's answer for one row."""

    observation: str
    done: bool
    valid: bool
    reward: float | None = None
    error: str | None = None  # the tool itself failed; the row cannot go on
    invalid_reason: str | None = None
    seconds: float = 0.0  # from asking to having the answer, as the row saw it
    info: Mapping[str, Any] = field(default_factory=dict)  # whatever else the tool said (metrics, timeout, …)


class Tools(Protocol):
    """Where a row's calls go. A schedule may stand between the row and the server."""

    async def call(self, call: ToolCall) -> ToolResult:
        """Runs one call. Raises ToolServerError when the server gives no usable answer."""
        ...

    def close(self, call: ToolCall) -> None:
        """Ends a trajectory's session soon, without anyone waiting for it; `call.finish` is true."""
        ...


def parse_result(observation: Any, *, done: Any, valid: Any, seconds: float) -> ToolResult:
    """One item of an answer: a string, or an object with `obs` and more. Raises TypeError for anything else."""
    if isinstance(observation, str):
        return ToolResult(observation, bool(done), bool(valid), seconds=seconds)
    if not isinstance(observation, Mapping):
        raise TypeError(f"an observation is a string or an object, not {type(observation).__name__}")
    info = dict(observation)
    text, reward, error, reason = (info.pop(key, None) for key in ("obs", "reward", "error", "invalid_reason"))
    if reward is not None and not isinstance(reward, int | float):
        raise TypeError(f"a reward is a number, not {reward!r}")
    return ToolResult(
        str(text or ""),
        bool(done),
        bool(valid),
        reward=None if reward is None else float(reward),
        error=None if error in (None, "") else str(error),
        invalid_reason=None if reason in (None, "") else str(reason),
        seconds=seconds,
        info=info,
    )
