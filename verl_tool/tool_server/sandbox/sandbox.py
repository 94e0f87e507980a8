"""The server's side of the sandbox: hands each run to a supervisor and reads the result."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from verl_tool.errors import ToolServerError
from verl_tool.tool_server.sandbox import frames
from verl_tool.tool_server.sandbox.channel import Channel
from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending, RunResult
from verl_tool.tool_server.sandbox.zygote_process import ZygoteProcess

PRELOAD: tuple[str, ...] = (
    *("collections", "bisect", "copy", "csv", "datetime", "decimal", "fractions", "functools", "heapq", "inspect"),
    *("itertools", "json", "math", "operator", "random", "re", "statistics", "string", "textwrap", "typing"),
)
GRACE = 15.0  # seconds past a run's own wall limit, after which its supervisor is given up


class Sandbox:
    """Runs code in limited processes, so many at once; more wait for their turn."""

    def __init__(self, limits: Limits, *, runs: int = 16, preload: Sequence[str] = PRELOAD) -> None:
        self.limits = limits
        self.preload = tuple(preload)
        self._starting = asyncio.Lock()
        self._zygote: ZygoteProcess | None = None
        self._base = ""  # the folder of the runs' directories
        self._slots: asyncio.LifoQueue[_Slot] = asyncio.LifoQueue()  # the warmest first
        for index in reversed(range(runs)):
            self._slots.put_nowait(_Slot(index))

    async def start(self) -> None:
        """Runs something, so that a sandbox that cannot work is known at once."""
        self._base = tempfile.mkdtemp(prefix="verl-tool-runs-")
        os.chmod(self._base, 0o711)  # a run of another user passes through to its own directory
        try:
            result = await self.run("print('ready')")
            if result.ending is not Ending.EXITED or result.stdout != b"ready\n":
                reason = result.reason or result.stderr.decode("utf-8", "replace") or result.ending
                raise ToolServerError(f"the sandbox does not work here: {reason}")
        except BaseException:
            await self.close()
            raise

    async def run(self, code: str, stdin: str | None = None) -> RunResult:
        """Runs this code to its end or its limit; cancelling the call ends the run."""
        slot = await self._slots.get()
        try:
            request = frames.pack_request(code, stdin, self.limits, slot.index)
            if slot.channel is None or not slot.channel.usable:
                slot.channel = await self._open_channel()
            result = await self._converse(slot.channel, request)
        except BaseException:
            slot.give_up()  # cancelled: the supervisor sees that and ends the run
            raise
        else:
            if result.ending is Ending.FAILED:
                slot.give_up()
            return result
        finally:
            self._slots.put_nowait(slot)

    async def close(self) -> None:
        """Ends every run and removes what they have left."""
        for _ in range(self._slots.qsize()):
            slot = self._slots.get_nowait()
            slot.give_up()
            self._slots.put_nowait(slot)
        if self._zygote is not None:
            await self._drop(self._zygote)
        await asyncio.to_thread(shutil.rmtree, self._base, ignore_errors=True)

    async def _converse(self, channel: Channel, request: bytes) -> RunResult:
        try:
            async with asyncio.timeout(self.limits.wall_seconds + GRACE):
                return await channel.ask(request)
        except (asyncio.IncompleteReadError, ConnectionError):
            return RunResult(ending=Ending.FAILED, reason="the run's supervisor was ended from outside")
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(channel.supervisor, signal.SIGKILL)  # the zygote then ends what it leaves
            return RunResult(ending=Ending.FAILED, reason="the run's supervisor gave no answer in time")

    async def _open_channel(self) -> Channel:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._hand_over(theirs)
            async with asyncio.timeout(GRACE):
                reader, writer = await asyncio.open_connection(sock=ours)
                return Channel(reader, writer, frames.PREFIX.unpack(await reader.readexactly(frames.PREFIX.size))[0])
        except (asyncio.IncompleteReadError, TimeoutError) as error:
            ours.close()
            raise ToolServerError("the sandbox could not fork a supervisor; is there a process limit?") from error
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
                await self._drop(zygote)  # a new one is started once; runs under way have supervisors of their own
        raise ToolServerError("the sandbox's interpreter dies as soon as it is started; its message is in the log")

    async def _living_zygote(self) -> ZygoteProcess:
        async with self._starting:
            if self._zygote is None:
                self._zygote = await ZygoteProcess.start(self._base, self.preload)
            return self._zygote

    async def _drop(self, zygote: ZygoteProcess) -> None:
        if self._zygote is zygote:
            self._zygote = None
            await asyncio.to_thread(zygote.stop)


@dataclass
class _Slot:
    """The place of one run at a time; its index decides the user id."""

    index: int
    channel: Channel | None = None

    def give_up(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None
