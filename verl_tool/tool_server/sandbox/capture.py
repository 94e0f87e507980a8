"""One output stream of a run, read without ever holding more than its limit."""

import os
from types import TracebackType
from typing import Self

READ_SIZE = 1 << 20
_scratch = bytearray(READ_SIZE)


class Capture:
    """A pipe of which the first `limit` bytes are kept and the rest are counted."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept = bytearray()
        self.dropped = 0
        self.open = True
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)

    def take(self) -> int:
        """Reads once; gives the number of bytes, 0 when there is nothing (more)."""
        try:
            size = os.readv(self.read_end, [_scratch])
        except BlockingIOError:
            return 0
        self.open = size > 0
        keep = min(size, self.limit - len(self.kept))
        self.kept += memoryview(_scratch)[:keep]
        self.dropped += size - keep
        return size

    def drain(self) -> None:
        """Takes what is left in the pipe once its writers are dead."""
        while self.open and self.take():
            pass

    def close_write_end(self) -> None:
        """After the fork: the end of the child's copy is then the end of the stream."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_write_end()
        os.close(self.read_end)
