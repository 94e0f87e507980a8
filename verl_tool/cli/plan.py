"""What can be said of a run before it starts: its settings and files, and how many steps it will have."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_tool.cli.machine import Machine
from verl_tool.errors import DataError, RunError
from verl_tool.job.launch import Launch
from verl_tool.job.model import TrainingJob
from verl_tool.job.places import Places, missing
from verl_tool.job.run_folder import RunFolder

UNKNOWN_URL = "http://127.0.0.1:1"  # of the server that is not up yet, for checks that want one


def read_text(manifest: Path) -> str:
    """The manifest's text. Raises RunError when it cannot be read."""
    try:
        return manifest.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "is not UTF-8 text"
        raise RunError(f"{manifest}: {reason}; give the path of a TrainingJob manifest") from fault


def draft_launch(job: TrainingJob, places: Places, machine: Machine, extra: tuple[str, ...]) -> Launch:
    """The start as far as it is known before there is a folder or a tool server."""
    return Launch(
        places=places,
        folder=RunFolder(Path("/")),
        tool_server_url=UNKNOWN_URL if job.spec.tool_server else None,
        gpus=machine.gpus,
        platform=machine.overrides,
        extra=extra,
    )


def check_files(job: TrainingJob, places: Places, *, prepared: bool = False) -> None:
    """Raises DataError with every missing file, one a line; data and model only where `prepare` is not to make them."""
    if faults := file_faults(job, places, prepared=prepared):
        raise DataError("\n".join(faults))


def file_faults(job: TrainingJob, places: Places, *, prepared: bool = False) -> list[str]:
    """The missing files, each in a sentence."""
    made = prepared or job.spec.prepare is None
    return code_faults(job, places) + (missing(job, places) if made else [])


def code_faults(job: TrainingJob, places: Places) -> list[str]:
    """Files of the job's own code that are not there."""
    named = []
    if job.spec.reward is not None and job.spec.reward.file is not None:
        named.append(("spec.reward.file", job.spec.reward.file))
    if job.spec.tool_server is not None:
        named += [
            (f"spec.toolServer.files[{index}]", file.rpartition(":")[0])
            for index, file in enumerate(job.spec.tool_server.files)
        ]
    return [
        f"{where}: there is no {places.beside(file)}; a relative path is looked for beside the manifest"
        for where, file in named
        if not places.beside(file).is_file()
    ]


def planned_steps(tree: Mapping[str, Any], rows: int) -> int | None:
    """Training steps in all, as verl counts them; None where it depends on how many prompts are filtered out."""
    trainer, data = tree["trainer"], tree["data"]
    if trainer.get("val_only"):
        return 0
    if trainer.get("total_training_steps"):
        return int(trainer["total_training_steps"])
    if data.get("filter_overlong_prompts"):
        return None
    samples = data.get("train_max_samples", -1)
    usable = rows if samples is None or samples < 0 else min(rows, samples)
    batch = data.get("gen_batch_size") or data["train_batch_size"]
    return usable // int(batch) * int(trainer["total_epochs"])
