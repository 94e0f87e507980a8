"""What is wrong with rows, before verl reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from verl_tool.preflight.data import MOST_FAULTS, DataSets, wrong_messages
from verl_tool.preflight.request import DataFile, Request

GOOD = {
    "prompt": [{"role": "user", "content": "1+1="}],
    "data_source": "sums",
    "reward_model": {"ground_truth": "2"},
}


def data_sets(**changes: Any) -> DataSets:
    settings = {"model": "m", "tokenizer": "m", "train": [], "validation": []}
    return DataSets(Request(**{**settings, "max_prompt_length": 8, "too_long_is_refused": True, **changes}))


def read(path: Path, *rows: Any, **changes: Any) -> tuple[int, list[str], DataSets]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = data_sets(**changes)
    return data.read([DataFile(field="spec.data.train[0]", path=str(path))]), data.faults, data


def test_good_rows_are_counted_and_the_longest_prompt_comes_first(tmp_path: Path) -> None:
    longer = {**GOOD, "prompt": [{"role": "user", "content": "1+1+1="}]}
    rows, faults, data = read(tmp_path / "a.jsonl", GOOD, longer, GOOD)
    assert (rows, faults) == (3, [])
    assert data.longest[0].place.startswith("spec.data.train[0]: row 1 of ")


def test_an_empty_file_is_a_fault(tmp_path: Path) -> None:
    assert "has no rows" in read(tmp_path / "a.jsonl")[1][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prompt": None}, "prompt is missing"),
        ({"prompt": "1+1"}, "list of messages"),
        ({"prompt": [{"role": "", "content": "x"}]}, "prompt[0].role"),
        ({"prompt": [{"role": "user"}]}, "prompt[0].content"),
        ({"data_source": 3}, "data_source is 3"),
        ({"reward_model": {}}, "ground_truth"),
    ],
)
def test_a_wrong_row_is_told_with_its_number_and_what_it_lacks(tmp_path: Path, change: Any, words: str) -> None:
    _, faults, _ = read(tmp_path / "a.jsonl", GOOD, {**GOOD, **change})
    assert len(faults) == 1 and "row 1 of" in faults[0] and words in faults[0]


def test_many_wrong_rows_are_summed_up(tmp_path: Path) -> None:
    _, faults, _ = read(tmp_path / "a.jsonl", *[{"prompt": "x"}] * (MOST_FAULTS + 4))
    assert len(faults) == MOST_FAULTS + 1 and "4 more rows" in faults[-1]


@pytest.mark.parametrize("name", ["a.parquet", "a.json", "a.jsonl", "a.csv"])
def test_what_is_no_data_set_is_told_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{this is none")
    data = data_sets()
    assert data.read([DataFile(field="spec.data.train[0]", path=str(tmp_path / name))]) == 0
    assert name in data.faults[0]


def test_a_conversation_may_have_content_in_parts() -> None:
    assert wrong_messages([{"role": "user", "content": [{"type": "text", "text": "x"}]}]) is None
