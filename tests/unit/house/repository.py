"""The repository as the house tests look at it: its files, its Makefile, its documents."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a document."""

    document: Path
    language: str
    text: str


def files(*patterns: str) -> list[Path]:
    """What git has or would take, by git's patterns; not what was deleted."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=30).stdout
    return [path for path in (ROOT / name for name in names.splitlines()) if path.is_file()]


def documents() -> list[Path]:
    return files("*.md")


def blocks(language: str | None = None) -> list[Block]:
    """The fenced blocks of all documents."""
    return [
        Block(document, found, text)
        for document in documents()
        for found, text in FENCE.findall(document.read_text(encoding="utf-8"))
        if language in (None, found)
    ]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))
