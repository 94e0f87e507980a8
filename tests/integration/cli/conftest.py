"""Jobs for the command line, one model for them all."""

from pathlib import Path

import pytest

from tests.integration.cli.jobs import Folder, make_folder, make_tiny_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Folder:
    return make_folder(tmp_path, model)
