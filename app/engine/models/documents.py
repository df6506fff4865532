"""Fits as the documents that `--json` prints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .frequency import FrequencyFit

_EVERY = 4  # of the clocks at which a fit is drawn, for a document


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
