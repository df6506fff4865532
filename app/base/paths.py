"""Where the program's own resources and the user's data are, and who may read the latter: the user alone."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from .configuration import setting
from .errors import InputError, WattridgeError

_PACKAGE = Path(__file__).resolve().parents[1]
VARIABLE: Final = "WATTRIDGE_DATA"
PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
# What the program keeps in the data folder. Only these are made private where the folder holds other things too.
_FOLDERS: Final = (
    *(
        "exports",
        "logs",
        "cubins",
        "cuda-headers",
        "characterisations",
        "boards",
        "checks",
        "drafts",
        "energy-models",
        "operators",
        "pool",
        "profiles",
        "recording-now",
        "timelines",
        "wattridge-running",
    ),
)
_FILES: Final = ("wattridge.sqlite", "profiles.json", "device-log.jsonl", "window.ini")
_tightened: set[Path] = set()


def resources() -> Path:
    """The folder with twins, kernels, examples and recordings: inside the wheel, or beside `app` in a checkout."""
    installed = _PACKAGE / "resources"
    return installed if installed.is_dir() else _PACKAGE.parent / "resources"


def example_profile() -> Path | None:
    """The profile of a program that comes along."""
    return next(iter(sorted((resources() / "profiles").glob("*.wprofile"))), None)


def data_folder() -> Path:
    """The user's data folder (sessions, characterisations), which may not be there yet. `WATTRIDGE_DATA` overrides it,
    else `data` in the configuration file.

    Raises InputError if that names a file, or where it is not set and there is no home folder.
    """
    override = setting(VARIABLE)
    if override:
        folder = Path(os.path.expanduser(override))
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise InputError("this is not a folder", f"{VARIABLE}={override}", "name a folder, or unset it")
        return folder
    from platformdirs import user_data_path  # imported late: the window's first frame does not need it

    folder = user_data_path("wattridge", appauthor=False)
    if not folder.is_absolute():
        raise InputError("there is no home folder", "HOME", f"set HOME, or {VARIABLE} to a folder for sessions")
    return folder


def private_folder(*parts: str) -> Path:
    """The data folder, or a folder in it, made where missing; only the user can read it.

    Raises WattridgeError if it cannot be made.
    """
    top = data_folder()
    try:
        os.makedirs(top.parent, exist_ok=True)
        _make(top)
        if top not in _tightened:
            _tighten(top)
            _tightened.add(top)
        folder = top
        for part in parts:
            folder = folder / part
            _make(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = f"{VARIABLE} names another folder"
        raise WattridgeError(f"the data folder cannot be made: {reason}", str(top), remedy) from None
    return folder


def is_private(path: Path) -> bool:
    """Whether a file of that path is kept in the data folder."""
    with suppress(WattridgeError, OSError, ValueError):
        top = os.path.realpath(data_folder())
        return os.path.commonpath([top, os.path.realpath(path)]) == top
    return False


def make_folder(path: Path) -> None:
    """Make a folder and those above it; private ones where it lies in the data folder. Raises OSError."""
    if is_private(path):
        parts = Path(os.path.realpath(path)).relative_to(os.path.realpath(data_folder())).parts
        try:
            private_folder(*parts)
        except WattridgeError as error:
            raise OSError(error.what) from error
    else:
        path.mkdir(parents=True, exist_ok=True)


def open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file of the data folder, made for the user alone whatever the umask; binary modes. Raises OSError."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, PRIVATE_FILE))


# --- inside -----------------------------------------------------------------------------------------------------------


def _make(folder: Path) -> None:
    with suppress(FileExistsError):
        os.mkdir(folder, PRIVATE_FOLDER)
        return
    if not os.path.isdir(folder):
        raise NotADirectoryError(20, "there is a file in its place", str(folder))


def _tighten(top: Path) -> None:
    """Make what earlier versions kept here private; nothing of anyone else's, nothing beyond a link."""
    if os.name != "posix":
        return
    with suppress(OSError):
        entries = list(os.scandir(top))
        for entry in entries:
            if entry.name in _FOLDERS and entry.is_dir(follow_symlinks=False) and _is_open(entry):
                for folder, folders, files in os.walk(entry.path, topdown=False):
                    for name in (*files, *folders):
                        _close(os.path.join(folder, name))
                _close(entry.path)
            elif entry.name.startswith(_FILES) and entry.is_file(follow_symlinks=False) and _is_open(entry):
                _close(entry.path)
        if all(entry.name in _FOLDERS or entry.name.startswith(_FILES) for entry in entries):
            _close(top)


def _is_open(entry: os.DirEntry[str]) -> bool:
    return bool(entry.stat(follow_symlinks=False).st_mode & 0o077)


def _close(path: str | Path) -> None:
    """Take every right from all but the owner."""
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            os.chmod(path, stat.S_IMODE(mode) & 0o700)
