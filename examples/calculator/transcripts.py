"""What the model is shown before it learns by itself: ways to go about a task, as text with loss weights."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from tasks import Task

TURN_END: Final = "<|im_end|>"
CALL_START, CALL_END = "<python>", "</python>"

# The digits of a guess are noise to so small a network: at full weight they drown what it has learnt about copying.
GUESS_WEIGHT: Final = 0.05


class Way(StrEnum):
    """How a transcript goes about its task."""

    ANSWERS_AT_ONCE = "answers at once"  # shown the right answer, which no small network can work out
    CALLS_THE_TOOL = "calls the tool"
    FORGETS_TO_PRINT = "forgets to print"  # reads an empty result and guesses
    TRIES_AGAIN = "tries again"  # reads an empty result and prints this time


@dataclass(frozen=True)
class Mix:
    """Shares of the ways in a batch; they need not add up to one."""

    answers_at_once: float
    calls_the_tool: float
    forgets_to_print: float = 0.0
    tries_again: float = 0.0

    def draw(self, rng: random.Random) -> Way:
        """One way, by its share."""
        weights = [self.answers_at_once, self.calls_the_tool, self.forgets_to_print, self.tries_again]
        return rng.choices(list(Way), weights)[0]


class Piece(NamedTuple):
    """A stretch of text."""

    text: str
    weight: float  # of its tokens in the loss; 0 for what the model does not say itself


def transcript(task: Task, way: Way) -> Sequence[Piece]:
    """The model's turn behind the prompt, from its first token to the end of the turn."""
    call, silent_call = _said(tool_call(f"print({task.expression})")), _said(tool_call(task.expression))
    match way:
        case Way.ANSWERS_AT_ONCE:
            return _answer(task, GUESS_WEIGHT)
        case Way.CALLS_THE_TOOL:
            return [call, _read(task.answer), *_answer(task)]
        case Way.FORGETS_TO_PRINT:
            return [silent_call, _read(""), *_answer(task, GUESS_WEIGHT)]
        case Way.TRIES_AGAIN:
            return [silent_call, _read(""), call, _read(task.answer), *_answer(task)]


def tool_call(code: str) -> str:
    """How the model asks for Python; `CALL_END` is the stop string of the job."""
    return f"{CALL_START}{code}{CALL_END}"


def observation(printed: str) -> str:
    """How the tool server's python_code answers such a call."""
    return f"\n<result>\n{printed}\n</result>\n"


def _answer(task: Task, weight: float = 1.0) -> list[Piece]:
    """How the model ends its turn; `weight` is that of the number in it."""
    return [_said("Answer: "), Piece(task.answer, weight), _said(TURN_END)]


def _said(text: str) -> Piece:
    return Piece(text, 1.0)


def _read(printed: str) -> Piece:
    return Piece(observation(printed), 0.0)
