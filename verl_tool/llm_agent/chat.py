"""What the model's chat template makes of a prompt and of an observation; never of tokens that were sampled.

The template is asked for the *difference* a turn makes: a conversation with a sentinel as the model's turn is rendered,
and what stands behind the sentinel is what the template puts around an observation. A default system message, a rule
that strips earlier reasoning, or one that refuses a lone message cannot touch that text.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from verl_tool.errors import ConfigError, DataError
from verl_tool.llm_agent.engine import TokenId

Message = Mapping[str, Any]

_CALL = {"id": "call00000", "type": "function", "function": {"name": "tool", "arguments": {}}}
_PROBES = ("2 + 2 = 4\n", '\n<result>\n"a": {1} é 中\n</result>\n', " padded ")


class TurnFrame(NamedTuple):
    """Text around an observation: the end of the model's turn and the opening of the next one, and what closes that."""

    before: str
    behind: str


class _Turn(NamedTuple):
    """The model's message and the answer to it, without their contents."""

    model: dict[str, Any]
    answer: dict[str, Any]


class Tokenizer(Protocol):
    """The part of a transformers tokenizer that the loop uses."""

    all_special_tokens: list[str]

    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any: ...
    def encode(self, text: str, **kwargs: Any) -> list[TokenId]: ...
    def decode(self, token_ids: Any, **kwargs: Any) -> str: ...
    def convert_tokens_to_ids(self, tokens: str) -> Any: ...


class ChatTemplate:
    """A tokenizer's chat template with the arguments a job gives it (`data.apply_chat_template_kwargs`)."""

    def __init__(self, tokenizer: Tokenizer, template_kwargs: Mapping[str, Any] | None = None) -> None:
        self._tokenizer = tokenizer
        self._kwargs = dict(template_kwargs or {})
        self._frames: dict[tuple[str, str], TurnFrame | None] = {}
        self._turns: dict[tuple[str, str], _Turn] = {}

    def prompt_ids(self, messages: Sequence[Message]) -> list[TokenId]:
        """Tokens of a conversation that waits for the model's turn. Raises DataError if the template refuses it."""
        try:
            rendered = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                **self._kwargs,
            )
        except Exception as fault:
            roles = [message.get("role") for message in messages]
            raise DataError(f"the chat template refuses a prompt with the roles {roles}: {fault}") from fault
        return list(rendered)

    def frame(self, *, role: str, assistant_role: str) -> "TurnFrame | None":
        """What the template puts around an observation that answers the model's turn in a turn of `role`.

        None when the template rewrites the observation (trims it, makes JSON of it): then ask `turn_text` each time.
        Raises ConfigError when the template accepts no such turn.
        """
        key = (role, assistant_role)
        if key not in self._frames:
            mark = uuid.uuid4().hex
            before, _, behind = self.turn_text(mark, role=role, assistant_role=assistant_role).partition(mark)
            faithful = all(
                self.turn_text(probe, role=role, assistant_role=assistant_role) == before + probe + behind
                for probe in _PROBES
            )
            self._frames[key] = TurnFrame(before, behind) if faithful else None
        return self._frames[key]

    def turn_text(self, observation: str, *, role: str, assistant_role: str) -> str:
        """All that follows the model's turn, its end and the opening of its next. Raises ConfigError like `frame`."""
        key = (role, assistant_role)
        if key not in self._turns:
            self._turns[key] = self._accepted_turn(role, assistant_role)
        return self._behind_the_models_turn(self._turns[key], observation)

    def _accepted_turn(self, role: str, assistant_role: str) -> "_Turn":
        """The first form of such a turn that the template takes and shows."""
        mark, refusal = uuid.uuid4().hex, "it leaves the turn out"
        plain = _Turn({"role": assistant_role}, {"role": role})
        called = _Turn({"role": assistant_role, "tool_calls": [_CALL]}, {"role": role, "tool_call_id": _CALL["id"]})
        for turn in (plain, called):  # some templates take a tool's turn only behind a tool call
            try:
                if mark in self._behind_the_models_turn(turn, mark):
                    return turn
            except Exception as fault:  # noqa: BLE001  a template may raise anything; its words go into the message
                refusal = str(fault)
        raise ConfigError(
            f"actor_rollout_ref.agent.mtrl_role: the chat template takes no turn of role {role!r} behind one of "
            f"{assistant_role!r}: {refusal}; choose another role, or give mtrl_sep"
        )

    def _behind_the_models_turn(self, turn: "_Turn", observation: str) -> str:
        sentinel = uuid.uuid4().hex
        conversation = [
            {"role": "user", "content": "."},
            {**turn.model, "content": sentinel},
            {**turn.answer, "content": observation},
        ]
        text = self._tokenizer.apply_chat_template(
            conversation, add_generation_prompt=True, tokenize=False, **self._kwargs
        )
        _, found, behind = str(text).rpartition(sentinel)
        return behind if found else ""
