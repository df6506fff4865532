"""`wattridge install-desktop`: the program in this user's desktop menu, with its icon and the files that it opens."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..base.errors import WattridgeError
from ..base.installation import own_file
from ..base.paths import resources
from ..base.processes import is_frozen
from .terminal import print_json, show

_ENTRIES: Final = ("wattridge.desktop", "wattridge-open.desktop")
_SIZES: Final = (16, 32, 48, 64, 128, 256)
_RESERVED: Final = str.maketrans({"\\": r"\\\\", '"': r"\\" + '"', "`": r"\\`", "$": r"\\$", "%": "%%"})
_UPDATE_S: Final = 60.0


def install_desktop_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge install-desktop`."""
    parser.add_argument("--remove", action="store_true", help="take it out of the menu again")


def install_desktop(arguments: Namespace) -> int:
    """Write the entry, the icons and the file types for this user, or remove them.

    Raises WattridgeError if the program's own command is not found, OSError if nothing can be written.
    """
    if not sys.platform.startswith("linux"):
        raise WattridgeError("desktop entries are of Linux", "install-desktop", "pin the program to the menu by hand")
    data = _data_home()
    files = _files(data, "" if arguments.remove else _exec_word(_own_command()))
    for path, content in files.items():
        if arguments.remove:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    _update("update-desktop-database", data / "applications")
    _update("update-mime-database", data / "mime")
    if arguments.remove:
        _tidy(data, files)
    if arguments.json:
        print_json({"files": [str(path) for path in files], "removed": bool(arguments.remove)})
    elif arguments.remove:
        show("Wattridge is no longer in the menu.")
    else:
        show(f"Wattridge is in the menu: {data / 'applications' / _ENTRIES[0]}")
        show("To take it out again, before you uninstall it: wattridge install-desktop --remove")
    return 0


# --- inside -----------------------------------------------------------------------------------------------------------


def _data_home() -> Path:
    """The folder of this user's data, as the XDG base directory specification has it."""
    named = os.environ.get("XDG_DATA_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"


def _files(data: Path, command: str) -> dict[Path, bytes]:
    """What is installed, by where it lies."""
    source, icons = resources() / "desktop", data / "icons" / "hicolor"
    files = {}
    for name in _ENTRIES:
        text = (source / name).read_text(encoding="utf-8")
        files[data / "applications" / name] = text.replace("Exec=wattridge", f"Exec={command}").encode()
    files[data / "mime" / "packages" / "wattridge.xml"] = (source / "wattridge.xml").read_bytes()
    pictures = resources() / "icons"
    files[icons / "scalable" / "apps" / "wattridge.svg"] = (pictures / "wattridge.svg").read_bytes()
    for size in _SIZES:
        picture = (pictures / f"wattridge-{size}.png").read_bytes()
        files[icons / f"{size}x{size}" / "apps" / "wattridge.png"] = picture
    return files


def _tidy(data: Path, files: Iterable[Path]) -> None:
    """Remove the folders that are empty now, and the databases that were made of nothing but our files."""
    if not any((data / "mime" / "packages").glob("*")):
        shutil.rmtree(data / "mime", ignore_errors=True)  # all else in it is made from what lies in `packages`
    if not any((data / "applications").glob("*.desktop")):
        (data / "applications" / "mimeinfo.cache").unlink(missing_ok=True)
    for path in files:
        for folder in path.parents:
            if folder == data:
                break
            with suppress(OSError):  # something else lies in it
                folder.rmdir()


def _own_command() -> str:
    """The full path of the command: a desktop does not know an environment's PATH. Raises WattridgeError."""
    if is_frozen():
        return own_file()
    called = Path(os.path.abspath(sys.argv[0]))
    if called.name == "wattridge" and os.access(called, os.X_OK):
        return str(called)
    beside = Path(sys.prefix) / "bin" / "wattridge"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("wattridge")
    if found is None:
        raise WattridgeError(
            "the command wattridge is not installed", "install-desktop", "install the package first, with pipx or pip"
        )
    return os.path.abspath(found)


def _exec_word(command: str) -> str:
    """A path as the key Exec has it: in quotes, with what is reserved there escaped."""
    return f'"{command.translate(_RESERVED)}"'


def _update(program: str, folder: Path) -> None:
    """Have the desktop notice it, where its own program for that is here."""
    path = shutil.which(program)
    if path is not None and folder.is_dir():
        subprocess.run(
            [path, str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_UPDATE_S,
            check=False,
        )
