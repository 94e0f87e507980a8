"""How the trajectories of a rollout share time: turn by turn together, or each alone. The trajectories do not know."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from verl_tool.errors import RolloutError
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult, Tools
from verl_tool.llm_agent.tool_client import ToolClient
from verl_tool.llm_agent.trajectory import Task, Trajectory, TrajectoryRunner

MakeRunner = Callable[[Tools], TrajectoryRunner]
OnEnd = Callable[[Trajectory], None]


async def run_async(
    tasks: Sequence[Task], make_runner: MakeRunner, client: Tools, *, in_flight: int, on_end: OnEnd
) -> list[Trajectory]:
    """Each trajectory alone, at most `in_flight` at once; results in order of `tasks`. `on_end` may raise to stop."""
    runner = make_runner(client)
    slots = asyncio.Semaphore(in_flight)

    async def one(task: Task) -> Trajectory:
        async with slots:
            row = await runner.run(task)
        on_end(row)
        return row

    return await _gather([one(task) for task in tasks])


async def run_sync(
    tasks: Sequence[Task], make_runner: MakeRunner, client: ToolClient, *, on_end: OnEnd
) -> list[Trajectory]:
    """Turn by turn: the tool server gets one request with all active rows; results in the order of `tasks`."""
    gate = TurnGate(client, rows=len(tasks))
    runner = make_runner(gate)

    async def one(task: Task) -> Trajectory:
        try:
            row = await runner.run(task)
        finally:
            gate.leave()
        on_end(row)
        return row

    return await _gather([one(task) for task in tasks])


class TurnGate:
    """Holds calls back until every active row has made one, then sends them as one request."""

    def __init__(self, client: ToolClient, *, rows: int) -> None:
        self._client = client
        self._active = rows
        self._waiting: list[tuple[ToolCall, asyncio.Future[ToolResult]]] = []
        self._closing: list[ToolCall] = []  # sessions of rows that ended: they go with the next request
        self._requests: set[asyncio.Task[None]] = set()

    async def call(self, call: ToolCall) -> ToolResult:
        """Waits for the others' calls, then for the answer. Raises ToolServerError like the client."""
        answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, answer))
        self._send_if_all_wait()
        return await answer

    def close(self, call: ToolCall) -> None:
        """Ends a session with the next request."""
        self._closing.append(call)

    def leave(self) -> None:
        """One row has ended; to be called once for each."""
        self._active -= 1
        if self._active == 0:
            for call in self._closing:
                self._client.close(call)
        self._send_if_all_wait()

    def _send_if_all_wait(self) -> None:
        if self._waiting and len(self._waiting) >= self._active:
            turn, self._waiting = self._waiting, []
            closing, self._closing = self._closing, []
            request = asyncio.create_task(self._send(turn, closing))
            self._requests.add(request)
            request.add_done_callback(self._requests.discard)

    async def _send(
        self, turn: Sequence[tuple[ToolCall, asyncio.Future[ToolResult]]], closing: Sequence[ToolCall]
    ) -> None:
        try:
            results = await self._client.call_many([*(call for call, _ in turn), *closing])
        except Exception as fault:  # noqa: BLE001  each waiting row raises it for itself
            for _, answer in turn:
                if not answer.done():
                    answer.set_exception(fault)
            return
        for (_, answer), result in zip(turn, results, strict=False):  # the closings' results say nothing
            if not answer.done():
                answer.set_result(result)


class FailureWatch:
    """Counts failed rows and stops the rollout when they are more than a set share, instead of training on nothing."""

    def __init__(self, *, rows: int, share: float) -> None:
        self._rows = rows
        self._allowed = share * rows
        self._failed = 0

    def __call__(self, row: Trajectory) -> None:
        """Takes note of an ended row. Raises RolloutError past the share, with the newest fault's own words."""
        if row.finish is None or not row.finish.failed:
            return
        self._failed += 1
        if self._failed > self._allowed:
            raise RolloutError(
                f"{self._failed} of {self._rows} trajectories failed, the last with {row.finish.value}: {row.fault}. "
                "More than actor_rollout_ref.agent.max_failed_share allows; nothing was trained on them"
            )


async def _gather(rows: Sequence[Coroutine[Any, Any, Trajectory]]) -> list[Trajectory]:
    """All results in order; the first exception cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(row) for row in rows]
    except BaseExceptionGroup as faults:
        raise _first(faults) from None
    return [task.result() for task in tasks]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    fault = group.exceptions[0]
    return _first(fault) if isinstance(fault, BaseExceptionGroup) else fault
