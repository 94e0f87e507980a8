"""`run.json`: when a run began and ended, and how; for the report and for a resume."""

import json
import os
import time
from enum import StrEnum
from typing import Any

from verl_tool.errors import RunError
from verl_tool.job.run_folder import RunFolder


class Outcome(StrEnum):
    """How a run ended, or that it has not."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


def read_state(folder: RunFolder) -> dict[str, Any]:
    """What was written last, {} when there is nothing."""
    try:
        state = json.loads(folder.state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(folder: RunFolder, outcome: Outcome, *, steps: int | None = None, error: str | None = None) -> None:
    """Adds to what is known of the run; the start's time is kept."""
    state = {"started": time.time(), **read_state(folder), "outcome": outcome.value, "error": error}
    state["ended"] = None if outcome is Outcome.RUNNING else time.time()
    if steps is not None:
        state["steps"] = steps
    write_text(folder.state, json.dumps(state, indent=2) + "\n")


def write_text(path: os.PathLike[str], text: str) -> None:
    """Whole or not at all. Raises RunError, for instance on a full disk."""
    unfinished = f"{os.fspath(path)}.part"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, path)
    except OSError as fault:
        raise RunError(f"{os.fspath(path)}: cannot be written: {fault.strerror}") from fault
