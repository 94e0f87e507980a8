"""`verl-tool validate`: every fault at once, or what would run."""

from pathlib import Path

from verl_tool.cli.console import say
from verl_tool.cli.folders import RUNS, volume_of
from verl_tool.cli.machine import this_machine
from verl_tool.cli.plan import draft_launch, file_faults, read_text
from verl_tool.errors import ConfigError
from verl_tool.job.check import check_launch, read_job
from verl_tool.job.faults import Refused
from verl_tool.job.model import TrainingJob
from verl_tool.job.places import Places


def validate(manifest: Path, extra: tuple[str, ...]) -> None:
    """Raises ConfigError with every fault, one a line; otherwise says what a run would do."""
    job, document = read_job(read_text(manifest))
    places = Places(manifest=manifest.absolute().parent, volume=volume_of(RUNS, job.metadata.name))
    machine = this_machine(job.spec.workers.gpus)
    faults = file_faults(job, places)
    try:
        check_launch(job, draft_launch(job, places, machine, extra), document)
    except Refused as refused:
        faults = [*map(str, refused.faults), *faults]
    if faults:
        raise ConfigError("\n".join(faults))
    say(f"[green]{manifest}: valid.[/] {summary(job, machine.name)}")


def summary(job: TrainingJob, machine: str) -> str:
    """The job in a sentence."""
    spec = job.spec
    tools = ", ".join(spec.tool_server.tools) if spec.tool_server else "no tools"
    prepared = " after `prepare`" if spec.prepare else ""
    return f"Would train {spec.model.path} on {', '.join(spec.data.train)}{prepared}, with {tools}, here on {machine}."
