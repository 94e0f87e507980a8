"""The two schedules: who waits for whom, where answers land, when a rollout is given up."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.llm_agent.builders import (
    MemoryTools,
    ScriptedEngine,
    a_config,
    a_runner,
    a_task,
    calls_python,
    says,
    some_limits,
    text_of,
)
from verl_tool.errors import RolloutError
from verl_tool.llm_agent.engine import EngineFinish, Generation
from verl_tool.llm_agent.record import SegmentKind
from verl_tool.llm_agent.schedule import FailureWatch, run_async, run_sync
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult
from verl_tool.llm_agent.trajectory import FinishReason, Trajectory


def nothing(row: Trajectory) -> None:
    """Takes no note of an ended row."""


def an_echo(call: ToolCall) -> ToolResult:
    """An observation that says whose it is and which turn's."""
    return ToolResult(f"[{call.trajectory_id}.{call.extra_fields.get('current_step')}]", False, True)


def turns_by_row(prompt_ids: list[int], turns: dict[str, int]) -> Generation:
    """A row named in its prompt calls its tool so many times, then answers."""
    text = text_of(prompt_ids)
    name = text.split()[0]
    return calls_python() if text.count(f"[{name}.") < turns[name] else says("3")


@settings(deadline=None, max_examples=30)
@given(
    turns=st.lists(st.integers(0, 3), min_size=1, max_size=16),
    delays=st.lists(st.integers(0, 5), min_size=64, max_size=64),
    sync=st.booleans(),
)
def test_each_observation_lands_in_its_own_row(turns: list[int], delays: list[int], sync: bool) -> None:
    """R8: answers in any order, rows dropping out at any turn."""
    names = {f"r{number}": count for number, count in enumerate(turns)}
    tools = MemoryTools(
        an_echo,
        seconds=lambda call: delays[int(call.trajectory_id[1:]) * 4 + call.extra_fields.get("current_step", 0)] / 2000,
    )
    engine = ScriptedEngine(lambda prompt, _: turns_by_row(prompt, names))
    tasks = [a_task(name, f"{name} hello") for name in names]

    async def rollout() -> list[Trajectory]:
        def make(where: object) -> object:
            return a_runner(engine, where)  # type: ignore[arg-type]

        if sync:
            return await run_sync(tasks, make, tools, on_end=nothing)  # type: ignore[arg-type]
        return await run_async(tasks, make, tools, in_flight=5, on_end=nothing)  # type: ignore[arg-type]

    rows = asyncio.run(rollout())
    for row, (name, count) in zip(rows, names.items(), strict=True):
        seen = [text_of(ids) for ids in row.stream.spans_of(SegmentKind.OBSERVATION)]
        assert seen == [f"[{name}.{turn}]" for turn in range(count)]


async def test_sync_asks_the_server_once_a_turn_with_all_active_rows() -> None:
    names = {"r0": 1, "r1": 3, "r2": 0, "r3": 2}
    tools = MemoryTools(an_echo)
    engine = ScriptedEngine(lambda prompt, _: turns_by_row(prompt, names))
    await run_sync(
        [a_task(name, f"{name} hello") for name in names],
        lambda where: a_runner(engine, where),
        tools,  # type: ignore[arg-type]
        on_end=nothing,
    )
    active = [[call.trajectory_id for call in request if not call.finish] for request in tools.requests]
    assert active == [["r0", "r1", "r3"], ["r1", "r3"], ["r1"]]
    ended = [call.trajectory_id for request in tools.requests for call in request if call.finish]
    assert sorted([*ended, *tools.closed]) == ["r0", "r1", "r3"]  # every opened session is closed once


async def test_async_lets_no_row_wait_for_anothers_tool() -> None:
    """R5: 64 rows, one tool call is slow."""
    tools = MemoryTools(an_echo, seconds=lambda call: 1.0 if call.trajectory_id == "r7" else 0.005)
    names = {f"r{number}": 1 for number in range(64)}
    engine = ScriptedEngine(lambda prompt, _: turns_by_row(prompt, names))
    ended: dict[str, float] = {}
    begun = time.perf_counter()
    await run_async(
        [a_task(name, f"{name} hello") for name in names],
        lambda where: a_runner(engine, where),
        tools,
        in_flight=64,
        on_end=lambda row: ended.__setitem__(row.task.trajectory_id, time.perf_counter() - begun),
    )
    others = [seconds for name, seconds in ended.items() if name != "r7"]
    assert max(others) < 0.7 < 1.0 <= ended["r7"]


