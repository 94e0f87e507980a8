"""R6: stop strings match as the user wrote them."""

from pathlib import Path

import pytest

from verl_tool.errors import ConfigError
from verl_tool.llm_agent.stop_strings import parse_stop_strings


def test_a_final_newline_of_the_file_is_not_part_of_its_last_entry(tmp_path: Path) -> None:
    path = tmp_path / "stops.txt"
    path.write_text("</python>,</sql>\n")
    assert parse_stop_strings(str(path)) == ("</python>", "</sql>")


def test_spaces_belong_to_an_entry_in_a_list_and_in_a_string() -> None:
    assert parse_stop_strings(["</a>", " stop here "]) == ("</a>", " stop here ")
    assert parse_stop_strings("</a>, stop") == ("</a>", " stop")


@pytest.mark.parametrize("value", [["</a>", ""], "</a>,", ",</a>"])
def test_an_empty_entry_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="is empty"):
        parse_stop_strings(value)  # type: ignore[arg-type]


def test_a_path_that_is_not_there_is_not_taken_for_a_stop_string() -> None:
    with pytest.raises(ConfigError, match=r"there is no file '\./stops\.txt'"):
        parse_stop_strings("./stops.txt")


def test_an_empty_entry_in_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stops.txt"
    path.write_text("</python>,\n")
    with pytest.raises(ConfigError, match="entry 2 of the file"):
        parse_stop_strings(str(path))


def test_nothing_given_is_no_stop_string() -> None:
    assert parse_stop_strings(None) == ()
