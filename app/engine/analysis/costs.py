"""Time, energy and power of every measurement of a session, as columns for the choosers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..metering.window import THROTTLED_SHARE
from ..models.arrays import Floats, Mask
from ..results.measurement import State
from ..space.repeats import of_configurations
from ..space.result_table import STATES, ResultTable
from .iso_lines import Role, role_of

_OK = STATES.index(State.OK)
_LARGEST = 1e50  # of a figure, and the inverse of the smallest: what lies beyond is no measurement


@dataclass(frozen=True, slots=True)
class Costs:
    """Columns of shape (n,), n measurements: NaN if one failed or the figure is unknown."""

    time_s: Floats
    energy_j: Floats
    power_w: Floats
    time_known: bool  # in seconds; else only its ratios are right, from a speed
    energy_known: bool  # in joules; else only its ratios are right, from an efficiency


def values_of(table: ResultTable, name: str) -> Floats:
    """Copy a column of the table.

    Where a parameter only repeats the configurations, each counts once: its first reading has the mean of all of them.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    name : str
        A figure or parameter.

    Returns
    -------
    array, shape (n,)
        NaN if a measurement failed or reported nothing sensible.
    """
    column = readings_of(table, name)
    return column if name in table.space.names else of_configurations(table, column)


def readings_of(table: ResultTable, name: str) -> Floats:
    """Return a column as `values_of` does, but with every reading of a repeated configuration instead of their mean.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    name : str
        A figure or parameter.

    Returns
    -------
    array, shape (n,)
        A copy; NaN if a measurement failed or reported nothing sensible.
    """
    length = len(table)
    column = np.array(table.values(name)[:length], dtype=np.float64)
    column[(table.states()[:length] != _OK) | ~(np.abs(column) < _LARGEST)] = np.nan
    column[np.abs(column) < 1 / _LARGEST] = 0.0
    return column


def positive(column: Floats) -> Floats:
    """Replace values that are not above zero by NaN: no time, energy or power of a launch is zero.

    Parameters
    ----------
    column : array, shape (n,)
        The values.

    Returns
    -------
    array, shape (n,)
        The column with NaN in their place.
    """
    return np.where(column > 1 / _LARGEST, column, np.nan)


def costs_of(table: ResultTable) -> Costs:
    """Compute the time, energy and power of each measurement.

    What was not measured follows from the other two, else from a speed or efficiency. Energy is time times power; an
    unreported time is 1 / speed, an energy 1 / efficiency: only their ratios are right. Where the board was at its
    power limit, times of a few launches, which do not show it, are not known beside those of windows, which do.

    Parameters
    ----------
    table : ResultTable
        The measurements so far, n of them.

    Returns
    -------
    Costs
        Columns in s, J and W, shape (n,); NaN if a measurement failed or the figure is unknown. Where `time_known` or
        `energy_known` is False, only the ratios of that column are right.
    """
    table = table.so_far()  # the engine may append meanwhile
    time_s, energy_j, power_w = (positive(values_of(table, name)) for name in ("time_s", "energy_j", "power_w"))
    if (values_of(table, THROTTLED_SHARE) > 0.5).any():
        time_s[table.timed()] = np.nan
    time_known = bool(np.isfinite(time_s).any())
    if not time_known:
        time_s = _inverse(table, Role.SPEED)
    energy_j = np.where(np.isnan(energy_j), power_w * time_s, energy_j)
    energy_known = time_known and bool(np.isfinite(energy_j).any())
    if not np.isfinite(energy_j).any():
        energy_j = _inverse(table, Role.EFFICIENCY)
    if energy_known:
        power_w = np.where(np.isnan(power_w), energy_j / time_s, power_w)
    return Costs(time_s, energy_j, power_w, time_known, energy_known)


def within_limits(costs: Costs, within: Mask) -> Costs:
    """Set the costs of measurements outside the limits to NaN, so that nothing chooses them.

    Parameters
    ----------
    costs : Costs
        Columns of shape (n,).
    within : array of bool, shape (n,)
        Which measurements keep the limits.

    Returns
    -------
    Costs
        The same object where all of them do.
    """
    if within.all():
        return costs
    time_s, energy_j, power_w = (
        np.where(within, value, np.nan) for value in (costs.time_s, costs.energy_j, costs.power_w)
    )
    return replace(costs, time_s=time_s, energy_j=energy_j, power_w=power_w)


def _inverse(table: ResultTable, role: Role) -> Floats:
    """Return the reciprocal of the first figure that has this role, shape (n,); NaN if there is none."""
    name = next((name for name in table.value_names if role_of(name) is role), None)
    if name is None:
        return np.full(len(table), np.nan)
    return np.asarray(1 / positive(values_of(table, name)))
