"""The kind of a file, by its beginning, and the error that names the command which reads it.

One kind is read here: the text that the roofline benchmark of gpu-benches prints, one line per board and intensity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ...base.errors import InputError
from ...base.files import text_chunks
from ...base.text import json_or_none
from ...sensors.recorded.columns import is_columns
from ...sensors.recorded.logs.read import is_log

_NUMBER = r"\d+(?:\.\d+)?"
_LINE = re.compile(
    rf"\s*(?P<dev>\d+)\s+(?P<blocks>\d+) blocks\s+(?P<its>\d+) its\s+(?P<intensity>{_NUMBER}) Fl/B"
    rf"\s+(?P<gbs>{_NUMBER}) GB/s\s+(?P<gflops>{_NUMBER}) GF/s\s+(?P<mhz>{_NUMBER}) M[Hh]z\s+(?P<power_w>{_NUMBER}) W\b"
)
_TELLING = re.compile(r"\bits\b.*\bFl/B\b.*\bGF/s")
_LOOKED_AT = 50  # lines, in which the first point must be


def is_gpu_benches(text: str) -> bool:
    """Whether the text is such an output, perhaps with a few lines before it."""
    return any(_LINE.match(line) for line in text.split("\n", _LOOKED_AT)[:_LOOKED_AT])


def gpu_benches_columns(text: str, where: str) -> Mapping[str, list[str]]:
    """Cells by column: dev, blocks, its, intensity (flop/B), gbs, gflops, mhz, power_w. Raises InputError.

    Lines that hold no point are left out; a point that is cut off is an error.
    """
    columns: dict[str, list[str]] = {name: [] for name in _LINE.groupindex}
    for number, line in enumerate(text.splitlines(), 1):
        point = _LINE.match(line)
        if point is None and _TELLING.search(line):
            raise InputError(f"line {number} is not a whole point of gpu-benches", where, "correct or remove it")
        for name, cell in point.groupdict().items() if point is not None else ():
            columns[name].append(cell)
    return columns


_OF_TUNERS = ("cache", "tune_params", "kernel_name", "configuration", "Configuration", "Results", "schema_version")
_OF_A_RESULT = ("times", "compile_time", "ps_energy", "nvml_energy", "ps_power", "nvml_power", "__error__")
_TRACE = '"wattridge-recording"'  # in the first line of a recording of a board's channels
_BEGINNING = 65536  # characters


def first_character(path: Path) -> str:
    """The first character that is no space, of which '{' begins JSON; '' if there is none. Raises InputError."""
    if is_columns(path):
        return "{"
    return next((begun[0] for chunk in text_chunks(path) if (begun := chunk.lstrip())), "")


def is_trace(path: Path) -> bool:
    """Whether the file is a recording of a board's channels, as `monitor --record` writes it. Raises InputError."""
    return is_columns(path) or _TRACE in _beginning(path).split("\n", 1)[0]


def is_program_trace(path: Path) -> bool:
    """Whether the file is a Chrome trace, as PyTorch's profiler writes it. Raises InputError."""
    beginning = _beginning(path)
    return beginning[:1] == "{" and any(f'"{key}"' in beginning for key in ("traceEvents", "deviceProperties"))


def is_json_lines(path: Path) -> bool:
    """Whether each line of a file is a JSON object of its own. Raises InputError if it cannot be read."""
    lines = [line for line in next(text_chunks(path), "").split("\n") if line.strip()]
    return len(lines) > 1 and lines[1].lstrip().startswith("{") and isinstance(json_or_none(lines[0]), dict)


def is_of_a_tuner(path: Path) -> bool:
    """Whether a recording, by its beginning, is of this program or a tuner, and no other JSON. Raises InputError."""
    beginning = _beginning(path)
    timed = '"time"' in beginning and not re.search('"(avg_|mean_)?(energy|power)(_[a-z]+)?"', beginning)
    listed = beginning[:1] == "[" and (timed or any(f'"{key}"' in beginning for key in _OF_A_RESULT))
    return listed or beginning[:1] not in ("{", "[") or any(f'"{key}' in beginning for key in _OF_TUNERS)


def refused_trace(path: Path) -> InputError:
    """The error for a recording of channels where a session is needed."""
    what = "this is a recording of a board's readings over time: it holds no configurations"
    return InputError(what, str(path), f"watch it with wattridge monitor --gpu recorded:{path}, or pass it to fit")


def refused_gpu_benches(path: Path) -> InputError:
    """The error for the text of gpu-benches where no roofline is needed."""
    return InputError("this is a roofline sweep of gpu-benches", str(path), "pass it to wattridge roofline")


def other_kind(path: Path) -> InputError | None:
    """The error for a known file that holds no configurations; None for any other one. Raises InputError."""
    if is_trace(path):
        return refused_trace(path)
    if is_gpu_benches(_beginning(path)):
        return refused_gpu_benches(path)
    what = "this is a log of power over time: it holds no configurations"
    remedy = f"look at it with wattridge analyse {path}; fit reads the plateaus of locked clocks in it"
    return InputError(what, str(path), remedy) if is_log(path) else None


def _beginning(path: Path) -> str:
    return next(text_chunks(path), "")[:_BEGINNING].lstrip()
