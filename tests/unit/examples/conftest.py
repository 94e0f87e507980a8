"""The examples' own modules, which import each other by plain names as scripts in one folder do."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
Load = Callable[[str], ModuleType]


def loader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports from `folder`; the next test finds `sys.modules` as it was."""
    monkeypatch.syspath_prepend(str(folder))
    for name in [path.stem for path in folder.glob("*.py")]:
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, name, None)  # so that undoing removes what is imported meanwhile
        del sys.modules[name]
    return importlib.import_module


@pytest.fixture
def calculator(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a module of examples/calculator."""
    return loader(EXAMPLES / "calculator", monkeypatch)


@pytest.fixture
def smollm2(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a module of examples/smollm2."""
    return loader(EXAMPLES / "smollm2", monkeypatch)
