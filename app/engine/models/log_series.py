"""Series of points from a log: one per board, one point per clock at which the board stood still under load."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from .clock_log import Log, ceiling_w, plateaus
from .columns import Columns
from .points import Points
from .roles import DEVICE_COLUMNS, Roles
from .settable_clocks import settable_clocks

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LEAST_CLOCKS = 5  # of which the model can be fitted
_BOARD = ("index", "uuid", "gpu_uuid", "pci.bus_id", "name", *DEVICE_COLUMNS)
_REMEDY = (
    "hold the load and lock one clock after the other (nvidia-smi -lgc) for 5 s each or longer, at 5 clocks or more; "
    "or sweep them with wattridge fit --gpu"
)


def series_of_log(columns: Columns, roles: Roles, times_s: Floats, rows: Mask, *, timed: bool) -> list[Points]:
    """One series for each board in the log. Raises InputError where none has five clocks, saying what was found."""
    clock = columns.numbers(roles.clock) * roles.clock_factor
    if roles.power is None:
        raise InputError("a log without a column of power", columns.where, "name it with --power")
    power = columns.numbers(roles.power) * roles.power_factor
    memory = columns.numbers(roles.memory_clock) * roles.memory_clock_factor if roles.memory_clock else None
    busy = _column(columns, r"util", not_in=r"mem|enc|dec")
    rate = columns.numbers(roles.rate) if roles.rate and not re.search(r"pci|[rt]x", roles.rate.lower()) else None
    temperature = columns.numbers(roles.temperature) if roles.temperature else None
    boards = [name for name in columns.cells if name.lower() in _BOARD and len(set(columns.cells[name])) > 1]
    found, said = [], ""
    for board in dict.fromkeys(zip(*(columns.cells[name] for name in boards), strict=True)) or [()]:
        at = np.flatnonzero(rows & _is_of(columns, boards, board))
        log = Log(
            times_s[at],
            clock[at],
            power[at],
            None if memory is None else memory[at],
            None if busy is None else busy[at],
            timed=timed,
        )
        levels, parts = plateaus(log)
        said = said or _found_words(log, [level.clock_mhz for level in levels])
        if len(levels) < _LEAST_CLOCKS:
            continue
        told = dict(zip(boards, board, strict=True))
        gpu = next((columns.cells[n][at[0]] for n in columns.cells if n.lower() in ("name", *DEVICE_COLUMNS)), "")
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
                limited=None,
                limit_w=ceiling_w(log),
                supported_mhz=supported or tuple(clocks.tolist()),
                gpu=gpu,
                series=", ".join(f"{name}={value}" for name, value in told.items()) or Path(columns.where).name,
                notes=(note, *notes),
                temperature_c=_medians(temperature, at, parts),
                others=tuple(told.values()),
                plateaus=tuple(levels),
            )
        )
    if not found:
        raise InputError(said or "a log without a clock and a power", columns.where, _REMEDY)
    return found


def _found_words(log: Log, clocks: list[float]) -> str:
    """What a log holds that is not enough for a fit."""
    if not clocks:
        return f"{log.words}, in which the clock never stood still under load"
    listed = ", ".join(f"{clock:.0f}" for clock in clocks)
    return f"{log.words}, in which the clock stood still under load only at {listed} MHz"


def _column(columns: Columns, pattern: str, not_in: str) -> Floats | None:
    name = next((n for n in columns.cells if re.search(pattern, n.lower()) and not re.search(not_in, n.lower())), None)
    return columns.numbers(name) if name is not None and columns.is_numeric(name) else None


def _is_of(columns: Columns, names: list[str], values: tuple[str, ...]) -> Mask:
    same = np.ones(len(columns), dtype=np.bool_)
    for name, value in zip(names, values, strict=True):
        same &= np.asarray([cell == value for cell in columns.cells[name]])
    return same


def _medians(values: Floats | None, at: npt.NDArray[np.intp], parts: list[npt.NDArray[np.intp]]) -> Floats | None:
    """The median over each plateau; None where a plateau has no known value."""
    if values is None:
        return None
    known = [values[at[part]] for part in parts]
    if any(not np.isfinite(each).any() for each in known):
        return None
    return np.array([float(np.nanmedian(each)) for each in known])
