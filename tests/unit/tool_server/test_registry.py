"""Names, paths and settings of tools, and what is said about wrong ones."""

from pathlib import Path

import pytest

from verl_tool.errors import ConfigError
from verl_tool.tool_server.tools import TOOLS
from verl_tool.tool_server.tools.python_code import PythonCode
from verl_tool.tool_server.tools.registry import build_tools, parse_settings


@pytest.fixture
def tool_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(
        "from verl_tool.tool_server.tools.base import Outcome, Tool\n"
        "class Mine(Tool[str]):\n"
        "    name = 'mine'\n"
        "    def parse_action(self, text): return None\n"
        "    async def conduct_action(self, trajectory_id, action, extra_field): return Outcome('')\n"
        "class Double(Mine):\n    name = 'finish'\n"
        "class Nameless(Tool[str]): pass\n"
        "class NotATool: pass\n"
    )
    return path


async def test_finish_is_always_among_the_tools_and_order_is_kept(tool_file: Path) -> None:
    tools = build_tools(["python_code"], [f"{tool_file}:Mine"])
    assert [tool.name for tool in tools] == ["python_code", "mine", "finish"]


def test_every_tool_is_listed_by_its_own_name() -> None:
    assert all(kind.name == name for name, kind in TOOLS.items())


@pytest.mark.parametrize(
    ("names", "own", "said"),
    [
        (["pythoncode"], "", "did you mean 'python_code'"),
        (["zzz"], "", "there are finish, python_code"),
        ([], "Minne", "did you mean 'Mine'"),
        ([], "NotATool", "no subclass"),
        ([], "Nameless", "no `name`"),
        (["finish"], "Double", "two tools have the name 'finish'"),
    ],
)
def test_a_wrong_tool_is_named(names: list[str], own: str, said: str, tool_file: Path) -> None:
    """T15"""
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        build_tools(names, [f"{tool_file}:{own}"] if own else [])


def test_a_file_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    """T15"""
    (tmp_path / "broken.py").write_text("import no_such_module_at_all")
    with pytest.raises(ConfigError, match=r"broken\.py.*no_such_module_at_all"):
        build_tools([], [f"{tmp_path / 'broken.py'}:X"])


async def test_settings_reach_their_tool() -> None:
    tool = build_tools(
        ["python_code"], settings=parse_settings(["python_code.seconds=3", "python_code.preload=[numpy]"])
    )[0]
    assert isinstance(tool, PythonCode)
    assert tool.sandbox.limits.seconds == 3
    assert "numpy" in tool.sandbox.preload


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("python_code.secnods=3", "did you mean 'seconds'"),
        ("python_code.seconds=0", "python_code.seconds=0"),
        ("python_cod.seconds=1", "python_cod"),
        ("seconds=1", "TOOL.NAME=VALUE"),
        ("python_code.seconds", "TOOL.NAME=VALUE"),
        ("python_code.preload=[", "not YAML"),
    ],
)
def test_a_wrong_setting_is_named(assignment: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build_tools(["python_code"], settings=parse_settings([assignment]))
