"""What people read, on stderr; stdout is for data."""

from rich.console import Console
from rich.markup import escape

stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A line; rich's markup in it is used."""
    stderr.print(text)


def error(text: str) -> None:
    """`error: …`, one line for each of the text's."""
    for line in filter(None, map(str.strip, text.splitlines())):
        stderr.print(f"[bold red]error:[/] {escape(line)}")


def warn(text: str) -> None:
    """`warning: …`."""
    stderr.print(f"[yellow]warning:[/] {escape(text)}")
