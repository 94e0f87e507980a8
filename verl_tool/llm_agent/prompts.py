"""From the rows of a data set to tasks: chat template, length limit, and the fields a tool is given."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from verl_tool.errors import DataError
from verl_tool.llm_agent.chat import ChatTemplate, Message
from verl_tool.llm_agent.engine import TokenId
from verl_tool.llm_agent.trajectory import Task

Truncation = Literal["error", "left", "right", "middle"]  # data.truncation, verl's own names: the side that goes


def make_task(
    chat: ChatTemplate,
    messages: Sequence[Message],
    *,
    trajectory_id: str,
    extra_info: Mapping[str, Any] | None,
    limit: int,
    truncation: Truncation,
) -> Task:
    """The start of one trajectory. Raises DataError for a prompt that the template refuses or that is too long."""
    ids = chat.prompt_ids(messages)
    if len(ids) > limit:
        ids = _cut(ids, limit, truncation, trajectory_id)
    return Task(trajectory_id, ids, plain_json(extra_info or {}))


def plain_json(value: Any) -> Any:
    """`value` as JSON can carry it: numpy's numbers and arrays as Python's, everything unknown as its text."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy and torch
        return plain_json(value.tolist())
    return str(value)


def _cut(ids: list[TokenId], limit: int, truncation: Truncation, trajectory_id: str) -> list[TokenId]:
    match truncation:
        case "left":
            return ids[-limit:]
        case "right":
            return ids[:limit]
        case "middle":
            tail = limit // 2
            return [*ids[: limit - tail], *(ids[-tail:] if tail else [])]
        case _:
            raise DataError(
                f"the prompt of {trajectory_id} has {len(ids)} tokens, {limit} are allowed: "
                "raise data.max_prompt_length, set data.filter_overlong_prompts=true, or data.truncation=left"
            )
