"""Clocks near the ridge for a model-steered search: from a sweep of the board, or of one recorded configuration."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ...errors import WattridgeError
from ...sensors.gpu import Gpu
from ..control.guard import DeviceGuard
from ..measurement import Measurement, State
from ..models.design import next_clock
from ..models.frequency import MINIMUM_CLOCKS, fit_frequency_model
from ..models.point_fits import fit_points
from ..models.points import Points
from ..space.search_space import SearchSpace
from ..strategies.methods import Clocks, Seen, Steering, energy_of, seen_of
from .fits import running_board
from .sweep import FIRST_CLOCKS, spread_clocks, sweep_clocks

SWEEP_CLOCKS = 8
SAMPLE = 16  # configurations of a recording, of which the best is swept


def steer_by_sweep(
    gpu: Gpu,
    *,
    points: int = SWEEP_CLOCKS,
    guard: DeviceGuard | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
) -> Steering | None:
    """From a sweep of the board under full load; None where its points show no optimum. Raises WattridgeError."""
    with running_board(gpu, guard) as (board, inside, load):
        sweep = sweep_clocks(board, inside, points=points, steered=True, load=load, on_progress=on_progress, stop=stop)
    if stop is not None and stop.is_set():
        raise WattridgeError("the clock sweep was stopped", gpu.info.label)
    fit = fit_points(sweep.points)
    if fit.range_mhz is None:
        return None
    return Steering(fit, len(sweep), sweep.seconds, f"a sweep of {len(sweep)} clocks, {sweep.points.series}")


def steer_by_measurements(
    space: SearchSpace, measured: Mapping[int, Measurement], *, points: int = SWEEP_CLOCKS, seed: int = 0
) -> Steering | None:
    """From existing measurements: one good configuration at a few clocks; None where they show no optimum.

    The good one is the most efficient of a sample at the highest clock, which counts as measured.
    """
    clocks = Clocks(space)
    if len(clocks.values) < MINIMUM_CLOCKS:
        return None
    at_top = np.random.default_rng(seed).permutation(clocks.at(clocks.highest))[:SAMPLE].tolist()
    sample = [_seen(row, measured) for row in at_top]
    best = min(sample, key=lambda seen: seen.energy_j, default=None)
    if best is None or best.energy_j == float("inf"):
        return None
    row_at = {float(clocks.of_row[row]): int(row) for row in clocks.alike(best.row)}
    waiting: list[float] = [float(c) for c in spread_clocks([int(c) for c in row_at], FIRST_CLOCKS)]
    swept: dict[float, Measurement] = {}
    while waiting:
        clock = waiting.pop()
        found = measured.get(row_at.get(clock, -1))
        if found is not None and found.state is State.OK and math.isfinite(energy_of(found.values)):
            swept[clock] = found
        if not waiting and FIRST_CLOCKS <= len(swept) < points:
            chosen = next_clock(_series(swept, row_at))
            waiting = [] if chosen is None or chosen in swept or chosen not in row_at else [chosen]
    fit = fit_frequency_model(_series(swept, row_at))
    if fit.range_mhz is None:
        return None
    used = {*at_top, *(row_at[clock] for clock in swept)}
    seconds = sum(measured[row].cost_s for row in used if row in measured)
    return Steering(fit, len(used), seconds, f"{len(swept)} clocks of one configuration, the best of {len(at_top)}")


def _seen(row: int, measured: Mapping[int, Measurement]) -> Seen:
    found = measured.get(row)
    return seen_of(row, found is not None and found.state is State.OK, found.values if found is not None else {})


def _series(swept: Mapping[float, Measurement], supported: Iterable[float]) -> Points:
    """The measurements by clock, ascending."""
    clock = np.asarray(sorted(swept))
    energy = np.asarray([energy_of(swept[c].values) for c in clock.tolist()])
    rate = 1.0 / np.asarray([swept[c].values["time_s"] for c in clock.tolist()])
    return Points(clock, energy * rate, rate, supported_mhz=tuple(supported))
