"""Which folder a run has: `runs/<job>/<number>`; what `prepare` makes is in `runs/<job>/volume`, for all of them."""

import contextlib
import os
from pathlib import Path

from verl_tool.errors import ConfigError, RunError
from verl_tool.job.run_folder import RunFolder

RUNS = Path("runs")
LATEST = "latest"
VOLUME = "volume"


def volume_of(runs: Path, job: str) -> Path:
    """The job's volume."""
    return (runs / job / VOLUME).absolute()


def new_folder(runs: Path, job: str) -> RunFolder:
    """Makes the folder of the next run, and has `latest` point to it."""
    base = (runs / job).absolute()
    make(base)
    number = max(numbers(base), default=0)
    while True:
        number += 1
        with contextlib.suppress(FileExistsError):  # another run of the job starts at this moment
            make(base / str(number), exist_ok=False)
            break
    link = base / f".{LATEST}.{number}"
    with contextlib.suppress(OSError):  # a file system without links does without
        link.unlink(missing_ok=True)
        link.symlink_to(str(number))
        os.replace(link, base / LATEST)
    return RunFolder(base / str(number))


def given_folder(path: Path, *, resume: bool) -> RunFolder:
    """The folder that was asked for. Raises ConfigError for one that has a run which is not to be resumed."""
    folder = RunFolder(path.absolute())
    if resume and not folder.job.exists():
        raise ConfigError(f"--folder {path}: no run is there to be resumed")
    if not resume and path.exists() and any(path.iterdir()):
        raise ConfigError(f"--folder {path}: is not empty; give another one, or --resume to go on with its run")
    make(folder.root)
    return folder


def newest_folder(runs: Path, job: str) -> RunFolder:
    """The folder of the job's newest run. Raises ConfigError when there is none."""
    base = (runs / job).absolute()
    number = max(numbers(base), default=None)
    if number is None:
        raise ConfigError(f"--resume: there is no run of {job} in {runs / job}; start one without --resume")
    return RunFolder(base / str(number))


def numbers(base: Path) -> list[int]:
    """The runs that a job has had."""
    return [int(entry.name) for entry in base.glob("*") if entry.name.isdigit()] if base.is_dir() else []


def make(path: Path, *, exist_ok: bool = True) -> None:
    """Makes a folder. Raises RunError where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError:
        if exist_ok:
            raise RunError(f"{path}: there is a file of that name; remove it, or give --runs or --folder") from None
        raise
    except OSError as fault:
        raise RunError(f"{path}: cannot be made: {fault.strerror}; give another place with --runs") from fault
