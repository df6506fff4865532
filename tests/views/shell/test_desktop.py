"""The entry in the desktop's menu: its icons are there, and it is put in and taken out without a trace."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtGui import QImage

from app.base.paths import resources
from app.cli import main

SIZES = (16, 32, 48, 64, 128, 256)


def test_icons_have_the_size_that_they_say() -> None:
    for size in SIZES:
        icon = QImage(str(resources() / "icons" / f"wattridge-{size}.png"))
        assert (icon.width(), icon.height()) == (size, size)
        assert len({icon.pixel(x, y) for x in range(size) for y in range(0, size, 4)}) > 3, "something is on it"


@pytest.mark.skipif(sys.platform == "win32", reason="a desktop entry is of Linux")
def test_the_entry_is_put_in_and_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my $tools 100%" / "wattridge"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    data = tmp_path / "share"
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert main(["install-desktop"]) == 0
    entries = sorted((data / "applications").glob("*.desktop"))
    assert [path.name for path in entries] == ["wattridge-open.desktop", "wattridge.desktop"]
    escaped = str(program).replace("$", "\\\\$").replace("%", "%%")
    read = ConfigParser(interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(entries[1])
    assert read["Desktop Entry"]["Exec"] == f'"{escaped}"'
    assert read["Desktop Action demo"]["Exec"] == f'"{escaped}" demo'
    assert {f"{size}x{size}" for size in SIZES} < {p.name for p in (data / "icons" / "hicolor").iterdir()}
    assert (data / "mime" / "packages" / "wattridge.xml").is_file()
    validate = shutil.which("desktop-file-validate")
    for entry in entries if validate is not None else []:
        subprocess.run([str(validate), str(entry)], check=True, timeout=20)
    assert main(["install-desktop", "--remove"]) == 0
    assert list(data.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a desktop entry is of Linux")
def test_what_others_put_into_the_desktop_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [sys.executable])
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    theirs = {
        tmp_path / "applications" / "other.desktop": "[Desktop Entry]\nType=Application\nName=Other\nExec=true\n",
        tmp_path / "mime" / "packages" / "other.xml": (resources() / "desktop" / "wattridge.xml").read_text(),
        tmp_path / "icons" / "hicolor" / "16x16" / "apps" / "other.png": "",
    }
    for path, text in theirs.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert main(["install-desktop"]) == main(["install-desktop", "--remove"]) == 0
    assert all(path.is_file() for path in theirs)
    assert not [path for path in tmp_path.rglob("wattridge*") if path.is_file()]


@pytest.mark.skipif(sys.platform == "win32", reason="a desktop entry is of Linux")
def test_without_the_program_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert main(["install-desktop"]) == 1
    assert "is not installed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_the_desktop_reads_names_what_is_there() -> None:
    """The types of files that the entry opens are those that are declared, and the entry is the one that is shown."""
    desktop = resources() / "desktop"
    types = {each.get("type") for each in ElementTree.parse(desktop / "wattridge.xml").getroot()}
    opened = re.findall(r"^MimeType=(.*)$", (desktop / "wattridge-open.desktop").read_text(), re.MULTILINE)[0]
    assert types < set(opened.split(";"))
    about = ElementTree.parse(desktop / "org.wattridge.Wattridge.metainfo.xml").getroot()
    assert {each.text for each in about.findall("provides/mediatype")} == types
    assert (desktop / str(about.findtext("launchable"))).is_file()
