"""The locks: one version a package over all of them, hashed, without addresses, and as pyproject.toml asks."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.unit.house.repository import ROOT

REQUIREMENTS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = tuple(PROJECT["optional-dependencies"])
LOCKS = [*EXTRAS, "build", "uv"]


def pins(lock: Path) -> dict[str, str]:
    """Package → version."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def overridden() -> set[str]:
    """Packages for which requirements/overrides.txt decides, whatever others ask."""
    lines = (REQUIREMENTS / "overrides.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(Requirement(line).name) for line in lines if line and not line.startswith("#")}


def test_every_extra_has_a_lock_and_no_lock_is_left_over() -> None:
    locks = {path.stem for path in REQUIREMENTS.glob("*.txt")} - {"all", "overrides", "excludes"}
    assert locks == set(LOCKS)


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_lock_is_a_part_of_the_one_resolution(extra: str) -> None:
    everything = pins(REQUIREMENTS / "all.txt")
    found = pins(REQUIREMENTS / f"{extra}.txt")
    assert {name: version for name, version in found.items() if everything.get(name) != version} == {}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_lock_holds_what_pyproject_asks_for(extra: str) -> None:
    found = pins(REQUIREMENTS / f"{extra}.txt")
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]:
        wanted = Requirement(line)
        name = canonicalize_name(wanted.name)
        assert name in found, f"{name} is not in requirements/{extra}.txt; run: make lock"
        if name not in overridden():
            assert wanted.specifier.contains(found[name], prereleases=True), f"{name}: run: make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_a_hash_and_no_address(lock: str) -> None:
    text = (REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8")
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert entries
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"^-.*|\S+://\S+|@ \S+", text, re.MULTILINE) == []
