"""How many tool calls run, how many may wait, and when to say no."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class QueueFull(Exception):
    """There is no room for these calls now."""

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Admission:
    """Slots for running calls behind a queue of limited length; a request's calls are let in together or not at all."""

    def __init__(self, slots: int, queue_limit: int) -> None:
        self.slots, self.queue_limit = slots, queue_limit
        self.running = 0
        self.admitted = 0
        self._free = asyncio.Semaphore(slots)
        self._mean_seconds = 0.1

    @property
    def waiting(self) -> int:
        return self.admitted - self.running

    def admit(self, calls: int) -> None:
        """Takes on this many calls; `withdraw` must follow for each."""
        if self.admitted + calls > self.slots + self.queue_limit:
            raise QueueFull(f"{self.waiting} tool calls wait already", self.retry_after())
        self.admitted += calls

    def withdraw(self) -> None:
        """One of the admitted calls is over, whether it ran or not."""
        self.admitted -= 1

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Waits for a slot and holds it; gives the seconds waited."""
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        async with self._free:
            started = loop.time()
            self.running += 1
            try:
                yield started - arrived
            finally:
                self.running -= 1
                self._mean_seconds += 0.05 * (loop.time() - started - self._mean_seconds)

    def retry_after(self) -> int:
        """Whole seconds in which about half of the queue will have run."""
        return min(60, max(1, math.ceil(self.waiting / self.slots * self._mean_seconds / 2)))
