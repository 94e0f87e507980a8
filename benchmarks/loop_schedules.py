"""`async` against `sync`: an engine of 16 slots of 20 ms, tools that take 50 ms and, in 5 % of calls, 1 s.

    python benchmarks/loop_schedules.py

2,048 trajectories of 4 tool turns; sync in batches of 128, async with 128 in flight. Then 256 trajectories of 3 turns
with a tool that sleeps 3 s, 256 slots. Limits: async at least 2x the trajectories a second, its engine idle under 5 %
until the last trajectory is admitted; the sleeping tool under 10 s in both schedules.
"""

import argparse
import asyncio
import time
from typing import Any

from benchmarks.scripted import STOP, SleepingTools, SlotEngine, make_tokenizer
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.manager import AgentActorManager
from verl_tool.llm_agent.schedule import run_async, run_sync
from verl_tool.llm_agent.trajectory import Task

IN_FLIGHT = 128


def prepare(engine: SlotEngine, tokenizer: Any, turns: int) -> Any:
    """What makes a runner of the tools a schedule gives it."""
    config = AgentActorConfig.parse(
        {"tool_server_url": "http://unused", "action_stop_tokens": [STOP], "max_turns": turns - 1}
    )
    data = {"max_prompt_length": 64, "max_response_length": 2048}
    manager = AgentActorManager(config, tokenizer, engine, rollout={"n": 1}, data=data)
    limits = manager.limits(validate=False)
    return lambda tools: manager._runner(tools, limits, {"temperature": 1.0})


def idle_share(spans: list[tuple[float, float]], until: float) -> float:
    """Share of the time up to `until` in which the engine had no request at all."""
    begun = min(start for start, _ in spans)
    busy, end = 0.0, begun
    for start, stop in sorted(spans):
        start, stop = max(start, end), min(stop, until)
        if stop > start:
            busy += stop - start
            end = stop
    return 1 - busy / (until - begun)


async def compare(count: int) -> None:
    """Prints trajectories a second of both schedules."""
    tokenizer = make_tokenizer()
    action = tokenizer.encode(f"<python>print(6 * 7){STOP}", add_special_tokens=False)
    tasks = [Task(f"u{n}_0", action[:4]) for n in range(count)]
    rates = {}
    for mode in ("sync", "async"):
        engine = SlotEngine(action, slots=16, seconds=0.020)
        make_runner = prepare(engine, tokenizer, 4)
        tools: Any = SleepingTools(lambda number: 1.0 if number % 20 == 0 else 0.050)
        admitted = 0.0
        begun = time.perf_counter()
        if mode == "sync":
            for start in range(0, count, IN_FLIGHT):
                await run_sync(tasks[start : start + IN_FLIGHT], make_runner, tools, on_end=lambda _: None)
        else:
            left = count - IN_FLIGHT

            def note(_: Any) -> None:
                nonlocal left, admitted
                left -= 1
                if left == 0:
                    admitted = time.perf_counter()

            await run_async(tasks, make_runner, tools, in_flight=IN_FLIGHT, on_end=note)
        rates[mode] = count / (time.perf_counter() - begun)
        idle = f", engine idle {100 * idle_share(engine.spans, admitted):.1f} %" if mode == "async" else ""
        print(f"{mode:6} {rates[mode]:7.1f} trajectories/s{idle}", flush=True)
    print(f"async / sync = {rates['async'] / rates['sync']:.2f} (at least 2)")


async def sleeping() -> None:
    """Prints the seconds of 256 trajectories whose tool sleeps 3 s."""
    tokenizer = make_tokenizer()
    action = tokenizer.encode(f"<python>print(6 * 7){STOP}", add_special_tokens=False)
    tasks = [Task(f"u{n}_0", action[:4]) for n in range(256)]
    for mode in ("sync", "async"):
        make_runner = prepare(SlotEngine(action, slots=256), tokenizer, 3)
        tools: Any = SleepingTools(lambda _: 3.0)
        begun = time.perf_counter()
        if mode == "sync":
            await run_sync(tasks, make_runner, tools, on_end=lambda _: None)
        else:
            await run_async(tasks, make_runner, tools, in_flight=256, on_end=lambda _: None)
        print(f"{mode:6} {time.perf_counter() - begun:5.2f} s for 256 x 3 turns of a 3 s tool (under 10)", flush=True)


def main() -> None:
    """Runs both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2048)
    count = parser.parse_args().count
    asyncio.run(compare(count))
    asyncio.run(sleeping())


if __name__ == "__main__":
    main()
