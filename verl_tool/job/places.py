"""Where the paths of a manifest point: a relative one to the job's volume, else to the manifest's own folder."""

import re
from dataclasses import dataclass
from pathlib import Path

from verl_tool.job.model import TrainingJob

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that a job's relative paths are looked for in."""

    manifest: Path  # the folder of the manifest
    volume: Path  # what `prepare` fills; may not exist yet

    def find(self, path: str) -> Path | None:
        """The file or folder that a path of the manifest means, None if there is none."""
        return next((place for place in self.candidates(path) if place.exists()), None)

    def candidates(self, path: str) -> list[Path]:
        """The places that are looked at, in order."""
        given = Path(path).expanduser()
        if given.is_absolute():
            return [given]
        return [(folder / given).absolute() for folder in (self.volume, self.manifest)]

    def beside(self, path: str) -> Path:
        """A path that can only be beside the manifest: code, not data."""
        return (self.manifest / Path(path).expanduser()).absolute()

    def resolve(self, path: str) -> str:
        """The path for the trainer: what was found, else where `prepare` would have put it."""
        return str(self.find(path) or self.candidates(path)[0])

    def model(self, path: str) -> str:
        """The same for a model, which may be one of the hub's."""
        if self.find(path) is None and _HUB_NAME.fullmatch(path):
            return path
        return self.resolve(path)


def missing(job: TrainingJob, places: Places) -> list[str]:
    """What the manifest names and is not there, as `path: what, where it was looked for`."""
    spec = job.spec
    named = [
        *((f"spec.data.train[{index}]", path) for index, path in enumerate(spec.data.train)),
        *((f"spec.data.validation[{index}]", path) for index, path in enumerate(spec.data.validation)),
    ]
    faults = [_not_found(where, path, places) for where, path in named if places.find(path) is None]
    model = spec.model.path
    if places.find(model) is None and places.model(model) != model:
        faults.append(_not_found("spec.model.path", model, places) + ", and it is no name of the hub's")
    return faults


def _not_found(where: str, path: str, places: Places) -> str:
    return f"{where}: there is no {path!r}; looked for {' and '.join(map(str, places.candidates(path)))}"
