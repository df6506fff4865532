"""One series of clocks and powers, as a file, a session or a sweep gives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ....base.errors import InputError
from ..arrays import Floats, Mask, Rows
from ..clock_log import Plateau

CLOCK_SETTINGS = ("graphics_clock_mhz", "nvml_gr_clock")
MEMORY_SETTINGS = ("memory_clock_mhz", "nvml_mem_clock")
LIMIT_SETTINGS = ("power_limit_w", "nvml_pwr_limit")
_ARRAYS: Final = ("clock_mhz", "power_w", "rate", "limited", "voltage_mv", "temperature_c", "requested_mhz")
_MANY_ROWS: Final = 300  # more are condensed
_MOST_CLOCKS: Final = 150  # of a condensed series; more become as many intervals of the same width


@dataclass(frozen=True, slots=True)
class Points:
    """One series; arrays of shape (n,), NaN if unknown."""

    clock_mhz: Floats  # observed, where that is known; else requested
    power_w: Floats
    rate: Floats | None = None  # speed in any unit
    limited: Mask | None = None  # where a power or thermal limit acted, if event reasons were recorded
    limit_w: float | None = None  # the power limit in force, where it was set
    supported_mhz: Sequence[float] | None = None  # clocks known to be settable
    gpu: str = ""
    series: str = ""  # the load, configuration or rows that the points belong to
    simulated: bool = False
    notes: tuple[str, ...] = ()
    voltage_mv: Floats | None = None
    temperature_c: Floats | None = None
    memory_clock_mhz: float | None = None
    others: tuple[str, ...] = ()  # what distinguishes the series from others, the memory clock aside
    plateaus: tuple[Plateau, ...] = ()  # of a log: what each point is made of
    requested_mhz: Floats | None = None  # where `clock_mhz` was observed and the request is known as well
    untouched_energy: float | None = None  # per work as `energy`, of the board with no setting made; no point of a fit
    untouched_rate: float | None = None  # its speed, in the unit of `rate`

    @property
    def clocks(self) -> int:
        """How many different clocks were sampled."""
        return len(np.unique(self.clock_mhz[np.isfinite(self.clock_mhz)]))

    @property
    def asked_mhz(self) -> Floats:
        """The requested clocks; those given where no requests are known."""
        return self.clock_mhz if self.requested_mhz is None else self.requested_mhz

    @property
    def energy(self) -> Floats:
        """Per work, in any unit: power over rate, or over the clock where no rate is known."""
        return self.power_w / (self.rate if self.rate is not None else self.clock_mhz)

    @property
    def best_efficiency(self) -> float:
        """Most work per energy over the points: rate (else clock) per watt."""
        speed = self.rate if self.rate is not None else self.clock_mhz
        with np.errstate(all="ignore"):
            efficiency = speed / self.power_w
        return float(np.nanmax(efficiency)) if np.isfinite(efficiency).any() else -math.inf

    def at(self, rows: Rows | Mask) -> Points:
        """Select rows of the series.

        Parameters
        ----------
        rows : array of int, or array of bool, shape (n,)
            Positions of the rows, in the order wanted, or a mask.

        Returns
        -------
        Points
            Those rows; everything that is no array stays as it is.
        """
        return self.mapped(lambda values: values[rows])

    def mapped(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Points:
        """Change every array of the series alike.

        Parameters
        ----------
        change : callable
            Gets each array that is known, of shape (n,), and returns the one to put in its place.

        Returns
        -------
        Points
            The changed series; everything that is no array, or not known, stays as it is.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        changed: dict[str, Any] = {name: change(values) for name, values in arrays.items() if values is not None}
        return replace(self, **changed)

    def usable(self) -> Points:
        """Select the points that a model can be fitted to.

        Returns
        -------
        Points
            Ascending by clock; a rate or voltage that is unknown is None.

        Raises
        ------
        ValueError
            Where shapes differ.
        InputError
            If no point is left.
        """
        result = self.mapped(lambda values: np.asarray(values, dtype=np.float64))
        if result.limited is not None:
            result = replace(result, limited=result.limited != 0)
        result._check_shapes()
        good = _within(result.clock_mhz, 10.0, 1e5) & _within(result.power_w, 1e-2, 1e6)  # that a board can have
        if result.rate is not None:
            plausible = _within(result.rate, 1e-100, 1e100)
            if plausible[good].sum() >= 2:
                good &= plausible
            else:
                result = replace(result, rate=None)
        if not good.any():
            raise InputError(
                "no point has a clock and a power", "fit", "name columns with clocks in MHz and power in W"
            )
        result = result.at(np.flatnonzero(good)[np.argsort(result.clock_mhz[good], kind="stable")])
        if result.voltage_mv is not None and not _within(result.voltage_mv, 1.0, 1e5).any():
            result = replace(result, voltage_mv=None)
        return result

    def condensed(self) -> Points:
        """The medians at each clock of a series of very many rows, with a note; else the series itself.

        A fit then stays a matter of a second.

        Returns
        -------
        Points
            One point for each clock, or for each interval of clocks where there are many; of masks the majority counts.

        Raises
        ------
        ValueError
            Where shapes of very many rows differ.
        """
        rows = len(self.clock_mhz)
        if rows <= _MANY_ROWS:
            return self
        self._check_shapes()
        places, what = self._places()
        order = np.argsort(places, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(places[order])) + 1)

        def median(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            if values.dtype == np.bool_:
                return np.array([values[group].mean() > 0.5 for group in groups])
            finite = [values[group][np.isfinite(values[group])] for group in groups]
            return np.array([float(np.median(value)) if len(value) else np.nan for value in finite])

        medians = self.mapped(median)
        scatter = [self.power_w[group] / level - 1 for group, level in zip(groups, medians.power_w, strict=True)]
        spread = 1.48 * float(np.median(np.abs(np.concatenate(scatter))))
        note = f"{rows} rows: the medians of each {what} are fitted; power scatters by {100 * spread:.1f} % around them"
        return replace(medians, notes=(note, *self.notes))

    def _check_shapes(self) -> None:
        shapes = {np.shape(values) for name in _ARRAYS if (values := getattr(self, name)) is not None}
        if len(shapes) > 1 or np.ndim(self.clock_mhz) != 1:
            raise ValueError("clocks, power, rate, limited, voltage and temperature must be of the same length")

    def _places(self) -> tuple[Rows, str]:
        """Which point of the condensed series each row belongs to, shape (n,), and what these are in words."""
        clock = np.where(np.isfinite(self.asked_mhz), self.asked_mhz, self.clock_mhz)
        values, places = np.unique(clock, return_inverse=True)
        if len(values) <= _MOST_CLOCKS:
            return places, f"of the {len(values)} clocks"
        edges = np.linspace(values[0], values[-1], _MOST_CLOCKS + 1)[1:-1]
        places = np.searchsorted(edges, clock, side="right")
        return places, f"interval of {(values[-1] - values[0]) / _MOST_CLOCKS:.1f} MHz"


def choose(series: Sequence[Points]) -> Points:
    """Choose the series with the most clocks, then the most efficient.

    Parameters
    ----------
    series : sequence of Points
        At least one.

    Returns
    -------
    Points
        One of them; of several, with a note on how it was chosen.
    """
    chosen = max(series, key=lambda points: (points.clocks, points.best_efficiency))
    if len(series) == 1:
        return chosen
    how = f"of {len(series)} series the one with the most clocks, then the most efficient"
    return replace(chosen, notes=(*chosen.notes, how))


def _within(values: Floats, low: float, high: float) -> Mask:
    """Neither NaN nor beyond the bounds."""
    return np.asarray((values >= low) & (values <= high))
