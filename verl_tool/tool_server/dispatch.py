"""One item of a request: which tool it is for, running it, what to answer when that fails. No item touches another."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from verl_tool.tool_server.admission import Admission
from verl_tool.tool_server.faults import unreadable_text
from verl_tool.tool_server.gauges import Gauges
from verl_tool.tool_server.protocol import ObservationObject, ObservationRequest
from verl_tool.tool_server.tools.base import Malformed, Outcome
from verl_tool.tool_server.tools.registry import AnyTool

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Item:
    """One trajectory's turn."""

    index: int
    trajectory_id: str
    text: str
    extra_field: Mapping[str, Any]
    finish: bool
    is_last_step: bool


def items_of(request: ObservationRequest) -> list[Item]:
    """The parallel lists as items. A flag may also stand in the item's extra field, as the original had it."""
    extras: Sequence[dict[str, Any]] = request.extra_fields or [{}] * len(request)
    return [
        Item(
            index,
            request.trajectory_ids[index],
            request.actions[index],
            extra,
            finish=bool(request.finish and request.finish[index]) or extra.get("finish") is True,
            is_last_step=bool(request.is_last_step and request.is_last_step[index])
            or extra.get("is_last_step") is True,
        )
        for index, extra in enumerate(extras)
    ]


class Answer(NamedTuple):
    """What an item's turn comes to, and how long it had to wait for its slot."""

    outcome: Outcome
    queued_seconds: float = 0.0


class Dispatcher:
    """Runs items through the tools. Every way out of `conduct` is an answer, but for cancellation."""

    def __init__(
        self, tools: Sequence[AnyTool], admission: Admission, gauges: Gauges, *, done_if_invalid: bool, seconds: float
    ) -> None:
        self.tools = tools
        self.finish = next(tool for tool in tools if tool.name == "finish")
        self.admission = admission
        self.gauges = gauges
        self.done_if_invalid = done_if_invalid
        self.seconds = seconds

    async def conduct(self, item: Item) -> Answer:
        """What this item's turn comes to."""
        for name, value in (
            ("trajectory_ids", item.trajectory_id),
            ("actions", item.text),
            ("extra_fields", item.extra_field),
        ):
            if (fault := unreadable_text(value)) is not None:
                return Answer(self._invalid(f"{name}[{item.index}] holds {fault}"))
        if item.finish:
            answer = Answer(await self.finish.conduct_action(item.trajectory_id, "", item.extra_field))
        else:
            tool, action = self._choose(item.text)
            if isinstance(action, Malformed):
                answer = Answer(self._invalid(action.reason, action.observation, tool))
            elif tool is None:
                answer = Answer(self._invalid("no tool accepts this action"))
            else:
                answer = await self._run(tool, item, action)
        if item.finish or item.is_last_step:
            await self._close(item)
        return answer

    def _choose(self, text: str) -> tuple[AnyTool | None, Any]:
        """The first tool that accepts the text; else the first to which it looks like a failed call."""
        malformed: tuple[AnyTool, Malformed] | None = None
        for tool in self.tools:
            try:
                action = tool.parse_action(text)
            except Exception as error:  # noqa: BLE001 - a tool author's code
                log.warning("parse_action_raised", tool=tool.name, error=repr(error))
                continue
            if isinstance(action, Malformed):
                malformed = malformed or (tool, action)
            elif action is not None:
                return tool, action
        return malformed or (None, None)

    async def _run(self, tool: AnyTool, item: Item, action: object) -> Answer:
        queued = 0.0
        try:
            async with asyncio.timeout(self.seconds) as limit, self.admission.slot() as queued:
                with self.gauges.seconds.labels(tool.name).time():
                    outcome = _checked(await tool.conduct_action(item.trajectory_id, action, item.extra_field))
        except Exception as error:  # noqa: BLE001 - a tool author's code
            if isinstance(error, TimeoutError) and limit.expired():
                said = ObservationObject(obs=self._out_of_time(), timeout=True, tool_type=tool.name)
                outcome = Outcome(said, timed_out=True)
            else:
                return Answer(self._failed(tool, item, error), queued)
        if outcome.timed_out:
            self.gauges.timeouts.labels(tool.name).inc()
        self.gauges.calls.labels(tool.name, "timeout" if outcome.timed_out else "ok").inc()
        return Answer(outcome, queued)

    def _out_of_time(self) -> str:
        return f"[the request's time limit of {self.seconds:g} s was reached; the call was ended]"

    def _failed(self, tool: AnyTool, item: Item, error: Exception) -> Outcome:
        """The tool's own fault: the row ends, its neighbours do not notice."""
        self.gauges.calls.labels(tool.name, "error").inc()
        log.error("tool_failed", tool=tool.name, trajectory_id=item.trajectory_id, error=repr(error), exc_info=error)
        text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
        return Outcome(ObservationObject(obs="", error=text, tool_type=tool.name), done=True, valid=False)

    def _invalid(self, reason: str, observation: str = "", tool: AnyTool | None = None) -> Outcome:
        self.gauges.calls.labels(tool.name if tool else "none", "invalid").inc()
        available = None if tool else [known.name for known in self.tools]
        said = ObservationObject(
            obs=observation or (reason if tool else ""), invalid_reason=reason, available_tools=available
        )
        return Outcome(said, done=self.done_if_invalid, valid=False)

    async def _close(self, item: Item) -> None:
        for tool in self.tools:
            try:
                await asyncio.wait_for(tool.close(item.trajectory_id), timeout=30)
            except Exception as error:  # noqa: BLE001 - a tool author's code
                log.error("close_failed", tool=tool.name, trajectory_id=item.trajectory_id, error=repr(error))


def _checked(given: Outcome) -> Outcome:
    """What a tool returned, if an answer can be made of it; raises otherwise, so that only this item fails."""
    observation, done, valid, timed_out = Outcome(*given)
    if isinstance(observation, str):
        observation = observation.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif not isinstance(observation, ObservationObject):
        raise TypeError(f"an observation must be a string or an ObservationObject, not {type(observation).__name__}")
    if not (isinstance(done, bool) and isinstance(valid, bool)):
        raise TypeError(f"done and valid must be bool, not {type(done).__name__} and {type(valid).__name__}")
    return Outcome(observation, done, valid, timed_out)
