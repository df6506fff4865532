"""A CSV file of measurements as named columns, and which column holds the clock, the power, the time or the rate."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.errors import InputError
from app.spreadsheet import cell_text

Floats = npt.NDArray[np.float64]

_MAXIMUM_ROWS = 1_000_000
_MAXIMUM_COLUMNS = 1_000
_SCALE = {
    "clock": {"mhz": 1.0, "ghz": 1e3, "khz": 1e-3, "hz": 1e-6},
    "power": {"w": 1.0, "watt": 1.0, "watts": 1.0, "mw": 1e-3, "kw": 1e3},
    "time": {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    "energy": {"j": 1.0, "joule": 1.0, "joules": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0},
    "voltage": {"mv": 1.0, "v": 1e3, "volt": 1e3, "volts": 1e3},
    "temperature": {"c": 1.0, "celsius": 1.0},
}
_RATE = re.compile(r"flops?\b|flop/s|gb/?s\b|\bg?b_per_s|ops\b|throughput|rate\b|per_s\b|iterations?/s|\bfps\b")
_NOT_GRAPHICS = re.compile(r"mem|video|vid|cpu|host")
_LIMIT = re.compile(r"limit|cap\b|_cap|cap_")
_NOT_DRAWN = re.compile(r"limit|cap|mem|idle")
_PER_ENERGY = re.compile(r"/w\b|/j\b|per_w|per_j")
_MEMORY = re.compile(r"mem")
_SPREAD = re.compile(r"std|stdev|variance|_sd\b|_ci\b|_low\b|_high\b|uncertainty")
_OF_ONE = re.compile(r"launch|per_iter|per_run|kernel")  # the time of one of many, where a total is there as well
_UNKNOWN = frozenset(("", "n/a", "[n/a]", "na", "nan", "none", "null", "-", "[not supported]", "[unknown error]"))
_REQUESTED = re.compile(r"lock|request|set|target|nvml_gr_clock|application")


@dataclass(frozen=True, slots=True)
class Columns:
    """Text cells by column, all of the same length."""

    where: str
    cells: Mapping[str, Sequence[str]]
    first_line: int

    def numbers(self, name: str) -> Floats:
        """A column as numbers, NaN where a cell is empty or tells that nothing is known. Raises InputError else."""
        cells = self.cells[name]
        values = np.fromiter((_number(cell) for cell in cells), dtype=np.float64, count=len(cells))
        for index in map(int, np.flatnonzero(np.isnan(values))):
            if cells[index].lower() not in _UNKNOWN:
                what = f"column '{name}', line {self.first_line + index}: '{cells[index][:40]}' is not a number"
                raise InputError(what, self.where, "mend the cell, or name another column")
        return values

    def is_numeric(self, name: str) -> bool:
        """Most of what is told in the column is numbers; a single bad cell is for `numbers` to name."""
        told = [cell for cell in self.cells[name] if cell.lower() not in _UNKNOWN]
        return sum(not math.isnan(_number(cell)) for cell in told) > 0.5 * len(told)


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the columns, and what to multiply each by to get MHz, W, s and J."""

    clock: str
    clock_factor: float
    requested: str | None  # a second clock column, where the first is the observed one
    power: str | None
    power_factor: float
    time: str | None
    time_factor: float
    energy: str | None
    energy_factor: float
    rate: str | None
    voltage: str | None = None
    voltage_factor: float = 1.0
    temperature: str | None = None
    memory_clock: str | None = None
    memory_clock_factor: float = 1.0

    @property
    def taken(self) -> set[str]:
        """Columns that hold one of these; the memory clock is none of them: it tells one series from another."""
        named = (self.clock, self.requested, self.power, self.time, self.energy, self.rate)
        return {name for name in (*named, self.voltage, self.temperature) if name}


