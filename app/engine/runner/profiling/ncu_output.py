"""What Nsight Compute prints with `--csv`: its messages, and the kernels that it profiled with their metrics.

Both of its pages are read: `details` has a line per metric, `raw` a column per metric and a second line of units. What
the profiled program prints may stand between. Numbers may have separators of thousands, and a comma for the point where
the user's locale has it; which of them it is, the numbers of the whole output tell.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_MESSAGE: Final = re.compile(r"==(PROF|WARNING|ERROR)==\s*(.*)")
_OF_KERNEL: Final = frozenset(  # columns that are no metrics
    {
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
        *("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"),
    }
)
_MOST_LINES: Final = 64  # of one record: the text of a rule has some
_NUMBER: Final = re.compile(r"([+-]?)(\d[\d.,'\u2019 \u00a0\u202f]*|[.,]\d+)([eE][+-]?\d+)?")
_ALWAYS_GROUPS: Final = re.compile("['\u2019 \u00a0\u202f]")
_LARGE: Final = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SMALL: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3}
_TIMES: Final = frozenset({"second", "s", "sec"})
_COUNTED: Final = frozenset(
    {"byte", "hz", "inst", "sector", "cycle", "request", "wavefront", "warp", "thread", "block", "register"}
)


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """One launch of a kernel, as it was profiled."""

    name: str
    block: tuple[int, ...]  # empty where it is not said
    grid: tuple[int, ...]
    metrics: Mapping[str, float]  # in base units: byte, s, Hz and their ratios; unknown ones are left out


@dataclass(slots=True)
class NcuOutput:
    """Launches in the order in which they ran, and what was said besides."""

    launches: list[ProfiledLaunch] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Kernel:
    name: str
    block: tuple[int, ...]
    grid: tuple[int, ...]
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)  # value and unit by metric


def read_ncu(text: str) -> NcuOutput:
    """Everything that can be understood of an output; the rest is passed over."""
    output, lines = NcuOutput(), []
    for line in text.splitlines():
        said = _MESSAGE.match(line.strip())
        if said is None:
            lines.append(line)
        elif said[1] != "PROF":
            (output.errors if said[1] == "ERROR" else output.warnings).append(said[2].strip())
    kernels = _kernels(_records(lines))
    point = decimal_point(value for kernel in kernels for value, _ in kernel.texts.values())
    for kernel in kernels:
        read = {metric: number(value, point) * factor(unit) for metric, (value, unit) in kernel.texts.items()}
        known = {metric: value for metric, value in read.items() if math.isfinite(value)}
        output.launches.append(ProfiledLaunch(kernel.name, kernel.block, kernel.grid, known))
    return output


# --- numbers and units ------------------------------------------------------------------------------------------------


def decimal_point(numbers: Iterable[str]) -> str:
    """'.' or ',': what the numbers of one output show. A point where nothing shows it."""
    votes: Counter[str] = Counter()
    for text in numbers:
        found = _NUMBER.fullmatch(text.strip())
        if found is not None:
            votes.update(_shown_point(_ALWAYS_GROUPS.sub("", found[2])))
    return "," if votes[","] > votes["."] else "."


def _shown_point(digits: str) -> str:
    """Which separator of a number must be its point; empty where it may be either."""
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return ""
    if len(set(marks)) == 2:
        return marks[-1]
    if len(marks) > 1:
        return "." if marks[0] == "," else ","
    before, _, after = digits.partition(marks[0])
    groups = len(after) == 3 and 1 <= len(before) <= 3 and before.strip("0") != ""
    return "" if groups else marks[0]


def number(text: str, point: str = ".") -> float:
    """A number as it is printed; NaN for `n/a`, words and nothing."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return math.nan
    digits = _ALWAYS_GROUPS.sub("", found[2]).replace("," if point == "." else ".", "").replace(point, ".")
    try:
        return float(f"{found[1]}{digits}{found[3] or ''}")
    except ValueError:  # several points
        return math.nan


def factor(unit: str) -> float:
    """From a unit such as Mbyte, usecond or Gbyte/s to its base unit; 1 for per cent, counts and none."""
    above, _, below = unit.strip().partition("/")
    return _factor_of_one(above) / _factor_of_one(below)


def _factor_of_one(unit: str) -> float:
    first, rest = unit[:1], unit[1:]
    if first in _SMALL and rest in _TIMES:
        return _SMALL[first]
    return _LARGE[first] if first in _LARGE and rest.lower() in _COUNTED else 1.0


# --- records ----------------------------------------------------------------------------------------------------------


def _records(lines: Iterable[str]) -> Iterator[list[str]]:
    """Every line as cells; one that opens quotes goes on until they close, unless that takes too long."""
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        whole = "\n".join(waiting)
        unclosed = whole.startswith('"') and whole.count('"') % 2 == 1
        if unclosed and len(waiting) < _MOST_LINES:
            continue
        for part in waiting if unclosed else [whole]:
            yield from _cells(part)
        waiting = []
    for part in waiting:
        yield from _cells(part)


def _cells(text: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader([text] if "\n" not in text else text.splitlines(keepends=True))
    except csv.Error:
        return


def _kernels(records: Iterable[list[str]]) -> list[_Kernel]:
    """The kernels of all tables; a table begins with its header."""
    kernels: list[_Kernel] = []
    header: list[str] = []
    units: dict[str, str] = {}
    known: dict[tuple[str, str], _Kernel] = {}
    last: _Kernel | None = None
    for cells in records:
        if "ID" in cells and "Kernel Name" in cells:
            header, units, known, last = cells, {}, {}, None
            continue
        if not header or len(cells) != len(header):
            continue
        row = dict(zip(header, cells, strict=True))
        if not row["ID"] and "Metric Name" not in row:
            units = row
            continue
        if row["ID"]:
            key = row.get("Process ID", ""), row["ID"]
            if key not in known:
                known[key] = _Kernel(row["Kernel Name"], _sizes(row.get("Block Size")), _sizes(row.get("Grid Size")))
                kernels.append(known[key])
            last = known[key]
        if last is None:
            continue
        if "Metric Name" in row:
            if name := row["Metric Name"]:
                last.texts[name] = row.get("Metric Value", ""), row.get("Metric Unit", "")
        else:
            last.texts |= {name: (row[name], units.get(name, "")) for name in header if name not in _OF_KERNEL}
    return kernels


def _sizes(text: str | None) -> tuple[int, ...]:
    """'(16, 16, 1)' as numbers."""
    return tuple(int(each) for each in re.findall(r"\d+", text or ""))
