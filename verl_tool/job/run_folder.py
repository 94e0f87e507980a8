"""The folder of one run: what lies where. Nothing is read or written here."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths in a run's folder."""

    root: Path

    @property
    def job(self) -> Path:
        """The manifest, as it was given."""
        return self.root / "job.yaml"

    @property
    def config(self) -> Path:
        """verl's tree as the run uses it."""
        return self.root / "config.yaml"

    @property
    def state(self) -> Path:
        """What a resumed run has to know of the one before."""
        return self.root / "run.json"

    @property
    def metrics(self) -> Path:
        """One `{"step", "data"}` a line, of the attempt under way; those before it are `metrics.1.jsonl`, …"""
        return self.root / "metrics.jsonl"

    @property
    def earlier_metrics(self) -> list[Path]:
        """The metrics of attempts that a resumed run went on from, the oldest first."""
        numbered = [
            (int(number), file)
            for file in self.root.glob("metrics.*.jsonl")
            if (number := file.name.split(".")[1]).isdigit()
        ]
        return [file for _, file in sorted(numbered)]

    @property
    def train_trajectories(self) -> Path:
        """`<step>.jsonl`, a trajectory a line."""
        return self.root / "trajectories" / "train"

    @property
    def validation_trajectories(self) -> Path:
        """`<step>.jsonl`, a trajectory a line."""
        return self.root / "trajectories" / "validation"

    @property
    def checkpoints(self) -> Path:
        """`global_step_<n>` folders."""
        return self.root / "checkpoints"

    @property
    def logs(self) -> Path:
        """`trainer.log`, `tool-server.log`, `prepare.log`."""
        return self.root / "logs"

    @property
    def report(self) -> Path:
        """The page for people."""
        return self.root / "report.html"
