"""What a model reads of a run."""

from typing import Any

import pytest

from verl_tool.tool_server.sandbox import Ending, Limits, RunResult
from verl_tool.tool_server.tools.python_code import PythonCodeSettings, shown

LIMITS = Limits(seconds=3, cpu_seconds=4, memory_bytes=64 * 2**20, processes=5)


def read(limit: int = 1000, ending: Ending = Ending.EXITED, **fields: Any) -> str:
    return shown(RunResult(ending=ending, **fields), LIMITS, limit)


def test_output_comes_before_errors_stripped_of_blank_edges() -> None:
    assert read(stdout=b"\n  one\ntwo  \n\n", stderr=b"\nbad\n") == "one\ntwo\nbad"


def test_nothing_printed_is_nothing_read() -> None:
    assert read() == ""
    assert read(stderr=b"bad\n") == "bad"


def test_bytes_that_are_no_text_are_shown_as_replacements() -> None:
    assert read(stdout=b"ok \xff") == "ok \ufffd"


@pytest.mark.parametrize(
    ("ending", "note"),
    [
        (Ending.TIME_LIMIT, "[time limit of 3 s reached; the run was ended]"),
        (Ending.CPU_LIMIT, "[CPU time limit of 4 s reached; the run was ended]"),
        (Ending.MEMORY_LIMIT, "[memory limit of 64 MiB reached; the run was ended]"),
        (Ending.PROCESS_LIMIT, "[limit of 5 processes and threads reached; the run was ended]"),
    ],
)
def test_a_limit_is_told_after_the_output_so_far(ending: Ending, note: str) -> None:
    assert read(ending=ending, stdout=b"so far") == f"so far\n{note}"


def test_a_signal_is_told_by_its_name() -> None:
    assert read(ending=Ending.SIGNALLED, signal=11) == "[the process was ended by SIGSEGV]"


def test_output_is_cut_in_characters_and_the_cut_is_marked() -> None:
    text = read(limit=10, stdout="é".encode() * 25, stdout_dropped=100)
    assert text == "é" * 10 + "\n[output cut after 10 characters; 130 more bytes were dropped]"


def test_output_of_just_the_limit_is_whole() -> None:
    assert read(limit=10, stdout=b"x" * 10) == "x" * 10


def test_the_kept_bytes_hold_the_kept_characters_whatever_these_are() -> None:
    assert PythonCodeSettings(output_chars=7).limits().output_bytes >= len("😀".encode() * 7)
