"""Series of points from CSV files, Kernel Tuner caches and sessions: which rows belong together, and what they tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...sensors.event_reasons import LIMITING
from ..formats.read import is_recording, read_recording
from ..measurement import State
from ..space.repeats import is_repeat, repeat_names
from ..space.result_table import STATES, ResultTable
from .clock_log import log_times
from .columns import Columns
from .log_series import series_of_log
from .points import CLOCK_SETTINGS, LIMIT_SETTINGS, MEMORY_SETTINGS, Points, choose
from .roles import DEVICE_COLUMNS, Roles
from .settable_clocks import settable_clocks
from .tables import read_table, roles_of_table, transposed

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_REMARKS = re.compile(r"note|comment|remark|stamp|date|error|reason|state|source", re.IGNORECASE)


def read_points(
    path: Path | str,
    *,
    clock: str | None = None,
    power: str | None = None,
    time: str | None = None,
    rate: str | None = None,
    series: str | None = None,
) -> Points:
    """One series of a CSV file or a Kernel Tuner cache: the one that `series` ('KEY=VALUE') names.

    Of several, the one with the most clocks, then the most efficient. Raises InputError naming file, place and remedy.
    """
    found = read_series(path, clock=clock, power=power, time=time, rate=rate, series=series)
    return choose(found)


def read_series(
    path: Path | str,
    *,
    clock: str | None = None,
    power: str | None = None,
    time: str | None = None,
    rate: str | None = None,
    series: str | None = None,
    transpose: bool = False,
) -> list[Points]:
    """Every series of the file that `series` ('KEY=VALUE', several with commas) leaves. Raises InputError.

    `transpose`: the file is a table of powers with one row per application and one column per clock; `rate` and `time`
    then name files that hold the speeds or times in the same form.
    """
    path = Path(path)
    wanted = parse_series(series)
    if is_recording(path):
        recording = read_recording(path)
        overrides = {"clock": clock, "power": power, "time": time, "rate": rate}
        return _series_of_table(
            *(recording.table(), str(path), recording.device),
            simulated=recording.simulated,
            wanted=wanted,
            named=overrides,
        )
    if transpose:
        others = {name: read_table(Path(table)) for name, table in (("rate", rate), ("time_s", time)) if table}
        columns, rate, time = transposed(read_table(path), others), None, None
    else:
        columns = read_table(path)
    roles = roles_of_table(columns, clock, power, time, rate)
    times = log_times(columns, roles.clock, roles.time)
    if times is not None:
        times_s, timed = times
        return series_of_log(columns, roles, times_s, wanted_rows(columns, wanted), timed=timed)
    return _series_of_columns(columns, roles, wanted)


def series_of_table(table: ResultTable, *, gpu: str = "", simulated: bool = False) -> list[Points]:
    """Every series of a session. Raises InputError where there is none."""
    return _series_of_table(table, "session", gpu, simulated=simulated, wanted={}, named={})


def points_of_table(table: ResultTable, *, gpu: str = "", simulated: bool = False) -> Points:
    """A session's series with the most clocks, then the most efficient one. Raises InputError where there is none."""
    return choose(series_of_table(table, gpu=gpu, simulated=simulated))


# --- CSV --------------------------------------------------------------------------------------------------------------


def _series_of_columns(columns: Columns, roles: Roles, wanted: Mapping[str, str]) -> list[Points]:
    rows = wanted_rows(columns, wanted)
    clock = columns.numbers(roles.clock) * roles.clock_factor
    requested = columns.numbers(roles.requested) * roles.requested_factor if roles.requested else None
    if requested is not None:  # where nothing was observed the request is the best that is known
        clock = np.where(clock > 0, clock, requested)
    time = columns.numbers(roles.time) * roles.time_factor if roles.time else None
    if roles.power:
        power = columns.numbers(roles.power) * roles.power_factor
    else:
        assert roles.energy is not None
        assert time is not None
        power = columns.numbers(roles.energy) * roles.energy_factor / np.where(time > 0, time, np.nan)
    rate = (
        columns.numbers(roles.rate)
        if roles.rate
        else 1.0 / np.where(time > 0, time, np.nan)
        if time is not None
        else None
    )
    rows &= np.isfinite(clock) & (clock > 0) & np.isfinite(power)
    if not rows.any():
        raise InputError("no row has a clock and a power", columns.where, "name the columns with --clock and --power")
    limited = None
    if "event_reasons" in columns.cells and columns.is_numeric("event_reasons"):
        bits = np.nan_to_num(columns.numbers("event_reasons")).astype(np.int64)
        limited = (bits & int(LIMITING)) != 0

    voltage = columns.numbers(roles.voltage) * roles.voltage_factor if roles.voltage else None
    temperature = columns.numbers(roles.temperature) if roles.temperature else None
    memory = columns.numbers(roles.memory_clock) * roles.memory_clock_factor if roles.memory_clock else None
    keys = key_columns(columns, roles.taken, rows, requested if requested is not None else clock)
    groups = grouped(columns, keys, rows)
    found = []
    for values, indices in groups.items():
        at = np.asarray(indices)
        picked = dict(zip(keys, values, strict=True)) | dict(wanted)
        told = {name: picked[name] for name in columns.cells if name in picked}
        gpu = next((columns.cells[c][at[0]] for c in columns.cells if c.lower() in DEVICE_COLUMNS), "")
        supported, notes = settable_clocks(gpu, clock[at] if requested is None else requested[at])
        if requested is not None and supported is None:
            supported = tuple(np.unique(requested[at][np.isfinite(requested[at])]).tolist())
        speed = None if rate is None else rate[at]
        asked = None if requested is None else requested[at]
        found.append(
            Points(
                clock_mhz=clock[at],
                power_w=power[at],
                rate=speed,
                limited=None if limited is None else limited[at],
                limit_w=_limit_of_columns(columns, at),
                supported_mhz=supported,
                gpu=gpu,
                series=", ".join(f"{k}={v}" for k, v in told.items()) or Path(columns.where).name,
                notes=notes,
                voltage_mv=voltage[at] if voltage is not None else None,
                temperature_c=temperature[at] if temperature is not None else None,
                memory_clock_mhz=_single(memory[at]) if memory is not None else None,
                others=tuple(f"{k}={v}" for k, v in told.items() if k != roles.memory_clock),
                requested_mhz=asked,
            )
        )
    return found


