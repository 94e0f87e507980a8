"""R16: a tool server that is down, slow, wrong or dies: tried again within a limit, then named with its address."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.unit.llm_agent.builders import a_config
from verl_tool.errors import ToolServerError
from verl_tool.llm_agent.tool_call import ToolCall
from verl_tool.llm_agent.tool_client import MOST_ITEMS, ToolClient, endpoint, probe

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def a_server(handler: Handler, path: str = "/get_observation") -> AsyncIterator[str]:
    """A real HTTP server on a free port; gives its address."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def a_call(name: str = "row", action: str = "x") -> ToolCall:
    return ToolCall(name, action, {"index": 1})


def an_answer(count: int, **changes: Any) -> dict[str, Any]:
    return {"observations": ["ok"] * count, "dones": [False] * count, "valids": [True] * count} | changes


async def echo(request: web.Request) -> web.Response:
    body = await request.json()
    return web.json_response(an_answer(len(body["actions"]), observations=body["actions"]))


def a_client(url: str, **settings: Any) -> ToolClient:
    return ToolClient(a_config(tool_server_url=url, **settings))


async def test_answers_come_in_the_order_of_the_calls() -> None:
    async with a_server(echo) as url, a_client(url) as client:
        results = await client.call_many([a_call(f"r{n}", f"action {n}") for n in range(2 * MOST_ITEMS + 3)])
    assert [result.observation for result in results] == [f"action {n}" for n in range(2 * MOST_ITEMS + 3)]


async def test_a_request_has_the_protocols_fields() -> None:
    bodies: list[Any] = []

    async def note(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        return web.json_response(an_answer(2))

    async with a_server(note) as url, a_client(url) as client:
        await client.call_many([a_call("a"), ToolCall("b", "", {}, finish=True)])
    assert bodies == [
        {
            "trajectory_ids": ["a", "b"],
            "actions": ["x", ""],
            "extra_fields": [{"index": 1}, {}],
            "finish": [False, True],
            "is_last_step": [False, False],
        }
    ]


async def test_a_server_that_is_down_is_named_after_the_attempts() -> None:
    async with a_client("http://127.0.0.1:9", tool_call_max_retries=1) as client:
        with pytest.raises(ToolServerError, match=r"http://127.0.0.1:9/get_observation.*2 attempts"):
            await client.call(a_call())


async def test_a_server_that_comes_back_within_the_attempts_is_no_failure() -> None:
    answers = iter([500, 503, 200])

    async def shaky(request: web.Request) -> web.Response:
        status = next(answers)
        return web.json_response(an_answer(1), status=status, headers={"Retry-After": "0"})

    async with a_server(shaky) as url, a_client(url) as client:
        assert (await client.call(a_call())).observation == "ok"


async def test_a_server_that_goes_on_answering_500_is_named() -> None:
    async def broken(request: web.Request) -> web.Response:
        return web.Response(status=500, text="boom", headers={"Retry-After": "0"})

    async with a_server(broken) as url, a_client(url, tool_call_max_retries=2) as client:
        with pytest.raises(ToolServerError, match="answered 500, 3 attempts"):
            await client.call(a_call())


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (lambda: web.Response(text="<html>hi</html>", content_type="text/html"), "the answer is no JSON"),
        (lambda: web.json_response(an_answer(1)), "2 calls, but 1 observations"),
        (lambda: web.json_response({"observations": ["a", "b"], "dones": [True, True]}), "2 calls, but none valids"),
        (lambda: web.json_response([1]), "a JSON list, not an object"),
        (lambda: web.json_response(an_answer(2, observations=[1, 2])), "an observation is a string or an object"),
        (lambda: web.json_response({"detail": "no"}, status=422), "answered 422"),
    ],
)
async def test_an_answer_that_is_not_the_protocol_is_refused_at_once(
    response: Callable[[], web.Response], said: str
) -> None:
    asked = 0

    async def wrong(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return response()

    async with a_server(wrong) as url, a_client(url) as client:
        with pytest.raises(ToolServerError, match=said) as fault:
            await client.call_many([a_call("a"), a_call("b")])
    assert url in str(fault.value)
    assert asked == 1


async def test_a_slow_server_is_asked_again_and_then_given_up() -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(0.5)
        return web.json_response(an_answer(1))

    async with a_server(slow) as url, a_client(url, tool_call_time_out=0.1, tool_call_max_retries=1) as client:
        with pytest.raises(ToolServerError, match=r"no answer within 0.1 s, 2 attempts"):
            await client.call(a_call())


async def test_sessions_are_closed_together_before_the_client_goes() -> None:
    closed: list[str] = []

    async def note(request: web.Request) -> web.Response:
        body = await request.json()
        closed.extend(body["trajectory_ids"] if all(body["finish"]) else [])
        return web.json_response(an_answer(len(body["actions"])))

    async with a_server(note) as url, a_client(url) as client:
        for number in range(70):
            client.close(ToolCall(f"r{number}", "", {}, finish=True))
    assert sorted(closed) == sorted(f"r{number}" for number in range(70))


async def test_an_object_as_observation_is_taken_apart() -> None:
    item = {"obs": "text", "reward": 1, "invalid_reason": "why", "image": "data"}

    async def rich(request: web.Request) -> web.Response:
        return web.json_response(an_answer(1, observations=[item], valids=[False]))

    async with a_server(rich) as url, a_client(url) as client:
        result = await client.call(a_call())
    assert (result.observation, result.reward, result.invalid_reason, result.valid) == ("text", 1.0, "why", False)
    assert result.info == {"image": "data"}


async def test_the_probe_names_the_tools_or_the_address() -> None:
    async def health(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "tools": ["python_code", "finish"]})

    async def other(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async with a_server(health, "/health") as url:
        assert await probe(url) == ["python_code", "finish"]
    async with a_server(other, "/health") as url:
        with pytest.raises(ToolServerError, match="another service listens there"):
            await probe(url)
    with pytest.raises(ToolServerError, match=r"127\.0\.0\.1:9"):
        await probe("http://127.0.0.1:9")


def test_the_address_may_be_given_with_or_without_the_path() -> None:
    assert endpoint("http://h:1") == endpoint("http://h:1/get_observation/") == "http://h:1/get_observation"
