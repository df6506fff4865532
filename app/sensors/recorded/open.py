"""Opening what `recorded:FILE` names: a recording of this program, or a log of another tool, by its content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from ...errors import InputError
from ...files import byte_chunks
from ...input_files import is_input
from .logs.read import Log, read_log
from .recording import Recording, read_recording

_OWN: Final = b'"wattridge-recording"'


def is_own(path: Path) -> bool:
    """Whether a file is a recording of a board's channels as `monitor --record` writes it. Raises InputError."""
    return _OWN in next(byte_chunks(path), b"").lstrip()[:65536].split(b"\n", 1)[0]


def read_any(path: Path, interval_s: float | None = None) -> Log:
    """Every board of a recording or a log. `interval_s` is of a log that does not hold its times. Raises InputError."""
    if path.suffix == ".part" or is_own(path):
        return Log(path, "", (read_recording(path),), ())
    return read_log(path, interval_s)


def open_recorded(selector: str, known: dict[str, Path]) -> Recording:
    """The recording that NAME, FILE, FILE#BOARD or FILE#BOARD@S names. Raises InputError.

    `known` are those that come with the program. Without BOARD the first of a log is taken; S is the time between
    readings, of a log that does not hold it.
    """
    file, board, step, interval_s = selector.strip(), "", "", None
    path = known.get(file) or Path(file).expanduser()
    if not is_input(path) and "#" in file:
        file, _, rest = file.rpartition("#")
        path = known.get(file) or Path(file).expanduser()
        board, _, step = rest.partition("@")
        interval_s = seconds(step, "--gpu") if step else None
    if not is_input(path):
        there = f"recordings here: {', '.join(known)}" if known else "no recording comes with this installation"
        raise InputError(f"there is no recording '{selector.strip()}'", "--gpu", f"{there}; or give the path of a file")
    log = read_any(path, interval_s)
    found = _board_of(log, board) if board else log.boards[0]
    number = found.title.rpartition("#")[2] if "#" in found.title else ""
    behind = f"{number}@{step}" if step else number
    again = file if file in known else str(path.resolve())
    return replace(found, selector=f"{again}#{behind}" if behind else again)


def _board_of(log: Log, board: str) -> Recording:
    """The board of a log of that number or name. Raises InputError."""
    found = [
        each
        for at, each in enumerate(log.boards)
        if board in (each.title.rpartition("#")[2], each.name) or (len(log.boards) == 1 and board == str(at))
    ]
    if not found:
        there = ", ".join(each.title.rpartition("#")[2] for each in log.boards)
        raise InputError(f"the log holds no board '{board[:40]}'", str(log.path), f"its boards: {there}")
    return found[0]


def seconds(text: str, where: str) -> float:
    """A step between readings. Raises InputError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1e-6 <= value <= 86400:
        raise InputError(f"'{text[:40]}' is no time between two readings", where, "a number of seconds, such as 0.1")
    return value
