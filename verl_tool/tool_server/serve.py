"""The server's process: takes its port, starts the tools, answers until told to end, and leaves nothing behind."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import structlog
import uvicorn

from verl_tool.errors import ConfigError, ToolServerError
from verl_tool.tool_server.app import create_app
from verl_tool.tool_server.sandbox import kernel
from verl_tool.tool_server.settings import ServerSettings
from verl_tool.tool_server.tools.registry import AnyTool, build_tools

log = structlog.get_logger(__name__)
PARENT_LOOK = 0.5  # seconds


async def serve(settings: ServerSettings) -> None:
    """Serves until SIGTERM or SIGINT. Raises before anything listens if the port or a tool cannot be had."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # what runs as our user cannot read our memory or environment
    tools = build_tools(settings.tools, settings.tool, settings.tool_settings)
    listener = _listen(settings.host, settings.port)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listener.close)
        for tool in tools:
            await _start(tool)
            stack.push_async_callback(tool.stop)
        port = listener.getsockname()[1]
        server = _Server(
            uvicorn.Config(
                create_app(settings, tools),
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=int(settings.drain_seconds) or 1,
                timeout_keep_alive=75,
            )
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.handle_exit, number, None)
        if settings.exit_with_parent:
            watch = asyncio.create_task(_end_with_parent(server, os.getppid()))
            stack.callback(watch.cancel)
        if settings.port_file is not None:
            _write_port(settings.port_file, port)
            stack.callback(settings.port_file.unlink, missing_ok=True)
        log.info("serving", host=settings.host, port=port, tools=[tool.name for tool in tools])
        await server.serve(sockets=[listener])
        log.info("ended")


class _Server(uvicorn.Server):
    """uvicorn without its signal handling, which ends the process before the tools are stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host {host!r}: {error.strerror or error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ToolServerError(
            f"--port {port}: cannot listen on {host}:{port}: {error}; choose another port, or 0 for a free one"
        ) from error
    return listener


async def _start(tool: AnyTool) -> None:
    try:
        await tool.start()
    except Exception as error:
        raise ToolServerError(f"tool {tool.name!r} could not be set up: {error or type(error).__name__}") from error


def _write_port(path: Path, port: int) -> None:
    """Whole or not at all: whoever waits for the file may read it at once."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(f"{port}\n")
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f"--port-file {path}: {error.strerror}") from error


async def _end_with_parent(server: uvicorn.Server, parent: int) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110 - nobody tells a process that its parent has ended
        await asyncio.sleep(PARENT_LOOK)
    log.warning("parent_ended", parent=parent)
    server.force_exit = server.should_exit = True
