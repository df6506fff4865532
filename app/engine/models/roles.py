"""Which column of a table holds the clock, the power, the time, the energy or the rate: as named, else by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InputError
from .columns import Columns

DEVICE_COLUMNS = ("gpu", "gpu_name", "device", "device_name", "dev", "board")
_SCALE = {
    "clock": {"mhz": 1.0, "ghz": 1e3, "khz": 1e-3, "hz": 1e-6},
    "power": {"w": 1.0, "watt": 1.0, "watts": 1.0, "mw": 1e-3, "kw": 1e3},
    "time": {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    "energy": {"j": 1.0, "joule": 1.0, "joules": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0},
    "voltage": {"mv": 1.0, "v": 1e3, "volt": 1e3, "volts": 1e3},
    "temperature": {"c": 1.0, "celsius": 1.0},
}
_UNITS = frozenset(unit for scale in _SCALE.values() for unit in scale)
_RATE = re.compile(r"flops?\b|flop/s|gb/?s\b|\bg?b_per_s|ops\b|throughput|rate\b|per_s\b|iterations?/s|\bfps\b")
_NOT_GRAPHICS = re.compile(r"mem|video|vid|cpu|host")
_LIMIT = re.compile(r"limit|cap\b|_cap|cap_")
_NOT_DRAWN = re.compile(r"limit|cap|mem|idle")
_PER_ENERGY = re.compile(r"/w\b|/j\b|per_w|per_j")
_MEMORY = re.compile(r"mem")
_SPREAD = re.compile(r"std|stdev|variance|_sd\b|_ci\b|_low\b|_high\b|uncertainty")
_OF_ONE = re.compile(r"launch|per_iter|per_run|kernel")  # the time of one of many, where a total is there as well
_WORD = re.compile(r"[A-Z]+(?![a-zµ])|[A-Z]?[a-zµ]+")

# What a clock's name says: that it was asked for, that it was seen, or that it is neither. The first that fits counts.
_EXTREME = frozenset(("peak", "max", "maximum", "min", "minimum", "boost", "base"))
_REQUESTED = ("applied", "locked", "lock", "set", "requested", "request", "target", "application", "applications")
_REQUESTED_NAMES = frozenset(("nvml_gr_clock",))
_OBSERVED = frozenset(("avg", "average", "mean", "median", "observed", "actual", "effective", "measured", "current"))
_MEASURED_NAMES = re.compile(r"core_freq|sm_clock")


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the columns, and what to multiply each by to get MHz, W, s and J."""

    clock: str
    clock_factor: float
    requested: str | None  # a second clock column, where the first is the observed one
    requested_factor: float
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
    chosen_clock, requested = _clocks(numeric, clock)
    if chosen_clock is None:
        raise InputError("no column with clocks", columns.where, f"name it with --clock; there are: {_listed(names)}")
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
    memories = [n for n in numeric if _MEMORY.search(n.lower()) and _is(n, "clock", "clock", "freq")]
    memory = next((n for n in memories if not _words(n) & _EXTREME), None)
    if chosen_power is None and (chosen_energy is None or chosen_time is None):
        raise InputError("no column with power", columns.where, f"name it with --power; there are: {_listed(names)}")
    return Roles(
        clock=chosen_clock,
        clock_factor=_factor(chosen_clock, "clock"),
        requested=requested,
        requested_factor=_factor(requested, "clock"),
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


def _clocks(numeric: Sequence[str], named: str | None) -> tuple[str | None, str | None]:
    """The column of the clocks that the board ran at, else were requested; and that of the requests beside it.

    A name says which: 'avg_clock_mhz' was observed, 'clock_applied_mhz' requested, 'peak_clock_mhz' is neither and
    never used. Beside an observed clock the plain 'clock_mhz' is the requested one.
    """
    clocks = [n for n in numeric if _is(n, "clock", "clock", "freq") and not _NOT_GRAPHICS.search(n.lower())]
    clocks = [n for n in clocks if not _words(n) & _EXTREME]
    requests = [n for n in clocks if _is_request(n)]
    requests.sort(key=lambda n: next((at for at, word in enumerate(_REQUESTED) if word in _words(n)), len(_REQUESTED)))
    observed = [n for n in clocks if n not in requests and _words(n) & _OBSERVED]
    measured = [n for n in clocks if n not in requests and n not in observed and _MEASURED_NAMES.search(n.lower())]
    plain = [n for n in clocks if n not in (*requests, *observed, *measured)]
    chosen = named or next(iter((*observed, *measured, *plain, *requests)), None)
    if chosen is None or _is_request(chosen):
        return chosen, None
    if chosen in observed:
        requests += plain
    return chosen, next((n for n in requests if n != chosen), None)


def _is_request(name: str) -> bool:
    return name.lower() in _REQUESTED_NAMES or bool(_words(name) & set(_REQUESTED))


def _words(name: str) -> set[str]:
    """The words of 'clock_target_mhz', 'avgClock (MHz)' or 'clocks.max.sm', in lower case."""
    return {word.lower() for word in _WORD.findall(name)}


def _is(name: str, kind: str, *words: str) -> bool:
    """The name says the quantity, and its unit, where it has one, is one of that quantity."""
    lower = name.lower()
    if not any(word in lower for word in words) and lower not in ("f", "p", "t"):
        return lower in _SCALE[kind]
    unit = _unit(name)
    return unit in _SCALE[kind] or unit not in _UNITS


def _unit(name: str) -> str:
    """The last word of 'power_w', 'power (W)', 'Power [mW]' or 'clock_mhz_locked' that is a unit; '' where none is.

    Megajoule and millijoule, megawatt and milliwatt are written alike; the small ones are meant.
    """
    words = re.split(r"[^a-zµ]+", name.lower())
    return next((word for word in reversed(words) if word in _UNITS), "")


def _factor(name: str | None, kind: str) -> float:
    return _SCALE[kind].get(_unit(name), 1.0) if name else 1.0


def _first(names: Sequence[str], preferred: str) -> str | None:
    """The preferred one, else the first; a peak only where there is nothing else."""
    if preferred in names:
        return preferred
    return next(iter(sorted(names, key=lambda name: bool(_words(name) & _EXTREME))), None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
