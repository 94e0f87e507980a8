"""Settings as Hydra overrides, one argument each. No shell sees them, and every text arrives as it was written.

The one thing that is read in a text is `${…}`, an interpolation as in verl's own files.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from verl_tool.job.config_tree import known_to_verl


def tree_overrides(tree: Mapping[str, Any], path: Sequence[str] = ()) -> list[str]:
    """A tree of settings, one override a leaf; the ones that verl's YAML lacks are added with `++`."""
    return [*_overrides(tree, tuple(path))]


def override(name: str, value: Any) -> str:
    """One setting by its dotted name."""
    prefix = "" if known_to_verl(name.split(".")) else "++"
    return f"{prefix}{name}={literal(value)}"


def literal(value: Any) -> str:
    """A value in Hydra's grammar."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return str(QuotedString(text=value, quote=Quote.single).with_quotes())
        case Mapping():
            return "{" + ",".join(f"{name}:{literal(inner)}" for name, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(literal, value)) + "]"
    raise TypeError(f"a {type(value).__name__} is no setting: {value!r}")


def _overrides(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for name, value in tree.items():
        here = (*path, name)
        if isinstance(value, Mapping) and value:
            yield from _overrides(value, here)
        else:
            yield override(".".join(here), value)
