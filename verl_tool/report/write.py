"""Writes the report into the run's folder, whole or not at all."""

import os
import tempfile
from pathlib import Path

from verl_tool.job.run_folder import RunFolder
from verl_tool.report.page import render
from verl_tool.report.run import read_run


def write_report(folder: RunFolder) -> Path:
    """Makes `report.html` from what the folder holds now. Raises OSError when it can't be written."""
    page = render(read_run(folder))
    descriptor, name = tempfile.mkstemp(dir=folder.root, prefix=".report-", suffix=".html")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(page)
        draft.chmod(0o644)
        draft.replace(folder.report)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return folder.report
