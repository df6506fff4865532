"""The health of a session from its measurements: objective, coverage of the sensor, drift, repeatability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from ...base.errors import InputError
from ..models.arrays import Indices
from ..results.health import Health
from ..results.measurement import State
from ..runner.stating import Statement
from ..space.result_table import STATES, ResultTable
from .drift import drifts_of
from .failures import missing_figure

_LOOKED_AT: Final = 2000  # windows, evenly spread: enough for a share within 2 %


def health_of(table: ResultTable, objective: str, origin: Mapping[str, str]) -> Health:
    """Compute the health of a session.

    Parameters
    ----------
    table : ResultTable
        The measurements; the engine may append meanwhile.
    objective : str
        Name of the figure that the session is about.
    origin : mapping of str to str
        What the session keeps of how its figures are stated.

    Returns
    -------
    Health
        Of configurations that were measured in full and worked; shares of none are NaN.
    """
    length = len(table)
    full = np.flatnonzero((table.states()[:length] == STATES.index(State.OK)) & ~table.timed()[:length])
    known = np.isfinite(table.values(objective)[full])
    drifts = [one.over_session for one in drifts_of(table) if one.drifts]
    return Health(
        objective=objective,
        objective_share=float(known.mean()) if len(full) else math.nan,
        coverage=_coverage(table, full),
        drift=max(drifts, key=abs, default=math.nan),
        repeatability=_repeatability(origin),
        missing=missing_figure(table, objective),
    )


def _coverage(table: ResultTable, full: Indices) -> float:
    """NaN where no window has an interval: of a recording, or of a device without a sensor, samples are not known."""
    seen = [table.measurement(int(index)) for index in full[:: max(1, len(full) // _LOOKED_AT)]]
    windows = [one.intervals.keys() & {"power_w", "energy_j"} for one in seen if one.window_ns is not None]
    return sum(map(bool, windows)) / len(windows) if any(windows) else math.nan


def _repeatability(origin: Mapping[str, str]) -> float:
    try:
        stated = Statement.of_origin(origin)
    except InputError:
        return math.nan
    return math.nan if stated is None else stated.model.repeatability
