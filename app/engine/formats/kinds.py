"""What a file is that holds no session, and which command reads it: the remedy where it was given to another one."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError
from ...files import text_chunks
from .dmon import is_dmon
from .gpu_benches import is_gpu_benches

_TRACE = '"wattridge-recording"'  # in the first line of a recording of a board's channels
_LOOKED_AT = 65536  # characters


def is_trace(path: Path) -> bool:
    """Whether the file is a recording of a board's channels, as `monitor --record` writes it. Raises InputError."""
    return _TRACE in _head(path).split("\n", 1)[0]


def refused_trace(path: Path) -> InputError:
    """What to say of a recording of channels where a session is needed."""
    what = "this is a recording of a board's readings over time: it holds no configurations"
    return InputError(what, str(path), f"watch it with wattridge monitor --gpu recorded:{path}, or pass it to fit")


def refused_gpu_benches(path: Path) -> InputError:
    """What to say of the text of gpu-benches where no roofline is asked for."""
    return InputError("this is a roofline sweep of gpu-benches", str(path), "pass it to wattridge roofline")


def _head(path: Path) -> str:
    return next(text_chunks(path), "")[:_LOOKED_AT].lstrip()


def other_kind(path: Path, *, tables: bool = True) -> InputError | None:
    """What to say of a file that is known but holds no session; None where it is not known. Raises InputError.

    Without `tables`, tables of clocks and powers are not among the known ones.
    """
    where = str(path)
    if is_trace(path):
        return refused_trace(path)
    head = _head(path)
    if is_gpu_benches(head):
        return refused_gpu_benches(path)
    first = head.split("\n", 1)[0].lower()
    if is_dmon(head) or ("power.draw" in first and "," in first):
        what = "this is a log of nvidia-smi: readings over time, without configurations"
        return InputError(what, where, "wattridge fit reads the plateaus of locked clocks in such a log")
    if tables and ("clock" in first or "freq" in first) and any(sign in first for sign in ",;\t"):
        what = "this is a table with clocks, not a session that this program wrote"
        return InputError(what, where, "wattridge fit reads tables of clocks and powers")
    return None
