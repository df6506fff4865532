"""The command that adds an optional part, by the way in which Wattridge was installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.base import errors, installation, processes, text
from app.base.installation import Way, how_to_add, how_to_add_package, how_to_repair, own_program, own_way, way_of

ROOT = Path(__file__).resolve().parents[2]
_NOTHING_IS_ADDED = (Way.DEBIAN, Way.FOLDER)


def test_each_way_is_known_by_what_it_leaves_beside_the_program(tmp_path: Path) -> None:
    for name, file, written in (
        ("by pipx", "pipx_metadata.json", "{}"),
        ("by uv tool", "uv-receipt.toml", "[tool]\n"),
        ("by uv", "pyvenv.cfg", "home = /usr/bin\nuv = 0.9.1\n"),
        ("by venv", "pyvenv.cfg", "home = /usr/bin\nprompt = uv = no\n"),
        ("nothing", "other", ""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(written)
    site = tmp_path / "nothing"
    found = [way_of(tmp_path / name, None, site) for name in ("by pipx", "by uv tool", "by uv", "by venv", "nothing")]
    assert found == [Way.PIPX, Way.UV_TOOL, Way.UV, Way.PIP, Way.PIP]
    assert way_of(site, Path("/usr/lib/wattridge-program/_internal"), site) is Way.DEBIAN
    assert way_of(site, tmp_path / "usr/lib/wattridge-program/_internal", site) is Way.FOLDER
    assert way_of(site, None, ROOT) is Way.CHECKOUT


def test_a_frozen_program_knows_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, way in (("/usr/lib/wattridge-program/_internal", Way.DEBIAN), ("/opt/wattridge/_internal", Way.FOLDER)):
        monkeypatch.setattr(sys, "frozen", True, raising=False)
        monkeypatch.setattr(sys, "_MEIPASS", folder, raising=False)
        own_way.cache_clear()
        assert own_way() is way
    monkeypatch.undo()
    own_way.cache_clear()
    assert not processes.is_frozen()


def test_an_appimage_is_called_by_its_file_and_not_by_where_it_is_mounted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounted, image = tmp_path / ".mount_x", str(tmp_path / "wattridge.AppImage")
    monkeypatch.setattr(sys, "executable", str(mounted / "program" / "wattridge"))
    monkeypatch.setenv("APPIMAGE", image)
    monkeypatch.setenv("APPDIR", str(mounted))
    assert own_program(Way.FOLDER) == image
    assert own_program(Way.DEBIAN) == "wattridge"
    monkeypatch.setattr(sys, "executable", "/opt/wattridge/wattridge")  # started by an AppImage, and none itself
    assert own_program(Way.FOLDER) == "/opt/wattridge/wattridge"


@pytest.mark.parametrize("way", Way)
def test_no_command_is_given_that_adds_nothing_to_this_copy(way: Way) -> None:
    said = (how_to_add("pool", way), how_to_add_package("pyarrow", way), how_to_repair("scipy", way))
    assert "[pool]'" in said[0]
    assert "pyarrow" in said[1]
    pip = re.compile(r"(?<!uv )\bpip install")
    assert [bool(pip.search(each)) for each in said] == [way in (Way.PIP, Way.CHECKOUT)] * 3
    assert [("nothing can be added to this" in each) for each in said[:2]] == [way in _NOTHING_IS_ADDED] * 2


def test_what_debian_has_a_package_for_is_added_by_apt() -> None:
    assert how_to_add("cuda", Way.DEBIAN) == "sudo apt install ./wattridge-cuda_*.deb"
    assert "[cuda]'" in how_to_add("cuda", Way.FOLDER)


def test_every_remedy_comes_from_there() -> None:
    """A `pip install` in a message of its own would be wrong in a folder, and where pipx or uv installed."""
    command = re.compile(r"^(?!\s*#).*[\"'].*\b(pip|pipx|uv) (tool )?(install|inject)\b", re.MULTILINE)
    others = {Path(installation.__file__), ROOT / "app/sensors/remote/address.py"}  # this one is of another machine
    files = [path for path in (ROOT / "app").rglob("*.py") if path not in others]
    assert len(files) > 500
    assert [path.name for path in files if command.search(path.read_text(encoding="utf-8"))] == []


def test_an_environment_by_pip_is_told_pips_command(tmp_path: Path) -> None:
    """A copy of what it needs under the name of the installed package, in a process of its own."""
    package = tmp_path / "wattridge" / "base"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    for module in (errors, installation, processes, text):
        source = Path(str(module.__file__))
        (package / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.prefix = {str(tmp_path)!r}; "
    code += "from wattridge.base.installation import how_to_add; print(how_to_add('pool'))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pip install 'wattridge[pool]'\n"
