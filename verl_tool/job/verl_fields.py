"""Settings that verl's dataclasses take beyond those in its YAML, read from verl's sources without running them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from verl_tool.job.verl_config import verl_config_folder


@cache
def dataclass_fields(target: str) -> frozenset[str]:
    """Fields of the dataclass that a `_target_` such as `verl.workers.config.RolloutConfig` names, inherited ones too.

    Empty for a class that is not found: then only the YAML says what there is.
    """
    module, _, name = target.rpartition(".")
    if not module.startswith("verl."):
        return frozenset()
    classes = _classes(module)
    fields: set[str] = set()
    pending, seen = [name], set()
    while pending:
        current = pending.pop()
        node = classes.get(current)
        if node is None or current in seen:
            continue
        seen.add(current)
        fields.update(
            statement.target.id
            for statement in node.body
            if isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and not statement.target.id.startswith("_")
        )
        pending.extend(base.id for base in node.bases if isinstance(base, ast.Name))
    return frozenset(fields)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """The classes defined in a module of verl's, or in the files of a package of its."""
    found: dict[str, ast.ClassDef] = {}
    for file in _files(module):
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        found |= {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return found


def _files(module: str) -> Iterator[Path]:
    place = verl_config_folder().parents[1].joinpath(*module.split(".")[1:])
    if place.is_dir():
        yield from sorted(place.glob("*.py"))
    elif (file := place.with_suffix(".py")).is_file():
        yield file
