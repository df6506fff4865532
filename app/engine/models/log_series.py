"""Series of points from a log: one per board, one point per clock at which the board stood still under load."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ...errors import InputError
from ..formats.columns import Columns
from .arrays import Floats, Mask, Rows
from .clock_log import Log, ceiling_w, plateaus
from .groups import Group, board_of, grouped
from .points import Points
from .roles import DEVICE_COLUMNS, Roles
from .settable_clocks import settable_clocks

_LEAST_CLOCKS = 5  # of which the model can be fitted
_BOARD = ("index", "uuid", "gpu_uuid", "pci.bus_id", "name", *DEVICE_COLUMNS)
_REMEDY = (
    "hold the load and lock one clock after the other (nvidia-smi -lgc) for 5 s each or longer, at 5 clocks or more; "
    "or sweep them with wattridge fit --gpu"
)


def series_of_log(roles: Roles, times_s: Floats, rows: Mask, *, timed: bool) -> list[Points]:
    """One series for each board in the log. Raises InputError where none has five clocks, naming those found."""
    columns = roles.columns
    if "power" not in roles.names:
        raise InputError("a log without a column of power", columns.where, "name it with --power")
    clock, power, temperature = roles.values("clock"), roles.values("power"), roles.known("temperature")
    memory, busy = roles.known("memory_clock"), _utilisation(columns)
    rate = None if re.search(r"pci|[rt]x", roles.names.get("rate", "").lower()) else roles.known("rate")
    boards = [name for name in columns.cells if name.lower() in _BOARD and len(set(columns.cells[name])) > 1]
    found, problem = [], ""
    for board, at in grouped(columns, boards, rows).items():
        log = Log(times_s[at], clock[at], power[at], _at(memory, at), _at(busy, at), timed=timed)
        levels, parts = plateaus(log)
        problem = problem or _problem(log, [level.clock_mhz for level in levels])
        if len(levels) < _LEAST_CLOCKS:
            continue
        gpu = board_of(columns, at[0], ("name", *DEVICE_COLUMNS))
        clocks = np.array([level.clock_mhz for level in levels])
        supported, notes = settable_clocks(gpu, clocks)
        kept = sum(level.readings for level in levels)
        scatter = np.median([level.scatter_w / level.power_w for level in levels])
        note = (
            f"{log.words}: {len(levels)} clocks that stood still under load, {kept} readings at them; ramps and idle "
            f"stretches left out; the readings of a clock scatter by {100 * scatter:.1f} %"
        )
        found.append(
            Points(
                clock_mhz=clocks,
                power_w=np.array([level.power_w for level in levels]),
                rate=_medians(rate, at, parts),
                limit_w=ceiling_w(log),
                supported_mhz=supported or tuple(clocks.tolist()),
                gpu=gpu,
                series=Group(at, dict(zip(boards, board, strict=True)), unnamed=Path(columns.where).name).name,
                notes=(note, *notes),
                temperature_c=_medians(temperature, at, parts),
                others=board,
                plateaus=tuple(levels),
            )
        )
    if not found:
        raise InputError(problem or "a log without a clock and a power", columns.where, _REMEDY)
    return found


def _problem(log: Log, clocks: list[float]) -> str:
    """Why a log is not enough for a fit."""
    if not clocks:
        return f"{log.words}, in which the clock never stood still under load"
    listed = ", ".join(f"{clock:.0f}" for clock in clocks)
    return f"{log.words}, in which the clock stood still under load only at {listed} MHz"


def _utilisation(columns: Columns) -> Floats | None:
    """Of the board, per cent; None where no column holds it."""
    names = (name for name in columns.cells if "util" in name.lower() and not re.search("mem|enc|dec", name.lower()))
    name = next(names, None)
    return columns.numbers(name) if name is not None and columns.is_numeric(name) else None


def _at(values: Floats | None, rows: Rows) -> Floats | None:
    return None if values is None else values[rows]


def _medians(values: Floats | None, at: Rows, parts: list[Rows]) -> Floats | None:
    """The median over each plateau; None where a plateau has no known value."""
    if values is None:
        return None
    known = [values[at[part]] for part in parts]
    if any(not np.isfinite(each).any() for each in known):
        return None
    return np.array([float(np.nanmedian(each)) for each in known])