async def test_async_has_no_more_in_flight_than_allowed() -> None:
    now, most = 0, 0

    class Counting(ScriptedEngine):
        async def generate(self, **request: Any) -> Generation:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1
            return says("42")

    engine = Counting(lambda *_: says("42"))
    tasks = [a_task(f"r{number}") for number in range(20)]
    rows = await run_async(
        tasks, lambda where: a_runner(engine, where), MemoryTools(an_echo), in_flight=3, on_end=nothing
    )
    assert most == 3
    assert [row.task.trajectory_id for row in rows] == [task.trajectory_id for task in tasks]


@pytest.mark.parametrize("sync", [True, False])
async def test_one_failed_row_leaves_the_others_alone(sync: bool) -> None:
    """R15"""
    names = {f"r{number}": 1 for number in range(8)}

    def script(prompt: list[int], _: int) -> Generation | Exception:
        return RuntimeError("lost") if text_of(prompt).startswith("r3 ") else turns_by_row(prompt, names)

    def tool(call: ToolCall) -> ToolResult:
        return ToolResult("", True, False, error="boom") if call.trajectory_id == "r5" else an_echo(call)

    tasks = [a_task(name, f"{name} hello") for name in names]
    watch = FailureWatch(rows=8, share=0.25)
    engine, tools = ScriptedEngine(script), MemoryTools(tool)
    if sync:
        rows = await run_sync(tasks, lambda where: a_runner(engine, where), tools, on_end=watch)  # type: ignore[arg-type]
    else:
        rows = await run_async(tasks, lambda where: a_runner(engine, where), tools, in_flight=8, on_end=watch)
    finishes = {row.task.trajectory_id: row.finish for row in rows}
    assert finishes.pop("r3") is FinishReason.ENGINE_ERROR
    assert finishes.pop("r5") is FinishReason.TOOL_ERROR
    assert set(finishes.values()) == {FinishReason.ANSWERED}


async def test_too_many_failed_rows_stop_the_rollout_with_the_reason() -> None:
    """R15"""
    engine = ScriptedEngine(lambda *_: RuntimeError("engine is dead"))
    tasks = [a_task(f"r{number}") for number in range(8)]
    with pytest.raises(RolloutError, match=r"3 of 8 trajectories failed.*engine is dead.*max_failed_share"):
        await run_async(
            tasks,
            lambda where: a_runner(engine, where),
            MemoryTools(an_echo),
            in_flight=1,
            on_end=FailureWatch(rows=8, share=0.25),
        )


@settings(deadline=None, max_examples=40)
@given(
    script=st.lists(
        st.tuples(st.sampled_from(["call", "answer", "cut", "fail"]), st.integers(0, 40), st.integers(0, 60)),
        min_size=1,
        max_size=12,
    ),
    response=st.integers(1, 120),
    action=st.integers(1, 60),
    observation=st.integers(1, 60),
    chat_turn=st.booleans(),
)
def test_whatever_happens_trained_ids_are_sampled_ids(
    script: list[tuple[str, int, int]], response: int, action: int, observation: int, chat_turn: bool
) -> None:
    """Any interleaving of turns, observations, stops, truncations: ids, mask, log-probabilities, budgets."""
    sampled: list[tuple[int, float]] = []

    def generate(_: list[int], number: int) -> Generation | Exception:
        kind, size = script[number % len(script)][:2]
        if kind == "fail":
            return RuntimeError("lost")
        ids = says("word " * size + ("</python>" if kind == "call" else ""), ends=kind == "answer").token_ids
        return Generation(ids, [-(number + 1) / 7 - place for place in range(len(ids))], EngineFinish.STOP)

    class Noting(ScriptedEngine):
        async def generate(self, **request: Any) -> Generation:
            generation = await super().generate(**request)
            sampled.extend(zip(generation.token_ids, generation.log_probs, strict=True))
            return generation

    tools = MemoryTools(
        lambda call: ToolResult("result " * script[call.extra_fields["current_step"] % len(script)][2], False, True)
    )
    limits = some_limits(response=response, action=action, observation=observation, max_turns=6)
    runner = a_runner(Noting(generate), tools, config=a_config(enable_mtrl=chat_turn, max_turns=6), limits=limits)
    row = asyncio.run(runner.run(a_task()))
    stream = row.stream
    mask = stream.loss_mask(train_on_observations=False)
    assert len(mask) == len(stream.response) == len(stream.log_probs) <= response
    trained = [(i, p) for i, p, m in zip(stream.response, stream.log_probs, mask, strict=True) if m]
    assert trained == sampled
    assert all(p == 0.0 for p, m in zip(stream.log_probs, mask, strict=True) if not m)
    assert all(length <= action for length in row.action_lengths)
    assert row.finish is not None
