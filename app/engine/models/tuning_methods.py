"""The ways to tune for energy [Schoonhoven2024, section 6.5.1]: which rows each measures, and which one it chooses.

Each is a recipe, a generator over the rows of a space of parameters and graphics clocks: it yields rows, is sent their
results, and returns the row it chooses. It measures nothing: a session runs one (strategy `staged`), and a session
that measured every row answers all of them at once (`compare_methods.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np

from ...base.errors import InputError
from ...sensors.gpu import Gpu, ReportsBaseClock
from ..space.search_space import SearchSpace
from .arrays import Floats, Indices
from .boards_file import base_clock_named
from .fit.frequency import FrequencyFit
from .fit.points import CLOCK_SETTINGS


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one row: time s and energy J of one launch; inf if it failed."""

    row: int
    time_s: float
    energy_j: float


Recipe = Generator[list[int], Sequence[Seen], int | None]
Key = Callable[[Seen], float]
Search = Callable[[Indices, Key], Generator[list[int], Sequence[Seen], list[Seen]]]

RACE_TO_IDLE: Final = "race_to_idle"
AT_BASE_CLOCK: Final = "energy_at_base_clock_then_clocks"
METHODS: Final[Mapping[str, str]] = {
    RACE_TO_IDLE: "Race to idle",
    "energy_at_max_clock": "Energy to solution, highest clock",
    "race_to_idle_then_clocks": "Race to idle, then clocks",
    AT_BASE_CLOCK: "Energy to solution at base clock, then clocks",
    "global_energy": "Global energy to solution",
    "model_steered": "Model-steered",
}


def energy_of(values: Mapping[str, float]) -> float:
    """Energy of a launch, measured or from power and time.

    Parameters
    ----------
    values : mapping of str to float
        What was measured of a configuration: `energy_j`, or `power_w` and `time_s`.

    Returns
    -------
    float
        Energy in joules; inf if neither is known.
    """
    energy = values.get("energy_j", math.nan)
    if math.isnan(energy):
        energy = values.get("power_w", math.nan) * values.get("time_s", math.nan)
    return math.inf if math.isnan(energy) else energy


def seen_of(row: int, ok: bool, values: Mapping[str, float]) -> Seen:
    """Time and energy of a row, as a recipe is sent them.

    Parameters
    ----------
    row : int
        Row of the space.
    ok : bool
        Whether its measurement succeeded.
    values : mapping of str to float
        What was measured of it.

    Returns
    -------
    Seen
        Time and energy are inf if the measurement failed or the time is not known.
    """
    time_s = values.get("time_s", math.nan)
    if not ok or math.isnan(time_s):
        return Seen(row, math.inf, math.inf)
    return Seen(row, time_s, energy_of(values))


class Clocks:
    """The rows of a space by their graphics clock. Raises InputError if it has no such dimension, or one value."""

    def __init__(self, space: SearchSpace) -> None:
        setting = next((name for name in CLOCK_SETTINGS if name in space.names), None)
        if setting is None:
            raise InputError(
                "the space has no graphics clocks", "methods", "add graphics_clock_mhz to [device_settings]"
            )
        self.setting = setting
        self.of_row: Floats = space.numbers(setting)  # NaN where it is untouched
        self.rows: Indices = np.flatnonzero(np.isfinite(self.of_row))  # that have a clock
        self.values: Floats = np.unique(self.of_row[self.rows])
        if len(self.values) < 2:
            raise InputError("the space has one graphics clock", "methods", "give it several")
        self._others = np.delete(space.codes, space.names.index(setting), axis=1)

    @property
    def highest(self) -> float:
        """The highest clock in MHz."""
        return float(self.values[-1])

    def nearest(self, clock_mhz: float) -> float:
        """Find the clock of the space nearest to a clock.

        Parameters
        ----------
        clock_mhz : float
            Clock, MHz.

        Returns
        -------
        float
            One of the space's clocks, MHz.
        """
        return float(self.values[np.abs(self.values - clock_mhz).argmin()])

    def at(self, clock_mhz: float) -> Indices:
        """Find the rows at a clock.

        Parameters
        ----------
        clock_mhz : float
            One of the space's clocks, MHz.

        Returns
        -------
        array, shape (k,)
            Every row at that clock, ascending.
        """
        return np.flatnonzero(self.of_row == clock_mhz)

    def near(self, fit: FrequencyFit) -> tuple[float, ...]:
        """The clocks within 10 % of the model's optimum, and the one of its least energy [Schoonhoven2024, 6.5.4].

        Parameters
        ----------
        fit : FrequencyFit
            The model of the clocks; it must have an optimum (`range_mhz`).

        Returns
        -------
        tuple of float
            Clocks of the space in MHz, ascending.
        """
        assert fit.range_mhz is not None
        low, high = fit.range_mhz
        inside = {float(clock) for clock in self.values if low <= clock <= high}
        sampled = fit.clock_mhz[fit.used]
        clipped = np.clip(self.values, sampled.min(), sampled.max())
        least = float(self.values[fit.energy(clipped).argmin()])
        return tuple(sorted(inside | {least}))

    def alike(self, row: int) -> Indices:
        """Find the rows at a clock that differ from a row in nothing but the clock.

        Parameters
        ----------
        row : int
            Row of the space.

        Returns
        -------
        array, shape (k,)
            Rows, ascending; `row` is among them.
        """
        return np.flatnonzero((self._others == self._others[row]).all(axis=1) & np.isfinite(self.of_row))


