"""From bytes to a request or a refusal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tool.tool_server.faults import BadRequest, parse_request, unreadable_text
from verl_tool.tool_server.protocol import ObservationRequest

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([*ObservationRequest.model_fields, "other"])


def parsed(body: bytes) -> ObservationRequest | BadRequest:
    try:
        return parse_request(body, 10)
    except BadRequest as fault:
        return fault


@given(st.binary(max_size=200) | st.dictionaries(FIELDS, JSON_VALUES).map(lambda body: json.dumps(body).encode()))
def test_any_bytes_are_a_request_or_a_refusal_that_can_be_sent(body: bytes) -> None:
    """T14"""
    found = parsed(body)
    if isinstance(found, BadRequest):
        assert 400 <= found.status < 500
        json.loads(found.refusal.model_dump_json())
    else:
        assert len(found.actions) == len(found)


def test_every_fault_is_told_and_the_first_is_named() -> None:
    with pytest.raises(BadRequest) as caught:
        parse_request(b'{"trajectory_ids": [1, 2], "actions": ["x", "y"], "stray": 0}', 10)
    assert caught.value.refusal.error.startswith("trajectory_ids[0]: ") and "2 more" in caught.value.refusal.error
    assert [fault["loc"] for fault in caught.value.refusal.detail] == [
        ["body", "trajectory_ids", 0],
        ["body", "trajectory_ids", 1],
        ["body", "stray"],
    ]


def test_an_unknown_field_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadRequest, match="the fields are trajectory_ids, actions, extra_fields"):
        parse_request(b'{"trajectory_ids": ["a"], "actions": ["x"], "stray": 0}', 10)


def test_a_lone_surrogate_is_let_through_to_its_item() -> None:
    """T1"""
    request = parse_request(b'{"trajectory_ids": ["a"], "actions": ["x\\ud800"], "extra_fields": [{"\\udfff": 1}]}', 10)
    assert unreadable_text(request.actions[0]) == "a lone surrogate (U+D800) at position 1, which is not a character"
    assert unreadable_text(request.extra_fields) is not None
    assert unreadable_text({"deep": [{"text": "é😀"}]}) is None


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity", b'[{"deep": NaN}]'])
def test_what_is_no_json_number_is_named(value: bytes) -> None:
    """T14"""
    with pytest.raises(BadRequest, match=r"extra_fields\[0\]\.score"):
        parse_request(b'{"trajectory_ids": ["a"], "actions": ["x"], "extra_fields": [{"score": ' + value + b"}]}", 10)
