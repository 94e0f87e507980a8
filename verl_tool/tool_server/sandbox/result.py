"""How a run ended and what it printed."""

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """Why a run is over."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIME_LIMIT = "time_limit"
    CPU_LIMIT = "cpu_limit"
    MEMORY_LIMIT = "memory_limit"
    PROCESS_LIMIT = "process_limit"
    CANCELLED = "cancelled"
    FAILED = "failed"  # the sandbox's fault, not the snippet's

    @property
    def by_limit(self) -> bool:
        return self.value.endswith("_limit")


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Output is bytes: what a snippet prints need not be UTF-8."""

    ending: Ending
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_dropped: int = 0  # bytes past the output limit
    stderr_dropped: int = 0
    exit_code: int = 0
    signal: int = 0
    seconds: float = 0.0
    reason: str = ""  # only with FAILED
