"""A trajectory as it is shown: turns of blocks of pieces, long ones cut. Says nothing of how it looks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from verl_tool.llm_agent.record import Segment, SegmentKind, ToolCallRecord, TrajectoryRecord
from verl_tool.report.unseen import visible

MOST_CHARS = 16_000  # shown of one trajectory
LONGEST_BLOCK = 4_000
MOST_BLOCKS = 32  # the first two thirds and the last third of a longer trajectory
MOST_SPECIAL = 100  # special tokens set apart in a stretch of text

SPECIAL = re.compile(r"(<\|[^|<>\s]{1,40}\|>|</?s>)")  # a token of the template


class Look(StrEnum):
    """How a piece of a block is told apart."""

    TEXT = "text"
    CALL = "call"  # what was sent to the tool
    SPECIAL = "special"  # a token of the template: <|im_end|>
    MARK = "mark"  # not in the text: a line's end, what is left out


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text of one look."""

    look: Look
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """One segment, or, with no tokens, an answer of the tool that never got into the row."""

    kind: SegmentKind | None
    pieces: tuple[Piece, ...]
    tokens: int
    trained: bool
    mean_log_prob: float | None = None
    calls: tuple[ToolCallRecord, ...] = ()  # made at the end of this block


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model said, and what it was answered."""

    number: int  # from 1
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The whole row."""

    prompt: tuple[Piece, ...]
    turns: tuple[Turn, ...]
    left_out: int  # blocks in the middle that are not shown
    sampled: int  # tokens
    masked: int  # tokens


def transcript(record: TrajectoryRecord, *, most_chars: int = MOST_CHARS) -> Transcript:
    """The record, at most so many characters of it and at most MOST_BLOCKS blocks."""
    with_calls = list(_with_calls(record.segments, record.tool_calls))
    head = MOST_BLOCKS * 2 // 3
    left_out = max(0, len(with_calls) - MOST_BLOCKS)
    each = max(80, min(LONGEST_BLOCK, most_chars // (min(len(with_calls), MOST_BLOCKS) + 1)))
    turns: list[Turn] = []
    number = 0
    for index, (segment, calls) in enumerate(with_calls):
        starts_a_turn = segment.kind is SegmentKind.SAMPLED
        number += starts_a_turn
        if left_out and head <= index < head + left_out:
            continue
        block = _block(segment, calls, each)
        if starts_a_turn or not turns:
            turns.append(Turn(max(number, 1), ()))
        turns[-1] = replace(turns[-1], blocks=(*turns[-1].blocks, block))
    return Transcript(
        prompt=tuple(pieces(record.prompt, max(each, 1000))),
        turns=tuple(turns),
        left_out=left_out,
        sampled=sum(segment.tokens for segment in record.segments if segment.kind is SegmentKind.SAMPLED),
        masked=sum(segment.tokens for segment in record.segments if not segment.trained),
    )


def _with_calls(
    segments: Sequence[Segment], calls: Sequence[ToolCallRecord]
) -> Iterator[tuple[Segment, tuple[ToolCallRecord, ...]]]:
    """Each segment with the calls made in it: a call's action is found in the text that the model sampled."""
    waiting = list(calls)
    last = max((index for index, segment in enumerate(segments) if segment.kind is SegmentKind.SAMPLED), default=-1)
    for index, segment in enumerate(segments):
        mine: list[ToolCallRecord] = []
        if segment.kind is SegmentKind.SAMPLED:
            start = 0
            while waiting and (found := segment.text.find(waiting[0].action, start)) >= 0:
                start = found + max(1, len(waiting[0].action))
                mine.append(waiting.pop(0))
                if start >= len(segment.text):
                    break
            if index == last:  # whatever the text did not show
                mine, waiting = mine + waiting, []
        yield segment, tuple(mine)


def _block(segment: Segment, calls: Sequence[ToolCallRecord], most: int) -> Block:
    parts: list[tuple[bool, str]] = []
    rest = segment.text
    for call in calls:
        before, found, after = rest.partition(call.action) if call.action else (rest, "", "")
        if found:
            thought, request = split_action(found)
            parts += [(False, before + thought), (True, request)]
            rest = after
    parts.append((False, rest))
    return Block(
        kind=segment.kind,
        pieces=tuple(_pieces(parts, most)),
        tokens=segment.tokens,
        trained=segment.trained,
        mean_log_prob=segment.mean_log_prob,
        calls=tuple(_shortened(call, most) for call in calls),
    )


def _shortened(call: ToolCallRecord, most: int) -> ToolCallRecord:
    """The call with its texts cut."""
    error = None if call.error is None else _cut(call.error, 300)
    return call.model_copy(update={"observation": _cut(call.observation, most), "error": error})


def split_action(action: str) -> tuple[str, str]:
    """What the model wrote before its call, and the call: from the tag or fence on that the action's end closes."""
    text = action.rstrip()
    if closing := re.search(r"</([A-Za-z_][\w-]{0,40})>$", text):
        start = text.rfind(f"<{closing[1]}>")
    elif text.endswith("```"):
        start = text.rfind("```", 0, len(text) - 3)
    else:
        start = 0
    return (action[:start], action[start:]) if start > 0 else ("", action)


def pieces(text: str, most: int) -> list[Piece]:
    """Plain text, e.g. a prompt."""
    return _pieces([(False, text)], most)


def _pieces(parts: Sequence[tuple[bool, str]], most: int) -> list[Piece]:
    """Text set apart by look, at most so many characters of it; line ends at the rim are made visible."""
    made: list[Piece] = []
    parts = [(is_call, text) for is_call, text in parts if text]
    share = most // max(1, len(parts))
    for place, (is_call, whole) in enumerate(parts):
        before, text, after = _rim(whole, first=place == 0, last=place == len(parts) - 1)
        made.append(Piece(Look.MARK, "↵" * before))
        for half in _halves(text, share):
            if half is None:
                made.append(Piece(Look.MARK, _left_out(len(text) - share)))
            else:
                made += _by_look(half, Look.CALL if is_call else Look.TEXT)
        made.append(Piece(Look.MARK, "↵" * after))
    return [piece for piece in made if piece.text]


def _by_look(text: str, look: Look) -> Iterator[Piece]:
    for number, bit in enumerate(SPECIAL.split(text, maxsplit=MOST_SPECIAL)):
        yield Piece(Look.SPECIAL if number % 2 else look, visible(bit))


def _rim(text: str, *, first: bool, last: bool) -> tuple[int, str, int]:
    """Line ends before and behind the text, which a reader would not see, and the text between."""
    before = len(text) - len(text.lstrip("\n")) if first else 0
    text = text[before:]
    after = len(text) - len(text.rstrip("\n")) if last else 0
    return min(before, 8), text[: len(text) - after], min(after, 8)


def _halves(text: str, most: int) -> list[str | None]:
    """The text, or its first two thirds and its last third with None for what is between."""
    if len(text) <= most:
        return [text]
    head = most * 2 // 3
    return [text[:head], None, text[len(text) - (most - head) :]]


def _cut(text: str, most: int) -> str:
    kept = (_left_out(len(text) - most) if half is None else half for half in _halves(text, most))
    return visible("".join(kept))


def _left_out(characters: int) -> str:
    return f" … {characters:,} characters left out … "
