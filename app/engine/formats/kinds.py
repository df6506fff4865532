"""What a file is, by its beginning, and which command reads it: the remedy where it was given to another one."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError
from ...files import text_chunks
from .dmon import is_dmon
from .gpu_benches import is_gpu_benches

_TRACE = '"wattridge-recording"'  # in the first line of a recording of a board's channels
_BEGINNING = 65536  # characters


def first_character(path: Path) -> str:
    """The first character that is no space, of which '{' begins JSON; '' where there is none. Raises InputError."""
    return next((begun[0] for chunk in text_chunks(path) if (begun := chunk.lstrip())), "")


def is_trace(path: Path) -> bool:
    """Whether the file is a recording of a board's channels, as `monitor --record` writes it. Raises InputError."""
    return _TRACE in _beginning(path).split("\n", 1)[0]


def refused_trace(path: Path) -> InputError:
    """The error for a recording of channels where a session is needed."""
    what = "this is a recording of a board's readings over time: it holds no configurations"
    return InputError(what, str(path), f"watch it with wattridge monitor --gpu recorded:{path}, or pass it to fit")


def refused_gpu_benches(path: Path) -> InputError:
    """The error for the text of gpu-benches where no roofline is needed."""
    return InputError("this is a roofline sweep of gpu-benches", str(path), "pass it to wattridge roofline")


def other_kind(path: Path, *, tables: bool = True) -> InputError | None:
    """The error for a known file that holds no session; None for an unknown one. Raises InputError.

    Without `tables`, tables of clocks and powers are not among the known ones.
    """
    where = str(path)
    beginning = _beginning(path)
    if is_trace(path):
        return refused_trace(path)
    if is_gpu_benches(beginning):
        return refused_gpu_benches(path)
    first = beginning.split("\n", 1)[0].lower()
    if is_dmon(beginning) or ("power.draw" in first and "," in first):
        what = "this is a log of nvidia-smi: readings over time, without configurations"
        return InputError(what, where, "wattridge fit reads the plateaus of locked clocks in such a log")
    if tables and ("clock" in first or "freq" in first) and any(sign in first for sign in ",;\t"):
        what = "this is a table with clocks, not a session that this program wrote"
        return InputError(what, where, "wattridge fit reads tables of clocks and powers")
    return None


def _beginning(path: Path) -> str:
    return next(text_chunks(path), "")[:_BEGINNING].lstrip()
