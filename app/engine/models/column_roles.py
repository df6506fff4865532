"""Which column of a table holds clock, power, time, energy or rate: as the user names them, else by their headings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ...base.errors import InputError
from ..formats.columns import Columns
from .arrays import Floats

_SCALE = {
    "clock": {"mhz": 1.0, "ghz": 1e3, "khz": 1e-3, "hz": 1e-6},
    "power": {"w": 1.0, "watt": 1.0, "watts": 1.0, "mw": 1e-3, "kw": 1e3},
    "time": {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    "energy": {"j": 1.0, "joule": 1.0, "joules": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0},
    "voltage": {"mv": 1.0, "v": 1e3, "volt": 1e3, "volts": 1e3},
    "temperature": {"c": 1.0, "celsius": 1.0},
}
_UNITS = frozenset(unit for scale in _SCALE.values() for unit in scale)
_RATE = re.compile(
    r"flops?\b|flop/s|gb/?s\b|\bg?b_per_s|ops\b|throughput|rate\b|per_s\b|iterations?/s|(\b|_)(fps|tps|qps|rps)\b"
)
_PER_ENERGY = re.compile(r"/w\b|/j\b|per_w|per_j")
_NOT_GRAPHICS = re.compile(r"mem|video|vid|cpu|host")
_SPREAD = re.compile(r"std|stdev|variance|_sd\b|_ci\b|_low\b|_high\b|uncertainty")
_OF_ONE = re.compile(r"launch|per_iter|per_run|kernel")  # the time of one of many, where a total is there as well
_WORD = re.compile(r"[A-Z]+(?![a-zµ])|[A-Z]?[a-zµ]+")
_LETTERS = {"f": "clock", "p": "power", "t": "time"}  # columns named by the symbol of a quantity

# What a clock's name says: that it was requested, observed, or neither. The first that fits counts.
_EXTREME = frozenset(("peak", "max", "maximum", "min", "minimum", "boost", "base"))
_REQUESTED = ("applied", "locked", "lock", "set", "requested", "request", "target", "application", "applications")
_REQUESTED_NAMES = frozenset(("nvml_gr_clock",))
_OBSERVED = frozenset(("avg", "average", "mean", "median", "observed", "actual", "effective", "measured", "current"))
_MEASURED_NAMES = re.compile(r"core_freq|sm_clock")


@dataclass(frozen=True, slots=True)
class Named:
    """Columns that the user names; None for those to be found by their headings."""

    clock: str | None = None
    power: str | None = None
    time: str | None = None
    rate: str | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    """How the heading of a quantity is recognised: by its words, and by a unit of that kind if it has one."""

    kind: str
    words: tuple[str, ...]
    only: re.Pattern[str] = re.compile("")
    never: re.Pattern[str] = re.compile("(?!)")
    preferred: str = ""
    of_one_first: bool = False

    def fits(self, name: str) -> bool:
        lower = name.lower()
        return bool(_is(name, self.kind, *self.words) and self.only.search(lower) and not self.never.search(lower))

    def rank(self, name: str) -> tuple[bool, bool, bool]:
        """The lowest is chosen: a peak only where there is nothing else."""
        of_one = self.of_one_first and _OF_ONE.search(name.lower())
        return name != self.preferred, bool(_words(name) & _EXTREME), not of_one


_RULES = {
    "limit": _Rule("power", ("limit", "cap"), only=re.compile(r"limit|cap\b|_cap|cap_")),
    "power": _Rule(
        "power",
        ("power", "actual", "draw"),
        only=re.compile(r"power|^(p|m?w|kw|watts?)$|(actual|draw|drawn)[_ (\[]+m?w\b"),
        never=re.compile("limit|cap|mem|idle"),
        preferred="power_w",
    ),
    "energy": _Rule(
        "energy", ("energy",), never=re.compile("mem|cpu|host|idle"), preferred="energy_j", of_one_first=True
    ),
    "time": _Rule("time", ("time", "duration"), never=re.compile("stamp"), preferred="time_s", of_one_first=True),
    "voltage": _Rule("voltage", ("volt", "vcore", "vgpu")),
    "temperature": _Rule("temperature", ("temp",), never=re.compile("mem|hot")),
    "memory_clock": _Rule("clock", ("clock", "freq"), re.compile("mem"), re.compile("peak|max|min|boost|base")),
}
_KINDS = {role: rule.kind for role, rule in _RULES.items()} | {"clock": "clock", "requested": "clock"}


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table hold, by role: 'clock', 'requested', 'rate' and those of the rules above.

    'efficiency' is work per energy, looked for if there is no rate.

    'requested' is a second clock column, where the one of 'clock' was observed.
    """

    columns: Columns
    names: Mapping[str, str]

    @property
    def taken(self) -> set[str]:
        """Columns that hold one of these, the memory clock aside: it distinguishes series."""
        return {name for role, name in self.names.items() if role != "memory_clock"}

    def values(self, role: str) -> Floats:
        """The column of a role.

        Parameters
        ----------
        role : str
            A role that a column has.

        Returns
        -------
        array, shape (n,)
            In MHz, W, s, J, mV or degrees Celsius, by the role; a rate or an efficiency as it is. NaN where a cell is
            empty or marks an unknown value.

        Raises
        ------
        InputError
            If another cell is no number.
        """
        name = self.names[role]
        return self.columns.numbers(name) * _SCALE.get(_KINDS.get(role, ""), {}).get(_unit(name), 1.0)

    def known(self, role: str) -> Floats | None:
        """The column of a role that no column may have.

        Parameters
        ----------
        role : str
            Any role.

        Returns
        -------
        array, shape (n,), or None
            As `values`; None if no column has that role.

        Raises
        ------
        InputError
            As `values`.
        """
        return self.values(role) if role in self.names else None

    def power(self) -> Floats:
        """Power in W, from energy and time where it was not measured itself."""
        return self.values("power") if "power" in self.names else self.values("energy") / self._time()

    def speed(self) -> Floats | None:
        """The rate, else runs per second; None if nothing tells it.

        Power tells it too, beside the energy of a run or the work per energy.
        """
        if "rate" in self.names:
            return self.values("rate")
        if "time" in self.names:
            return 1.0 / self._time()
        if "efficiency" in self.names:
            return self.power() * self.values("efficiency")
        if "energy" in self.names:
            energy = self.values("energy")
            return self.power() / np.where(energy > 0, energy, np.nan)
        return None

    def _time(self) -> Floats:
        time = self.values("time")
        return np.where(time > 0, time, np.nan)


