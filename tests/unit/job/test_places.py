"""Where relative paths point."""

from pathlib import Path

import pytest

from tests.unit.job.builders import a_job
from verl_tool.job.places import Places, missing


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(manifest=tmp_path / "job", volume=tmp_path / "volume")
    found.manifest.mkdir()
    found.volume.mkdir()
    return found


def test_the_volume_is_looked_at_first_then_the_folder_of_the_manifest(places: Places) -> None:
    (places.manifest / "train.parquet").touch()
    assert places.find("train.parquet") == places.manifest / "train.parquet"
    (places.volume / "train.parquet").touch()
    assert places.find("train.parquet") == places.volume / "train.parquet"


def test_a_name_of_the_hub_stays_one_unless_there_is_such_a_folder(places: Places) -> None:
    assert places.model("org/model") == "org/model"
    (places.manifest / "org" / "model").mkdir(parents=True)
    assert places.model("org/model") == str(places.manifest / "org" / "model")


def test_everything_that_is_missing_is_named_with_the_places_looked_at(places: Places) -> None:
    (places.volume / "train.parquet").touch()
    faults = missing(a_job(), places)
    assert [fault.split(":")[0] for fault in faults] == ["spec.data.validation[0]", "spec.model.path"]
    assert str(places.volume / "model") in faults[1]
    assert str(places.manifest / "model") in faults[1]
