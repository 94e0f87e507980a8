"""What the documents say is so: links resolve, commands exist, YAML and Python in them work."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.unit.house.repository import ROOT, Block, blocks, documents, make_targets, relative

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LANGUAGES = {"bash", "mermaid", "python", "yaml", "text"}
OUR_MODULES = ("verl_tool.", "verl_cpu_platform.")


def test_readme_names_the_two_commands_and_both_are_make_targets() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"\nmake {target}\n" in text
        assert target in make_targets()


def test_ci_runs_the_readme_s_test_command() -> None:
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_make_help_lists_every_target() -> None:
    described = set(re.findall(r"^([a-z-]+):.*## \S", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert described == make_targets()


@pytest.mark.parametrize("document", documents(), ids=relative)
def test_every_relative_link_resolves(document: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", document.read_text(encoding="utf-8"))
    targets = [link.partition("#")[0] for link in LINK.findall(prose)]
    local = [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_every_fenced_block_says_its_language() -> None:
    assert [(relative(block.document), block.text) for block in blocks() if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("block", blocks("bash"), ids=lambda block: relative(block.document))
def test_every_command_names_what_exists(block: Block) -> None:
    lines = block.text.replace("\\\n", " ").splitlines()
    commands = [words for words in (shlex.split(line, comments=True) for line in lines) if words]
    assert [fault for words in commands if (fault := _fault(words))] == []


def test_every_yaml_block_is_yaml_and_every_manifest_is_valid() -> None:
    for block in blocks("yaml"):
        found = yaml.safe_load(block.text)
        assert isinstance(found, dict), relative(block.document)
        if found.get("kind") == "TrainingJob":
            from verl_tool.job.model import TrainingJob

            TrainingJob.model_validate(found)


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: relative(block.document))
async def test_a_tool_in_a_document_is_taken_by_the_server_and_runs(block: Block, tmp_path: Path) -> None:
    from verl_tool.tool_server.tools.registry import build_tools

    file = tmp_path / "from_document.py"
    file.write_text(block.text, encoding="utf-8")
    names = re.findall(r"^class (\w+)\(Tool\b", block.text, re.MULTILINE)
    assert names, f"{relative(block.document)}: a Python block that is no tool needs a test of its own"
    tool = build_tools([], [f"{file}:{names[0]}"])[0]
    action = tool.parse_action(f"I say <{tool.name}>hello</{tool.name}>")
    assert action == "hello"
    assert (await tool.conduct_action("t", action, {})).observation == "HELLO"
    assert tool.parse_action("nothing for it") is None


def _fault(words: list[str]) -> str | None:
    """What a documented command names that is not there."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    program, arguments = words[0], words[1:]
    # What lies in runs/ is there once a run has been made.
    files = [word for word in arguments if "/" in word and not word.startswith(("-", "http", "<", "runs/"))]
    if missing := [word for word in files if "=" not in word and not (ROOT / word).exists()]:
        return f"{' '.join(words)}: there is no {missing[0]}"
    if program == "make":
        targets = [word for word in arguments if "=" not in word]
        return next((f"there is no target {word}" for word in targets if word not in make_targets()), None)
    if program == ".venv/bin/verl-tool":
        from tests.unit.house.commands import subcommands

        return None if arguments[0] in subcommands() else f"verl-tool has no command {arguments[0]}"
    if "-m" in arguments:
        module = arguments[arguments.index("-m") + 1]
        return None if not module.startswith(OUR_MODULES) or _is_module(module) else f"there is no module {module}"
    return None if program in ("bash", "export", "pip") or (ROOT / program).exists() else f"{program} is not ours"


def _is_module(name: str) -> bool:
    path = name.replace(".", "/")
    roots = [ROOT, *ROOT.glob("plugins/*/src")]
    return any((root / f"{path}.py").is_file() or (root / path / "__main__.py").is_file() for root in roots)
