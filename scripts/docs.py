"""Writes docs/reference/*.md from the code, so that no setting, metric or command is described twice.

`python scripts/docs.py` writes the pages; with `--check` it only says which differ, and fails if any does.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import AliasChoices

from verl_tool.job.model import TrainingJob
from verl_tool.llm_agent.config import AGENT_PATH, AgentActorConfig
from verl_tool.llm_agent.metrics import METRICS
from verl_tool.tool_server.settings import ServerSettings
from verl_tool.tool_server.tools import TOOLS

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
NOTE = "<!-- Made by scripts/docs.py (`make docs`) from {source}; change it there. -->"
Schema = Mapping[str, Any]


def agent_config() -> str:
    """Every setting of the agent."""
    old_names = {
        name: [str(choice) for choice in field.validation_alias.choices[1:]]
        for name, field in AgentActorConfig.model_fields.items()
        if isinstance(field.validation_alias, AliasChoices)
    }
    return _page(
        "Settings of the agent",
        "verl_tool/llm_agent/config.py",
        f"Set in a manifest under `spec.config.{AGENT_PATH}`, on a command line as `{AGENT_PATH}.NAME=value`.",
        _fields(AgentActorConfig.model_json_schema(), old_names),
    )


def metrics() -> str:
    """Every number of ours in verl's logger."""
    rows = (f"| `{name}` | {_cell(meaning)} |" for name, meaning in METRICS.items())
    return _page(
        "Metrics",
        "verl_tool/llm_agent/metrics.py",
        "Logged each step beside verl's own: in the run folder's `metrics.jsonl` and by verl's other loggers.",
        "\n".join(["| metric | meaning |", "|---|---|", *rows]),
    )


def tool_server() -> str:
    """The options of the tool server and of each tool."""
    parts = [
        "Options of `python -m verl_tool.tool_server`: a field is the option of that name with dashes.",
        _fields(ServerSettings.model_json_schema()),
    ]
    for name, tool in sorted(TOOLS.items()):
        schema = tool.Settings.model_json_schema()
        summary = (tool.__doc__ or "").strip().splitlines()[0]
        parts.append(f"## Tool `{name}`\n{summary}")
        if schema.get("properties"):
            parts.append(f"Each is set with `--set {name}.FIELD=VALUE`.\n\n{_fields(schema)}")
    return _page("The tool server", "verl_tool/tool_server", *parts)


def manifest() -> str:
    """Every field of a TrainingJob."""
    schema = TrainingJob.model_json_schema()
    return _page(
        "The manifest",
        "verl_tool/job/model.py",
        "What a `TrainingJob` file may hold. `verl-tool validate FILE` names every fault at once.",
        _fields(schema),
        *_sections(schema, schema["$defs"], ()),
    )


def _sections(schema: Schema, definitions: Mapping[str, Schema], path: tuple[str, ...]) -> Iterator[str]:
    """A section for each object within, outermost first."""
    inner = {
        (*path, name): found
        for name, field in schema["properties"].items()
        if (found := _object_in(field, definitions)) is not None
    }
    for where, found in inner.items():
        yield f"## `{'.'.join(where)}`\n{_cell(found.get('description', ''))}\n\n{_fields(found)}"
    for where, found in inner.items():
        yield from _sections(found, definitions, where)


def _object_in(field: Schema, definitions: Mapping[str, Schema]) -> Schema | None:
    """The object that a field holds, alone, optionally, or in a list."""
    for one in (field, field.get("items", {}), *field.get("anyOf", [])):
        if "$ref" in one:
            found = definitions[one["$ref"].rpartition("/")[2]]
            return found if "properties" in found else None
    return None


PAGES: dict[str, Callable[[], str]] = {
    "agent-config.md": agent_config,
    "manifest.md": manifest,
    "metrics.md": metrics,
    "tool-server.md": tool_server,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the pages; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a page differs")
    check = parser.parse_args(arguments).check
    stale = [name for name, page in PAGES.items() if _differs(REFERENCE / name, page())]
    if check:
        for name in stale:
            print(f"error: docs/reference/{name} is not what the code says; run: make docs", file=sys.stderr)
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"docs/reference/{name}")
    return 0


def _differs(file: Path, text: str) -> bool:
    return not file.is_file() or file.read_text(encoding="utf-8") != text


def _page(title: str, source: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}\n{NOTE.format(source=source)}", *parts]) + "\n"


def _fields(schema: Schema, old_names: Mapping[str, Sequence[str]] = {}) -> str:
    """The fields of a pydantic model's JSON schema, as a table."""
    definitions = schema.get("$defs", {})
    required = schema.get("required", [])
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema.get("properties", {}).items():
        meaning = field.get("description", "")
        if old := old_names.get(name):
            meaning += f" Also known as {', '.join(f'`{other}`' for other in old)}."
        rows.append(
            f"| `{name}` | {_cell(_type(field, definitions))} | {_default(name, field, required)} | {_cell(meaning)} |"
        )
    return "\n".join(rows)


def _default(name: str, field: Schema, required: Iterable[str]) -> str:
    if name in required:
        return "needed"
    if "default" not in field:
        return "computed"
    if isinstance(field["default"], dict) and field["default"]:
        return "its own defaults"
    return f"`{_cell(_literal(field['default']))}`"


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) or '""'


def _type(field: Schema, definitions: Mapping[str, Schema]) -> str:
    """A type with its bounds, in words: `integer ≥ 1, or null`."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return _type(definitions.get(name, {"type": "object"}), definitions)
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one, definitions) for one in field["anyOf"]))
    if "const" in field:
        return f"only `{_literal(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{_literal(value)}`" for value in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        items = field.get("items", {})
        kind = f"list of {_type(items, definitions)}" if items else "list"
    return " ".join([kind, ", ".join(_bounds(field))]).strip()


def _bounds(field: Schema) -> Iterator[str]:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    for key, sign in signs.items():
        if key in field:
            yield f"{sign} {field[key]:g}"
    if "maxLength" in field:
        yield f"of at most {field['maxLength']} characters"
    if "pattern" in field:
        yield f"matching `{field['pattern']}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
