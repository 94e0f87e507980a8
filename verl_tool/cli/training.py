"""The trainer of a run: its process, followed until it ends or is ended."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from verl_tool.cli.child import Child
from verl_tool.cli.metrics_file import MetricsFile, Step
from verl_tool.job.run_folder import RunFolder

GRACE_SECONDS = 120.0  # for the update under way and a checkpoint, once it is told to end
LOOK_SECONDS = 0.5


@contextlib.asynccontextmanager
async def trainer(
    overrides: Sequence[str], folder: RunFolder, environment: Mapping[str, str], *, scratch: Path
) -> AsyncIterator[Child]:
    """The trainer's process. On the way out it is ended if it runs still, in order, with a checkpoint."""
    variables = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": str(scratch),  # Ray leaves some megabytes of each session there
        **os.environ,
        **environment,
        "VERL_FILE_LOGGER_PATH": str(folder.metrics),
        "PYTHONUNBUFFERED": "1",
    }
    child = await Child.start(
        "the trainer",
        [sys.executable, "-m", "verl_tool.trainer.main_ppo", *overrides],
        log=folder.logs / "trainer.log",
        environment=variables,
        folder=folder.root,
        grace=GRACE_SECONDS,
        scratch=scratch,
    )
    try:
        yield child
    finally:
        await child.stop()


async def follow(child: Child, metrics: Path, on_step: Callable[[Step], None]) -> int:
    """The exit code, once it has ended; `on_step` is told of each step as it is written."""
    file = MetricsFile(metrics)
    ended = asyncio.create_task(child.wait())
    try:
        while True:
            await asyncio.wait({ended}, timeout=LOOK_SECONDS)
            for step in file.new_steps():
                on_step(step)
            if ended.done():
                return ended.result()
    finally:
        ended.cancel()
