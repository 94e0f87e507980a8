"""Runs a model's Python, each call in a process tree of its own that keeps nothing from one call to the next."""

import os
import signal
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from verl_tool.errors import ToolServerError
from verl_tool.tool_server.sandbox import Ending, Limits, RunResult, Sandbox
from verl_tool.tool_server.sandbox.limits import MIB
from verl_tool.tool_server.sandbox.sandbox import PRELOAD
from verl_tool.tool_server.tools.base import Malformed, Outcome, Tool, ToolSettings
from verl_tool.tool_server.tools.python_forms import PythonCall, parse_python, wrap

TIME_ENDINGS = frozenset({Ending.TIME_LIMIT, Ending.CPU_LIMIT})


class PythonCodeSettings(ToolSettings):
    """Limits of one call."""

    seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="time a call may take; waiting for a core on a busy machine does not count",
    )
    cpu_seconds: float = Field(
        default=10.0, gt=0, le=3600, description="CPU time of all its threads and processes together"
    )
    memory_mib: int = Field(
        default=2048, ge=64, description="memory of its process tree, and address space of each process"
    )
    concurrent_runs: int = Field(
        default_factory=lambda: max(16, 4 * len(os.sched_getaffinity(0))),
        ge=1,
        description="calls that run at once; more wait, without their time running",
    )
    processes: int = Field(default=128, ge=1, description="processes and threads at once")
    open_files: int = Field(default=256, ge=16, description="open files of each process")
    file_mib: int = Field(default=512, ge=1, description="size of any one file it writes")
    output_chars: int = Field(default=100_000, ge=1, description="characters kept of each of stdout and stderr")
    preload: tuple[str, ...] = Field(
        default=(), description="modules imported once beforehand, e.g. numpy, so that a call need not"
    )

    def limits(self) -> Limits:
        return Limits(
            seconds=self.seconds,
            cpu_seconds=self.cpu_seconds,
            memory_bytes=self.memory_mib * MIB,
            processes=self.processes,
            open_files=self.open_files,
            file_bytes=self.file_mib * MIB,
            output_bytes=4 * self.output_chars,  # a character takes up to four bytes
        )


class PythonCode(Tool[PythonCall]):
    """Stateless Python."""

    name = "python_code"
    Settings = PythonCodeSettings

    def __init__(self, settings: PythonCodeSettings) -> None:
        super().__init__(settings)
        self.output_chars = settings.output_chars
        self.sandbox = Sandbox(settings.limits(), runs=settings.concurrent_runs, preload=(*PRELOAD, *settings.preload))

    async def start(self) -> None:
        await self.sandbox.start()

    async def stop(self) -> None:
        await self.sandbox.close()

    def parse_action(self, text: str) -> PythonCall | Malformed | None:
        return parse_python(text)

    async def conduct_action(self, trajectory_id: str, action: PythonCall, extra_field: Mapping[str, Any]) -> Outcome:
        stdin = action.stdin if action.stdin is not None else extra_field.get("stdin")
        if stdin is not None and not isinstance(stdin, str):
            raise ToolServerError(
                f"stdin must be a string, not {type(stdin).__name__}; set extra_fields[…].stdin to text or leave it out"
            )
        result = await self.sandbox.run(action.code, stdin)
        if result.ending is Ending.FAILED:
            raise ToolServerError(result.reason)
        return Outcome(
            wrap(shown(result, self.sandbox.limits, self.output_chars), action.form),
            timed_out=result.ending in TIME_ENDINGS,
        )


def shown(result: RunResult, limits: Limits, output_chars: int) -> str:
    """What the model reads of a run: stdout, stderr, and why it was ended if it did not end by itself."""
    parts = (
        _text(result.stdout, result.stdout_dropped, output_chars),
        _text(result.stderr, result.stderr_dropped, output_chars),
        _note(result, limits),
    )
    return "\n".join(part.strip(" \n") for part in parts if part.strip(" \n"))


def _text(data: bytes, dropped: int, limit: int) -> str:
    text = data.decode("utf-8", "replace")
    if dropped == 0 and len(text) <= limit:
        return text
    kept = text[:limit]
    missing = dropped + len(data) - len(kept.encode())
    return f"{kept}\n[output cut after {limit} characters; {max(missing, 0)} more bytes were dropped]"


def _note(result: RunResult, limits: Limits) -> str:
    match result.ending:
        case Ending.TIME_LIMIT:
            return f"[time limit of {limits.seconds:g} s reached; the run was ended]"
        case Ending.CPU_LIMIT:
            return f"[CPU time limit of {limits.cpu_seconds:g} s reached; the run was ended]"
        case Ending.MEMORY_LIMIT:
            return f"[memory limit of {limits.memory_bytes // MIB} MiB reached; the run was ended]"
        case Ending.PROCESS_LIMIT:
            return f"[limit of {limits.processes} processes and threads reached; the run was ended]"
        case Ending.SIGNALLED:
            return f"[the process was ended by {_signal_name(result.signal)}]"
        case _:
            return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
