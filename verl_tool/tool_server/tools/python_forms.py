"""The ways in which a model writes Python for `python_code`, and how the result is wrapped to match each."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from verl_tool.tool_server.tools.base import Malformed


class Form(StrEnum):
    """How the code was written, and so how its result is shown."""

    TAGS = "tags"  # <python>…</python>
    TAGS_RESULT_OPEN = "tags_result_open"  # … and the model has already written <result>
    FENCE = "fence"  # ```python … ```
    FENCE_OUTPUT_OPEN = "fence_output_open"  # … and the model has already opened ```output
    TOOL_CALL = "tool_call"  # <tool_call>{"name": "python", "arguments": {"code": …}}</tool_call>


@dataclass(frozen=True)
class PythonCall:
    """Code found in a text, and what it reads as standard input."""

    code: str
    form: Form
    stdin: str | None = None


TAGGED = re.compile(r"<python>(.*?)</python>", re.DOTALL)
FENCED = {label: re.compile(rf"```{label}(?=\s)(.*?)```", re.DOTALL) for label in ("python", "py")}
UNCLOSED_FENCE = re.compile(r"(```py(?:thon)?)(?:\s|$)")
INPUT = re.compile(r"```input(?=\s)(.*?)```", re.DOTALL)
TOOL_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
NESTED = re.compile(r"^[ \t]*<python>", re.MULTILINE)
TOOL_NAMES = frozenset({"python", "python_code"})


def parse_python(text: str) -> PythonCall | Malformed | None:
    """The code in a model's text; several blocks of one form are one program."""
    if TAGGED.search(text):
        return _tagged(text)
    for pattern in FENCED.values():
        if blocks := pattern.findall(text):
            form = Form.FENCE_OUTPUT_OPEN if text.rstrip().endswith("```output") else Form.FENCE
            return _call(blocks, form, text)
    if "<python>" in text:
        return _malformed("<python> is not closed with </python>", Form.TAGS)
    if unclosed := UNCLOSED_FENCE.search(text):
        return _malformed(f"the code fence {unclosed.group(1)} is not closed with ```", Form.FENCE)
    if "<tool_call>" in text:
        return _tool_call(text)
    return None


def wrap(output: str, form: Form) -> str:
    """The observation's text for a call written in this form."""
    match form:
        case Form.TAGS:
            return f"\n<result>\n{output}\n</result>\n"
        case Form.TAGS_RESULT_OPEN:
            return f"\n{output}\n</result>\n"
        case Form.FENCE:
            return f"\n```result\n{output}\n```\n"
        case Form.FENCE_OUTPUT_OPEN:
            return f"\n{output}\n```\n"
        case Form.TOOL_CALL:
            return f"\n<tool_response>\n{output}\n</tool_response>\n"


def _tagged(text: str) -> PythonCall | Malformed:
    form = Form.TAGS_RESULT_OPEN if text.rstrip().endswith("<result>") else Form.TAGS
    blocks = TAGGED.findall(text)
    if any(NESTED.search(block) for block in blocks):
        return _malformed("a <python> block is opened inside another; close the first with </python>", form)
    if "<python>" in TAGGED.sub("", text):
        return _malformed("<python> is not closed with </python>", form)
    return _call(blocks, form, text)


def _call(blocks: list[str], form: Form, text: str) -> PythonCall | Malformed:
    code = "\n".join(block.strip("\r\n") for block in blocks)
    if not code.strip():
        return _malformed("the call holds no code", form)
    given = INPUT.search(text)
    return PythonCall(code, form, given.group(1).strip("\r\n") if given else None)


def _tool_call(text: str) -> PythonCall | Malformed | None:
    bodies = TOOL_CALL.findall(text)
    if "<tool_call>" in TOOL_CALL.sub("", text):
        return _malformed("<tool_call> is not closed with </tool_call>")
    if any("<tool_call>" in body for body in bodies):
        return _malformed("a <tool_call> is opened inside another; close the first with </tool_call>")
    if len(bodies) > 1:
        return _malformed(f"{len(bodies)} tool calls in one turn; make one call and wait for its result")
    try:
        call = json.loads(bodies[0])
    except (ValueError, RecursionError) as error:
        return _malformed(f"the tool call is not valid JSON: {error}")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return _malformed('the tool call must be an object with "name" and "arguments"')
    if call["name"] not in TOOL_NAMES:
        return None
    arguments = call.get("arguments")
    if not isinstance(arguments, dict) or not isinstance(arguments.get("code"), str):
        return _malformed('the arguments of python must be an object with "code", a string')
    if unknown := sorted(arguments.keys() - {"code"}):
        return _malformed(f"python has no argument {unknown[0]!r}; it takes code")
    return _call([arguments["code"]], Form.TOOL_CALL, "")


def _malformed(reason: str, form: Form = Form.TOOL_CALL) -> Malformed:
    return Malformed(reason, wrap(f"Error: {reason}.", form))
