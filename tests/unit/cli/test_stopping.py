"""The first signal ends in order, the second at once, and nothing is left by either."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from verl_tool.cli.child import Child
from verl_tool.cli.stopping import StopSignals

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


async def test_a_second_signal_hurries_and_a_third_changes_nothing() -> None:
    heard: list[str] = []
    signals = StopSignals(lambda: heard.append("in order"), lambda: heard.append("at once"))
    signals.install()
    try:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.05)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
    assert heard == ["in order", "at once"]
    assert await signals.asked == signal.SIGTERM


async def test_a_child_that_takes_its_time_is_gone_when_its_stop_is_cancelled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = await Child.start(
        "a child", [sys.executable, "-c", DEAF], log=log, environment=os.environ, folder=tmp_path, grace=60
    )
    for _ in range(200):
        if log.read_text():
            break
        await asyncio.sleep(0.05)
    stopping = asyncio.create_task(child.stop())
    await asyncio.sleep(0.2)
    assert child.running

    began = time.monotonic()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping

    assert not child.running and time.monotonic() - began < 20
