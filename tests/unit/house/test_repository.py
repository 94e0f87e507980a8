"""What goes into git: nothing of one machine, modules that say what they are, packages that tools can see."""

import ast
import os
import re
from pathlib import Path

import pytest

from tests.unit.house.repository import ROOT, files, relative

PACKAGES = ("verl_tool", "operators", "plugins/verl-cpu-platform/src")
SOURCES = files(*(f"{package}/**.py" for package in PACKAGES), "scripts/*.py", "tests/**.py", "benchmarks/**.py")
INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "npm_config_registry", "GOPROXY")


def test_nothing_in_git_names_a_path_of_a_machine_or_a_package_index() -> None:
    homes = "|".join({re.escape(str(ROOT.parent)), re.escape(str(Path.home())), "/(?:root|work)"} - {"/", "/tmp"})
    hosts = [
        re.escape(host) for name in INDEX_VARIABLES for host in re.findall(r"://([^/,]+)", os.environ.get(name, ""))
    ]
    pattern = re.compile("|".join([rf"(?:^|[^\w.])(?:{homes})/", r"https?://\S*/simple\b", *hosts]), re.MULTILINE)
    found = [
        f"{relative(path)}: {match.group()}"
        for path in files()
        if (text := _text(path)) is not None
        for match in pattern.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_opens_with_one_sentence_that_says_what_it_is(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if not source and path.name == "__init__.py" and not path.is_relative_to(ROOT / "verl_tool"):
        return
    docstring = ast.get_docstring(ast.parse(source))
    assert docstring, f"{relative(path)} has no docstring"
    assert docstring.splitlines()[0].rstrip().endswith((".", ":", "?")), docstring.splitlines()[0]


def test_every_folder_of_modules_is_a_package_so_that_the_import_linter_sees_it() -> None:
    folders = {path.parent for path in SOURCES if path.is_relative_to(ROOT / "verl_tool")}
    assert [relative(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [relative(path) for path in SOURCES if path.stem in {"utils", "util", "helpers", "common", "misc"}] == []


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
