"""`verl-tool`: the commands and their options."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from verl_tool.cli.console import error
from verl_tool.cli.folders import RUNS
from verl_tool.errors import VerlToolError

app = typer.Typer(
    help="Reinforcement learning of LLMs that call tools: one manifest, one command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Manifest = Annotated[Path, typer.Argument(help="The TrainingJob manifest.", show_default=False)]
Extra = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="One of verl's settings, over the manifest's; may be repeated."),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="Where runs have their folders, RUNS/JOB/NUMBER.")]


@app.command()
def validate(manifest: Manifest, extra: Extra = None) -> None:
    """Say everything that is wrong with a manifest, at once; starts nothing."""
    from verl_tool.cli.validate import validate as validate_manifest

    validate_manifest(manifest, tuple(extra or ()))


@app.command()
def run(
    manifest: Manifest,
    folder: Annotated[Path | None, typer.Option(help="The run's folder, in place of RUNS/JOB/NUMBER.")] = None,
    runs: RunsFolder = RUNS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest run, or with that of --folder.")
    ] = False,
    extra: Extra = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html at the end.")] = True,
) -> None:
    """Train on this machine: prepare, start the tool server and the trainer, follow them, write the report."""
    from verl_tool.cli.run import Options
    from verl_tool.cli.run import run as run_job

    options = Options(runs=runs, folder=folder, resume=resume, extra=tuple(extra or ()), report=report)
    raise typer.Exit(run_job(manifest, options))


@app.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def serve(context: typer.Context) -> None:
    """Run a tool server; `verl-tool serve --help` lists its options."""
    from verl_tool.tool_server.command import main as serve_main

    raise typer.Exit(serve_main(context.args, program="verl-tool serve"))


@app.command()
def call(
    action: Annotated[str, typer.Argument(help="The model's text, for example '<python>print(6 * 7)</python>'.")],
    url: Annotated[str | None, typer.Option(help="A tool server that runs; without it one is started.")] = None,
    tools: Annotated[str, typer.Option(help="Tools of the server that is started.")] = "python_code",
    file: Annotated[
        list[str] | None, typer.Option("--tool", metavar="PATH.py:CLASS", help="A tool of your own.")
    ] = None,
) -> None:
    """Make one tool call and print the observation, as the model would read it."""
    from verl_tool.cli.call import call_once

    raise typer.Exit(call_once(action, url=url, tools=tools.split(","), files=file or []))


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="A run's folder.", show_default=False)]) -> None:
    """Write a run's report anew and print its path."""
    from verl_tool.cli.report import rewrite

    typer.echo(rewrite(folder))


def main() -> None:
    """What the command `verl-tool` calls."""
    try:
        app()
    except VerlToolError as fault:
        error(str(fault))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
