"""From bytes to a request, or to a refusal that names the field."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from verl_tool.tool_server.protocol import ObservationRequest, Refusal

MAX_DEPTH = 64
MAX_FAULTS_TOLD = 20


class BadRequest(Exception):
    """The request is refused as a whole."""

    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(refusal.error)
        self.status, self.refusal = status, refusal


def parse_request(body: bytes, max_items: int) -> ObservationRequest:
    """The request in this body."""
    try:
        values = json.loads(body)
    except RecursionError:
        raise refuse(400, "json_too_deep", (), "the body is nested too deeply to be read as JSON") from None
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise refuse(400, "json_invalid", (), f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise refuse(422, "dict_type", (), f"the body must be a JSON object, not {type(values).__name__}")
    for name, items in values.items():
        if isinstance(items, list) and len(items) > max_items:
            raise refuse(
                413,
                "too_many_items",
                (name,),
                f"{len(items)} items are more than the limit of {max_items}; split the request",
            )
    try:
        request = ObservationRequest.model_validate(values)
    except ValidationError as error:
        raise _from_pydantic(error) from None
    for index, extra in enumerate(request.extra_fields or ()):
        for path, value in _leaves(extra, ("extra_fields", index)):
            if isinstance(value, float) and not math.isfinite(value):
                raise refuse(422, "finite_number", path, f"{value} is no JSON number")
    return request


def unreadable_text(value: object) -> str | None:
    """What is wrong with the text in this value: a lone surrogate is no character, and no answer could hold it."""
    for _, leaf in _leaves(value, ()):
        if isinstance(leaf, str):
            try:
                leaf.encode()
            except UnicodeEncodeError as error:
                code = f"U+{ord(leaf[error.start]):04X}"
                return f"a lone surrogate ({code}) at position {error.start}, which is not a character"
    return None


def refuse(status: int, kind: str, path: Sequence[str | int], message: str) -> BadRequest:
    where = f"{_dotted(path)}: " if path else ""
    detail = [{"loc": ["body", *_printable(path)], "msg": message, "type": kind}]
    return BadRequest(status, Refusal(error=f"{where}{message}", detail=detail))


def _from_pydantic(error: ValidationError) -> BadRequest:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    first = faults[0]
    where = f"{_dotted(first['loc'])}: " if first["loc"] else ""
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    known = (
        f"; the fields are {', '.join(ObservationRequest.model_fields)}" if first["type"] == "extra_forbidden" else ""
    )
    detail = [{**fault, "loc": ["body", *_printable(fault["loc"])]} for fault in faults[:MAX_FAULTS_TOLD]]
    return BadRequest(422, Refusal(error=f"{where}{first['msg']}{known}{more}", detail=detail))


def _leaves(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every key and every value that holds no others, with where it stands; refuses what is nested too deeply."""
    pending: list[tuple[tuple[str | int, ...], object]] = [(path, value)]
    while pending:
        at, item = pending.pop()
        if isinstance(item, Mapping | list) and len(at) - len(path) >= MAX_DEPTH:
            raise refuse(422, "too_deep", at[:4], f"nested more than {MAX_DEPTH} deep")
        if isinstance(item, Mapping):
            for key, child in item.items():
                yield at, key
                pending.append(((*at, key), child))
        elif isinstance(item, list):
            pending.extend(((*at, index), child) for index, child in enumerate(item))
        else:
            yield at, item


def _dotted(path: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in _printable(path))
    return text.removeprefix(".")


def _printable(path: Sequence[Any]) -> list[str | int]:
    """A client's own keys may be long or hold what cannot be sent back."""
    return [
        part if isinstance(part, int) else str(part)[:100].encode("utf-8", "backslashreplace").decode() for part in path
    ]
