"""docs/reference is what the code says, and the parts written by hand leave nothing out."""

import subprocess
import sys

from tests.unit.house.repository import ROOT
from verl_tool.llm_agent.trajectory import FinishReason


def test_the_generated_pages_are_those_that_are_committed() -> None:
    command = [sys.executable, "scripts/docs.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_the_architecture_tells_every_reason_why_a_trajectory_ends() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `") and line.count("|") == 4}
    missing = [reason for reason in FinishReason if reason.value not in rows]
    assert missing == []
    failed = {reason.value for reason in FinishReason if rows[reason.value].rstrip("| ").endswith("no")}
    assert failed == {reason.value for reason in FinishReason if reason.failed}


def test_the_documentation_s_contents_list_every_page() -> None:
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"]
    assert [page.name for page in pages if f"({page.relative_to(ROOT / 'docs')})" not in contents] == []
