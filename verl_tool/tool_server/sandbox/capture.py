"""One output stream of a run, read without ever holding more than its limit."""

import os

READ_SIZE = 1 << 20
_scratch = bytearray(READ_SIZE)


class Capture:
    """Keeps the first `limit` bytes and counts the rest."""

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
