"""What a package of the project says of itself: one version, extras that resolve, licences of all that it needs."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from app import __version__
from app.base.paths import resources

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NOT_FOR_USERS = {"test", "check"}


def name_of(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower()


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    module = ast.parse((ROOT / "app" / "__init__.py").read_text(encoding="utf-8"))
    given = [node for node in module.body if isinstance(node, ast.Assign) and ast.unparse(node) == (
        f"__version__ = {__version__!r}")]  # fmt: skip
    assert len(given) == 1


def test_all_brings_every_extra_that_comes_in_wheels() -> None:
    (everything,) = EXTRAS["all"]
    brought = set(re.findall(r"[\w-]+", everything.partition("[")[2]))
    assert name_of(everything) == "wattridge"
    assert brought == set(EXTRAS) - NOT_FOR_USERS - {"all", "pycuda", "cuda13"}  # cuda13 is cuda of another release


def test_the_licence_of_every_package_that_is_installed_is_listed() -> None:
    page = (resources() / "guide" / "installing.md").read_text(encoding="utf-8")
    listed = page.partition("## Licences")[2].lower()
    requirements = [*PROJECT["dependencies"]]
    requirements += [need for extra, needs in EXTRAS.items() if extra not in NOT_FOR_USERS | {"all"} for need in needs]
    for requirement in requirements:
        assert name_of(requirement).removesuffix("-cu12") in listed


@pytest.mark.parametrize(
    "script", sorted((resources() / "packaging" / "debian").glob("p*")), ids=lambda path: path.name
)
def test_maintainer_scripts_are_posix_shell(script: Path) -> None:
    subprocess.run(["sh", "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -e\n" in text
