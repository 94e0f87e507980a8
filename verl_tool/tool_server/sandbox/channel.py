"""The server's end of the line to one supervisor, which serves one run after another."""

import asyncio
from dataclasses import dataclass

from verl_tool.tool_server.sandbox import frames
from verl_tool.tool_server.sandbox.result import RunResult


@dataclass
class Channel:
    """Closing it ends whatever runs at the other side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    supervisor: int  # process id

    @property
    def usable(self) -> bool:
        return not self.reader.at_eof()

    async def ask(self, request: bytes) -> RunResult:
        """Runs one request. Raises ConnectionError or IncompleteReadError when the supervisor is gone."""
        self.writer.write(request)
        size = frames.PREFIX.unpack(await self.reader.readexactly(frames.PREFIX.size))[0]
        head, sizes = frames.unpack_head(await self.reader.readexactly(min(size, frames.MAX_FRAME)))
        stdout, stderr = [await self.reader.readexactly(size) for size in sizes]
        return RunResult(**head, stdout=stdout, stderr=stderr)

    def close(self) -> None:
        self.writer.close()
