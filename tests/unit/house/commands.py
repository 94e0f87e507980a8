"""What the command line has."""

from typer.main import get_command

from verl_tool.cli.main import app


def subcommands() -> set[str]:
    """The names of verl-tool's commands."""
    return set(getattr(get_command(app), "commands", {}))
