"""Reading `action_stop_tokens`: a list, a file's path, or a comma-separated string, matched exactly as written."""

from collections.abc import Sequence
from pathlib import Path

from verl_tool.errors import ConfigError

_KEY = "actor_rollout_ref.agent.action_stop_tokens"


def parse_stop_strings(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """The stop strings, in the order given; spaces inside and around an entry belong to it.

    A string that names an existing file is read as one: comma-separated, a final newline is the file's, not the last
    entry's. Raises ConfigError for an empty entry and for what looks like the path of a file that is not there.
    """
    if value is None or value == "":
        return ()
    if not isinstance(value, str):
        return _without_empty([str(entry) for entry in value], origin="the list")
    if (path := Path(value)).is_file():
        return _without_empty(path.read_text(encoding="utf-8").rstrip("\r\n").split(","), origin=f"the file {value}")
    if value.startswith(("/", "./", "../", "~")) or value.endswith((".txt", ".csv")):
        raise ConfigError(f"{_KEY}: there is no file {value!r}; give an existing file, or the stop strings as a list")
    return _without_empty(value.split(","), origin=f"{value!r}")


def _without_empty(entries: list[str], *, origin: str) -> tuple[str, ...]:
    for position, entry in enumerate(entries, start=1):
        if not entry:
            raise ConfigError(f"{_KEY}: entry {position} of {origin} is empty; remove it, or the comma too many")
    return tuple(dict.fromkeys(entries))
