"""`verl-tool report`."""

from pathlib import Path

from verl_tool.errors import ConfigError, RunError
from verl_tool.job.run_folder import RunFolder


def rewrite(folder: Path) -> Path:
    """Writes the report of a run's folder. Raises VerlToolError."""
    from verl_tool.report import write_report

    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder; give that of a run, for example runs/calculator/latest")
    try:
        return write_report(RunFolder(folder))
    except OSError as fault:
        raise RunError(f"{folder}: the report could not be written: {fault.strerror}") from fault
