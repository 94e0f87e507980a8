"""Reading YAML strictly, with lines."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tool.job.faults import Refused
from verl_tool.job.yaml_source import MOST_VALUES, parse_yaml


def test_a_key_given_twice_is_refused_with_both_lines() -> None:
    document = parse_yaml("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    (fault,) = document.faults
    assert str(fault) == "b.c (line 5): given twice, first on line 3; remove one of the two"


def test_numbers_are_read_as_in_verls_own_files() -> None:
    data = parse_yaml("a: 1e-6\nb: 3e5\nc: 1.5\nd: -2\ne: 2026-01-01\nf: '1e-6'\n").data
    assert data == {"a": 1e-6, "b": 3e5, "c": 1.5, "d": -2, "e": "2026-01-01", "f": "1e-6"}


def test_every_item_knows_its_line_and_a_missing_one_that_of_its_parent() -> None:
    document = parse_yaml("spec:\n  data:\n    train:\n      - a\n      - b\n")
    assert document.line(("spec", "data", "train", 1)) == 5
    assert document.line(("spec", "data", "validation")) == 2


def test_anchors_and_merges_work_and_own_keys_win() -> None:
    assert parse_yaml("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\n").data["own"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a: [1, 2\n", "not YAML"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: b: c\n", "not YAML"),
        ("a: " + "[" * 4000 + "]" * 4000, "nested deeper"),
        ("x" * (2 << 20), "larger than 1 MiB"),
        ("\x00", "not YAML"),
    ],
)
def test_what_is_no_manifest_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_yaml(text)


@pytest.mark.parametrize("text", ["a: .nan", "a: !!binary aGk=", "1: x", "? [a]\n: b", "a: !!python/name:os.system x"])
def test_values_and_keys_that_json_lacks_are_faults(text: str) -> None:
    assert parse_yaml(text).faults


def test_aliases_that_grow_without_end_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(Refused, match=str(MOST_VALUES)):
        parse_yaml("\n".join(lines))


@given(st.text())
def test_any_text_is_either_read_or_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        assert parse_yaml(text).lines
