"""Reading a request's body with bounds on its size, its time, and on what all bodies take together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from verl_tool.tool_server.admission import QueueFull
from verl_tool.tool_server.faults import refuse


class BodyReader:
    """Bodies are held in memory until their request is answered; together a few times the limit of one."""

    TOGETHER = 16  # bodies of the largest size

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit, self.seconds = limit, seconds
        self.held = 0

    @asynccontextmanager
    async def body_of(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body, held while the context lasts."""
        too_large = f"the body is larger than the limit of {self.limit} bytes; split the request"
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.limit:
            raise refuse(413, "body_too_large", (), too_large)
        body = bytearray()
        try:
            try:
                async with asyncio.timeout(self.seconds):
                    async for piece in request.stream():
                        body += piece
                        self.held += len(piece)
                        if len(body) > self.limit:
                            raise refuse(413, "body_too_large", (), too_large)
                        if self.held > self.TOGETHER * self.limit:
                            raise QueueFull(f"{self.held} bytes of requests are held already", retry_after=1)
            except TimeoutError:
                raise refuse(408, "body_too_slow", (), f"the body did not arrive within {self.seconds:g} s") from None
            yield bytes(body)
        finally:
            self.held -= len(body)
