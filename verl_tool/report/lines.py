"""JSON lines of a file that may still be written to, or was cut off in the middle of a line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_LINE = 8 * 1024 * 1024  # bytes; a longer one is left out unread


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that is not what its file holds, left out."""

    file: str
    line: int


def raw_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Number and bytes of each line that is not blank; None for one that is too long. Nothing for a missing file."""
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                yield number, None
            elif line.strip():
                yield number, line


def json_object(line: bytes | None) -> dict[str, Any] | None:
    """The line's object, None where it is something else."""
    if line is None:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
