"""What a file is, by its beginning, and which command reads it: the remedy where it was given to another one."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import InputError
from ...files import text_chunks
from ...sensors.recorded.logs.read import is_log
from .gpu_benches import is_gpu_benches

_TRACE = '"wattridge-recording"'  # in the first line of a recording of a board's channels
_BEGINNING = 65536  # characters


def first_character(path: Path) -> str:
    """The first character that is no space, of which '{' begins JSON; '' where there is none. Raises InputError."""
    return next((begun[0] for chunk in text_chunks(path) if (begun := chunk.lstrip())), "")


def is_trace(path: Path) -> bool:
    """Whether the file is a recording of a board's channels, as `monitor --record` writes it. Raises InputError."""
    return _TRACE in _beginning(path).split("\n", 1)[0]


def is_json_lines(path: Path) -> bool:
    """Whether each line of a file is a JSON object of its own. Raises InputError where it cannot be read."""
    lines = [line for line in next(text_chunks(path), "").split("\n") if line.strip()]
    return len(lines) > 1 and lines[1].lstrip().startswith("{") and _is_object(lines[0])


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def refused_trace(path: Path) -> InputError:
    """The error for a recording of channels where a session is needed."""
    what = "this is a recording of a board's readings over time: it holds no configurations"
    return InputError(what, str(path), f"watch it with wattridge monitor --gpu recorded:{path}, or pass it to fit")


def refused_gpu_benches(path: Path) -> InputError:
    """The error for the text of gpu-benches where no roofline is needed."""
    return InputError("this is a roofline sweep of gpu-benches", str(path), "pass it to wattridge roofline")


def other_kind(path: Path) -> InputError | None:
    """The error for a known file that holds no configurations; None for any other one. Raises InputError."""
    where = str(path)
    beginning = _beginning(path)
    if is_trace(path):
        return refused_trace(path)
    if is_gpu_benches(beginning):
        return refused_gpu_benches(path)
    if is_log(path):
        what = "this is a log of power over time: it holds no configurations"
        remedy = f"look at it with wattridge analyse {path}; fit reads the plateaus of locked clocks in it"
        return InputError(what, where, remedy)
    return None


def _beginning(path: Path) -> str:
    return next(text_chunks(path), "")[:_BEGINNING].lstrip()
