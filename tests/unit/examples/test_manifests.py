"""Every example's manifest starts as it stands, on a machine without a GPU and in a cluster."""

from pathlib import Path

import pytest
from verl_cpu_platform import settings

from tests.unit.examples.conftest import EXAMPLES
from verl_tool.job.check import check_launch, read_job
from verl_tool.job.launch import Launch
from verl_tool.job.places import Places
from verl_tool.job.run_folder import RunFolder

MANIFESTS = sorted(EXAMPLES.glob("*/job.yaml"))
PLATFORMS = {"without GPU": settings.overrides(), "with GPUs": []}


def test_each_example_has_a_manifest() -> None:
    folders = {path for path in EXAMPLES.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert {path.parent for path in MANIFESTS} == folders


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_nothing_is_wrong_with_an_example_s_manifest(manifest: Path, platform: str, tmp_path: Path) -> None:
    job, document = read_job(manifest.read_text(encoding="utf-8"))
    places = Places(manifest=manifest.parent, volume=tmp_path / "volume")
    launch = Launch(places, RunFolder(tmp_path / "run"), "http://127.0.0.1:5000", platform=PLATFORMS[platform])

    check_launch(job, launch, document)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_the_files_an_example_s_manifest_names_lie_beside_it(manifest: Path) -> None:
    spec = read_job(manifest.read_text(encoding="utf-8"))[0].spec

    assert spec.prepare is not None and spec.prepare.command[0] == "python"
    assert (manifest.parent / spec.prepare.command[1]).is_file()
    assert spec.reward is not None and spec.reward.file is not None
    assert (manifest.parent / spec.reward.file).is_file()


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_an_example_s_manifest_says_what_a_cluster_needs(manifest: Path) -> None:
    spec = read_job(manifest.read_text(encoding="utf-8"))[0].spec

    assert spec.tool_server is not None and spec.tool_server.service
    assert spec.model_fields_set >= {"workers", "runtime_ref", "checkpoints", "backoff_limit"}
