"""From a tool's answer to the tokens the model sees: wrapped, counted in tokens, cut at a limit, the cut marked."""

from typing import NamedTuple

from verl_tool.llm_agent.chat import ChatTemplate, Tokenizer, TurnFrame
from verl_tool.llm_agent.config import AgentActorConfig, TruncateSide
from verl_tool.llm_agent.engine import TokenId

CUT_MARK = "...(truncated)..."
INVALID_ACTION = "Your action is not valid, please check the format and try again."
GO_ON = "Please go on and use a tool before you give the final answer."

_CHARACTERS_A_TOKEN = (
    64  # more than any vocabulary's usual token: a text this much longer than its limit is cut for sure
)
_BYTES_A_CHARACTER = 4
_REPLACEMENT = "\ufffd"  # what half a character decodes to


class _Framing(NamedTuple):
    """What stands around an observation, as text and as tokens."""

    before: str
    behind: str
    before_ids: list[TokenId]
    behind_ids: list[TokenId]


class ObservationEncoder:
    """Makes observation tokens by the settings of one job."""

    def __init__(self, tokenizer: Tokenizer, chat: ChatTemplate, config: AgentActorConfig) -> None:
        self.tokenizer = tokenizer
        self.chat = chat
        self.config = config
        self._special = tuple(tokenizer.all_special_tokens)
        self._framings: dict[str, _Framing | None] = {}  # by the model's end token: a handful at most

    def check(self) -> None:
        """Raises ConfigError when the chat template has no form for this job's observations or requests to go on."""
        self._frame()
        if self.config.min_turns > 0:
            self.chat.frame(role="user", assistant_role=self.config.assistant_role)

    def encode(self, text: str, *, limit: int, budget: int, end_text: str = "") -> list[TokenId] | None:
        """Tokens to append for an observation, or None when not even its wrapping fits into `budget`.

        `limit` bounds the observation itself, `budget` it and its wrapping. `end_text` is the end token with which the
        model closed its own turn, if it did: the wrapping does not repeat it.
        """
        if budget < 1:
            return None
        if end_text not in self._framings:
            self._framings[end_text] = self._framing(end_text)
        framing = self._framings[end_text]
        if framing is None:
            return self._encode_rewritten(text, limit=limit, budget=budget, end_text=end_text)
        before, behind = framing.before_ids, framing.behind_ids
        room = min(limit, budget - len(before) - len(behind))
        if room < 1:
            return None
        if not self._has_special(text) and len(text) <= room * _CHARACTERS_A_TOKEN:
            whole = self._encode(framing.before + text + framing.behind)
            if len(whole) <= len(before) + room + len(behind) and len(whole) <= budget:
                return whole
        return [*before, *self.cut(text, room), *behind]

    def go_on(self, *, budget: int, end_text: str = "") -> list[TokenId] | None:
        """Tokens of a user's turn that asks the model to go on (min_turns); None when they do not fit."""
        text = self.chat.turn_text(GO_ON, role="user", assistant_role=self.config.assistant_role)
        ids = self._encode(text.removeprefix(end_text))
        return ids if len(ids) <= budget else None

    def cut(self, text: str, limit: int) -> list[TokenId]:
        """At most `limit` tokens of `text`; where some had to go, a mark stands in their place, within the limit."""
        ids = self._encode_content(self._shorten(text, limit))
        if len(ids) <= limit and len(text) <= limit * _CHARACTERS_A_TOKEN:
            return ids
        mark = self._encode(CUT_MARK)
        room = limit - len(mark)
        if room <= 0:
            return mark[:limit]
        match self.config.truncate_obs_side:
            case TruncateSide.LEFT:
                return mark + self._whole_start(ids[-room:])
            case TruncateSide.RIGHT:
                return self._whole_end(ids[:room]) + mark
            case TruncateSide.MIDDLE:
                tail = room // 2
                kept = self._whole_start(ids[-tail:]) if tail else []
                return self._whole_end(ids[: room - tail]) + mark + kept

    def _frame(self) -> TurnFrame | None:
        """Text before and behind an observation; None when only the chat template can tell."""
        if self.config.mtrl_sep is not None:
            before, _, behind = self.config.mtrl_sep.partition("{obs}")
            return TurnFrame(self.config.turn_end_token + before, behind)
        if self.config.enable_mtrl:
            return self.chat.frame(role=self.config.mtrl_role, assistant_role=self.config.assistant_role)
        return TurnFrame("", "")

    def _framing(self, end_text: str) -> "_Framing | None":
        frame = self._frame()
        if frame is None:
            return None
        before = frame.before.removeprefix(end_text)
        return _Framing(before, frame.behind, self._encode(before), self._encode(frame.behind))

    def _encode_rewritten(self, text: str, *, limit: int, budget: int, end_text: str) -> list[TokenId] | None:
        """Through a template that rewrites it: cut the text, have it rendered, cut more while it does not fit."""
        room = min(limit, budget)
        for _ in range(8):
            content = self.tokenizer.decode(self.cut(self._defused(text), room))
            turn = self.chat.turn_text(content, role=self.config.mtrl_role, assistant_role=self.config.assistant_role)
            ids = self._encode(turn.removeprefix(end_text))
            if len(ids) <= budget:
                return ids
            room -= len(ids) - budget
            if room < 1:
                break
        return None

    def _encode(self, text: str) -> list[TokenId]:
        return list(self.tokenizer.encode(text, add_special_tokens=False)) if text else []

    def _encode_content(self, text: str) -> list[TokenId]:
        """A tool's text is never taken for the template's own: special tokens in it are encoded as plain text."""
        if self._has_special(text):
            return list(self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))
        return self._encode(text)

    def _has_special(self, text: str) -> bool:
        return any(token in text for token in self._special)

    def _defused(self, text: str) -> str:
        """`text` with no special token in it, for a template that gets it as text."""
        for token in self._special:
            text = text.replace(token, token[:1] + "\u200b" + token[1:])
        return text

    def _shorten(self, text: str, limit: int) -> str:
        """What cannot be within the limit is not worth encoding; enough is left on the sides that stay."""
        most = (limit + 1) * _CHARACTERS_A_TOKEN
        if len(text) <= 2 * most:
            return text
        return text[:most] + text[-most:]

    def _whole_end(self, ids: list[TokenId]) -> list[TokenId]:
        """`ids` without the half of a character at the end."""
        for _ in range(_BYTES_A_CHARACTER - 1):
            if not ids or not self.tokenizer.decode(ids[-_BYTES_A_CHARACTER:]).endswith(_REPLACEMENT):
                break
            ids = ids[:-1]
        return ids

    def _whole_start(self, ids: list[TokenId]) -> list[TokenId]:
        """`ids` without the half of a character at the beginning."""
        for _ in range(_BYTES_A_CHARACTER - 1):
            if not ids or not self.tokenizer.decode(ids[:_BYTES_A_CHARACTER]).startswith(_REPLACEMENT):
                break
            ids = ids[1:]
        return ids
