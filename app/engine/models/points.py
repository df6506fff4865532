"""One series of clocks and powers, and the frequency model fitted to it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .clock_log import Plateau
from .condense import condensed
from .frequency import FrequencyFit, fit_frequency_model
from .memory_clocks import over_memory_clocks
from .settable_clocks import only_followed

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_EVERY = 4  # of the clocks at which a fit is drawn, for a document

CLOCK_SETTINGS = ("graphics_clock_mhz", "nvml_gr_clock")
MEMORY_SETTINGS = ("memory_clock_mhz", "nvml_mem_clock")
LIMIT_SETTINGS = ("power_limit_w", "nvml_pwr_limit")


@dataclass(frozen=True, slots=True)
class Points:
    """One series; arrays of shape (n,)."""

    clock_mhz: Floats  # observed, where the file tells it; else requested
    power_w: Floats
    rate: Floats | None  # speed in any unit
    limited: Mask | None  # a limit acted, where event reasons were recorded
    limit_w: float | None  # the power limit in force, where it was set
    supported_mhz: tuple[float, ...] | None  # clocks known to be settable
    gpu: str
    series: str
    simulated: bool = False
    notes: tuple[str, ...] = ()
    voltage_mv: Floats | None = None  # NaN where unknown
    temperature_c: Floats | None = None
    memory_clock_mhz: float | None = None
    others: tuple[str, ...] = ()  # what tells the series from others, the memory clock aside
    plateaus: tuple[Plateau, ...] = ()  # of a log: what each point is made of
    requested_mhz: Floats | None = None  # where `clock_mhz` was observed and the request is known as well

    @property
    def clocks(self) -> int:
        """How many different clocks were sampled."""
        return len(np.unique(self.clock_mhz[np.isfinite(self.clock_mhz)]))

    @property
    def best_efficiency(self) -> float:
        """Most work per energy over the points: rate (else clock) per watt."""
        speed = self.rate if self.rate is not None else self.clock_mhz
        with np.errstate(all="ignore"):
            efficiency = speed / self.power_w
        return float(np.nanmax(efficiency)) if np.isfinite(efficiency).any() else -math.inf


def fit_points(points: Points) -> FrequencyFit:
    """Fit the frequency model to one series; one of very many rows by the medians at each clock."""
    points = only_followed(condensed(points))
    fit = fit_frequency_model(
        points.clock_mhz,
        points.power_w,
        rate=points.rate,
        limited=points.limited,
        limit_w=points.limit_w,
        requested_mhz=points.requested_mhz,
        voltage_mv=points.voltage_mv,
        temperature_c=points.temperature_c,
        supported_mhz=points.supported_mhz,
        gpu=points.gpu,
        series=points.series,
        simulated=points.simulated,
    )
    return replace(fit, reasons=(*fit.reasons, *points.notes), memory_clock_mhz=points.memory_clock_mhz)


def fit_memory_clocks(series: Sequence[Points]) -> FrequencyFit:
    """The chosen one of several series, and beside it those that differ from it in nothing but the memory clock."""
    chosen = choose(series)
    fit = fit_points(chosen)
    alike = [points for points in series if points.others == chosen.others and points.memory_clock_mhz is not None]
    if chosen.memory_clock_mhz is None or len({points.memory_clock_mhz for points in alike}) < 2:
        return fit
    fits = [fit if points.series == chosen.series else fit_points(points) for points in alike]
    return replace(fit, memory_clocks=over_memory_clocks(fits))


def fit_to_json(fit: FrequencyFit) -> dict[str, Any]:
    """The document that `fit --json` prints; a figure that is not known is None."""
    drawn_from = {"clock_mhz", "power_w", "used", "curve", "band_mhz", "band_w", "voltage_mv", "rate"}
    names = [field.name for field in dataclasses.fields(fit) if field.name not in drawn_from]
    document = {name: plain(getattr(fit, name)) for name in names}
    return document | {"curve": _curve(fit) if fit.identifiable else None}


def _curve(fit: FrequencyFit) -> dict[str, list[float]]:
    """The modelled power over the clock, and where it lies with 95 % probability; the readings' own noise left out."""
    low, high = fit.band_w[:, ::_EVERY]
    clock = fit.band_mhz[::_EVERY]
    named = {"clock_mhz": clock, "power_w": fit.power(clock), "low_w": low, "high_w": high}
    return {name: np.round(values, 3).tolist() for name, values in named.items()}


def choose(series: Sequence[Points]) -> Points:
    """The one with the most clocks, then the most efficient; where others were there, its name says so."""
    chosen = max(series, key=lambda points: (points.clocks, points.best_efficiency))
    if len(series) == 1:
        return chosen
    how = f"of {len(series)} series the one with the most clocks, then the most efficient"
    return replace(chosen, notes=(*chosen.notes, how))


_PLAIN: dict[type, Callable[[Any], Any]] = {
    float: lambda value: value if math.isfinite(value) else None,
    tuple: lambda value: [plain(each) for each in value],
    list: lambda value: [plain(each) for each in value],
    dict: lambda value: {key: plain(each) for key, each in value.items()},
}


def plain(value: Any) -> Any:
    """As JSON holds it: dataclasses become objects, arrays lists; it has no NaN and no infinity, they are null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    convert = _PLAIN.get(type(value))
    return convert(value) if convert else value
