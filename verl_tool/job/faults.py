"""What is wrong with a manifest: where, what, and what would be right. All faults are told at once."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from verl_tool.errors import ConfigError

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, in a sentence that names the value and the remedy."""

    path: Path
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = dotted(self.path) or "the manifest"
        return f"{where}{f' (line {self.line})' if self.line else ''}: {self.message}"

    def at(self, line: int | None) -> "Fault":
        """The same fault, on a line of the file."""
        return replace(self, line=line)


class Refused(ConfigError):
    """A manifest with faults; its text has one of them a line."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


def dotted(path: Iterable[str | int]) -> str:
    """`("spec", "data", "train", 0)` as `spec.data.train[0]`; a key with a dot in it is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part!r}" if "." in part or not part else f".{part}"
    return text.removeprefix(".")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    names = sorted(known)
    by_letters = {_letters(one): one for one in names}
    if (same := by_letters.get(_letters(name))) is not None:
        return same
    matches = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown(name: str, known: Iterable[str], *, most: int = 12) -> str:
    """The words for a name that is not known: the nearest one, or what there is when it is little."""
    names = sorted(known)
    if (best := nearest(name, names)) is not None:
        return f"unknown; did you mean {best!r}?"
    if 0 < len(names) <= most:
        return f"unknown; there are {', '.join(names)}"
    return "unknown; remove it"


def shown(value: object, most: int = 80) -> str:
    """A value in an error message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _letters(name: str) -> str:
    """What is left when case, dashes and underscores do not count."""
    return "".join(character for character in name.casefold() if character.isalnum())