def parse_columns(text: str, where: str) -> Columns:
    """Read CSV text with a header (comma, semicolon or tab; lines starting with # are skipped). Raises InputError."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if start is None:
        raise InputError("the file is empty", where, "a header line and rows are needed")
    delimiter = max(",;\t", key=lines[start].count)
    body = io.StringIO("\n".join(line for line in lines[start:] if not line.startswith("#")))
    try:
        reader = csv.reader(body, delimiter=delimiter, strict=True)
        header = [cell_text(name.strip()) for name in next(reader)]
        if any(header):  # numbers of rows stand in a column without a name
            header = [name or f"column {place}" for place, name in enumerate(header, 1)]
        if len(header) < 2 or len(header) > _MAXIMUM_COLUMNS or len(set(header)) != len(header) or "" in header:
            raise InputError("the first line is not a header of different names", where, "name every column once")
        columns: list[list[str]] = [[] for _ in header]
        for count, row in enumerate(reader):
            if count >= _MAXIMUM_ROWS:
                raise InputError(f"more than {_MAXIMUM_ROWS} rows", where, "split the file")
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                what = f"line {start + reader.line_num} has {len(row)} cells, the header {len(header)}"
                remedy = "quote cells that hold the separator" if len(row) > len(header) else "the file may be cut off"
                raise InputError(what, where, remedy)
            for column, cell in zip(columns, row, strict=True):
                column.append(cell_text(cell.strip()))
    except csv.Error as error:
        raise InputError(f"not a CSV file: {error}", where, "a header line and rows are needed") from None
    if not columns[0]:
        raise InputError("the file holds a header but no row", where, "add measurements")
    return Columns(where, dict(zip(header, columns, strict=True)), start + 2)


@dataclass(frozen=True, slots=True)
class CapRoles:
    """Names of the columns of a sweep of power limits, and what to multiply each by to get W, s."""

    limit: str
    limit_factor: float
    power: str
    power_factor: float
    time: str | None
    time_factor: float
    rate: str | None

    @property
    def taken(self) -> set[str]:
        """Columns that hold one of these."""
        return {name for name in (self.limit, self.power, self.time, self.rate) if name}


def find_cap_roles(columns: Columns, power: str | None, time: str | None, rate: str | None) -> CapRoles | None:
    """The columns of a sweep of power limits; None where there is no limit, or nothing to tell power and speed."""
    numeric = [name for name in columns.cells if columns.is_numeric(name) and not _SPREAD.search(name.lower())]
    limit = next((n for n in numeric if _LIMIT.search(n.lower()) and _is(n, "power", "limit", "cap")), None)
    powers = [n for n in numeric if n != limit and _is(n, "power", "power") and not _NOT_DRAWN.search(n.lower())]
    chosen_power = power or _first(powers, "power_w")
    times = [n for n in numeric if _is(n, "time", "time", "runtime", "duration") and "stamp" not in n.lower()]
    chosen_time = time or _first(times, "time_s")
    rates = [n for n in numeric if _RATE.search(n.lower()) and not _PER_ENERGY.search(n.lower())]
    chosen_rate = rate or next((n for n in rates if n not in (limit, chosen_power, chosen_time)), None)
    if limit is None or chosen_power is None or (chosen_time is None and chosen_rate is None):
        return None
    return CapRoles(
        limit=limit,
        limit_factor=_factor(limit, "power"),
        power=chosen_power,
        power_factor=_factor(chosen_power, "power"),
        time=chosen_time,
        time_factor=_factor(chosen_time, "time"),
        rate=chosen_rate,
    )


def find_roles(columns: Columns, clock: str | None, power: str | None, time: str | None, rate: str | None) -> Roles:
    """Which column is what: as named, else by the header. Raises InputError naming the columns there are."""
    names = list(columns.cells)
    for option, name in (("--clock", clock), ("--power", power), ("--time", time), ("--rate", rate)):
        if name is not None and name not in columns.cells:
            raise InputError(f"no column '{name}'", f"{columns.where}, {option}", f"there are: {_listed(names)}")
    numeric = [name for name in names if columns.is_numeric(name) and not _SPREAD.search(name.lower())]
    clocks = [n for n in numeric if _is(n, "clock", "clock", "freq") and not _NOT_GRAPHICS.search(n.lower())]
    clocks.sort(key=_clock_preference)
    chosen_clock = clock or next(iter(clocks), None)
    if chosen_clock is None:
        raise InputError("no column with clocks", columns.where, f"name it with --clock; there are: {_listed(names)}")
    requested = next((n for n in clocks if n != chosen_clock and _REQUESTED.search(n.lower())), None)
    powers = [n for n in numeric if _is(n, "power", "power") and not _NOT_DRAWN.search(n.lower())]
    chosen_power = power or _first(powers, "power_w")
    energies = [n for n in numeric if _is(n, "energy", "energy")]
    energies.sort(key=lambda n: not _OF_ONE.search(n.lower()))
    chosen_energy = _first(energies, "energy_j")
    times = [n for n in numeric if _is(n, "time", "time", "runtime", "duration") and "stamp" not in n.lower()]
    times.sort(key=lambda n: not _OF_ONE.search(n.lower()))
    chosen_time = time or _first(times, "time_s")
    rates = [n for n in numeric if _RATE.search(n.lower()) and not _PER_ENERGY.search(n.lower())]
    chosen_rate = rate or next((n for n in rates if n not in (chosen_clock, chosen_power, chosen_time)), None)
    voltage = next((n for n in numeric if _is(n, "voltage", "volt", "vcore", "vgpu")), None)
    warmth = next((n for n in numeric if _is(n, "temperature", "temp") and not re.search(r"mem|hot", n.lower())), None)
    memory = next((n for n in numeric if _MEMORY.search(n.lower()) and _is(n, "clock", "clock", "freq")), None)
    if chosen_power is None and (chosen_energy is None or chosen_time is None):
        raise InputError("no column with power", columns.where, f"name it with --power; there are: {_listed(names)}")
    return Roles(
        clock=chosen_clock,
        clock_factor=_factor(chosen_clock, "clock"),
        requested=requested,
        power=chosen_power,
        power_factor=_factor(chosen_power, "power"),
        time=chosen_time,
        time_factor=_factor(chosen_time, "time"),
        energy=chosen_energy,
        energy_factor=_factor(chosen_energy, "energy"),
        rate=chosen_rate,
        voltage=voltage,
        voltage_factor=_factor(voltage, "voltage"),
        temperature=warmth,
        memory_clock=memory,
        memory_clock_factor=_factor(memory, "clock"),
    )


def _clock_preference(name: str) -> int:
    """The observed clock first, then the plain one, then the requested one."""
    lower = name.lower()
    if re.search(r"observ|actual|effective|measured|core_freq|sm_clock", lower):
        return 0
    return 2 if _REQUESTED.search(lower) else 1


def _is(name: str, kind: str, *words: str) -> bool:
    """The name says the quantity, and its unit, where it has one, is one of that quantity."""
    lower = name.lower()
    if not any(word in lower for word in words) and lower not in ("f", "p", "t"):
        return lower in _SCALE[kind]
    unit = _unit(name)
    known = {u for scale in _SCALE.values() for u in scale}
    return unit in _SCALE[kind] or unit not in known


def _unit(name: str) -> str:
    """The last word of 'power_w', 'power (W)', 'Power [mW]' or 'clock_mhz_locked' that is a unit; '' where none is.

    Megajoule and millijoule, megawatt and milliwatt are written alike; the small ones are meant.
    """
    known = {unit for scale in _SCALE.values() for unit in scale}
    words = re.split(r"[^a-zµ]+", name.lower())
    return next((word for word in reversed(words) if word in known), "")


def _factor(name: str | None, kind: str) -> float:
    return _SCALE[kind].get(_unit(name), 1.0) if name else 1.0


def _first(names: Sequence[str], preferred: str) -> str | None:
    return preferred if preferred in names else next(iter(names), None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _number(cell: str) -> float:
    if not cell:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return math.nan
