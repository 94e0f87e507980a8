"""R13: an observation's limit is counted in tokens, the cut is marked within it, no character is half cut."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.llm_agent.builders import a_config, a_tokenizer
from verl_tool.llm_agent.chat import ChatTemplate
from verl_tool.llm_agent.observation import CUT_MARK, ObservationEncoder


def an_encoder(**options: Any) -> ObservationEncoder:
    tokenizer = a_tokenizer()
    return ObservationEncoder(tokenizer, ChatTemplate(tokenizer), a_config(**options))


def test_text_with_many_tokens_a_character_is_cut_at_100_tokens() -> None:
    encoder = an_encoder(truncate_obs_side="right")
    ids = encoder.cut("日本語のとても長い文章" * 50, 100)
    text = encoder.tokenizer.decode(ids)
    assert 97 <= len(ids) <= 100
    assert text.endswith(CUT_MARK)
    assert "\ufffd" not in text


@pytest.mark.parametrize(
    ("side", "start", "end"), [("left", CUT_MARK, "END"), ("right", "START", CUT_MARK), ("middle", "START", "END")]
)
def test_the_side_that_goes_is_the_one_asked_for(side: str, start: str, end: str) -> None:
    encoder = an_encoder(truncate_obs_side=side)
    text = encoder.tokenizer.decode(encoder.cut("START" + "xyz " * 400 + "END", 100))
    assert text.startswith(start) and text.endswith(end) and CUT_MARK in text


def test_text_within_the_limit_is_left_as_it_is() -> None:
    encoder = an_encoder()
    assert encoder.tokenizer.decode(encoder.cut("hello world", 100)) == "hello world"


@settings(deadline=None, max_examples=150)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), max_size=300),
    limit=st.integers(1, 80),
    side=st.sampled_from(["left", "right", "middle"]),
)
def test_no_text_and_no_limit_breaks_the_rule(text: str, limit: int, side: str) -> None:
    encoder = an_encoder(truncate_obs_side=side)
    ids = encoder.cut(text, limit)
    assert len(ids) <= limit
    assert "\ufffd" not in encoder.tokenizer.decode(ids)
    whole = encoder.tokenizer.encode(text, add_special_tokens=False)
    if len(whole) <= limit:
        assert encoder.tokenizer.decode(ids) == text


@settings(deadline=None, max_examples=100)
@given(text=st.text(max_size=200), limit=st.integers(1, 60), budget=st.integers(-1, 120), chat_turn=st.booleans())
def test_wrapping_and_observation_together_stay_within_the_budget(
    text: str, limit: int, budget: int, chat_turn: bool
) -> None:
    ids = an_encoder(enable_mtrl=chat_turn).encode(text, limit=limit, budget=budget)
    assert ids is None or len(ids) <= budget


def test_an_endless_text_is_not_tokenised_as_a_whole() -> None:
    encoder = an_encoder()
    seen: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(encoder.tokenizer, name)

        def encode(self, text: str, **more: Any) -> Any:
            seen.append(len(text))
            return encoder.tokenizer.encode(text, **more)

    ObservationEncoder(Counting(), encoder.chat, encoder.config).encode("x y " * 1_000_000, limit=100, budget=200)
    assert max(seen) < 20_000
