"""How a model may write a call of python_code, and what it is told when it gets that wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tool.tool_server.tools.base import Malformed
from verl_tool.tool_server.tools.python_forms import Form, PythonCall, parse_python, wrap


def tool_call(body: object) -> str:
    return f"<tool_call>\n{body if isinstance(body, str) else json.dumps(body)}\n</tool_call>"


PRINT = {"name": "python", "arguments": {"code": "print(1)"}}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("I compute.\n<python>print(1)</python>", Form.TAGS),
        ("<python>\nprint(1)\n</python>\n<result>", Form.TAGS_RESULT_OPEN),
        ("```python\nprint(1)\n```", Form.FENCE),
        ("```py\nprint(1)\n```", Form.FENCE),
        ("```python\nprint(1)\n```\n```output\n", Form.FENCE_OUTPUT_OPEN),
        (tool_call(PRINT), Form.TOOL_CALL),
        ("the <python> tag, or\n```python\nprint(1)\n```", Form.FENCE),
        ("<python>print(1)</python>\n```python\nprint(2)\n```", Form.TAGS),
    ],
)
def test_code_is_found_in_each_form(text: str, form: Form) -> None:
    assert parse_python(text) == PythonCall("print(1)", form)


@pytest.mark.parametrize(
    "text",
    ["", "no code here", "```\nprint(1)\n```", "```pycon\n>>> 1\n```", tool_call({"name": "search", "arguments": {}})],
)
def test_other_text_is_for_other_tools(text: str) -> None:
    assert parse_python(text) is None


def test_several_blocks_are_one_program() -> None:
    assert parse_python("<python>x = 1</python> then <python>\nprint(x)\n</python>") == PythonCall(
        "x = 1\nprint(x)", Form.TAGS
    )


def test_indentation_of_the_first_line_is_kept_as_written() -> None:
    call = parse_python("<python>\n    x = 1\n</python>")
    assert isinstance(call, PythonCall) and call.code == "    x = 1"


def test_an_input_block_is_what_the_code_reads() -> None:
    call = parse_python("```python\nprint(input())\n```\n```input\n3 4\n```")
    assert isinstance(call, PythonCall) and call.stdin == "3 4"


def test_a_tag_inside_a_string_is_code() -> None:
    assert parse_python("<python>print('<python>')</python>") == PythonCall("print('<python>')", Form.TAGS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<python>print(1)", "not closed"),
        ("<python>print(1)</python> <python>print(2)", "not closed"),
        ("<python>\n<python>\nprint(1)\n</python>", "inside another"),
        ("<python>  \n</python>", "no code"),
        ("```python\nprint(1)", "not closed"),
        (tool_call('{"name": "python", "arguments": {"code": "print(1)"'), "not valid JSON"),
        (tool_call(PRINT) + tool_call(PRINT), "2 tool calls"),
        (tool_call(f"<tool_call>{json.dumps(PRINT)}"), "inside another"),
        (f"<tool_call>{json.dumps(PRINT)}", "not closed"),
        (tool_call([PRINT]), "must be an object"),
        (tool_call({"name": "python", "arguments": "print(1)"}), "code"),
        (tool_call({"name": "python", "arguments": {"code": 1}}), "code"),
        (tool_call({"name": "python", "arguments": {"code": "1", "timeout": 5}}), "'timeout'"),
        (tool_call("[" * 100_000), "not valid JSON"),
    ],
)
def test_a_malformed_call_says_what_is_wrong_in_its_own_form(text: str, said: str) -> None:
    """R20"""
    found = parse_python(text)
    assert isinstance(found, Malformed)
    assert said in found.reason
    assert found.reason in found.observation and found.observation.startswith("\n") and found.observation.endswith("\n")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Form.TAGS, "\n<result>\n42\n</result>\n"),
        (Form.TAGS_RESULT_OPEN, "\n42\n</result>\n"),
        (Form.FENCE, "\n```result\n42\n```\n"),
        (Form.FENCE_OUTPUT_OPEN, "\n42\n```\n"),
        (Form.TOOL_CALL, "\n<tool_response>\n42\n</tool_response>\n"),
    ],
)
def test_a_result_is_wrapped_to_match_its_call(form: Form, text: str) -> None:
    assert wrap("42", form) == text


PIECES = [
    "<python>",
    "</python>",
    "```python",
    "```",
    "```py",
    "<tool_call>",
    "</tool_call>",
    "{",
    "}",
    '"name"',
    ":",
    "\n",
    "x",
    "\ud800",
    "<result>",
    "```output",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_any_text_is_a_call_a_fault_or_neither(text: str) -> None:
    assert isinstance(parse_python(text), PythonCall | Malformed | None)
