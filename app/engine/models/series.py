"""Series of points and sweeps of power limits from CSV files, logs, Kernel Tuner caches and sessions.

A log gives one series per board, with one point per clock at which the board stood still under load.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ...base.errors import InputError
from ...sensors.event_reasons import LIMITING
from ...sensors.gpu import LIVE
from ..formats.columns import Columns
from ..formats.read import is_recording, read_recording
from ..formats.wide import transposed
from ..metering.limit_effect import THROTTLED, LimitEffect, effects_of
from ..metering.window import PEAK_POWER, THROTTLED_SHARE
from ..results.measurement import State
from ..space.repeats import repeat_names
from ..space.result_table import STATES, ResultTable
from .arrays import Floats, Mask, Rows
from .clock_log import Log, ceiling_w, log_times, plateaus
from .column_roles import Named, Roles, find_cap_roles
from .fit.caps import CapFit, fit_caps
from .fit.clock_limits import settable_clocks
from .fit.points import CLOCK_SETTINGS, LIMIT_SETTINGS, MEMORY_SETTINGS, Points
from .tables import (
    DEVICE_COLUMNS,
    Group,
    board_of,
    grouped,
    groups_of_columns,
    groups_of_table,
    parse_series,
    read_table,
    roles_of_table,
    wanted_rows,
)

_LEAST_CLOCKS = 5  # of which the model can be fitted
_LEAST = 1e-50  # a shorter time, or less energy, is no measurement
_BOARD = ("index", "uuid", "gpu_uuid", "pci.bus_id", "name", *DEVICE_COLUMNS)
_REMEDY = (
    "hold the load and lock one clock after the other (nvidia-smi -lgc) for 5 s each or longer, at 5 clocks or more; "
    "or sweep them with wattridge fit --gpu"
)


def series_of_log(roles: Roles, times_s: Floats, rows: Mask, *, timed: bool) -> list[Points]:
    """Make one series for each board in a log: a point per clock at which the board stood still under load.

    Parameters
    ----------
    roles : Roles
        What the columns of the log hold; n rows.
    times_s : array, shape (n,)
        Time of each row in s, or its number where the log is not timed.
    rows : array of bool, shape (n,)
        The rows to use.
    timed : bool
        Whether `times_s` are seconds rather than numbers of readings.

    Returns
    -------
    list of Points
        At least one; boards with fewer than five clocks are left out.

    Raises
    ------
    InputError
        If there is no column of power, or no board has five clocks, naming those found.
    """
    columns = roles.columns
    if "power" not in roles.names:
        raise InputError("a log without a column of power", columns.where, "name it with --power")
    clock, power, temperature = roles.values("clock"), roles.values("power"), roles.known("temperature")
    memory, busy = roles.known("memory_clock"), _utilisation(columns)
    rate = None if re.search(r"pci|[rt]x", roles.names.get("rate", "").lower()) else roles.known("rate")
    boards = [name for name in columns.cells if name.lower() in _BOARD and len(set(columns.cells[name])) > 1]
    series, problem = [], ""
    for board, members in grouped(columns, boards, rows).items():
        log = Log(
            times_s[members], clock[members], power[members], _at(memory, members), _at(busy, members), timed=timed
        )
        levels, parts = plateaus(log)
        problem = problem or _problem(log, [level.clock_mhz for level in levels])
        if len(levels) < _LEAST_CLOCKS:
            continue
        gpu = board_of(columns, members[0], ("name", *DEVICE_COLUMNS))
        clocks = np.array([level.clock_mhz for level in levels])
        supported, notes = settable_clocks(gpu, clocks)
        kept = sum(level.readings for level in levels)
        scatter = np.median([level.scatter_w / level.power_w for level in levels])
        note = (
            f"{log.words}: {len(levels)} clocks that stood still under load, {kept} readings at them; ramps and idle "
            f"stretches left out; the readings of a clock scatter by {100 * scatter:.1f} %"
        )
        series.append(
            Points(
                clock_mhz=clocks,
                power_w=np.array([level.power_w for level in levels]),
                rate=_medians(rate, members, parts),
                limit_w=ceiling_w(log),
                supported_mhz=supported or tuple(clocks.tolist()),
                gpu=gpu,
                series=Group(members, dict(zip(boards, board, strict=True)), unnamed=Path(columns.where).name).name,
                notes=(note, *notes),
                temperature_c=_medians(temperature, members, parts),
                others=board,
                plateaus=tuple(levels),
            )
        )
    if not series:
        raise InputError(problem or "a log without a clock and a power", columns.where, _REMEDY)
    return series


def _problem(log: Log, clocks: list[float]) -> str:
    """Why a log is not enough for a fit."""
    if not clocks:
        return f"{log.words}, in which the clock never stood still under load"
    listed = ", ".join(f"{clock:.0f}" for clock in clocks)
    return f"{log.words}, in which the clock stood still under load only at {listed} MHz"


def _utilisation(columns: Columns) -> Floats | None:
    """Of the board, per cent; None if no column holds it."""
    names = (name for name in columns.cells if "util" in name.lower() and not re.search("mem|enc|dec", name.lower()))
    name = next(names, None)
    return columns.numbers(name) if name is not None and columns.is_numeric(name) else None


def _at(values: Floats | None, rows: Rows) -> Floats | None:
    return None if values is None else values[rows]


def _medians(values: Floats | None, rows: Rows, parts: list[Rows]) -> Floats | None:
    """The median over each plateau; None if a plateau has no known value."""
    if values is None:
        return None
    parts_of_values = [values[rows[part]] for part in parts]
    if any(not np.isfinite(value).any() for value in parts_of_values):
        return None
    return np.array([float(np.nanmedian(value)) for value in parts_of_values])


def read_series(
    path: Path | str, *, series: str | None = None, transpose: bool = False, **named: str | None
) -> list[Points]:
    """Read the series of a file.

    Parameters
    ----------
    path : Path or str
        A CSV, a log, a Kernel Tuner cache or a recording of a session.
    series : str or None, optional
        Which to read: 'KEY=VALUE', several with commas; None for every series.
    transpose : bool, optional
        Whether the file is a table of powers with one row per application and one column per clock; `rate` and `time`
        of `named` then name files that hold the speeds or times in the same form.
    **named : str or None
        Columns to use as `clock`, `power`, `time` and `rate`; None for the one that the headings suggest.

    Returns
    -------
    list of Points
        At least one.

    Raises
    ------
    InputError
        Naming file, place and remedy, where the file cannot be read or holds no such series.
    """
    path = Path(path)
    wanted, chosen = parse_series(series), Named(**named)
    if is_recording(path):
        recording = read_recording(path)
        found = _series_of_table(recording.table(), str(path), recording.device, wanted, chosen)
        return [replace(points, simulated=recording.simulated) for points in found]
    columns = read_table(path)
    if transpose:
        others = {"rate": chosen.rate, "time_s": chosen.time}
        columns = transposed(columns, {name: read_table(Path(file)) for name, file in others.items() if file})
        chosen = replace(chosen, rate=None, time=None)
    roles = roles_of_table(columns, chosen)
    times = log_times(columns, roles.names["clock"], roles.names.get("time"))
    if times is not None:
        times_s, timed = times
        return series_of_log(roles, times_s, wanted_rows(columns, wanted), timed=timed)
    return _series_of_columns(roles, wanted)


def series_of_table(table: ResultTable, *, gpu: str = "", simulated: bool = False) -> list[Points]:
    """Make every series of a session.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    gpu : str, optional
        Name of the board.
    simulated : bool, optional
        Whether the board is simulated.

    Returns
    -------
    list of Points
        At least one; repeats of a configuration belong to one series.

    Raises
    ------
    InputError
        If there is none: no measurement has a clock and a power.
    """
    return [replace(points, simulated=simulated) for points in _series_of_table(table, "session", gpu, {}, Named())]


def _series_of_columns(roles: Roles, wanted: Mapping[str, str]) -> list[Points]:
    columns = roles.columns
    rows = wanted_rows(columns, wanted)
    clock, requested, memory = roles.values("clock"), roles.known("requested"), roles.known("memory_clock")
    if requested is not None:  # where nothing was observed the request is the best that is known
        requested = np.where(requested > 0, requested, np.nan)  # tools write 0 or -1 where they locked no clock
        if not np.isfinite(requested).any():
            what = f"no clock was locked: every '{roles.names['requested']}' is 0 or below"
            raise InputError(what, columns.where, "measure at several locked clocks: one left to itself shows no best")
        clock = np.where(clock > 0, clock, requested)
    every = Points(
        clock_mhz=clock,
        power_w=roles.power(),
        rate=roles.speed(),
        limited=_limited(columns),
        voltage_mv=roles.known("voltage"),
        temperature_c=roles.known("temperature"),
        requested_mhz=requested,
    )
    timeless = roles.values("time") <= 0 if "time" in roles.names else np.zeros(len(rows), dtype=np.bool_)
    impossible = rows & ((every.power_w <= 0) | np.isinf(every.power_w) | timeless)
    count = int(impossible.sum())
    notes = [f"{count} rows with a power, energy or time that cannot be, 0 or below, are left out"] if count else []
    finite = np.isfinite(clock) & (clock > 0) & np.isfinite(every.power_w)
    speed = finite if every.rate is None or np.isfinite(every.rate[finite]).sum() < 2 else np.isfinite(every.rate)
    lacking = int((rows & ~impossible & ~(finite & speed)).sum())
    notes += [f"{lacking} rows without a number for clock, power or speed are left out"] if lacking else []
    rows &= finite & ~impossible
    if not rows.any():
        raise InputError("no row has a clock and a power", columns.where, "name the columns with --clock and --power")
    results = []
    for group in groups_of_columns(roles, rows, every.asked_mhz, wanted):
        points = _of_group(every, group, group.gpu, roles.names.get("memory_clock"), requested)
        limit_w = _limit_of_columns(columns, group)
        memory_mhz = None if memory is None else _single(memory[group.rows])
        results.append(replace(points, limit_w=limit_w, memory_clock_mhz=memory_mhz, notes=(*points.notes, *notes)))
    return results


def _of_group(every: Points, group: Group, gpu: str, memory: str | None, settable_mhz: Floats | None) -> Points:
    """The points of a group, with the clocks that can be set: on the board's grid, else those of `settable_mhz`.

    `memory` names the memory clock.
    """
    points = every.at(group.rows)
    asked = points.clock_mhz if settable_mhz is None else settable_mhz[group.rows]
    supported, notes = settable_clocks(gpu, asked)
    if supported is None and settable_mhz is not None:
        supported = tuple(np.unique(asked[np.isfinite(asked)]).tolist())
    others = tuple(f"{name}={value}" for name, value in group.values.items() if name != memory)
    return replace(points, gpu=gpu, series=group.name, supported_mhz=supported, notes=notes, others=others)


def _limited(columns: Columns) -> Mask | None:
    if "event_reasons" not in columns.cells or not columns.is_numeric("event_reasons"):
        return None
    bits = np.nan_to_num(columns.numbers("event_reasons")).astype(np.int64)
    return np.asarray((bits & int(LIMITING)) != 0)


def _limit_of_columns(columns: Columns, group: Group) -> float | None:
    if "power_limit_w" not in columns.cells or not columns.is_numeric("power_limit_w"):
        return None
    limit = _single(columns.numbers("power_limit_w")[group.rows])
    return limit if limit is not None and limit > 0 else None


def _single(values: Floats) -> float | None:
    """The value that all have; None if they differ or none is known."""
    finite = np.unique(values[np.isfinite(values)])
    return float(finite[0]) if len(finite) == 1 else None


def _series_of_table(table: ResultTable, where: str, gpu: str, wanted: Mapping[str, str], named: Named) -> list[Points]:
    """Those of a cache or session. Raises InputError if there is none."""
    space = table.space
    _check_names(table, where, wanted, named)
    setting = next((name for name in CLOCK_SETTINGS if name in space.names), None)
    every = _points_of_table(table, setting, named)
    states = table.states()[: len(every.clock_mhz)]
    comparable = table.comparable[: len(states)]  # the boards that shared a session draw differently
    usable = comparable & (states == STATES.index(State.OK)) & np.isfinite(every.clock_mhz) & np.isfinite(every.power_w)
    untouched = usable & np.isnan(every.asked_mhz)  # they are no points of a fit
    usable &= ~untouched
    if not usable.any():
        remedy = "the model needs measurements at several graphics clocks, with their power"
        raise InputError("no measurement has a clock and a power", where, remedy)
    repeats = repeat_names(table)  # readings of one configuration belong to one series
    names = [name for name in space.names if name != setting and name not in repeats]
    memory = next((name for name in MEMORY_SETTINGS if name in names), None)
    kernel = [p.name for p in space.parameters if p.name in names and not p.device_setting]
    own = {
        tuple(group.values.values()): _energy_and_speed(every.at(group.rows))
        for group in groups_of_table(table, untouched, kernel, {})
    }
    groups = groups_of_table(table, usable, names, wanted)
    if not groups:
        what = ", ".join(f"{key}={value}" for key, value in wanted.items())
        raise InputError(f"nothing measured with {what}", f"{where}, --series", "name values that were measured")
    results = []
    for group in groups:
        points = _of_group(every, group, gpu, memory, every.asked_mhz)
        if points.rate is not None and not np.isfinite(points.rate).any():
            points = replace(points, rate=None)
        limit = next((group.values[name] for name in LIMIT_SETTINGS if name in group.values), None)
        own_energy, own_rate = own.get(tuple(group.values[name] for name in kernel), (None, None))
        results.append(
            replace(
                points,
                limited=_limited_rows(table, group),
                limit_w=_number(limit),
                memory_clock_mhz=_number(group.values[memory]) if memory else None,
                untouched_energy=own_energy,
                untouched_rate=own_rate,
            )
        )
    return results


def _energy_and_speed(points: Points) -> tuple[float, float | None]:
    """Medians of energy per work and of speed."""
    rate = None if points.rate is None else float(np.nanmedian(points.rate))
    return float(np.nanmedian(points.energy)), rate


def _number(value: object) -> float | None:
    """A level of a setting as a number; None if it is untouched, or there is none."""
    return float(value) if isinstance(value, int | float) else None


def _check_names(table: ResultTable, where: str, wanted: Mapping[str, str], named: Named) -> None:
    """Raises InputError if a value or parameter that the user names is not in the table."""
    names = table.space.names
    for option, name in asdict(named).items():
        if name is not None and name not in (*table.value_names, *names):
            choices = ", ".join((*names, *table.value_names))
            raise InputError(f"no value '{name}'", f"{where}, --{option}", f"there are: {choices}")
    unknown = next((key for key in wanted if key not in names), None)
    if unknown is not None:
        raise InputError(f"no parameter '{unknown}'", f"{where}, --series", f"there are: {', '.join(names)}")


def _points_of_table(table: ResultTable, setting: str | None, named: Named) -> Points:
    """Every measurement of a table as a point; the engine may append while we look."""
    power = named.power or "power_w"
    arrays = {
        "clock_mhz": table.values(named.clock or "observed_clock_mhz"),
        "power_w": table.values(power),
        "rate": table.values(named.rate) if named.rate else _speed_of(table, named.time, power),
        "voltage_mv": table.values("core_voltage_mv"),
        "temperature_c": table.values("temperature_c"),
    }
    if setting is not None:
        arrays["requested_mhz"] = table.values(setting)
    length = min(map(len, arrays.values()))
    points = Points(**{name: values[:length] for name, values in arrays.items()})  # type: ignore[arg-type]
    requested = points.requested_mhz
    if requested is None:
        return points
    return replace(points, clock_mhz=np.where(np.isfinite(points.clock_mhz), points.clock_mhz, requested))


def _limited_rows(table: ResultTable, group: Group) -> Mask | None:
    """Where a limit acted; None if the event reasons of a measurement were not recorded."""
    measured = [table.measurement(row) for row in group.rows.tolist()]
    if any(measurement.source not in (*LIVE, "simulated") for measurement in measured):
        return None
    return np.asarray([bool(measurement.event_reasons & LIMITING) for measurement in measured], dtype=np.bool_)


def read_caps(path: Path | str, *, series: str | None = None, **named: str | None) -> list[CapFit]:
    """Read the series of power limits in a file.

    Parameters
    ----------
    path : Path or str
        A CSV or a recording of a session.
    series : str or None, optional
        Which to read: 'KEY=VALUE', several with commas; None for every series.
    **named : str or None
        Columns to use as `power`, `time` and `rate`; None for the one that the headings suggest. Of a recording they
        are not used.

    Returns
    -------
    list of CapFit
        One fit for each series of three limits or more; empty if there is none.

    Raises
    ------
    InputError
        For a file that cannot be read, or a column or value that it does not have.
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
    """Fit the power limits of each configuration that was measured under three or more.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    gpu : str
        Name of the board.
    simulated : bool
        Whether the board is simulated.
    wanted : mapping or None, optional
        Values, as text, of the parameters that configurations must have, by name; None for all configurations.

    Returns
    -------
    list of CapFit
        One for each configuration; empty if no parameter is a power limit.
    """
    space = table.space
    setting = next((name for name in LIMIT_SETTINGS if name in space.names), None)
    if setting is None:
        return []
    limit, power, speed = table.values(setting), table.values("power_w"), _speed_of(table)
    clock = table.values("observed_clock_mhz")
    length = min(len(limit), len(power), len(speed))  # the engine may append while we look
    good = (table.states()[:length] == STATES.index(State.OK)) & np.isfinite(power[:length] + limit[:length])
    others = [name for name in space.names if name != setting]
    fits = [
        fit_caps(
            limit[group.rows],
            power[group.rows],
            speed[group.rows],
            gpu=gpu,
            series=group.name,
            observed_clock_mhz=clock[group.rows],
            simulated=simulated,
            effects=limit_effects(table, group.rows),
        )
        for group in groups_of_table(table, good, others, wanted or {})
    ]
    return [fit for fit in fits if fit is not None]


