"""Sweeps of power limits from CSV files, Kernel Tuner caches and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..formats.read import is_recording, read_recording
from ..measurement import State
from ..space.result_table import STATES, ResultTable
from .caps import CapFit, fit_caps
from .groups import groups_of_columns, groups_of_table, parse_series, wanted_rows
from .points import LIMIT_SETTINGS
from .roles import Named, Roles, find_cap_roles
from .tables import read_table


def read_caps(path: Path | str, *, series: str | None = None, **named: str | None) -> list[CapFit]:
    """Every series of power limits in the file that `series` ('KEY=VALUE', ...) leaves; none is an empty list.

    `named` are columns of power, time and rate to use instead of those that the headings suggest. Raises InputError
    for a file that cannot be read.
    """
    path = Path(path)
    wanted = parse_series(series)
    if is_recording(path):
        recording = read_recording(path)
        return caps_of_table(recording.table(), recording.device, simulated=recording.simulated, wanted=wanted)
    roles = find_cap_roles(read_table(path), Named(**named))
    return [] if roles is None else _of_columns(roles, wanted)


def caps_of_table(
    table: ResultTable, gpu: str, *, simulated: bool, wanted: Mapping[str, str] | None = None
) -> list[CapFit]:
    """One fit per configuration that was measured under three power limits or more."""
    space = table.space
    setting = next((name for name in LIMIT_SETTINGS if name in space.names), None)
    if setting is None:
        return []
    limit, power, time_s = table.values(setting), table.values("power_w"), table.values("time_s")
    clock = table.values("observed_clock_mhz")
    length = min(len(limit), len(power), len(time_s))  # the engine may append while we look
    good = (table.states()[:length] == STATES.index(State.OK)) & np.isfinite(power[:length])
    others = [name for name in space.names if name != setting]
    fits = [
        fit_caps(
            limit[group.rows],
            power[group.rows],
            1.0 / np.where(time_s[group.rows] > 0, time_s[group.rows], np.nan),
            gpu=gpu,
            series=group.name,
            observed_clock_mhz=clock[group.rows],
            simulated=simulated,
        )
        for group in groups_of_table(table, good, others, wanted or {})
    ]
    return [fit for fit in fits if fit is not None]


def _of_columns(roles: Roles, wanted: Mapping[str, str]) -> list[CapFit]:
    rows = wanted_rows(roles.columns, wanted)
    limit, drawn, speed = roles.values("limit"), roles.power(), roles.speed()
    assert speed is not None
    rows &= np.isfinite(limit) & np.isfinite(drawn) & np.isfinite(speed)
    fits = [
        fit_caps(limit[group.rows], drawn[group.rows], speed[group.rows], gpu=group.gpu, series=group.name)
        for group in groups_of_columns(roles, rows, limit, wanted)
    ]
    return [fit for fit in fits if fit is not None]
