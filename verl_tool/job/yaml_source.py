"""A manifest's text as plain data that remembers its lines; stricter than YAML: no duplicate keys, no odd types."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from verl_tool.job.faults import Fault, Path, Refused, shown

MOST_BYTES = 1 << 20  # more does not fit into a Kubernetes object either
MOST_VALUES = 20_000  # with aliases expanded
DEEPEST = 50


@dataclass(frozen=True)
class Document:
    """The data of a file, the line of each key and item, and what is wrong with single keys and values."""

    data: Any
    lines: Mapping[Path, int] = field(default_factory=dict)
    faults: Sequence[Fault] = ()

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest part of it that is in the file."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


def parse_yaml(text: str) -> Document:
    """Raises Refused with the place where the text stops being YAML; lesser faults are in the document."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Refused(
            [Fault((), f"larger than {MOST_BYTES >> 20} MiB; a manifest names its data, it does not hold it")]
        )
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else None
        raise Refused([Fault((), _syntax(fault), line)]) from fault
    except yaml.YAMLError as fault:
        raise Refused([Fault((), f"not YAML: {' '.join(str(fault).split())}")]) from fault
    except RecursionError as fault:
        raise Refused([Fault((), f"nested deeper than {DEEPEST} levels")]) from fault
    if root is None:
        raise Refused([Fault((), "empty; it needs apiVersion, kind, metadata and spec")])
    reader = _Reader(loader)
    data = reader.read(root, ())
    return Document(data, reader.lines, tuple(reader.faults))


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as PyYAML has it, but `1e-6` is a number and a date is text, as everywhere else in this project."""


def _without_floats_and_dates() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    replaced = ("tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")
    return {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in replaced]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.yaml_implicit_resolvers = _without_floats_and_dates()
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:\d[\d_]*)\.[\d_]*(?:[eE][-+]?\d+)?|[-+]?(?:\d[\d_]*)(?:[eE][-+]?\d+)|\.[\d_]+(?:[eE][-+]?\d+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


class _Reader:
    """Walks the node tree, so that keys seen twice and line numbers are not lost."""

    def __init__(self, loader: _Loader) -> None:
        self._loader = loader
        self._values = 0
        self.faults: list[Fault] = []
        self.lines: dict[Path, int] = {}

    def read(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._values += 1
        if self._values > MOST_VALUES or len(path) > DEEPEST:
            raise Refused([Fault(path[:3], f"more than {MOST_VALUES} values, or nested deeper than {DEEPEST}", line)])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path, line)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for source in sources:
                    found = self.read(source, path)
                    merged = {**found, **merged} if isinstance(found, dict) else merged
                continue
            key = self._key(key_node, path, line)
            if key is None:
                continue
            if key in own:
                first = self.lines[(*path, key)]
                self.faults.append(
                    Fault((*path, key), f"given twice, first on line {first}; remove one of the two", line)
                )
                continue
            self.lines[(*path, key)] = line
            own[key] = self.read(value_node, (*path, key))
        return {**merged, **own}

    def _key(self, node: yaml.Node, path: Path, line: int) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            if node.tag == "tag:yaml.org,2002:str":
                return str(node.value)
            self.faults.append(Fault(path, f"the key {node.value!r} is not text; put it in quotes", line))
        else:
            self.faults.append(Fault(path, "a list or mapping cannot be a key", line))
        return None

    def _scalar(self, node: yaml.Node, path: Path, line: int) -> Any:
        try:
            value = self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, ArithmeticError) as fault:
            self.faults.append(Fault(path, f"{shown(node.value)} cannot be read: {' '.join(str(fault).split())}", line))
            return None
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            self.faults.append(Fault(path, f"{node.value} is no finite number", line))
            return None
        self.faults.append(Fault(path, f"{shown(value)} is of a type that JSON lacks; write it as text", line))
        return None


def _syntax(fault: yaml.MarkedYAMLError) -> str:
    if fault.problem and "but found another document" in fault.problem:
        return "a second document starts here; one file holds one job"
    return f"not YAML: {fault.problem or fault.context or 'unreadable'}"
