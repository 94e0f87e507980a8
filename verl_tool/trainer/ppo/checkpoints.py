"""Which checkpoints are whole. verl saves the parts of one in turn; a run can end between any two of them.

verl resumes from the step named in `latest_checkpointed_iteration.txt`, which it writes last, but in place: a run that
ends in that moment leaves it empty. Each whole checkpoint is marked in its own folder, and the file is put right before
a resume.
"""

import os
import shutil
from pathlib import Path

TRACKER = "latest_checkpointed_iteration.txt"
WHOLE = "whole"
LOADER = "data.pt"  # where the data loader stands
_PREFIX = "global_step_"


def folder_of(root: str | Path, step: int) -> Path:
    """Where verl puts the step's checkpoint."""
    return Path(root) / f"{_PREFIX}{step}"


def mark_whole(root: str | Path, step: int) -> None:
    """To be called when every part of the step's checkpoint has been written."""
    _write(folder_of(root, step) / WHOLE, f"{step}\n")


def remove_shells(root: str | Path) -> None:
    """Removes what is left of checkpoints that verl no longer keeps: it deletes their weights alone."""
    for marker in Path(root).glob(f"{_PREFIX}*/{WHOLE}"):
        if not (marker.parent / "actor").exists():
            shutil.rmtree(marker.parent, ignore_errors=True)


def newest_whole(root: str | Path) -> int | None:
    """The step of the newest checkpoint marked as whole."""
    steps = [
        int(number)
        for marker in Path(root).glob(f"{_PREFIX}*/{WHOLE}")
        if (number := marker.parent.name.removeprefix(_PREFIX)).isdigit()
    ]
    return max(steps, default=None)


def repair_tracker(root: str | Path) -> int | None:
    """Makes verl's file name the newest whole checkpoint, and gives its step. Leaves a folder without marks alone."""
    step = newest_whole(root)
    if step is not None and _read(Path(root) / TRACKER) != str(step):
        _write(Path(root) / TRACKER, str(step))
    return step


def _read(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _write(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(text)
    os.replace(unfinished, path)
