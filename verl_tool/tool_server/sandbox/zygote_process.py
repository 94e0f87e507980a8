"""The server's handle on the zygote: starting it, handing it channels, ending it."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from verl_tool.errors import ToolServerError

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


class ZygoteProcess:
    """A running zygote and the socket to it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.process, self.control = process, control

    @classmethod
    async def start(cls, base: str, preload: Sequence[str]) -> Self:
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
        zygote = cls(process, ours)
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
        """Has a supervisor forked for this channel. Raises ConnectionError when the zygote is dead."""
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
