"""SIGINT and SIGTERM, as exceptions in the main thread: at once, or behind what must not be cut in two."""

import signal
import types
from typing import Self

_CODE = 128  # and the signal's number: the exit status of what a signal ended


class Interrupted(BaseException):
    """The run is to end. Like KeyboardInterrupt, nothing that handles faults handles this."""

    def __init__(self, number: int, *, at_once: bool = False) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number
        self.at_once = at_once  # also where half a step is lost by it
        self.status = _CODE + number


class Interrupts:
    """While held, a first signal waits until it is released; a second one is not kept waiting."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: int | None = None

    @classmethod
    def installed(cls) -> Self:
        """Takes the place of the handlers of both signals. Only in the main thread."""
        interrupts = cls()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupts.on_signal)
        return interrupts

    def hold(self) -> None:
        """From here on a signal waits."""
        self._held = True

    def postpone(self, interrupted: Interrupted) -> None:
        """As if its signal had come while held."""
        self._held, self._waiting = True, interrupted.number

    def release(self) -> None:
        """Raises Interrupted if a signal came meanwhile."""
        self._held = False
        if self._waiting is not None:
            raise Interrupted(self._waiting)

    @property
    def waiting(self) -> bool:
        """Whether a signal came while held: what follows may be left out."""
        return self._waiting is not None

    def on_signal(self, number: int, frame: types.FrameType | None) -> None:
        """Raises Interrupted, now or when released."""
        if self._held and self._waiting is None:
            self._waiting = number
            return
        raise Interrupted(number, at_once=self._held)
