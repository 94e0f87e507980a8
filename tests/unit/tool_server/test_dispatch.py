"""Which tool an item goes to, and that a tool's failure stays with its item."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from verl_tool.tool_server.admission import Admission, QueueFull
from verl_tool.tool_server.dispatch import Dispatcher, Item, items_of
from verl_tool.tool_server.gauges import Gauges
from verl_tool.tool_server.protocol import ObservationObject, ObservationRequest
from verl_tool.tool_server.tools.base import Malformed, Outcome, Tool, ToolSettings
from verl_tool.tool_server.tools.finish import Finish


class Prefixed(Tool[str]):
    """Accepts what begins with its name."""

    def __init__(self, name: str, result: object = None) -> None:
        super().__init__(ToolSettings())
        self.name = name  # type: ignore[misc]
        self.result = result
        self.closed: list[str] = []

    def parse_action(self, text: str) -> str | Malformed | None:
        if text == f"{self.name}?":
            raise ValueError("this parser is broken")
        if text == f"{self.name}!":
            return Malformed(f"{self.name} wants no exclamation mark")
        return text if text.startswith(self.name) else None

    async def conduct_action(self, trajectory_id: str, action: str, extra_field: Mapping[str, Any]) -> Outcome:
        if isinstance(self.result, Exception):
            raise self.result
        if self.result == "sleep":
            await asyncio.sleep(60)
        return self.result if self.result is not None else Outcome(f"{self.name} ran {action}")  # type: ignore[return-value]

    async def close(self, trajectory_id: str) -> None:
        self.closed.append(trajectory_id)


def a_dispatcher(*tools: Tool[Any], seconds: float = 5, done_if_invalid: bool = False) -> Dispatcher:
    admission = Admission(4, 4)
    every = (*tools, Finish(ToolSettings()))
    return Dispatcher(every, admission, Gauges(admission), done_if_invalid=done_if_invalid, seconds=seconds)


def an_item(text: str, **flags: bool) -> Item:
    return Item(0, "t", text, {}, flags.get("finish", False), flags.get("is_last_step", False))


async def outcome(dispatcher: Dispatcher, text: str, **flags: bool) -> Outcome:
    return (await dispatcher.conduct(an_item(text, **flags))).outcome


async def test_the_first_tool_that_accepts_the_text_gets_it() -> None:
    both = a_dispatcher(Prefixed("a"), Prefixed("ab"))
    assert (await outcome(both, "abc")).observation == "a ran abc"


async def test_a_tool_that_accepts_comes_before_one_that_finds_fault() -> None:
    dispatcher = a_dispatcher(Prefixed("a"), Prefixed("a!"))
    assert (await outcome(dispatcher, "a!")).observation == "a! ran a!"


async def test_a_malformed_call_is_told_its_reason_and_stays_in_the_row() -> None:
    """R20"""
    given = await outcome(a_dispatcher(Prefixed("a")), "a!")
    assert given == Outcome(
        ObservationObject(obs="a wants no exclamation mark", invalid_reason="a wants no exclamation mark"), False, False
    )


async def test_a_parser_that_raises_accepts_nothing() -> None:
    given = await outcome(a_dispatcher(Prefixed("a"), Prefixed("b")), "a?", done_if_invalid=True)
    assert given.valid is False


async def test_done_if_invalid_ends_the_row() -> None:
    assert (await outcome(a_dispatcher(done_if_invalid=True), "nothing")).done is True
    assert (await outcome(a_dispatcher(), "nothing")).done is False


@pytest.mark.parametrize(
    "result",
    [RuntimeError("no"), 5, Outcome(5), Outcome("x", done="yes"), (1, 2, 3, 4, 5), TimeoutError("its own")],  # type: ignore[arg-type]
    ids=["raises", "an int", "observation is an int", "done is text", "too many", "its own timeout"],
)
async def test_what_a_tool_gets_wrong_is_an_error_of_its_item(result: object) -> None:
    given = await outcome(a_dispatcher(Prefixed("a", result)), "a")
    assert isinstance(given.observation, ObservationObject)
    assert given.observation.error and given.observation.tool_type == "a"
    assert given.done is True and given.valid is False


async def test_a_plain_tuple_as_in_the_original_is_an_outcome() -> None:
    assert await outcome(a_dispatcher(Prefixed("a", ("text", True, True))), "a") == Outcome("text", True, True)


async def test_a_lone_surrogate_that_a_tool_gives_is_replaced() -> None:
    assert (await outcome(a_dispatcher(Prefixed("a", Outcome("x\ud800"))), "a")).observation == "x\ufffd"


async def test_a_call_past_the_request_limit_says_so() -> None:
    """T23"""
    given = await outcome(a_dispatcher(Prefixed("a", "sleep"), seconds=0.05), "a")
    assert isinstance(given.observation, ObservationObject) and given.observation.timeout is True


@pytest.mark.parametrize(("flags", "closed"), [({}, []), ({"finish": True}, ["t"]), ({"is_last_step": True}, ["t"])])
async def test_a_trajectory_that_ends_is_closed_in_every_tool(flags: dict[str, bool], closed: list[str]) -> None:
    tools = Prefixed("a"), Prefixed("b", RuntimeError())
    await outcome(a_dispatcher(*tools), "a", **flags)
    assert [tool.closed for tool in tools] == [closed, closed]


def test_flags_may_stand_in_the_extra_field_of_an_item_without_touching_others() -> None:
    request = ObservationRequest(
        trajectory_ids=["a", "b", "c"],
        actions=["", "", ""],
        extra_fields=[{"finish": True}, {}, {"is_last_step": True}],
        finish=[False, True, False],
    )
    assert [(item.finish, item.is_last_step) for item in items_of(request)] == [
        (True, False),
        (True, False),
        (False, True),
    ]


def test_a_request_that_does_not_fit_is_not_let_in_at_all() -> None:
    """T13"""
    admission = Admission(2, 3)
    admission.admit(4)
    with pytest.raises(QueueFull) as caught:
        admission.admit(2)
    assert caught.value.retry_after >= 1
    admission.admit(1)
    assert admission.admitted == 5
