"""The sender of weights does not wait for ever."""

import pickle
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from verl_tool.errors import RolloutError
from verl_tool.worker.weight_sender import WatchedSocket


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[zmq.Socket, zmq.Socket]]:
    context = zmq.Context()
    address = f"inproc://{uuid.uuid4().hex}"
    sender, receiver = context.socket(zmq.REQ), context.socket(zmq.REP)
    sender.bind(address)
    receiver.connect(address)
    yield sender, receiver
    for socket in (sender, receiver):
        socket.close(linger=0)
    context.term()


def test_an_answer_is_passed_on(pair: tuple[zmq.Socket, zmq.Socket]) -> None:
    sender, receiver = pair
    watched = WatchedSocket(sender, receiver=None, limit_s=10)

    def answer() -> None:
        assert receiver.recv_pyobj() == {"bucket": 1}
        receiver.send(b"taken")

    thread = threading.Thread(target=answer)
    thread.start()
    watched.send_pyobj({"bucket": 1})
    assert watched.recv() == b"taken"
    thread.join(timeout=10)


def test_a_receiver_that_never_answers_is_given_up_at_the_limit(pair: tuple[zmq.Socket, zmq.Socket]) -> None:
    sender, receiver = pair
    watched = WatchedSocket(sender, receiver=None, limit_s=0.6)
    watched.send_pyobj({"bucket": 1})
    began = time.monotonic()

    with pytest.raises(RolloutError, match="took no weights"):
        watched.recv()

    assert time.monotonic() - began < 5
    assert pickle.loads(receiver.recv()) == {"bucket": 1}


def test_a_sender_without_any_receiver_is_given_up_at_the_limit() -> None:
    context = zmq.Context()
    lonely = context.socket(zmq.REQ)
    lonely.bind(f"inproc://{uuid.uuid4().hex}")
    try:
        with pytest.raises(RolloutError, match="took no weights"):
            WatchedSocket(lonely, receiver=None, limit_s=0.6).send_pyobj({})
    finally:
        lonely.close(linger=0)
        context.term()
