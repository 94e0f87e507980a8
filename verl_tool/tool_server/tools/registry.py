"""From names and paths to tools that are ready to start; what is wrong with one is said before the server starts."""

import difflib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from verl_tool.errors import ConfigError
from verl_tool.tool_server.tools import TOOLS
from verl_tool.tool_server.tools.base import Tool

ENTRY_POINTS = "verl_tool.tools"
AnyTool = Tool[Any]


def build_tools(
    names: Sequence[str], paths: Sequence[str] = (), settings: Mapping[str, Mapping[str, Any]] = {}
) -> tuple[AnyTool, ...]:
    """The tools in the order in which they are asked for an action, `finish` always among them."""
    known = {**TOOLS, **_from_entry_points(names)}
    own = [_from_path(path) for path in paths]
    wanted = [*dict.fromkeys(names)]
    for name in wanted:
        if name not in known:
            raise ConfigError(
                f"--tools: there is no tool {name!r}{_nearest(name, known)}; there are {', '.join(sorted(known))}"
            )
    classes = [*(known[name] for name in wanted), *own]
    if "finish" not in wanted:
        classes.append(TOOLS["finish"])
    _refuse_doubles(classes)
    active = [kind.name for kind in classes]
    if unused := settings.keys() - set(active):
        raise ConfigError(f"--set {min(unused)}.…: {min(unused)!r} is not among the tools: {', '.join(active)}")
    return tuple(_configured(kind, settings.get(kind.name, {})) for kind in classes)


def parse_settings(assignments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`TOOL.NAME=VALUE` (VALUE as in YAML) into the settings of each tool."""
    found: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        tool, dot, name = path.partition(".")
        if not (equals and dot and tool and name):
            raise ConfigError(f"--set {assignment!r}: write TOOL.NAME=VALUE, for example python_code.seconds=5")
        try:
            found.setdefault(tool, {})[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {assignment!r}: the value is not YAML: {error}") from error
    return found


def _configured(kind: type[AnyTool], values: Mapping[str, Any]) -> AnyTool:
    try:
        settings = kind.Settings.model_validate(dict(values))
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(str(part) for part in fault["loc"])
        near = _nearest(field, kind.Settings.model_fields) if fault["type"] == "extra_forbidden" else ""
        raise ConfigError(f"--set {kind.name}.{field}={values.get(field)!r}: {fault['msg']}{near}") from error
    try:
        return kind(settings)
    except Exception as error:
        raise ConfigError(f"tool {kind.name!r} cannot be made: {error or type(error).__name__}") from error


def _from_entry_points(names: Sequence[str]) -> dict[str, type[AnyTool]]:
    """All the installed names are known, but only those asked for are imported."""
    found: dict[str, type[AnyTool]] = {}
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if point.name in names and point.name not in TOOLS:
            try:
                found[point.name] = _checked(point.load(), f"entry point {point.value}")
            except (ImportError, AttributeError) as error:
                raise ConfigError(
                    f"--tools: tool {point.name!r} ({point.value}) cannot be imported: {error}"
                ) from error
    return found


def _from_path(path: str) -> type[AnyTool]:
    file, colon, class_name = path.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise ConfigError(f"--tool {path!r}: write PATH.py:CLASS")
    if not Path(file).is_file():
        raise ConfigError(f"--tool {path!r}: there is no file {file}")
    module_name = f"verl_tool_given_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"--tool {path!r}: the file cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, class_name):
        raise ConfigError(f"--tool {path!r}: {file} has no class {class_name!r}{_nearest(class_name, vars(module))}")
    return _checked(getattr(module, class_name), f"--tool {path!r}")


def _checked(kind: object, origin: str) -> type[AnyTool]:
    if not (isinstance(kind, type) and issubclass(kind, Tool)):
        raise ConfigError(f"{origin}: {kind!r} is no subclass of verl_tool.tool_server.tools.base.Tool")
    if not isinstance(getattr(kind, "name", None), str) or not kind.name:
        raise ConfigError(f"{origin}: the class {kind.__name__} has no `name`")
    return kind


def _refuse_doubles(classes: Sequence[type[AnyTool]]) -> None:
    seen: dict[str, type[AnyTool]] = {}
    for kind in classes:
        if seen.setdefault(kind.name, kind) is not kind:
            raise ConfigError(
                f"two tools have the name {kind.name!r}: {seen[kind.name].__qualname__} and {kind.__qualname__}"
            )


def _nearest(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
