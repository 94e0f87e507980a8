"""A run's folder, read once into values. A folder that is half written, or empty, is a run all the same."""

from dataclasses import dataclass

from verl_tool.job.run_folder import RunFolder
from verl_tool.report.facts import Facts, read_facts
from verl_tool.report.history import History, read_history
from verl_tool.report.trajectories import Batch, read_first_and_last


@dataclass(frozen=True, slots=True)
class Run:
    """All that the page is made from."""

    facts: Facts
    history: History
    training: tuple[Batch, ...]  # the first and the last step's, or one, or none
    validation: tuple[Batch, ...]

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Training and validation."""
        return self.training + self.validation


def read_run(folder: RunFolder) -> Run:
    """Reads the folder; raises nothing for what is missing or malformed in it."""
    return Run(
        facts=read_facts(folder),
        history=read_history([*folder.earlier_metrics, folder.metrics]),
        training=tuple(read_first_and_last(folder.train_trajectories, "training")),
        validation=tuple(read_first_and_last(folder.validation_trajectories, "validation")),
    )
