"""`python -m verl_tool.tool_server`: options, made from the settings, to a running server."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from verl_tool.errors import VerlToolError
from verl_tool.tool_server.settings import ServerSettings


def main(arguments: Sequence[str] | None = None, *, program: str = "python -m verl_tool.tool_server") -> int:
    """The exit code: 0 after an orderly end, 1 when the server could not start, 2 for wrong options."""
    options = vars(_parser(program).parse_args(arguments))
    try:
        settings = _settings(options)
        run(settings)
    except VerlToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def run(settings: ServerSettings) -> None:
    """Serves until told to end."""
    from verl_tool.tool_server import logs
    from verl_tool.tool_server.serve import serve

    logs.configure(settings.log_level)
    asyncio.run(serve(settings))


def _settings(options: dict[str, Any]) -> ServerSettings:
    from verl_tool.errors import ConfigError
    from verl_tool.tool_server.tools.registry import parse_settings

    given = {name: value for name, value in options.items() if value is not None and name != "set"}
    if "tools" in given:
        given["tools"] = tuple(name.strip() for name in given["tools"].split(",") if name.strip())
    given["tool_settings"] = parse_settings(options["set"] or [])
    try:
        return ServerSettings.model_validate(given)
    except ValidationError as error:
        fault = error.errors()[0]
        option = "--" + str(fault["loc"][0]).replace("_", "-") + ": " if fault["loc"] else ""
        raise ConfigError(f"{option}{fault['msg']}") from error


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description="Runs the tools of a training job behind HTTP.")
    for name, field in ServerSettings.model_fields.items():
        option, text = f"--{name.replace('_', '-')}", (field.description or "").replace("%", "%%")
        if name == "tool_settings":
            parser.add_argument("--set", action="append", metavar="TOOL.NAME=VALUE", help="a setting of a tool")
        elif field.annotation is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=text)
        elif name == "tool":
            parser.add_argument(option, action="append", metavar="PATH.py:CLASS", help=text)
        else:
            default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
            parser.add_argument(option, help=f"{text} (default: {default})", metavar=name.rpartition("_")[2].upper())
    return parser
