"""The tools that come with the server.

Others join by the entry point group `verl_tool.tools` or by `--tool path.py:Class`.
"""

from collections.abc import Mapping
from typing import Any

from verl_tool.tool_server.tools.base import Tool
from verl_tool.tool_server.tools.finish import Finish
from verl_tool.tool_server.tools.python_code import PythonCode

TOOLS: Mapping[str, type[Tool[Any]]] = {
    "finish": Finish,
    "python_code": PythonCode,
}
