"""What a tool is. A tool author subclasses `Tool`, names it, and fills in two methods."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from verl_tool.tool_server.protocol import ObservationObject

ActionT = TypeVar("ActionT")


@dataclass(frozen=True)
class Malformed:
    """The text looks like a call of this tool but cannot be carried out; the model is told why."""

    reason: str
    observation: str = ""  # what the model reads; the reason, if empty


class Outcome(NamedTuple):
    """What came of an action."""

    observation: str | ObservationObject
    done: bool = False
    valid: bool = True
    timed_out: bool = False  # counted in the server's metrics


class ToolSettings(BaseModel):
    """A tool's own settings, set with `--set TOOL.NAME=VALUE`."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Tool(ABC, Generic[ActionT]):
    """One tool of the server. Its methods may be called for many trajectories at once.

    `ActionT` is whatever `parse_action` makes of the text: a string will often do.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[ToolSettings]] = ToolSettings

    def __init__(self, settings: ToolSettings) -> None:
        self.settings = settings

    @abstractmethod
    def parse_action(self, text: str) -> ActionT | Malformed | None:
        """What of the model's text is for this tool; None when nothing is."""

    @abstractmethod
    async def conduct_action(self, trajectory_id: str, action: ActionT, extra_field: Mapping[str, Any]) -> Outcome:
        """Carries out the action. May be cancelled at any await: the client went away or the time is up."""

    async def start(self) -> None:
        """Called once before the server answers; raising keeps the server from starting."""

    async def stop(self) -> None:
        """Called once when the server ends."""

    async def close(self, trajectory_id: str) -> None:
        """A trajectory is over: a stateful tool forgets its session, if it has one."""
