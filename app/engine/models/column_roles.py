"""Which column of a table holds clock, power, time, energy or rate: as the user names them, else by their headings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from ...base.errors import InputError
from ..formats.columns import Columns
from ..formats.headings import Column, Role, is_request
from ..formats.roles import roles_of
from ..formats.sheet import main_column
from .arrays import Floats

_NAMED = {"clock": Role.OBSERVED_CLOCK, "power": Role.POWER, "time": Role.TIME, "rate": Role.THROUGHPUT}
_ROLES = {  # of a sweep -> of its columns, the best first
    "clock": (Role.OBSERVED_CLOCK, Role.GRAPHICS_CLOCK),
    "power": (Role.POWER,),
    "energy": (Role.ENERGY,),
    "time": (Role.TIME, Role.LATENCY),
    "voltage": (Role.VOLTAGE,),
    "temperature": (Role.TEMPERATURE,),
    "memory_clock": (Role.MEMORY_CLOCK, Role.OBSERVED_MEMORY_CLOCK),
    "limit": (Role.POWER_LIMIT,),
    "rate": (Role.THROUGHPUT,),
}


@dataclass(frozen=True, slots=True)
class Named:
    """Columns that the user names; None for those to be found by their headings."""

    clock: str | None = None
    power: str | None = None
    time: str | None = None
    rate: str | None = None


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table hold, by role: 'clock', 'requested', 'power', 'rate' and so on.

    'efficiency' is work per energy, looked for if there is no rate.

    'requested' is a second clock column, where the one of 'clock' was observed.
    """

    columns: Columns
    names: Mapping[str, str]
    scales: Mapping[str, float]  # to MHz, W, s, J, mV or degrees Celsius, by column

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
        return self.columns.numbers(name) * self.scales.get(name, 1.0)

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
    found = _columns(columns, named)
    there = f"there are: {_listed(list(columns.cells))}"
    clock, power, energy, time = (_first(found, named, role) for role in ("clock", "power", "energy", "time"))
    if clock is None:
        raise InputError("no column with clocks", columns.where, f"name it with --clock; {there}")
    if power is None and (energy is None or time is None):
        raise InputError("no column with power", columns.where, f"name it with --power; {there}")
    limit = main_column(found, Role.POWER_LIMIT)
    if named.clock is None and limit is not None and main_column(found, Role.GRAPHICS_CLOCK) is None:
        limits = columns.numbers(limit.heading)
        if len(np.unique(limits[np.isfinite(limits)])) > 1:
            what = f"the clock '{clock}' was not set: it follows '{limit.heading}'"
            raise InputError(what, columns.where, f"name it with --clock to fit it all the same; {there}")
    roles = _of(columns, found, named, tuple(role for role in _ROLES if role != "limit"))
    asked = main_column(found, Role.GRAPHICS_CLOCK)
    if asked is None or asked.heading == clock or is_request(clock):
        return roles
    return replace(roles, names={**roles.names, "requested": asked.heading})


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
    roles = _of(columns, _columns(columns, named), named, ("limit", "power", "time", "rate"))
    complete = {"limit", "power"} <= set(roles.names) and {"time", "rate", "efficiency"} & set(roles.names)
    return roles if complete else None


def _columns(columns: Columns, named: Named) -> tuple[Column, ...]:
    """The roles of all columns, as named where they are. Raises InputError if a named column is missing."""
    given = {}
    for option in fields(named):
        name = getattr(named, option.name)
        if name is not None and name not in columns.cells:
            there = f"there are: {_listed(list(columns.cells))}"
            raise InputError(f"no column '{name}'", f"{columns.where}, --{option.name}", there)
        if name is not None:
            given[name] = _NAMED[option.name]
    return roles_of(columns.by_kind(), given)


def _first(found: tuple[Column, ...], named: Named, role: str) -> str | None:
    """The heading of the column of a role: the named one, else the best."""
    chosen = getattr(named, role, None)
    if chosen is None:
        column = next((c for wanted in _ROLES[role] if (c := main_column(found, wanted)) is not None), None)
        chosen = column.heading if column is not None else None
    return chosen


def _of(columns: Columns, found: tuple[Column, ...], named: Named, wanted: tuple[str, ...]) -> Roles:
    names = {role: name for role in wanted if (name := _first(found, named, role)) is not None}
    if "rate" not in names and (efficiency := main_column(found, Role.EFFICIENCY)) is not None:
        names["efficiency"] = efficiency.heading
    return Roles(columns, names, {column.heading: column.scale for column in found})


def _listed(names: list[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
