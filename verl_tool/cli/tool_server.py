"""The tool server of a run: started beside the trainer and kept up, or one that runs already."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from verl_tool.cli.child import Child
from verl_tool.errors import ToolServerError
from verl_tool.job.model import ToolServer
from verl_tool.llm_agent.tool_client import probe

START_SECONDS = 60.0
MOST_RESTARTS = 3
HOST = "127.0.0.1"


@contextlib.asynccontextmanager
async def local_server(
    tools: ToolServer, *, manifest: Path, log: Path, scratch: Path, on_restart: Callable[[str], None]
) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """Its address, and a task that fails once the server cannot be kept up.

    A server that dies is started again at its old address: calls that are tried again do not notice.
    """
    port_file = scratch / "port"
    child, port = await _start(_options(tools, manifest), 0, port_file, log)

    async def keep() -> None:
        nonlocal child
        for _ in range(MOST_RESTARTS):
            code = await child.wait()
            on_restart(f"{child.failure(code)}; starting it again")
            child, _ = await _start(_options(tools, manifest), port, port_file, log)
        code = await child.wait()
        raise ToolServerError(f"the tool server ended {MOST_RESTARTS + 1} times: {child.failure(code)}")

    keeper = asyncio.create_task(keep())
    try:
        yield f"http://{HOST}:{port}", keeper
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await keeper
        await child.stop()


async def given_server(tools: ToolServer, url: str, *, where: str) -> None:
    """Makes sure that it answers and has the tools. Raises ToolServerError; `where` is the field with its address."""
    try:
        offered = await probe(url)
    except ToolServerError as fault:
        raise ToolServerError(f"{where}: {fault}") from fault
    if missing := [tool for tool in tools.tools if tool not in offered]:
        raise ToolServerError(
            f"{where}: the tool server {url} has {', '.join(offered) or 'no tools'}, not {', '.join(missing)}; "
            "correct spec.toolServer.tools, or start it with them"
        )


def _options(tools: ToolServer, manifest: Path) -> list[str]:
    options = ["--tools", ",".join(tools.tools)]
    for file in tools.files:
        options += ["--tool", str(manifest / Path(file).expanduser())]
    for tool, settings in tools.settings.items():
        for name, value in settings.items():
            options += ["--set", f"{tool}.{name}={json.dumps(value)}"]
    return options


async def _start(options: Sequence[str], port: int, port_file: Path, log: Path) -> tuple[Child, int]:
    _remove(port_file)
    command = [sys.executable, "-m", "verl_tool.tool_server", *options]
    command += ["--host", HOST, "--port", str(port), "--port-file", str(port_file), "--exit-with-parent"]
    # What it starts runs the model's code: it gets nothing of ours but what Python needs.
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    child = await Child.start("the tool server", command, log=log, environment=environment, folder=port_file.parent)
    try:
        async with asyncio.timeout(START_SECONDS):
            while not (text := _read(port_file)):
                if not child.running:
                    raise ToolServerError(f"spec.toolServer: {child.failure(await child.wait())}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        await child.stop(at_once=True)
        raise ToolServerError(f"the tool server was not up after {START_SECONDS:.0f} s; see {log}") from None
    except BaseException:
        await child.stop(at_once=True)
        raise
    return child, int(text)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
