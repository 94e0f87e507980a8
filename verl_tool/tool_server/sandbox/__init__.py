"""Runs a piece of Python in a limited process tree of its own; knows nothing of HTTP, tools or verl."""

from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending, RunResult
from verl_tool.tool_server.sandbox.sandbox import Sandbox

__all__ = ["Ending", "Limits", "RunResult", "Sandbox"]
