"""A CSV file of measurements as named columns: separators, decimal commas, and units in the cells are dealt with."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import cell_text
from ...base.vocabulary import HEADINGS, PATTERNS, UNITS

Floats = npt.NDArray[np.float64]

_QUOTED_AND_PADDED = re.compile(r'"[ \t]+(?=[,;\n]|$)()')  # spaces behind a quoted cell
_SCATTER = re.compile(r"(?<=\d)[ \t]*(?:±|\+/-)[ \t]*[\d.]+(?:e[+-]?\d+)?")  # '30.01 ± 0.03'
_PREAMBLE = 20  # lines that may stand before a header
_SEPARATORS = ",;\t|"
_MAXIMUM_ROWS = 1_000_000
_MAXIMUM_COLUMNS = 1_000
UNKNOWN = HEADINGS["unknown"] | {""}
_SEPARATOR_LINE = re.compile(r"sep=.?")  # which spreadsheets write for themselves
_BRACKETED_UNIT = re.compile(r" \[([^\[\]]{1,8})\]$")
_MEASURED = re.compile(r"[+-]?\d+\.\d{4,}([eE][+-]?\d+)?")  # which is no heading
_DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_THOUSANDS_AND_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+")
_STAMP = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d")
_THOUSANDS_BY_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")


@dataclass(frozen=True, slots=True)
class Columns:
    """Text cells by column, all of the same length."""

    where: str
    cells: Mapping[str, Sequence[str]]
    first_line: int
    _read: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.cells.values())))

    def numbers(self, name: str) -> Floats:
        """A column as numbers, NaN if a cell is empty or marks an unknown value. Raises InputError otherwise."""
        values = self._values(name)
        cells = self.cells[name]
        for index in map(int, np.flatnonzero(np.isnan(values))):
            if cells[index].lower() not in UNKNOWN:
                what = f"column '{name}', line {self.first_line + index}: '{cells[index][:40]}' is not a number"
                raise InputError(what, self.where, "correct the cell, or name another column")
        return values.copy()

    def is_numeric(self, name: str) -> bool:
        """Whether most of the column's known cells are numbers; a single bad cell is for `numbers` to name."""
        values, cells = self._values(name), self.cells[name]
        unknown = np.flatnonzero(np.isnan(values)).tolist()
        return len(cells) - len(unknown) > sum(cells[index].lower() not in UNKNOWN for index in unknown)

    def by_kind(self) -> dict[str, Floats | Sequence[str]]:
        """Each column as numbers, NaN for what is none, or as texts where most cells are none."""
        return {name: self._values(name).copy() if self.is_numeric(name) else self.cells[name] for name in self.cells}

    def _values(self, name: str) -> Floats:
        """A column as numbers, NaN for every other cell."""
        read = self._read.get(name)
        if read is None:
            cells = self.cells[name]
            try:
                if any("_" in cell for cell in cells):  # '2026_01' is a name, though Python reads a number
                    raise ValueError
                read = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
            except ValueError:
                read = np.fromiter(map(_number, cells), dtype=np.float64, count=len(cells))
            self._read[name] = read
        return read


def _header(cells: Sequence[str], where: str) -> list[str]:
    """The names of the columns. Raises InputError if they are not different names."""
    header = [cell_text(name.strip()) for name in cells]
    header = [
        f"{name} {seen + 1}" if (seen := header[:at].count(name)) and name else name for at, name in enumerate(header)
    ]
    if any(header):  # numbers of rows stand in a column without a name
        header = [name or f"column {place}" for place, name in enumerate(header, 1)]
    if len(header) < 2 or len(header) > _MAXIMUM_COLUMNS or len(set(header)) != len(header) or "" in header:
        raise InputError("the first line is not a header of different names", where, "name every column once")
    return header


