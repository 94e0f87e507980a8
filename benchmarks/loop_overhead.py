"""CPU time of the loop itself: an engine without a model, 4 tool turns of 500 tokens, per trajectory-turn.

    python benchmarks/loop_overhead.py

"loop" leaves out the tokenizer's calls and HTTP (tools in this process); "all in" has both (a tool server in a process
of its own; only this process's CPU time counts). Limits: 0.2 ms and 1.5 ms; linear in trajectories and in tokens.
"""

import argparse
import asyncio
import multiprocessing
import socket
import time
from multiprocessing.synchronize import Event
from typing import Any

from aiohttp import web

from benchmarks.scripted import OBSERVATION, STOP, SleepingTools, SlotEngine, TimedTokenizer, make_tokenizer
from verl_tool.llm_agent.batch import compose_columns, compose_tensors
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.manager import AgentActorManager
from verl_tool.llm_agent.prompts import make_task
from verl_tool.llm_agent.schedule import run_async, run_sync
from verl_tool.llm_agent.tool_client import ToolClient

TURNS = 4


def serve(port: int, ready: Event) -> None:
    """A tool server that answers at once."""

    async def answer(request: web.Request) -> web.Response:
        count = len((await request.json())["actions"])
        return web.json_response(
            {"observations": [OBSERVATION] * count, "dones": [False] * count, "valids": [True] * count}
        )

    async def main() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/get_observation", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        ready.set()
        await asyncio.sleep(600)

    asyncio.run(main())


async def measure(rows: int, tokens: int, url: str, *, http: bool, mode: str) -> tuple[float, float]:
    """Milliseconds of CPU a trajectory-turn: without the tokenizer's, and all."""
    tokenizer = TimedTokenizer(make_tokenizer())
    words = tokenizer.encode("compute and print " * tokens, add_special_tokens=False)
    stop = tokenizer.encode(STOP, add_special_tokens=False)
    engine = SlotEngine(words[: tokens - len(stop)] + stop, slots=rows)
    width = (TURNS + 1) * (tokens + 64)
    config = AgentActorConfig.parse(
        {"tool_server_url": url, "action_stop_tokens": [STOP], "max_turns": TURNS - 1, "rollout_mode": mode}
    )
    data = {"max_prompt_length": 128, "max_response_length": width}
    manager = AgentActorManager(config, tokenizer, engine, rollout={"n": 1}, data=data)
    limits = manager.limits(validate=False)
    chat: Any = manager._chat  # the benchmark looks inside
    message = [{"role": "user", "content": "step 7: compute 49 + 7 and print the result"}]

    def runner(tools: Any) -> Any:
        return manager._runner(tools, limits, {"temperature": 1.0})

    tokenizer.seconds = 0.0
    begun = time.process_time()
    tasks = [
        make_task(chat, message, trajectory_id=f"u{n}_0", extra_info={"index": n}, limit=128, truncation="error")
        for n in range(rows)
    ]
    async with ToolClient(config) as client:
        tools: Any = client if http else SleepingTools(lambda _: 0.0)
        if mode == "sync":
            ended = await run_sync(tasks, runner, tools, on_end=lambda _: None)
        else:
            ended = await run_async(tasks, runner, tools, in_flight=256, on_end=lambda _: None)
    compose_tensors(ended, config=config, limits=limits, pad_id=0)
    compose_columns(ended, weights_version=0)
    spent = time.process_time() - begun
    turns = sum(len(row.action_lengths) for row in ended)
    assert turns == rows * TURNS, turns
    return 1000 * (spent - tokenizer.seconds) / turns, 1000 * spent / turns


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the rows")
    scale = 4 if parser.parse_args().quick else 1
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    server = context.Process(target=serve, args=(port, ready), daemon=True)
    server.start()
    try:
        if not ready.wait(60):
            raise SystemExit("the tool server did not start")
        print(f"{'mode':6}{'rows':>6}{'tokens':>8}{'loop ms':>10}{'all in ms':>11}")
        for rows, tokens in ((512, 500), (1024, 250), (1024, 500), (1024, 1000)):
            for mode in ("async", "sync"):
                url = f"http://127.0.0.1:{port}"
                loop, _ = asyncio.run(measure(rows // scale, tokens, url, http=False, mode=mode))
                _, whole = asyncio.run(measure(rows // scale, tokens, url, http=True, mode=mode))
                print(f"{mode:6}{rows // scale:6}{tokens:8}{loop:10.3f}{whole:11.3f}", flush=True)
        print("limits:        1024     500     0.200      1.500")
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
