"""HTTP client of a tool server: a request for one or many rows, time limits, retries, errors that name the address."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import aiohttp
import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from verl_tool.errors import ToolServerError
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult, parse_result

_log = structlog.get_logger(__name__)

MOST_ITEMS = 1024  # rows in one request; more go as several at once
_CLOSE_BATCH = 64
_LONGEST_WAIT = 8.0  # seconds between two attempts
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class _TryAgainError(Exception):
    """A failed attempt that another may mend."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class ToolClient:
    """Calls one tool server. An asynchronous context manager; bound to the event loop that entered it."""

    def __init__(self, config: AgentActorConfig) -> None:
        self.url = endpoint(config.tool_server_url or "")
        self._timeout = config.tool_call_time_out
        self._attempts = config.tool_call_max_retries + 1
        self._connections = config.max_concurrent_trajectories
        self._session: aiohttp.ClientSession | None = None
        self._to_close: list[ToolCall] = []
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._timeout),
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=30),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush_closes()
        if self._closing:
            await asyncio.wait(self._closing, timeout=self._timeout)
        if self._session is not None:
            await self._session.close()

    async def call(self, call: ToolCall) -> ToolResult:
        """Runs one call. Raises ToolServerError when no attempt gave a usable answer."""
        return (await self.call_many([call]))[0]

    def close(self, call: ToolCall) -> None:
        """Ends a session in the background, several in one request; the server forgets it by itself if this fails."""
        self._to_close.append(call)
        if len(self._to_close) >= _CLOSE_BATCH:
            self._flush_closes()

    async def call_many(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Runs calls in one request (a few, if they are very many); results in the order of `calls`."""
        if len(calls) > MOST_ITEMS:
            parts = [calls[start : start + MOST_ITEMS] for start in range(0, len(calls), MOST_ITEMS)]
            return [result for part in await asyncio.gather(*map(self.call_many, parts)) for result in part]
        body = json.dumps(request_body(calls)).encode()
        begun = time.perf_counter()
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(_TryAgainError),
                stop=stop_after_attempt(self._attempts),
                wait=_pause,
                reraise=True,
            ):
                with attempt:
                    answer = await self._post(body)
        except _TryAgainError as fault:
            raise ToolServerError(
                f"tool server {self.url}: {fault}, {self._attempts} attempts; is it running, and is "
                "actor_rollout_ref.agent.tool_server_url right?"
            ) from fault
        return self._results(answer, len(calls), time.perf_counter() - begun)

    async def _post(self, body: bytes) -> Any:
        assert self._session is not None, "enter the client first"
        try:
            async with self._session.post(
                self.url, data=body, headers={"Content-Type": "application/json"}
            ) as response:
                text = await response.text(errors="replace")
                if response.status in _TRANSIENT:
                    raise _TryAgainError(
                        f"answered {response.status}", _retry_after(response.headers.get("Retry-After"))
                    )
                if response.status != 200:
                    raise ToolServerError(f"tool server {self.url}: answered {response.status}: {text[:300]}")
        except TimeoutError as fault:
            raise _TryAgainError(f"no answer within {self._timeout:g} s") from fault
        except aiohttp.ClientError as fault:
            raise _TryAgainError(f"{type(fault).__name__}: {fault}") from fault
        try:
            return json.loads(text)
        except ValueError as fault:
            raise ToolServerError(
                f"tool server {self.url}: the answer is no JSON but {text[:80]!r}; is another service listening there?"
            ) from fault

    def _results(self, answer: Any, wanted: int, seconds: float) -> list[ToolResult]:
        if not isinstance(answer, dict):
            raise ToolServerError(
                f"tool server {self.url}: the answer is a JSON {type(answer).__name__}, not an object"
            )
        columns = [answer.get(key) for key in ("observations", "dones", "valids")]
        for name, column in zip(("observations", "dones", "valids"), columns, strict=True):
            if not isinstance(column, list) or len(column) != wanted:
                got = len(column) if isinstance(column, list) else "none"
                raise ToolServerError(f"tool server {self.url}: {wanted} calls, but {got} {name} in the answer")
        try:
            return [
                parse_result(observation, done=done, valid=valid, seconds=seconds)
                for observation, done, valid in zip(*columns, strict=True)
            ]
        except TypeError as fault:
            raise ToolServerError(f"tool server {self.url}: {fault}") from fault

    def _flush_closes(self) -> None:
        if self._to_close and self._session is not None:
            batch, self._to_close = self._to_close, []
            task = asyncio.create_task(self._close_all(batch))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _close_all(self, calls: Sequence[ToolCall]) -> None:
        try:
            await self.call_many(calls)
        except ToolServerError as fault:
            _log.warning("tool_sessions_not_closed", sessions=len(calls), reason=str(fault))


def endpoint(url: str) -> str:
    """`url` with `/get_observation` at its end, where it was left out."""
    url = url.rstrip("/")
    return url if url.endswith("/get_observation") else f"{url}/get_observation"


def request_body(calls: Sequence[ToolCall]) -> dict[str, list[Any]]:
    """The protocol's request: one list a field, one entry a call."""
    return {
        "trajectory_ids": [call.trajectory_id for call in calls],
        "actions": [call.action for call in calls],
        "extra_fields": [dict(call.extra_fields) for call in calls],
        "finish": [call.finish for call in calls],
        "is_last_step": [call.is_last_step for call in calls],
    }


async def probe(url: str, *, timeout: float = 10.0) -> list[str]:
    """Asks a tool server for its health; gives the names of its tools. Raises ToolServerError naming the address."""
    address = endpoint(url).removesuffix("/get_observation") + "/health"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session,
            session.get(address) as response,
        ):
            text = await response.text(errors="replace")
            if response.status != 200:
                raise ToolServerError(f"tool server {address}: answered {response.status}: {text[:200]}")
            health = json.loads(text)
    except (TimeoutError, aiohttp.ClientError) as fault:
        raise ToolServerError(
            f"tool server {address}: {fault or type(fault).__name__}; start it, or correct tool_server_url"
        ) from fault
    except ValueError as fault:
        raise ToolServerError(f"tool server {address}: the answer is no JSON; another service listens there") from fault
    tools = health.get("tools") if isinstance(health, dict) else None
    if not isinstance(tools, list):
        raise ToolServerError(f"tool server {address}: its health names no tools; another service listens there")
    return [str(tool) for tool in tools]


def _pause(state: RetryCallState) -> float:
    """Seconds before the next attempt: what the server asked for, else doubling, with jitter and a limit."""
    fault = state.outcome.exception() if state.outcome is not None else None
    if isinstance(fault, _TryAgainError) and fault.after is not None:
        return min(fault.after, _LONGEST_WAIT)
    return min(0.25 * 2.0 ** (state.attempt_number - 1), _LONGEST_WAIT) * random.uniform(0.75, 1.0)


def _retry_after(header: str | None) -> float | None:
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None