def parse_columns(text: str, where: str) -> Columns:
    """Read CSV text with a header (comma, semicolon or tab; lines that start with # are skipped). Raises InputError.

    Decimal commas are read, and units in the cells where the header names them as well, as nvidia-smi writes them.
    """
    lines = _spaced(text.splitlines())
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if start is None:
        raise InputError("the file is empty", where, "a header line and rows are needed")
    start, end = _table_in(lines, start + bool(_SEPARATOR_LINE.fullmatch(lines[start].strip())))
    delimiter = max(_SEPARATORS, key=lines[start].count)
    body = without_scatter("\n".join(line for line in lines[start:end] if not line.startswith("#")))
    try:
        reader = csv.reader(io.StringIO(_QUOTED_AND_PADDED.sub(r'"\1', body)), delimiter=delimiter, strict=True)
        first = next(reader)
        headless = _is_headless(first, next(csv.reader(body.splitlines()[1:2], delimiter=delimiter), []))
        header = [f"column {place}" for place in range(1, len(first) + 1)] if headless else _header(first, where)
        rows: list[list[str]] = [first] if headless else []
        for row in reader:
            if _is_none(row, first, headless=headless):
                continue
            if len(row) != len(header):
                what = f"line {start + reader.line_num} has {len(row)} cells, the header {len(header)}"
                remedy = "quote cells that hold the separator" if len(row) > len(header) else "the file may be cut off"
                raise InputError(what, where, remedy)
            if len(rows) >= _MAXIMUM_ROWS:
                raise InputError(f"more than {_MAXIMUM_ROWS} rows", where, "split the file")
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"not a CSV file: {error}", where, "a header line and rows are needed") from None
    header, units = _with_units_below(header, rows)
    if not rows[units:]:
        raise InputError("the file holds a header but no row", where, "add measurements")
    stripped = [[cell_text(cell.strip()) for cell in column] for column in zip(*rows[units:], strict=True)]
    columns = [_without_units(name, cells) for name, cells in zip(header, stripped, strict=True)]
    if any("," in cell for column in columns for cell in column[:1000]):
        columns = _with_decimal_points(_without_thousands(columns), delimiter, where)
    return Columns(where, dict(zip(header, columns, strict=True)), start + 2 - headless + units)


def without_scatter(text: str) -> str:
    """The text without '± 0.03' behind numbers."""
    return _SCATTER.sub("", text) if "±" in text or "+/-" in text else text


def _spaced(lines: list[str]) -> list[str]:
    """Columns between spaces as ones between tabs, below a line of names that may begin with #; else as they are."""
    texts = [line.strip() for line in lines if re.search(r"\w", line) and not line.startswith("#")]
    rows = [text.split() for text in texts]
    if texts and len({*map(len, rows)}) > 1:  # names of several words are two spaces apart
        apart = [re.split(r"\s{2,}", text) for text in texts]
        rows = apart if len({*map(len, apart)}) == 1 else [apart[0], *rows[1:]]
    if not rows or len(rows[0]) < 2 or any(sign in line for line in lines if line[:1] != "#" for sign in _SEPARATORS):
        return lines
    above = [names for line in lines if line.startswith("#") and len(names := line[1:].split()) == len(rows[0])]
    table = rows if not any(map(_is_number, rows[0])) else [*above[-1:], *rows]
    widths = {len(row) for row in table}
    known = table is rows or bool(above)
    return ["\t".join(row) for row in table] if known and len(widths) == 1 and len(table) > 1 else lines


