"""Signals as exceptions, at once or postponed."""

import os
import signal
from collections.abc import Iterator

import pytest

from verl_tool.trainer.interrupts import Interrupted, Interrupts


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield Interrupts.installed()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_interrupts_at_once_where_nothing_is_held(interrupts: Interrupts, number: int, status: int) -> None:
    with pytest.raises(Interrupted) as raised:
        os.kill(os.getpid(), number)

    assert raised.value.status == status
    assert not raised.value.at_once


def test_a_held_signal_waits_for_the_release(interrupts: Interrupts) -> None:
    interrupts.hold()
    os.kill(os.getpid(), signal.SIGTERM)
    assert interrupts.waiting

    with pytest.raises(Interrupted) as raised:
        interrupts.release()

    assert raised.value.status == 143
    assert not raised.value.at_once


def test_a_second_signal_is_not_kept_waiting(interrupts: Interrupts) -> None:
    interrupts.hold()
    os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted) as raised:
        os.kill(os.getpid(), signal.SIGINT)

    assert raised.value.at_once


def test_a_release_without_a_signal_does_nothing_but_end_the_holding(interrupts: Interrupts) -> None:
    interrupts.hold()
    interrupts.release()

    with pytest.raises(Interrupted):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_postponed_interrupt_comes_with_the_next_release(interrupts: Interrupts) -> None:
    interrupts.postpone(Interrupted(signal.SIGINT))

    with pytest.raises(Interrupted):
        interrupts.release()
