"""What the site is made of: every public name, command, page and picture; links that lead nowhere are found."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import app
from app.cli import _COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build() -> ModuleType:
    path = ROOT / "resources" / "site" / "build.py"
    if not path.is_file():
        pytest.skip("the site is built from a checkout")
    spec = importlib.util.spec_from_file_location("build_of_the_site", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_command_page_and_picture_is_in_it(build: ModuleType, tmp_path: Path) -> None:
    build.write_sources(tmp_path, app)
    reference = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "reference").glob("*.md"))
    assert all(f":: wattridge.{name}\n" in reference for name in app.__all__)
    assert all(f"\n### wattridge {name}\n" in reference for name in _COMMANDS)
    pages = (tmp_path / "guide" / "index.md").read_text(encoding="utf-8").rpartition(":hidden:")[2].split()
    assert {path.stem for path in (tmp_path / "guide").glob("*.md")} - {"index"} <= set(pages)
    gallery = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    assert all(path.name in gallery for path in (ROOT / "resources" / "screenshots").glob("*.png"))
    evidence = (tmp_path / "guide" / "evidence.md").read_text(encoding="utf-8")
    tables = re.findall(r"\]\(/tables/(\w+\.txt)\)", evidence)
    assert len(tables) > 15
    assert all((tmp_path / "tables" / name).is_file() for name in tables)


def test_each_claim_of_the_evidence_names_a_table_that_is_there() -> None:
    page = (ROOT / "resources" / "guide" / "evidence.md").read_text(encoding="utf-8")
    named = re.findall(r"`tests/benchmarks/(\w+\.txt)`", page)
    assert [name for name in named if not (ROOT / "tests" / "benchmarks" / name).is_file()] == []
    scripts = re.findall(r"`(\w+\.py)", page.partition("## ")[0])
    assert [name for name in scripts if not (ROOT / "tests" / "benchmarks" / name).is_file()] == []


def test_a_link_that_leads_nowhere_is_found(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here"></a><a href="b.html#gone"></a><img src="no.png">')
    (tmp_path / "b.html").write_text('<p id="here"></p><a href="https://example.org/x"></a><a href="#here"></a>')
    assert build.dead_links(tmp_path) == ["a.html: b.html#gone", "a.html: no.png"]


def test_versions_are_listed_the_newest_first_and_the_first_page_leads_there(build: ModuleType, tmp_path: Path) -> None:
    for version in ("0.9.0", "0.10.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").write_text("")
    build._list_versions(tmp_path, "https://example.org/w/")
    listed = json.loads((tmp_path / "switcher.json").read_text(encoding="utf-8"))
    assert [entry["version"] for entry in listed] == ["0.10.0", "0.9.0"]
    assert listed[0]["url"] == "https://example.org/w/0.10.0/"
    assert "0.10.0/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_moving_picture_is_small_and_the_readme_short() -> None:
    assert (ROOT / "resources" / "site" / "tune-simulated.webp").stat().st_size < 3_000_000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130
