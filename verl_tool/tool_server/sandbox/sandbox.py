"""The server's side: starts the zygote, hands it one channel for each run, and reads the results."""

import asyncio
import contextlib
import heapq
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from verl_tool.errors import ToolServerError
from verl_tool.tool_server.sandbox import frames
from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending, RunResult

PRELOAD = [
    "collections",
    "bisect",
    "copy",
    "csv",
    "datetime",
    "decimal",
    "fractions",
    "functools",
    "heapq",
    "inspect",
    "itertools",
    "json",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "textwrap",
    "typing",
]
ROOT = Path(__file__).parents[3]
BOOT = """
import sys
control, root, base, *preload = sys.argv[1:]
sys.path.append(root)
from verl_tool.tool_server.sandbox.zygote import main
sys.path.remove(root)
main(int(control), base, preload)
"""
READY = b"ready"
START_LIMIT = 120.0  # seconds; preloaded modules may be slow to import on a cold disk
GRACE = 15.0  # seconds past a run's own wall limit, after which its supervisor is given up


class Sandbox:
    """Runs code in limited processes, so many at once; more wait for their turn."""

    def __init__(self, limits: Limits, *, runs: int = 16, preload: Sequence[str] = PRELOAD) -> None:
        self.limits = limits
        self.preload = tuple(preload)
        self._starting = asyncio.Lock()
        self._zygote: _Zygote | None = None
        self._turn = asyncio.Semaphore(runs)
        self._free_slots = list(range(runs))

    async def start(self) -> None:
        """Starts the zygote and has it run something, so that a sandbox that cannot work is known at once."""
        result = await self.run("print('ready')")
        if result.ending is not Ending.EXITED or result.stdout != b"ready\n":
            await self.close()
            reason = result.reason or result.stderr.decode("utf-8", "replace") or result.ending
            raise ToolServerError(f"the sandbox does not work here: {reason}")

    async def run(self, code: str, stdin: str | None = None) -> RunResult:
        """Runs this code to its end or its limit; cancelling the call ends the run."""
        async with self._turn:
            slot = heapq.heappop(self._free_slots)
            try:
                reader, writer = await self._open_channel()
                try:
                    return await self._converse(reader, writer, frames.pack_request(code, stdin, self.limits, slot))
                finally:
                    writer.close()
            finally:
                heapq.heappush(self._free_slots, slot)

    async def close(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            await asyncio.to_thread(zygote.stop)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> RunResult:
        supervisor = 0
        try:
            async with asyncio.timeout(self.limits.wall_seconds + GRACE):
                writer.write(request)
                supervisor = frames.PREFIX.unpack(await reader.readexactly(frames.PREFIX.size))[0]
                head, sizes = frames.unpack_head(await self._frame(reader))
                stdout, stderr = [await reader.readexactly(size) for size in sizes]
                return RunResult(**head, stdout=stdout, stderr=stderr)
        except (asyncio.IncompleteReadError, ConnectionError):
            return RunResult(ending=Ending.FAILED, reason="the run's supervisor was ended from outside")
        except TimeoutError:
            if supervisor:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(supervisor, signal.SIGKILL)  # the zygote then ends what it leaves
            return RunResult(ending=Ending.FAILED, reason="the run's supervisor gave no answer in time")

    async def _frame(self, reader: asyncio.StreamReader) -> bytes:
        size = frames.PREFIX.unpack(await reader.readexactly(frames.PREFIX.size))[0]
        return await reader.readexactly(min(size, frames.MAX_FRAME))

    async def _open_channel(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._hand_over(theirs)
            return await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            raise

    async def _hand_over(self, channel: socket.socket) -> None:
        for _ in range(2):
            zygote = await self._living_zygote()
            try:
                await zygote.send(channel)
                return
            except ConnectionError:
                await self.close()  # it died; a new one is started once
        raise ToolServerError("the sandbox's zygote dies as soon as it is started; its message is in the server's log")

    async def _living_zygote(self) -> "_Zygote":
        async with self._starting:
            if self._zygote is None:
                self._zygote = await _Zygote.start(self.preload)
            return self._zygote


class _Zygote:
    """The zygote's process, the socket to it, and the folder in which its runs have their directories."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, base: str) -> None:
        self.process, self.control, self.base = process, control, base

    @classmethod
    async def start(cls, preload: Sequence[str]) -> "_Zygote":
        base = tempfile.mkdtemp(prefix="verl-tool-runs-")
        os.chmod(base, 0o711)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220 - milliseconds, once
                [sys.executable, "-I", "-X", "utf8", "-c", BOOT, str(theirs.fileno()), str(ROOT), base, *preload],
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=base,
            )
        zygote = cls(process, ours, base)
        try:
            async with asyncio.timeout(START_LIMIT):
                said = await asyncio.get_running_loop().sock_recv(ours, 4096)
        except TimeoutError:
            said = f"it is not ready after {START_LIMIT:g} s".encode()
        if said != READY:
            zygote.stop()
            reason = said.decode("utf-8", "replace") or f"it ended with status {process.returncode}"
            raise ToolServerError(f"the sandbox's interpreter did not start: {reason}")
        return zygote

    async def send(self, channel: socket.socket) -> None:
        while True:
            try:
                socket.send_fds(self.control, [b"."], [channel.fileno()])
                return
            except BlockingIOError:
                await asyncio.sleep(0.002)

    def stop(self) -> None:
        """Closing the socket tells the zygote to end; it ends its runs first."""
        self.control.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.base, ignore_errors=True)
