"""What pydantic says of a manifest, in the words of the manifest: field, value, what belongs there."""

import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from verl_tool.job.faults import Fault, Path, shown, unknown
from verl_tool.job.model import TrainingJob


def model_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Every field that the model refuses."""
    try:
        TrainingJob.model_validate(data)
    except ValidationError as refused:
        for error in refused.errors(include_url=False):
            yield _fault(error)


def _fault(error: ErrorDetails) -> Fault:
    # A union's members add their own names to the place; only what the manifest has is kept.
    loc: Path = tuple(part for part in error["loc"] if isinstance(part, int) or not part.startswith(("list[", "str")))
    owner, field = _field(loc)
    meaning = f"; here belongs: {field.split(';')[0].split('. ')[0].split(' (')[0]}" if field else ""
    match error["type"]:
        case "extra_forbidden" if owner is not None:
            return Fault(loc, unknown(str(loc[-1]), [info.alias or name for name, info in owner.model_fields.items()]))
        case "missing":
            return Fault(loc, f"missing{meaning}")
        case "value_error":
            return Fault(loc, error["msg"].removeprefix("Value error, "))
    reason = re.sub(r"^(\w+ )?should ", "", error["msg"]).replace(" after validation", "")
    if error["type"] == "string_pattern_mismatch":
        return Fault(loc, f"{shown(error['input'])} does not fit{meaning}")
    return Fault(loc, f"{shown(error['input'])} should {reason}{meaning}")


def _field(loc: Path) -> tuple[type[BaseModel] | None, str | None]:
    """The model that holds the last part of `loc`, and the description of that field."""
    model: type[BaseModel] | None = TrainingJob
    owner, meaning = model, None
    for part in loc:
        if isinstance(part, int):
            continue
        owner = model
        info = (
            next((one for name, one in owner.model_fields.items() if part in (one.alias, name)), None)
            if owner
            else None
        )
        meaning = info.description if info else None
        model = _model_in(info.annotation) if info else None
    return owner, meaning


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (typing.Union, types.UnionType, list, typing.Annotated):
        return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
    return None