def base_clock_of(gpu: Gpu) -> float | None:
    """Find the base clock of a board.

    Parameters
    ----------
    gpu : Gpu
        The board.

    Returns
    -------
    float or None
        In MHz: that of the data sheet, else the default application clock that the driver names, unless that is the
        highest clock; None if neither is known.
    """
    clock_mhz = base_clock_named(gpu.info.name)
    return gpu.base_clock_mhz() if clock_mhz is None and isinstance(gpu, ReportsBaseClock) else clock_mhz


def needs_base_clock(gpu: str) -> InputError:
    """Return the error of a method that needs a base clock which is not known.

    Parameters
    ----------
    gpu : str
        Name of the board.

    Returns
    -------
    InputError
        It names both ways to state one.
    """
    remedy = "name it: --strategy-option base_clock_mhz=MHZ, or --base-clock MHZ of compare-methods"
    return InputError(f"no base clock of '{gpu or 'this board'}' is known", AT_BASE_CLOCK, remedy)


def everything(rows: Indices, _key: Key) -> Generator[list[int], Sequence[Seen], list[Seen]]:
    """Measure all of the rows: the search of a recipe that leaves nothing out.

    The generator returns the results that it was sent.

    Parameters
    ----------
    rows : array, shape (k,)
        Rows of the space.
    _key : callable
        What would be minimised; not used.

    Yields
    ------
    list of int
        All rows at once.

    Receives
    --------
    sequence of Seen
        Their results.
    """
    return list((yield rows.tolist()))


def recipe(
    method: str,
    clocks: Clocks,
    *,
    base_mhz: float | None,
    near_mhz: Sequence[float] | None = None,
    search: Search = everything,
) -> Recipe:
    """The recipe of a method.

    The generator returns the row that the method chooses; None if nothing worked.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    clocks : Clocks
        The rows of the space by their clock.
    base_mhz : float or None
        The base clock, one of the space's clocks, MHz. Only the method that begins there needs it.
    near_mhz : sequence of float, or None, optional
        Clocks of the space near the ridge, MHz. The model-steered method needs them.
    search : callable, optional
        Finds the best of some rows by time or energy; by default it measures all of them.

    Yields
    ------
    list of int
        Rows to be measured.

    Receives
    --------
    sequence of Seen
        Their results.

    Raises
    ------
    InputError
        If the method is unknown, or the model-steered one has no clocks, or no base clock is known for the one that
        begins there. As with every generator, at its first step.
    """
    if method not in METHODS:
        raise InputError(f"unknown method '{method}'", "methods", f"one of {', '.join(METHODS)}")
    if method == "model_steered" and near_mhz is None:
        raise InputError("the model gives no clocks", "model_steered", "sweep the clocks first")
    if method == AT_BASE_CLOCK and base_mhz is None:
        raise needs_base_clock("")
    highest = clocks.at(clocks.highest)
    rows, key, then_clocks = {  # what is searched, for what, and whether the clock of the best is chosen afterwards
        RACE_TO_IDLE: (highest, _time, False),
        "energy_at_max_clock": (highest, _energy, False),
        "race_to_idle_then_clocks": (highest, _time, True),
        AT_BASE_CLOCK: (highest if base_mhz is None else clocks.at(base_mhz), _energy, True),
        "global_energy": (clocks.rows, _energy, False),
        "model_steered": (np.flatnonzero(np.isin(clocks.of_row, near_mhz or ())), _energy, False),
    }[method]
    first = _best((yield from search(rows, key)), key)
    if first is None or not then_clocks:
        return first
    return _best((yield clocks.alike(first).tolist()), _energy)


_time: Final[Key] = attrgetter("time_s")
_energy: Final[Key] = attrgetter("energy_j")


def _best(seen: Sequence[Seen], key: Key) -> int | None:
    best = min(seen, key=key, default=None)
    return None if best is None or math.isinf(key(best)) else best.row
