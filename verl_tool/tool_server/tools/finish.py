"""The tool behind `finish: true`: nothing runs, the trajectory is done. It accepts no text by itself."""

from collections.abc import Mapping
from typing import Any

from verl_tool.tool_server.tools.base import Malformed, Outcome, Tool


class Finish(Tool[str]):
    """Always active; chosen by the request's `finish` flag, never by the model's text."""

    name = "finish"

    def parse_action(self, text: str) -> str | Malformed | None:
        return None

    async def conduct_action(self, trajectory_id: str, action: str, extra_field: Mapping[str, Any]) -> Outcome:
        return Outcome("", done=True, valid=True)