def find_roles(columns: Columns, named: Named) -> Roles:
    """Find the columns of a sweep of clocks: as named, else by the header.

    Parameters
    ----------
    columns : Columns
        The table.
    named : Named
        Columns that the user names.

    Returns
    -------
    Roles
        With a clock, and with power or both energy and time.

    Raises
    ------
    InputError
        If a named column is missing, or there is no column of clocks or of power; it lists the columns.
    """
    numeric = _numeric(columns, named)
    there = f"there are: {_listed(list(columns.cells))}"
    clock, requested = _clocks(numeric, named.clock)
    if clock is None:
        raise InputError("no column with clocks", columns.where, f"name it with --clock; {there}")
    names = {"clock": clock} | ({"requested": requested} if requested else {})
    names |= _by_rules(numeric, named, ("power", "energy", "time", "voltage", "temperature", "memory_clock"))
    if "power" not in names and not {"energy", "time"} <= set(names):
        raise InputError("no column with power", columns.where, f"name it with --power; {there}")
    return Roles(columns, _with_rate(names, numeric, named))


def find_cap_roles(columns: Columns, named: Named) -> Roles | None:
    """Find the columns of a sweep of power limits: as named, else by the header.

    Parameters
    ----------
    columns : Columns
        The table.
    named : Named
        Columns that the user names.

    Returns
    -------
    Roles or None
        With limit, power, and time or rate; None if there is no limit, or no power and speed.

    Raises
    ------
    InputError
        If a named column is missing, as in `find_roles`.
    """
    numeric = _numeric(columns, named)
    names = _with_rate(_by_rules(numeric, named, ("limit", "power", "time")), numeric, named)
    complete = {"limit", "power"} <= set(names) and {"time", "rate"} & set(names)
    return Roles(columns, names) if complete else None


def _numeric(columns: Columns, named: Named) -> list[str]:
    """The columns of numbers, spreads aside. Raises InputError if a named column is missing."""
    for option in fields(named):
        name = getattr(named, option.name)
        if name is not None and name not in columns.cells:
            there = f"there are: {_listed(list(columns.cells))}"
            raise InputError(f"no column '{name}'", f"{columns.where}, --{option.name}", there)
    return [name for name in columns.cells if columns.is_numeric(name) and not _SPREAD.search(name.lower())]


def _by_rules(numeric: Sequence[str], named: Named, roles: Sequence[str]) -> dict[str, str]:
    """The column of each role that has one: the named one, the preferred one, else the first."""
    result = {}
    for role in roles:
        rule = _RULES[role]
        chosen = getattr(named, role, None) or min(filter(rule.fits, numeric), key=rule.rank, default=None)
        if chosen is not None:
            result[role] = chosen
    return result


def _with_rate(names: dict[str, str], numeric: Sequence[str], named: Named) -> dict[str, str]:
    others = (name for name in numeric if name not in names.values())
    rates = (name for name in others if _RATE.search(name.lower()) and not _PER_ENERGY.search(name.lower()))
    rate = named.rate or next(rates, None)
    if rate is not None:
        return names | {"rate": rate}
    efficiency = next((n for n in numeric if n not in names.values() and _PER_ENERGY.search(n.lower())), None)
    return names if efficiency is None else names | {"efficiency": efficiency}


def _clocks(numeric: Sequence[str], named: str | None) -> tuple[str | None, str | None]:
    """The column of the clocks that the board ran at, else were requested; and that of the requests beside it.

    The name decides: 'avg_clock_mhz' was observed, 'clock_applied_mhz' requested, 'peak_clock_mhz' is neither and
    never used. Beside an observed clock the plain 'clock_mhz' is the requested one.
    """
    clocks = [n for n in numeric if _is(n, "clock", "clock", "freq") and not _NOT_GRAPHICS.search(n.lower())]
    clocks = [n for n in clocks if not _words(n) & _EXTREME]
    requests = [n for n in clocks if _is_request(n)]
    requests.sort(
        key=lambda n: next((index for index, word in enumerate(_REQUESTED) if word in _words(n)), len(_REQUESTED))
    )
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
    """Whether the name holds a word of the quantity, and its unit, if it has one, is one of that quantity."""
    lower = name.lower()
    if not any(word in lower for word in words) and _LETTERS.get(lower) != kind:
        return lower in _SCALE[kind]
    unit = _unit(name)
    return unit in _SCALE[kind] or unit not in _UNITS


def _unit(name: str) -> str:
    """The last word of 'power_w', 'power (W)', 'Power [mW]' or 'clock_mhz_locked' that is a unit; '' if none is.

    Megajoule and millijoule, megawatt and milliwatt are written alike; the small ones are meant.
    """
    words = re.split(r"[^a-zµ]+", name.lower())
    return next((word for word in reversed(words) if word in _UNITS), "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
