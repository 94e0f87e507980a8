"""verl's sender of weights to an engine, with an end to its waiting.

verl's BucketedWeightSender waits without limit for the receiver's answer to each bucket
(verl/workers/rollout/vllm_rollout/bucketed_weight_transfer.py). Where the receiver has raised or died there is none.
"""

import time
from typing import Any

import ray
import zmq
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightSender

from verl_tool.errors import RolloutError

BUCKET_LIMIT_S = 600.0  # for the receiver to come, or to load one bucket
_LOOK_EVERY_MS = 500


class WatchedWeightSender(BucketedWeightSender):
    """Sends weights to `receiver`, the pending Ray call in which the engine takes them."""

    socket: Any  # of verl's class

    def __init__(self, *, receiver: ray.ObjectRef | None, limit_s: float = BUCKET_LIMIT_S, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._receiver = receiver
        self._limit_s = limit_s

    def _init_socket(self) -> None:
        super()._init_socket()
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket = WatchedSocket(self.socket, self._receiver, self._limit_s)


class WatchedSocket:
    """The three calls verl makes on its socket, each of which ends when the receiver has, or at the limit."""

    def __init__(self, socket: Any, receiver: ray.ObjectRef | None, limit_s: float) -> None:
        self._socket = socket
        self._receiver = receiver
        self._limit_s = limit_s

    def send_pyobj(self, value: Any) -> None:
        self._wait(zmq.POLLOUT)
        self._socket.send_pyobj(value)

    def recv(self) -> bytes:
        self._wait(zmq.POLLIN)
        return bytes(self._socket.recv())

    def close(self) -> None:
        self._socket.close()

    def _wait(self, event: int) -> None:
        end = time.monotonic() + self._limit_s
        while not self._socket.poll(_LOOK_EVERY_MS, event):
            if self._receiver is not None and ray.wait([self._receiver], timeout=0)[0]:
                if self._socket.poll(0, event):  # its last answer came just before it ended
                    return
                ray.get(self._receiver)  # raises what it raised
                raise RolloutError("the engine stopped taking weights before all were sent; see its log")
            if time.monotonic() > end:
                raise RolloutError(f"the engine took no weights for {self._limit_s:.0f} s; see its log")
