"""Sweeps of power limits from CSV files, Kernel Tuner caches and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..formats.read import is_recording, read_recording
from ..measurement import State
from ..space.result_table import STATES, ResultTable
from .caps import CapFit, fit_caps
from .columns import Columns
from .points import LIMIT_SETTINGS
from .roles import DEVICE_COLUMNS, find_cap_roles
from .series import grouped, key_columns, parse_series, same, wanted_rows
from .tables import read_table


def read_caps(
    path: Path | str,
    *,
    power: str | None = None,
    time: str | None = None,
    rate: str | None = None,
    series: str | None = None,
) -> list[CapFit]:
    """Every series of power limits in the file that `series` ('KEY=VALUE', ...) leaves; none is an empty list.

    Raises InputError for a file that cannot be read.
    """
    path = Path(path)
    wanted = parse_series(series)
    if is_recording(path):
        recording = read_recording(path)
        return caps_of_table(recording.table(), recording.device, simulated=recording.simulated, wanted=wanted)
    return _of_columns(read_table(path), wanted, power, time, rate)


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
    groups: dict[tuple[object, ...], list[int]] = {}
    for index in np.flatnonzero(good).tolist():
        configuration = table.measurement(index).configuration
        if all(same(str(configuration.get(key)), value) for key, value in (wanted or {}).items()):
            groups.setdefault(tuple(configuration[name] for name in others), []).append(index)
    fits = [
        fit_caps(
            limit[at],
            power[at],
            1.0 / np.where(time_s[at] > 0, time_s[at], np.nan),
            gpu=gpu,
            series=", ".join(f"{name}={value}" for name, value in zip(others, values, strict=True)) or "all",
            observed_clock_mhz=clock[at],
            simulated=simulated,
        )
        for values, at in groups.items()
    ]
    return [fit for fit in fits if fit is not None]


def _of_columns(
    columns: Columns, wanted: Mapping[str, str], power: str | None, time: str | None, rate: str | None
) -> list[CapFit]:
    roles = find_cap_roles(columns, power, time, rate)
    if roles is None:
        return []
    rows = wanted_rows(columns, wanted)
    limit = columns.numbers(roles.limit) * roles.limit_factor
    drawn = columns.numbers(roles.power) * roles.power_factor
    if roles.rate is not None:
        speed = columns.numbers(roles.rate)
    else:
        assert roles.time is not None
        seconds = columns.numbers(roles.time) * roles.time_factor
        speed = 1.0 / np.where(seconds > 0, seconds, np.nan)
    rows &= np.isfinite(limit) & np.isfinite(drawn) & np.isfinite(speed)
    keys = key_columns(columns, roles.taken, rows, limit)
    fits = []
    for values, at in grouped(columns, keys, rows).items():
        picked = dict(zip(keys, values, strict=True)) | dict(wanted)
        told = ", ".join(f"{name}={picked[name]}" for name in columns.cells if name in picked)
        gpu = next((columns.cells[c][at[0]] for c in columns.cells if c.lower() in DEVICE_COLUMNS), "")
        fits.append(fit_caps(limit[at], drawn[at], speed[at], gpu=gpu, series=told or Path(columns.where).name))
    return [fit for fit in fits if fit is not None]
