"""The entry in the desktop's menu: its icons are there, and it is put in and taken out without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from app.paths import resources

SIZES = (16, 32, 48, 64, 128, 256)


def test_icons_have_the_size_that_they_say() -> None:
    for size in SIZES:
        icon = QImage(str(resources() / "icons" / f"wattridge-{size}.png"))
        assert (icon.width(), icon.height()) == (size, size)
        assert len({icon.pixel(x, y) for x in range(size) for y in range(0, size, 4)}) > 3, "something is on it"


@pytest.mark.skipif(sys.platform == "win32", reason="a desktop entry is of Linux")
def test_the_entry_is_put_in_and_taken_out(tmp_path: Path) -> None:
    program = tmp_path / "my tools" / "wattridge"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    data = tmp_path / "share"
    script = resources() / "desktop" / "install.sh"
    environment = {**os.environ, "XDG_DATA_HOME": str(data), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", str(script)], env=environment, check=True, capture_output=True, timeout=20)
    entry = data / "applications" / "wattridge.desktop"
    read = ConfigParser(interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(entry)
    assert read["Desktop Entry"]["Exec"] == f'"{program}"'
    assert read["Desktop Action demo"]["Exec"] == f'"{program}" demo'
    assert {f"{size}x{size}" for size in SIZES} < {p.name for p in (data / "icons" / "hicolor").iterdir()}
    validate = shutil.which("desktop-file-validate")
    if validate is not None:
        subprocess.run([validate, str(entry)], check=True, timeout=20)
    subprocess.run(["sh", str(script), "--remove"], env=environment, check=True, capture_output=True, timeout=20)
    assert [path for path in data.rglob("*") if path.is_file() and path.name.startswith("wattridge")] == []


@pytest.mark.skipif(sys.platform == "win32", reason="a desktop entry is of Linux")
def test_without_the_program_it_says_so(tmp_path: Path) -> None:
    script = resources() / "desktop" / "install.sh"
    environment = {"XDG_DATA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    if shutil.which("wattridge", path=environment["PATH"]) is not None:
        pytest.skip("it is installed for everybody here")
    done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 1
    assert "not on the PATH" in done.stderr
    assert list(tmp_path.iterdir()) == []
