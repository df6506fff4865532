"""A release is cut by one script, from one place of addresses; workflows, forms and recipes are of that project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # of Dask

from app import __version__
from app.base.paths import resources
from app.cli import _COMMANDS

sys.path.insert(0, str(resources() / "packaging"))

import about_project
import recipes
import release

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a cut changes, in a folder of its own."""
    for name in ("CHANGELOG.md", "CITATION.cff", "app/__init__.py", str(release._METAINFO)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_cut_gives_what_is_unreleased_the_version_and_the_date_wherever_a_version_stands(checkout: Path) -> None:
    before = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    release.cut(checkout, "98.7.6", "2026-12-01")
    log = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    assert log.replace("\n## [98.7.6] - 2026-12-01\n", "") == before
    assert re.search(r"## \[Unreleased\]\n\n## \[98\.7\.6\] - 2026-12-01\n", log)
    assert '__version__ = "98.7.6"' in (checkout / "app/__init__.py").read_text(encoding="utf-8")
    citation = yaml.safe_load((checkout / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["date-released"]) == ("98.7.6", "2026-12-01")
    metainfo = (checkout / release._METAINFO).read_text(encoding="utf-8")
    assert '<releases>\n    <release version="98.7.6" date="2026-12-01"/>' in metainfo
    with pytest.raises(SystemExit, match="nothing is unreleased"):
        release.cut(checkout, "98.7.7", "2026-12-02")


def test_a_version_is_released_once(checkout: Path) -> None:
    release.cut(checkout, "98.7.6", "2026-12-01")
    log = checkout / "CHANGELOG.md"
    log.write_text(log.read_text().replace("[Unreleased]\n", "[Unreleased]\n- more\n"), encoding="utf-8")
    with pytest.raises(SystemExit, match="released before"):
        release.cut(checkout, "98.7.6", "2026-12-02")


@pytest.mark.parametrize("words", [["1.2"], ["v1.2.3"], ["1.2.3; rm x"], ["99.0.0"], ["99.0.0", "--artefacts"]])
def test_no_release_of_what_is_no_version_or_while_addresses_are_placeholders(words: list[str], tmp_path: Path) -> None:
    if re.fullmatch(r"[\d.]+", words[0]) and len(words[0]) > 4 and not about_project.left_to_fill_in():
        pytest.skip("the addresses are filled in")
    more = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    script = ROOT / "resources/packaging/release.py"
    done = subprocess.run([sys.executable, script, *words, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search("no version|nothing was changed", done.stderr)


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__ == about_project.version()
    assert (citation["cff-version"], citation["license"]) == ("1.2.0", PROJECT["license"])
    assert {"message", "title", "authors"} <= set(citation)


def test_the_long_description_leads_to_files_by_whole_addresses() -> None:
    text = about_project.with_addresses((ROOT / "README.md").read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)]+)\)|(?:src|href)=\"([^\"]+)\"", text)
    relative = [link for pair in targets for link in pair if link and not re.match(r"https?://|#|mailto:", link)]
    assert targets
    assert relative == []
    assert "![" not in text or f"/raw/v{__version__}/resources/" in text
    assert about_project.with_addresses("[a](b.md#c) ![d](e/f.png) [g](#h) [i](https://x.org)") == (
        f"[a]({about_project.address('b.md')}#c) ![d]({about_project.address('e/f.png', 'raw')}) [g](#h) [i](https://x.org)"
    )


def test_addresses_stand_in_one_place() -> None:
    own = about_project.URLS["Repository"].removeprefix("https://")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False
    ).stdout.split("\n")
    names = [name for name in listed if name and (ROOT / name).is_file()] if listed != [""] else []
    if not names:
        pytest.skip("this is no checkout")
    holding = [name for name in names if own.encode() in (ROOT / name).read_bytes()]
    assert holding == ["pyproject.toml"]


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            yield from ((path.name, step) for step in [job, *job.get("steps", [])])


def test_every_action_is_pinned_to_a_commit_and_no_run_step_holds_an_expression() -> None:
    assert len(WORKFLOWS) == 4
    used = [(name, step["uses"]) for name, step in steps() if "uses" in step]
    foreign = [(name, action) for name, action in used if not action.startswith("./")]
    assert len(foreign) > 10
    assert [each for each in foreign if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each[1])] == []
    one = {
        action.partition("@")[0]: {a for _, a in foreign if a.startswith(action.partition("@")[0] + "@")}
        for _, action in foreign
    }
    assert [name for name, pins in one.items() if len(pins) > 1] == []
    assert [name for name, step in steps() if "${{" in str(step.get("run", ""))] == []


def test_what_workflows_run_is_there() -> None:
    said = "\n".join(str(step.get("run", "")) for _, step in steps())
    scripts = set(re.findall(r"(?:resources|tests)/[\w/.-]+\.(?:py|sh)", said)) - {
        "resources/site/build.py"
    }  # of the site
    assert {"resources/packaging/release.py", "resources/packaging/try_artefact.sh"} <= scripts
    assert [name for name in scripts if not (ROOT / name).is_file()] == []
    commands = set(re.findall(r"^ *wattridge ([a-z][\w-]*)", said, re.MULTILINE))
    assert commands
    assert commands <= set(_COMMANDS)


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_an_issue_form_is_one_and_asks_for_the_bundle(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    names = [part["id"] for part in form["body"]]
    assert len(names) == len(set(names)) > 0
    for part in form["body"]:
        assert part["type"] in ("textarea", "input", "dropdown", "checkboxes", "markdown")
        assert part["attributes"]["label"]
        assert part["type"] != "dropdown" or part["attributes"]["options"]
    assert path.stem == "idea" or "`wattridge doctor --bundle`" in path.read_text(encoding="utf-8")


def test_recipes_are_filled_in_and_need_what_the_project_needs(tmp_path: Path) -> None:
    recipes.write("98.7.6", "ab" * 32, tmp_path)
    conda = (tmp_path / "conda/recipe.yaml").read_text(encoding="utf-8")
    aur = (tmp_path / "aur/PKGBUILD").read_text(encoding="utf-8")
    flatpak = yaml.safe_load((tmp_path / "flatpak/org.wattridge.Wattridge.yml").read_text(encoding="utf-8"))
    for text in (conda, aur, str(flatpak)):
        assert not re.search(r"@[A-Z0-9]+@", text)
        assert "98.7.6" in text
        assert "ab" * 32 in text
    recipe = yaml.safe_load(conda)
    needs = {re.split(r"[\s<>=]", each, maxsplit=1)[0] for each in recipe["requirements"]["run"]} - {"python"}
    assert len(needs) == len(PROJECT["dependencies"])
    assert {"numpy", "pyside6"} < needs
    assert len(re.findall(r"^  \S+\)?$", aur.partition("makedepends")[0], re.MULTILINE)) == len(needs)
    bash = shutil.which("bash")
    if bash is not None:
        subprocess.run([bash, "-n", tmp_path / "aur/PKGBUILD"], check=True)


@pytest.mark.parametrize("script", sorted((resources() / "packaging").glob("*.sh")), ids=lambda path: path.name)
def test_scripts_of_the_shell_can_be_parsed(script: Path) -> None:
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("no sh")
    subprocess.run([shell, "-n", script], check=True)
