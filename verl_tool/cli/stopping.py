"""Ctrl-C and SIGTERM: the first ends a run in order, the second at once."""

import asyncio
import signal
from collections.abc import Callable


class Stopped(Exception):
    """The run was asked to end. `status` is what a shell expects of a program that a signal ended."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.status = 128 + number


class StopSignals:
    """Takes both signals on the running event loop."""

    def __init__(self, on_first: Callable[[], None], on_second: Callable[[], None]) -> None:
        self._on_first, self._on_second = on_first, on_second
        self._hurried = False
        self.asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def install(self) -> None:
        """From here on nothing else hears the signals."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._take, number)

    def _take(self, number: int) -> None:
        if self.asked.done():
            if not self._hurried:  # a third changes nothing: what ends at once is not to be left half-way
                self._hurried = True
                self._on_second()
        else:
            self._on_first()
            self.asked.set_result(number)
