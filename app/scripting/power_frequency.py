"""`kernel_tuner.energy.energy`: power over the graphics clock, and the clock from which on the voltage rises.

Kernel Tuner's form of the model [Schoonhoven2024, eqs. 6.2 and 6.3], with x the clock above the lowest one in MHz, and
power relative to the least:

    P(x) = min(P_max, 1 + 0.001 c x v(x)^2),   v(x) = 1 + 0.001 s max(0, x - ridge)

Power is measured by the sweep of `wattridge fit`. The form leaves out that what the board draws at the lowest
clock rises with the voltage, too: fitted alone it bends too early (1018 MHz for a TITAN RTX of 1155). So the ridge of a
board is that of Wattridge's own model of the same sweep (`engine/models/frequency.py`), with the rest fitted to it.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.models.points import Points
from ..errors import InputError
from ..sensors.gpu import Gpu
from ..standard_error import say
from .kernel_tuner import board_of
from .surroundings import surroundings

Floats = npt.NDArray[np.float64]
Parameters = tuple[float, float, float, float]  # ridge, s, c, P_max
Scales = tuple[float, float]  # the lowest clock in MHz, the least power in W
Fitted = tuple[float, Parameters, Scales]  # the ridge in MHz first
_MOST_SCALE = 20.0  # of s and c
_HELD_MHZ = 1e-3  # how far a ridge that is known may move


def get_frequency_power_relation_fp32(
    device: int,
    n_samples: int = 10,
    nvidia_smi_fallback: str | None = None,
    use_locked_clocks: bool = False,
    cache: str | None = None,
    simulation_mode: bool | None = None,
) -> tuple[Floats, Floats]:
    """Observed clocks in MHz and power in W of a full load at about so many locked clocks, each of shape (clocks,).

    `use_locked_clocks` has no effect: clocks are locked wherever the board allows it. Raises InputError for what is not
    supported, and WattridgeError where clocks cannot be set here.
    """
    _refuse(nvidia_smi_fallback=nvidia_smi_fallback, cache=cache, simulation_mode=simulation_mode)
    with board_of(None, device) as board:
        points = _relation(board, n_samples)
    return points.clock_mhz, points.power_w


def estimated_voltage(clocks: npt.ArrayLike, clock_threshold: float, voltage_scale: float) -> Floats:
    """v of clocks above the lowest one, in MHz."""
    above = np.maximum(0.0, np.asarray(clocks, dtype=np.float64) - clock_threshold)
    return np.asarray(1.0 + 1e-3 * voltage_scale * above)


def estimated_power(
    clocks: npt.ArrayLike, clock_threshold: float, voltage_scale: float, clock_scale: float, power_max: float
) -> Floats:
    """P of clocks above the lowest one, in MHz; relative to the least power."""
    voltage = estimated_voltage(clocks, clock_threshold, voltage_scale)
    free = 1.0 + 1e-3 * clock_scale * np.asarray(clocks, dtype=np.float64) * voltage**2
    return np.asarray(np.minimum(power_max, free))


def fit_power_frequency_model(freqs: npt.ArrayLike, nvml_power: npt.ArrayLike) -> Fitted:
    """The ridge in MHz, the parameters of `estimated_power`, and what clocks and powers are relative to.

    By least squares from several ridges. Raises InputError for fewer than five clocks.
    """
    return _fitted(freqs, nvml_power)


def _fitted(freqs: npt.ArrayLike, nvml_power: npt.ArrayLike, ridge_mhz: float | None = None) -> Fitted:
    """The same, of a ridge that is known or of the one that fits best."""
    from scipy.optimize import least_squares

    clocks, power = np.asarray(freqs, dtype=np.float64), np.asarray(nvml_power, dtype=np.float64)
    if len(np.unique(clocks)) < 5:
        raise InputError(f"{len(np.unique(clocks))} clocks", "kernel_tuner.energy", "measure five or more: n_samples")
    lowest_mhz, least_w = float(clocks.min()), float(power.min())
    x, y = clocks - lowest_mhz, power / least_w
    slope, most = 1e3 * float((y.max() - 1.0) / x.max()), float(y.max())
    bounds = ([0.0, 0.0, 0.0, 0.9 * most], [x.max(), _MOST_SCALE, _MOST_SCALE, 1.1 * most])
    ridges = [share * x.max() for share in (0.25, 0.5, 0.75)]
    if ridge_mhz is not None:
        ridges = [ridge_mhz - lowest_mhz]
        bounds[0][0], bounds[1][0] = ridges[0] - _HELD_MHZ, ridges[0] + _HELD_MHZ

    def off(at: Floats) -> Floats:
        return estimated_power(x, *at.tolist()) - y

    starts = [(each, 1.0, min(slope, _MOST_SCALE), most) for each in ridges]
    found = [least_squares(off, start, bounds=bounds) for start in starts]
    ridge, voltage_scale, clock_scale, power_max = min(found, key=lambda each: float(each.cost)).x.tolist()
    return ridge + lowest_mhz, (ridge, voltage_scale, clock_scale, power_max), (lowest_mhz, least_w)


def create_power_frequency_model(
    device: int = 0,
    n_samples: int = 10,
    verbose: bool = False,
    nvidia_smi_fallback: str | None = None,
    use_locked_clocks: bool = False,
    cache: str | None = None,
    simulation_mode: bool | None = None,
) -> tuple[int, Floats, Floats, Parameters, Scales]:
    """The settable clock nearest to the ridge, clocks and power as they were measured, and the model of them.

    Clocks are restored. `use_locked_clocks` has no effect: they are locked wherever the board allows it. Raises as
    `get_frequency_power_relation_fp32` and `fit_power_frequency_model` do.
    """
    from ..engine.models.point_fits import fit_points

    _refuse(nvidia_smi_fallback=nvidia_smi_fallback, cache=cache, simulation_mode=simulation_mode)
    with board_of(None, device) as board:
        label, settable = board.info.label, np.asarray(board.graphics_clocks_mhz())
        points = _relation(board, n_samples)
    clocks, power, fit = points.clock_mhz, points.power_w, fit_points(points)
    known = fit.voltage_ridge_mhz if fit.voltage_ridge_mhz is not None else fit.ridge_mhz
    ridge, parameters, scales = _fitted(clocks, power, known)
    nearest = int(settable[np.argmin(np.abs(settable - ridge))])
    if verbose:
        for clock, each in zip(clocks, power, strict=True):
            say(f"{label}: {each:.1f} W at {clock:.0f} MHz")
        say(f"{label}: ridge {ridge:.0f} MHz, nearest settable clock {nearest} MHz")
    return nearest, clocks, power, parameters, scales


def get_frequency_range_around_ridge(
    ridge_frequency: float,
    all_frequencies: npt.ArrayLike,
    freq_range: Any,
    number_of_freqs: Any,
    verbose: bool = False,
) -> list[float]:
    """Those of all clocks that are nearest to so many, evenly spread within so many per cent of the ridge."""
    share, known = int(freq_range) / 100.0, np.asarray(all_frequencies)
    wanted = np.linspace((1 - share) * ridge_frequency, (1 + share) * ridge_frequency, int(number_of_freqs))
    chosen: list[float] = np.unique([known[np.argmin(np.abs(known - each))] for each in wanted]).tolist()
    if verbose:
        say(f"clocks to tune: {', '.join(f'{each:g}' for each in chosen)} MHz")
    return chosen


# --- inside -----------------------------------------------------------------------------------------------------------


def _relation(board: Gpu, n_samples: int) -> Points:
    """Observed clocks in MHz and power in W of a board."""
    from ..engine.tuning_methods.sweep import sweep_clocks

    with closing(surroundings().guard(board)) as guard:
        return sweep_clocks(board, guard, points=n_samples).points


def _refuse(**given: object) -> None:
    """What is not supported, where a script asks for it."""
    for name, value in given.items():
        if value:
            raise InputError(f"{name} is not supported", "kernel_tuner.energy", f"leave {name} out")
