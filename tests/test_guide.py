"""The user guide and the README: their commands are commands, and their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.base.paths import resources
from app.cli import _COMMANDS, make_parser, split_program
from app.engine.session.load import load_specification

ROOT = Path(__file__).resolve().parents[1]
GUIDE = resources() / "guide"
PAGES = [*sorted(GUIDE.glob("*.md")), ROOT / "README.md"]
_FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_REDIRECTION = re.compile(r"\s(?:2?>|\|)\s?.*$")


def commands(text: str) -> list[str]:
    """Every whole command of the fenced blocks, without what a shell does with its output."""
    lines = [line.strip() for block in _FENCED.findall(text) for line in block.splitlines()]
    return [
        _REDIRECTION.sub("", line.removeprefix(".venv/bin/"))
        for line in lines
        if line.removeprefix(".venv/bin/").startswith("wattridge ")
    ]


def mentioned(text: str) -> set[str]:
    """The commands that are named within the text."""
    spans = [span.removeprefix(".venv/bin/") for span in _SPAN.findall(_FENCED.sub("", text))]
    return {words[1] for words in map(str.split, spans) if words[:1] == ["wattridge"] and len(words) > 1}


def anchors(page: Path) -> set[str]:
    """The names of a page's headings in links, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_guide_is_there() -> None:
    assert len(PAGES) >= 10
    assert sum(len(commands(page.read_text(encoding="utf-8"))) for page in PAGES) >= 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_understood(page: Path) -> None:
    refused = []
    for line in commands(page.read_text(encoding="utf-8")):
        words, _ = split_program(shlex.split(line, comments=True)[1:])
        try:
            make_parser().parse_args(words)
        except InputError as error:
            refused.append(f"{line}: {error}")
    assert not refused, "\n".join(refused)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_named_exists(page: Path) -> None:
    unknown = []
    for word in sorted(mentioned(page.read_text(encoding="utf-8"))):
        if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-"):
            try:
                make_parser().parse_args([word, "--help"])
            except SystemExit:  # its help was printed
                continue
            except InputError:
                unknown.append(word)
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        if "://" in name:
            continue
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken, broken


def test_every_command_has_a_line_on_the_page_of_commands() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (GUIDE / "commands.md").read_text(encoding="utf-8").partition("## ")[0], re.M)
    listed = {words.split()[0] for row in rows for words in _SPAN.findall(row)} - {"wattridge"}
    assert {name for name in listed if not name.startswith("-")} == set(_COMMANDS)


def test_every_simulated_board_is_listed_in_first_steps() -> None:
    (row,) = re.findall(r"^\| `simulated:a100` \|.*$", (GUIDE / "first-steps.md").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"`(\w+)`", row)) == {path.stem for path in (resources() / "twins").glob("*.toml")}


def test_every_environment_variable_that_is_read_has_a_line() -> None:
    own = {"WATTRIDGE_UNSAFE_HELPER_FROM_CHECKOUT"}  # of this project's tests alone
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    read = set(re.findall(r"\"(WATTRIDGE_[A-Z_]+)\"", code)) - own
    read |= set(re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"", code))
    internal = {"APPIMAGE", "APPDIR", "SUDO_UID", "PKEXEC_UID", "PATH", "PYOPENCL_NO_CACHE", "PYTHONSAFEPATH"}
    internal |= {"TRITON_CACHE_DIR"}  # of a process of its own, which sets it itself
    page = set(_SPAN.findall((GUIDE / "environment.md").read_text(encoding="utf-8")))
    assert {name for name in read if name.startswith("WATTRIDGE_")}, "the pattern finds them"
    assert read - internal <= page


def test_every_work_that_is_cited_is_in_the_references() -> None:
    known = set(re.findall(r"^\*\*\[(\w+)\]\*\*", (GUIDE / "references.md").read_text(encoding="utf-8"), re.MULTILINE))
    pages = [*PAGES, *(ROOT / "app" / "engine").rglob("README.md")]
    cited = {key for page in pages for key in re.findall(r"\[([A-Z][a-z]+\d{4})\b", page.read_text(encoding="utf-8"))}
    assert len(cited) >= 10
    assert cited <= known


def test_the_specifications_of_the_guide_can_be_opened(tmp_path: Path) -> None:
    text = (GUIDE / "specification.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    (tmp_path / "kernels").mkdir()
    shutil.copy(resources() / "kernels" / "gemm.cu", tmp_path / "kernels")
    (tmp_path / "examples").mkdir()
    opened = []
    for number, block in enumerate(blocks):
        path = tmp_path / "examples" / f"{number}.toml"
        path.write_text(block, encoding="utf-8")
        opened.append(load_specification(path))
    kernel, operator, opencl, generated, command, measured_alone, service = opened
    assert kernel.strategy == "auto"
    assert operator.parameters["block_m"] == (64, 128)
    assert [each.kernel.language for each in (kernel, opencl, generated) if each.kernel] == ["CUDA", "OpenCL", "C"]
    assert generated.kernel is not None
    assert generated.kernel.generator
    assert list(command.parameters) == ["n", "mode"]
    assert (measured_alone.max_evaluations, len(measured_alone.starts)) == (1, 1)
    assert service.service is not None
    assert service.service.arguments(tuple(service.parameters)) == ("max_num_seqs",)
    assert [str(limit) for limit in service.limits] == ["ttft_p95_s <= 0.5"]