def _speed_of(table: ResultTable, time: str | None = None, power: str = "power_w") -> Floats:
    """Runs per second, else the speed of which the work per joule is known, else what the power tells.

    As of the columns of a file: power tells it beside the energy of a run or of a unit of work.
    """
    time_s, names = table.values(time or "time_s"), table.value_names
    rates = (name for name in names if f"{name.removesuffix('/s')}/J" in names or f"{name}/W" in names)
    per_joule = (name for name in ("work/J", *names) if name in names and name.endswith(("/J", "/W")))
    if time or np.isfinite(time_s).any():
        return _inverse(time_s)
    if (rate := next(rates, None)) is not None:
        return table.values(rate)
    watts, efficiency = table.values(power), next(per_joule, None)
    done = table.values(efficiency) if efficiency is not None else _inverse(table.values("energy_j"))
    length = min(len(watts), len(done))  # the engine may append while we look
    return watts[:length] * done[:length]


def _inverse(values: Floats) -> Floats:
    return np.asarray(1.0 / np.where(values > _LEAST, values, np.nan))


def limit_effects(table: ResultTable, among: Rows | slice = slice(None)) -> tuple[LimitEffect, ...]:
    """Return the effect of each power limit of a table's space on what was measured.

    A limit is without effect if it is on every configuration. A configuration that power throttled wherever it was
    measured may draw any power under a higher limit: no limit is then known to be without effect.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    among : ndarray or slice, optional
        The indices of those to judge by, shape (n,); all of them by default.

    Returns
    -------
    tuple of LimitEffect
        Ascending; empty without power limits, or without peaks and event reasons of the power.
    """
    table, space = table.so_far(), table.space
    name = next((item for item in LIMIT_SETTINGS if item in space.names), "")
    under_w, peak_w, share = (table.values(item)[among] for item in (name, PEAK_POWER, THROTTLED_SHARE))
    known = np.isfinite(peak_w) & np.isfinite(share)
    if not name or not known.any():
        return ()
    under_w = np.where(np.isnan(under_w), np.inf, under_w)  # untouched: the limit in force is not known
    loads = space.codes[table.rows()[among]]
    loads[:, space.names.index(name)] = 0
    free = known & (share <= THROTTLED)
    if {load.tobytes() for load in loads[known]} != {load.tobytes() for load in loads[free]}:
        peak_w = np.full(len(peak_w), np.nan)
    limits = np.unique(space.numbers(name))
    return effects_of(limits[np.isfinite(limits)].tolist(), under_w[known], peak_w[known], share[known])


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
