"""The text that the roofline benchmark of gpu-benches prints: one line per board and intensity."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import InputError

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
        if point is None:
            if _TELLING.search(line):
                raise InputError(f"line {number} is not a whole point of gpu-benches", where, "correct or remove it")
            continue
        for name, cell in point.groupdict().items():
            columns[name].append(cell)
    return columns
