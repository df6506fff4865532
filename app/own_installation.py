"""How this copy of Wattridge was installed, and the command that adds an optional part to it or repairs it.

pip adds nothing to a program that was frozen into a folder, and is not the way where pipx, uv or apt installed it.
"""

from __future__ import annotations

import os
import sys
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

from .own_modules import frozen_folder, is_frozen

DISTRIBUTION: Final = "wattridge"
_OF_DEBIAN: Final = Path("/usr/lib/wattridge-program")  # where `resources/packaging/debian.py` puts the folder
_NONE_ADDED: Final = "nothing can be added to this {copy}: {do} installs a Wattridge that has it"


class Way(Enum):
    """Who put this copy where it is."""

    DEBIAN = "package of the system"
    FOLDER = "folder"  # that runs anywhere
    PIPX = "pipx"
    UV_TOOL = "uv tool"
    UV = "uv"  # an environment without pip
    PIP = "pip"
    CHECKOUT = "checkout"


@cache
def own_way() -> Way:
    """Recognised by what each way leaves beside the program."""
    return way_of(Path(sys.prefix), frozen_folder() or Path() if is_frozen() else None, Path(__file__).parents[1])


def way_of(environment: Path, folder: Path | None, root: Path) -> Way:
    """Of an environment; `folder` is that of a frozen program, `root` the one that holds the package."""
    if folder is not None:
        return Way.DEBIAN if _OF_DEBIAN in (folder, *folder.parents) else Way.FOLDER
    if (environment / "pipx_metadata.json").is_file():
        return Way.PIPX
    if (environment / "uv-receipt.toml").is_file():
        return Way.UV_TOOL
    if (root / "pyproject.toml").is_file() and Path(__file__).parent.name == "app":
        return Way.CHECKOUT
    try:
        made_by = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Way.PIP
    return Way.UV if any(line.startswith("uv ") for line in made_by.splitlines()) else Way.PIP


def own_program(way: Way | None = None) -> str:
    """The command that calls this copy, from anywhere: a folder that runs anywhere is on no PATH."""
    return own_file() if (way or own_way()) is Way.FOLDER else DISTRIBUTION


def own_file() -> str:
    """The file that starts a frozen program, also later: the folder of an AppImage is gone when it ends."""
    image, mounted = os.environ.get("APPIMAGE", ""), os.environ.get("APPDIR", "")
    is_inside = image and mounted and Path(sys.executable).is_relative_to(os.path.realpath(mounted))
    return image if is_inside else sys.executable


def can_be_imported(way: Way | None = None) -> bool:
    """Whether the Python that the user calls has this package: not where the program has one for itself."""
    return (way or own_way()) not in (Way.DEBIAN, Way.FOLDER, Way.PIPX, Way.UV_TOOL)


def how_to_add(extra: str, way: Way | None = None) -> str:
    """The command that adds an optional part of Wattridge, as `cuda`, to this copy; where none can, what does."""
    way = way or own_way()
    part = f"'{DISTRIBUTION}[{extra}]'"
    match way:
        case Way.DEBIAN | Way.FOLDER:
            return _NONE_ADDED.format(copy=way.value, do=f"pipx install {part}")
        case Way.PIPX:
            return f"pipx install --force {part}"
        case Way.UV_TOOL:
            return f"uv tool install {part}"
        case Way.UV:
            return f"uv pip install {part}"
        case Way.CHECKOUT:
            return f"pip install '.[{extra}]' in the checkout"
        case Way.PIP:
            return f"pip install {part}"


def how_to_add_package(package: str, way: Way | None = None) -> str:
    """The same for a package of the package index that belongs to none of the optional parts."""
    way = way or own_way()
    match way:
        case Way.DEBIAN | Way.FOLDER:
            do = f"pipx install {DISTRIBUTION} && pipx inject {DISTRIBUTION} {package}"
            return _NONE_ADDED.format(copy=way.value, do=do)
        case Way.PIPX:
            return f"pipx inject {DISTRIBUTION} {package}"
        case Way.UV_TOOL:
            return f"uv tool install --with {package} {DISTRIBUTION}"
        case Way.UV:
            return f"uv pip install {package}"
        case Way.CHECKOUT | Way.PIP:
            return f"pip install {package}"


def how_to_repair(package: str, way: Way | None = None) -> str:
    """The command that installs a package again that is here and does not load."""
    way = way or own_way()
    match way:
        case Way.DEBIAN:
            return "install the package of Wattridge again: sudo apt install --reinstall ./wattridge_*.deb"
        case Way.FOLDER:
            return "unpack the archive of Wattridge again"
        case Way.PIPX:
            return f"pipx reinstall {DISTRIBUTION}"
        case Way.UV_TOOL:
            return f"uv tool install --reinstall {DISTRIBUTION}"
        case Way.UV:
            return f"uv pip install --reinstall {package}"
        case Way.CHECKOUT | Way.PIP:
            return f"install it for this Python: pip install --force-reinstall {package}"
