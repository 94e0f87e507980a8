"""What a person is told when a run has ended, well or not; the report is written first."""

from pathlib import Path

from verl_tool.cli.console import error, say, stderr, warn
from verl_tool.cli.state import Outcome
from verl_tool.cli.summary import curve, train_rewards, validations
from verl_tool.job.run_folder import RunFolder
from verl_tool.trainer.ppo.checkpoints import folder_of, newest_whole


def tell_end(folder: RunFolder, outcome: Outcome, reason: str | None, *, manifest_name: str, with_report: bool) -> None:
    """Curve, rewards, report, checkpoint; then the reason of a failure, and how to go on."""
    from verl_tool.report import write_report
    from verl_tool.report.history import read_history

    history = read_history([*folder.earlier_metrics, folder.metrics])
    trained, validated = train_rewards(history), validations(history)
    if trained:
        say("\nmean reward a step")
        for line in curve(trained):
            stderr.print(line, style="cyan", markup=False)
    if validated:
        say("validation reward: " + " → ".join(f"{value:.3f} (step {number})" for number, value in ends(validated)))
    if with_report:
        try:
            say(f"report: {shown(write_report(folder))}")
        except OSError as fault:
            warn(f"the report could not be written: {fault.strerror}")
    checkpoint = newest_checkpoint(folder)
    if checkpoint is not None:
        say(f"checkpoint: {shown(checkpoint)}")
    if reason is not None:
        error(reason)
    if outcome is Outcome.INTERRUPTED:
        how = "go on with --resume" if checkpoint else "there is no checkpoint yet: start anew"
        say(f"{manifest_name} was interrupted; {how}")


def ends(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The first and the last, once if they are one."""
    return points[:1] if len(points) == 1 else [points[0], points[-1]]


def newest_checkpoint(folder: RunFolder) -> Path | None:
    """The newest checkpoint that is whole."""
    step = newest_whole(folder.checkpoints)
    return None if step is None else folder_of(folder.checkpoints, step)


def shown(path: Path) -> str:
    """Relative to where the person is, if it is below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