def _is_headless(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the first row is one of cells: all are numbers, or some in no order above others of their kind.

    A stamp beside a number is no heading either, nor is a fraction with its unit above another one.
    """
    numbers = [float(cell) for cell in first if _is_number(cell)]
    alike = [_is_number(cell) for cell in first] == [_is_number(cell) for cell in second]
    in_order = sorted(numbers) in (numbers, numbers[::-1])
    stamped = any(map(_STAMP.match, map(str.strip, first)))
    fractions = any(all(map(PATTERNS["fraction"].fullmatch, pair)) for pair in zip(first, second, strict=False))
    fractions |= any(map(_MEASURED.fullmatch, map(str.strip, first)))
    unordered = alike and (bool(numbers and stamped) or not in_order)
    return len(first) > 1 and (fractions or len(numbers) == len(first) or unordered)


def _with_units_below(header: list[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], bool]:
    """The headings with the units in the first row, and whether it holds units, each above numbers."""
    units = [cell.strip(" []()") for cell in (*rows, ())[0]]
    known = all(unit.lower() in UNITS or re.fullmatch(r"[A-Za-z]+/[A-Za-z]+", unit) for unit in units if unit)
    numbers = all(_is_number(cell) for row in rows[1:] for unit, cell in zip(units, row, strict=True) if unit)
    if not (known and any(units) and numbers):
        return header, False
    return [f"{name} ({unit})" if unit else name for name, unit in zip(header, units, strict=True)], True


def _is_number(cell: str) -> bool:
    return not math.isnan(_number(cell))


def _is_none(row: Sequence[str], first: Sequence[str], *, headless: bool) -> bool:
    """Tell whether a row is empty, the headings of a program that was started again, or a title of what follows.

    A title is words in the first of another number of cells, and nothing beside them.
    """
    if not any(map(str.strip, row)) or (row == first and not headless):
        return True
    return len(row) not in (1, len(first)) and not any(map(str.strip, row[1:])) and not _is_number(row[0])


def _table_in(lines: Sequence[str], start: int) -> tuple[int, int]:
    """The lines of the table in what a program printed: behind a few lines without separators, up to an empty line."""
    counts = [max(map(line.count, _SEPARATORS)) for line in lines[start : start + _PREAMBLE + 2]]
    if counts[0]:
        blank = next((at for at in range(start, len(lines)) if not lines[at].strip()), len(lines))
        below = [max(map(line.count, _SEPARATORS)) for line in lines[blank:]]
        return start, len(lines) if max(below, default=0) >= counts[0] else blank  # a summary below, of other lines
    first = next((at for at, (one, other) in enumerate(itertools.pairwise(counts)) if one and one == other), 0)
    if not first:
        return start, len(lines)
    start += first
    empty = (at for at in range(start, len(lines)) if not lines[at].strip())
    return start, next(empty, len(lines))


def _without_units(name: str, cells: list[str]) -> list[str]:
    """'9.73 W' below 'power.draw [W]' is 9.73."""
    unit = _BRACKETED_UNIT.search(name)
    return [cell.removesuffix(f" {unit[1]}") for cell in cells] if unit else cells


def _with_decimal_points(columns: list[list[str]], delimiter: str, where: str) -> list[list[str]]:
    """'0,25' becomes 0.25 and '1.234,5' becomes 1234.5. Raises InputError where '1,234' may be either.

    One decimal sign holds for the whole file, so a number that can only be read in one way decides for the others; and
    where semicolons separate the cells, as spreadsheets write them for that reason, a comma is a decimal one.
    """
    changed = [column for column in columns if any("," in c for c in column) and all(map(_may_have_a_comma, column))]
    if not any(_DECIMAL_COMMA.fullmatch(cell) for column in changed for cell in column):
        return columns
    everything = (cell for column in columns for cell in column)
    if any(_DECIMAL_POINT.fullmatch(cell) and not _THOUSANDS_BY_POINTS.fullmatch(cell) for cell in everything):
        what = "the file holds numbers with decimal commas and others with decimal points"
        raise InputError(what, where, "write all of them with one decimal sign, and no sign between thousands")
    commas = [cell for column in changed for cell in column if "," in cell]
    either = all(_THOUSANDS.fullmatch(cell) and not cell.lstrip("+-").startswith("0") for cell in commas)
    if either and delimiter != ";":
        what = f"'{commas[0]}' may have a decimal comma or one between thousands"
        raise InputError(what, where, "write numbers with a decimal point, and no sign between thousands")
    plain = {id(column): [cell.replace(".", "").replace(",", ".") for cell in column] for column in changed}
    return [plain.get(id(column), column) for column in columns]


def _without_thousands(columns: list[list[str]]) -> list[list[str]]:
    """Read a comma before three digits as one between thousands if any number has a decimal point."""
    everything = [cell for column in columns for cell in column]
    points = (c for c in everything if _DECIMAL_POINT.fullmatch(c) and not _THOUSANDS_BY_POINTS.fullmatch(c))
    if next(points, None) is None and not any(map(_THOUSANDS_AND_POINT.fullmatch, everything)):
        return columns
    known = re.compile(f"{_THOUSANDS_AND_POINT.pattern}|{_THOUSANDS.pattern}")
    return [[cell.replace(",", "") if known.fullmatch(cell) else cell for cell in column] for column in columns]


def _may_have_a_comma(cell: str) -> bool:
    """Tell whether a column of numbers with decimal commas may hold a cell."""
    known = _DECIMAL_COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell) or cell.lower() in UNKNOWN
    return bool(known) or _is_number(cell)


def _number(cell: str) -> float:
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan
