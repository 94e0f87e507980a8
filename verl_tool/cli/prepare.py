"""`spec.prepare`: makes the job's data or model on its volume, once."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_tool.cli.child import Child
from verl_tool.cli.state import write_text
from verl_tool.errors import RunError
from verl_tool.job.model import TrainingJob
from verl_tool.job.places import Places

MARKER = ".prepared.json"
VOLUME_VARIABLE = "VERL_TOOL_VOLUME"
MOST_CODE = 4 << 20  # bytes of a file that count as the command's code


def is_prepared(job: TrainingJob, places: Places) -> bool:
    """Whether nothing is to be done: no command, or this very command with this very code has been through."""
    if job.spec.prepare is None:
        return True
    try:
        return bool(json.loads((places.volume / MARKER).read_text(encoding="utf-8")) == _made_from(job, places))
    except (OSError, ValueError):
        return False


async def prepare(job: TrainingJob, places: Places, log: Path) -> None:
    """Runs the command in the manifest's folder. Raises RunError when it fails or takes too long."""
    assert job.spec.prepare is not None
    words, limit = list(job.spec.prepare.command), job.spec.prepare.timeout_seconds
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    (places.volume / MARKER).unlink(missing_ok=True)
    environment = {**os.environ, **job.environment(), VOLUME_VARIABLE: str(places.volume)}
    child = await Child.start("prepare", words, log=log, environment=environment, folder=places.manifest)
    try:
        code = await asyncio.wait_for(child.wait(), limit)
    except TimeoutError:
        raise RunError(f"spec.prepare: not done after timeoutSeconds, {limit} s; raise that, or see {log}") from None
    finally:
        await child.stop()
    if code:
        raise RunError(f"spec.prepare: {child.failure(code)}")
    write_text(places.volume / MARKER, json.dumps(_made_from(job, places), indent=2) + "\n")


def _made_from(job: TrainingJob, places: Places) -> Mapping[str, Any]:
    """The command, the job's variables, and the Python files beside the manifest: what decides what it makes."""
    assert job.spec.prepare is not None
    code = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(places.manifest.glob("*.py"))
        if path.is_file() and path.stat().st_size <= MOST_CODE
    }
    return {"command": list(job.spec.prepare.command), "environment": job.environment(), "code": code}
