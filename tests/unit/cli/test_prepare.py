"""What makes `prepare` run again."""

from pathlib import Path

import pytest

from tests.unit.job.builders import a_job
from verl_tool.cli.prepare import is_prepared, prepare
from verl_tool.errors import RunError
from verl_tool.job.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(manifest=tmp_path / "job", volume=tmp_path / "volume")
    found.manifest.mkdir()
    found.volume.mkdir()
    (found.manifest / "make.py").write_text(
        "import os, pathlib; pathlib.Path(os.environ['VERL_TOOL_VOLUME'], 'made').write_text('x')"
    )
    return found


async def test_it_runs_once_and_again_when_its_code_or_command_has_changed(places: Places, tmp_path: Path) -> None:
    job = a_job({"spec.prepare": {"command": ["python", "make.py"]}})
    assert not is_prepared(job, places)

    await prepare(job, places, tmp_path / "log")

    assert (places.volume / "made").read_text() == "x"
    assert is_prepared(job, places)
    assert not is_prepared(a_job({"spec.prepare": {"command": ["python", "make.py", "--seed", "1"]}}), places)
    (places.manifest / "make.py").write_text("pass")
    assert not is_prepared(job, places)


async def test_a_command_that_fails_is_told_with_its_own_words_and_is_not_done(places: Places, tmp_path: Path) -> None:
    (places.manifest / "make.py").write_text("import sys; sys.exit('error: no disk')")
    job = a_job({"spec.prepare": {"command": ["python", "make.py"]}})

    with pytest.raises(RunError, match=r"spec\.prepare: no disk"):
        await prepare(job, places, tmp_path / "log")

    assert not is_prepared(job, places)


async def test_a_command_that_takes_too_long_is_ended(places: Places, tmp_path: Path) -> None:
    (places.manifest / "make.py").write_text("import time; time.sleep(60)")
    job = a_job({"spec.prepare": {"command": ["python", "make.py"], "timeoutSeconds": 1}})

    with pytest.raises(RunError, match=r"spec\.prepare: not done after timeoutSeconds, 1 s"):
        await prepare(job, places, tmp_path / "log")
