"""`verl-tool call`: one tool call from the shell, over the same wire as the model's."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from verl_tool.cli.console import error, warn
from verl_tool.cli.tool_server import local_server
from verl_tool.errors import ToolServerError
from verl_tool.job.model import ToolServer
from verl_tool.llm_agent.tool_client import endpoint

LIMIT_SECONDS = 660.0  # a little more than the server gives a request


def call_once(action: str, *, url: str | None, tools: Sequence[str], files: Sequence[str]) -> int:
    """Prints the observation to stdout; 1 when no tool took the action or the tool failed."""
    return asyncio.run(_call(action, url, tools, files))


async def _call(action: str, url: str | None, tools: Sequence[str], files: Sequence[str]) -> int:
    async with _server(url, tools, files) as address:
        answer = await _post(endpoint(address), action)
    observation, valid = answer["observations"][0], answer["valids"][0]
    text = observation if isinstance(observation, str) else observation.get("obs", "")
    reason = None if isinstance(observation, str) else observation.get("invalid_reason") or observation.get("error")
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
    if valid:
        return 0
    error(reason or "no tool took the action; the text has to hold a call, such as <python>…</python>")
    return 1


async def _post(address: str, action: str) -> dict[str, Any]:
    body = {"trajectory_ids": ["verl-tool-call"], "actions": [action], "extra_fields": [{}], "is_last_step": [True]}
    try:
        async with httpx.AsyncClient(timeout=LIMIT_SECONDS, trust_env=False) as client:
            response = await client.post(address, json=body)
        answer = response.json()
    except httpx.HTTPError as fault:
        raise ToolServerError(
            f"tool server {address}: {fault or type(fault).__name__}; start it, or correct --url"
        ) from fault
    except ValueError as fault:
        raise ToolServerError(f"tool server {address}: the answer is no JSON; another service listens there") from fault
    if response.status_code != httpx.codes.OK or not isinstance(answer, dict) or not answer.get("observations"):
        raise ToolServerError(f"tool server {address}: answered {response.status_code}: {response.text[:200]}")
    return answer


@contextlib.asynccontextmanager
async def _server(url: str | None, tools: Sequence[str], files: Sequence[str]) -> AsyncIterator[str]:
    if url is not None:
        yield url
        return
    wanted = ToolServer.model_validate({"tools": [*tools], "files": [*files]})
    with tempfile.TemporaryDirectory(prefix="verl-tool-") as scratch:
        folder = Path(scratch)
        async with local_server(
            wanted, manifest=Path.cwd(), log=folder / "tool-server.log", scratch=folder, on_restart=warn
        ) as (address, _):
            yield address
