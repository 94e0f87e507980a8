"""Calls a second of a one-line snippet through the tool server, beside a fresh `python -c` for each.

    python benchmarks/tool_server_calls.py [--calls 400]

The reference is the least that a server which starts an interpreter for each call could take: no HTTP, no limits, no
look at what the process leaves behind.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

SNIPPET = "print(1)"
CONCURRENCY = (1, 16, 64)


async def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        command = [sys.executable, "-m", "verl_tool.tool_server", "--port", "0", "--port-file", str(port_file)]
        server = subprocess.Popen([*command, "--exit-with-parent", "--log-level", "error"])  # noqa: ASYNC220
        try:
            while not port_file.exists():
                if server.poll() is not None:
                    raise SystemExit("the server did not start")
                await asyncio.sleep(0.05)
            url = f"http://127.0.0.1:{port_file.read_text().strip()}/get_observation"
            async with aiohttp.ClientSession() as client:
                await compare(calls, lambda: through_http(client, url))
        finally:
            server.terminate()
            server.wait()


async def compare(calls: int, ours: Callable[[], Awaitable[None]]) -> None:
    print(f"{'at once':>8} {'':12} {'calls/s':>9} {'p50 ms':>8} {'p95 ms':>8}")
    for concurrency in CONCURRENCY:
        for name, call in (("ours", ours), ("python -c", fresh_interpreter)):
            rate, p50, p95 = await measure(call, calls, concurrency)
            print(f"{concurrency:>8} {name:12} {rate:>9.0f} {1000 * p50:>8.1f} {1000 * p95:>8.1f}")


async def measure(call: Callable[[], Awaitable[None]], calls: int, concurrency: int) -> tuple[float, float, float]:
    """Calls a second, and the median and 95th percentile of one call's seconds."""
    await asyncio.gather(*(call() for _ in range(concurrency)))
    gate, seconds = asyncio.Semaphore(concurrency), list[float]()

    async def timed() -> None:
        async with gate:
            started = time.perf_counter()
            await call()
            seconds.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(timed() for _ in range(calls)))
    elapsed = time.perf_counter() - started
    cuts = statistics.quantiles(seconds, n=20)
    return calls / elapsed, cuts[9], cuts[18]


async def through_http(client: aiohttp.ClientSession, url: str) -> None:
    body = {"trajectory_ids": ["t"], "actions": [f"<python>{SNIPPET}</python>"]}
    async with client.post(url, json=body) as response:
        answer = await response.json()
    assert answer["observations"] == ["\n<result>\n1\n</result>\n"], answer


async def fresh_interpreter() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SNIPPET, stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    assert output == b"1\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=400)
    asyncio.run(main(parser.parse_args().calls))