def wanted_rows(columns: Columns, wanted: Mapping[str, str]) -> Mask:
    """The rows that `wanted` leaves, failed configurations of a session aside. Raises InputError for unknown keys."""
    rows = np.ones(len(next(iter(columns.cells.values()))), dtype=np.bool_)
    if "state" in columns.cells:  # a session of ours: failed configurations have no figures
        rows &= np.asarray([cell in ("", State.OK.value) for cell in columns.cells["state"]])
    for key, value in wanted.items():
        if key not in columns.cells:
            raise InputError(
                f"no column '{key}'", f"{columns.where}, --series", f"there are: {', '.join(columns.cells)}"
            )
        rows &= np.asarray([same(cell, value) for cell in columns.cells[key]])
        if not rows.any():
            known = ", ".join(list(dict.fromkeys(columns.cells[key]))[:8])
            raise InputError(f"no row with {key}={value}", f"{columns.where}, --series", f"there are: {known}")
    return rows


def grouped(columns: Columns, keys: list[str], rows: Mask) -> dict[tuple[str, ...], list[int]]:
    """The rows by the values of these columns, in the order in which these first appear."""
    chosen = np.flatnonzero(rows)
    group = np.zeros(len(chosen), dtype=np.int64)
    for key in keys:
        codes, count = _codes(columns.cells[key], chosen)
        group = np.unique(group * count + codes, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    parts = np.split(chosen[order], np.flatnonzero(np.diff(group[order])) + 1) if len(chosen) else []
    parts.sort(key=lambda part: int(part[0]))
    return {tuple(columns.cells[key][int(part[0])] for key in keys): part.tolist() for part in parts}


def key_columns(columns: Columns, taken: set[str], rows: Mask, clock: Floats) -> list[str]:
    """Columns that tell one series from another: the board, and any whose values each come with several clocks.

    A column of numbers must do so without exception: a measured quantity could repeat a value by chance.
    """
    keys = []
    chosen = np.flatnonzero(rows)
    clocks, place = np.unique(clock[chosen], return_inverse=True)
    for name in columns.cells:
        if name in taken or _REMARKS.search(name):
            continue
        codes, count = _codes(columns.cells[name], chosen)
        if count < len(chosen) and is_repeat(name, columns.cells[name]):
            continue
        pairs = np.unique(codes * len(clocks) + place)  # each value with each of its clocks, once
        several = int((np.bincount(pairs // len(clocks), minlength=count) >= 3).sum())
        needed = count if columns.is_numeric(name) else 0.5 * count
        if count > 1 and (several >= needed or name.lower() in DEVICE_COLUMNS):
            keys.append(name)
    return _fewest(columns, keys, rows)


def _codes(cells: Sequence[str], chosen: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each text of the chosen cells, and how many texts there are."""
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(cells[at], len(seen)) for at in chosen.tolist()), np.int64, len(chosen))
    return codes, len(seen)


def _fewest(columns: Columns, keys: list[str], rows: Mask) -> list[str]:
    """Those of `keys` that tell the same series apart: the boards, then words, then numbers, as far as needed."""

    def rank(name: str) -> int:
        return 0 if name.lower() in DEVICE_COLUMNS else 2 if columns.is_numeric(name) else 1

    total = len(grouped(columns, keys, rows))
    kept = [name for name in keys if rank(name) == 0]
    told = len(grouped(columns, kept, rows))
    for name in sorted(keys, key=rank):
        if told < total and name not in kept and (more := len(grouped(columns, [*kept, name], rows))) > told:
            kept.append(name)
            told = more
    for name in [name for name in kept if rank(name)]:
        without = [other for other in kept if other != name]
        if len(grouped(columns, without, rows)) == total:
            kept = without
    return [name for name in keys if name in kept]


def _limit_of_columns(columns: Columns, at: npt.NDArray[np.intp]) -> float | None:
    if "power_limit_w" not in columns.cells or not columns.is_numeric("power_limit_w"):
        return None
    limit = _single(columns.numbers("power_limit_w")[at])
    return limit if limit is not None and limit > 0 else None


# --- caches and sessions ----------------------------------------------------------------------------------------------


def _series_of_table(
    table: ResultTable,
    where: str,
    gpu: str,
    *,
    simulated: bool,
    wanted: Mapping[str, str],
    named: Mapping[str, str | None],
) -> list[Points]:
    space = table.space
    for option, name in named.items():
        if name is not None and name not in (*table.value_names, *space.names):
            known = ", ".join((*space.names, *table.value_names))
            raise InputError(f"no value '{name}'", f"{where}, --{option}", f"there are: {known}")
    unknown = next((key for key in wanted if key not in space.names), None)
    if unknown is not None:
        raise InputError(f"no parameter '{unknown}'", f"{where}, --series", f"there are: {', '.join(space.names)}")
    setting = next((name for name in CLOCK_SETTINGS if name in space.names), None)
    observed = table.values(named.get("clock") or "observed_clock_mhz")
    requested = table.values(setting) if setting else observed
    clock = np.where(np.isfinite(observed), observed, requested)
    power = table.values(named.get("power") or "power_w")
    time_s = table.values(named.get("time") or "time_s")
    rate = named.get("rate")
    speed = table.values(rate) if rate else 1.0 / np.where(time_s > 0, time_s, np.nan)
    length = min(len(clock), len(power), len(speed))  # the engine may append while we look
    clock, power, speed, requested = clock[:length], power[:length], speed[:length], requested[:length]
    voltage, temperature = (table.values(name)[:length] for name in ("core_voltage_mv", "temperature_c"))
    usable = (table.states()[:length] == STATES.index(State.OK)) & np.isfinite(clock) & np.isfinite(power)
    if not usable.any():
        remedy = "the model needs measurements at several graphics clocks, with their power"
        raise InputError("no measurement has a clock and a power", where, remedy)

    repeats = repeat_names(table)  # readings of one configuration belong to one series
    others = [name for name in space.names if name != setting and name not in repeats]
    memory = next((name for name in MEMORY_SETTINGS if name in others), None)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index in np.flatnonzero(usable).tolist():
        configuration = table.measurement(index).configuration
        if all(same(str(configuration[key]), value) for key, value in wanted.items()):
            groups.setdefault(tuple(configuration[name] for name in others), []).append(index)
    if not groups:
        told = ", ".join(f"{key}={value}" for key, value in wanted.items())
        raise InputError(f"nothing measured with {told}", f"{where}, --series", "name values that were measured")
    found = []
    for values, indices in groups.items():
        at = np.asarray(indices)
        told_by = dict(zip(others, values, strict=True))
        supported, notes = settable_clocks(gpu, requested[at])
        supported = supported or tuple(np.unique(requested[at]).tolist())
        told_rate = speed[at] if np.isfinite(speed[at]).any() else None
        asked = requested[at] if setting else None
        recorded = [table.measurement(i) for i in indices]
        limited = None
        if all(m.source in ("nvml", "simulated") for m in recorded):
            limited = np.asarray([bool(m.event_reasons & LIMITING) for m in recorded], dtype=np.bool_)
        limit = next((told_by[name] for name in LIMIT_SETTINGS if name in told_by), None)
        found.append(
            Points(
                clock_mhz=clock[at],
                power_w=power[at],
                rate=told_rate,
                limited=limited,
                limit_w=float(limit) if isinstance(limit, int | float) else None,
                supported_mhz=supported,
                gpu=gpu,
                series=", ".join(f"{name}={value}" for name, value in told_by.items()) or "all",
                simulated=simulated,
                notes=notes,
                voltage_mv=voltage[at],
                temperature_c=temperature[at],
                memory_clock_mhz=float(told_by[memory]) if memory else None,
                others=tuple(f"{name}={value}" for name, value in told_by.items() if name != memory),
                requested_mhz=asked,
            )
        )
    return found


# --- small things -----------------------------------------------------------------------------------------------------


def parse_series(text: str | None) -> dict[str, str]:
    """'KEY=VALUE', several with commas. Raises InputError."""
    if text is None:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not key.strip() or not equals for key, equals, _ in pairs):
        raise InputError(f"'{text}' names no series", "--series", "write KEY=VALUE, several with commas")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _single(values: Floats) -> float | None:
    """The value that all have; None where they differ or none is known."""
    known = np.unique(values[np.isfinite(values)])
    return float(known[0]) if len(known) == 1 else None


def same(cell: str, value: str) -> bool:
    """The same text, or the same number written differently."""
    if cell == value:
        return True
    try:
        return float(cell) == float(value)
    except ValueError:
        return False
