"""The relative difference of two measurements, and whether its 95 % interval can tell them apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from ...base.records import figure
from ..results.measurement import Measurement
from .iso_lines import Role, role_of
from .tradeoff import change_words, percent_words, relative_change

_UNKNOWN = "interval unknown"


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure relative to that of another measurement: 0.04 is 4 % more."""

    IN_JSON: ClassVar = {"interval_95": "interval", "distinguishable": "distinguishable"}

    change: float  # NaN if a figure is unknown
    half_width: float = field(
        metadata=figure(key=None)
    )  # of its 95 % interval; NaN if that of a measurement is unknown

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None if it is unknown."""
        low, high = self.change - self.half_width, self.change + self.half_width
        return None if math.isnan(low) else (low, high)

    @property
    def distinguishable(self) -> bool | None:
        """Whether the 95 % interval leaves out zero; None if it is unknown."""
        return None if self.interval is None else abs(self.change) > self.half_width

    def words(self, what: str) -> str:
        """Describe the difference.

        Parameters
        ----------
        what : str
            What differs, 'energy'.

        Returns
        -------
        str
            '18 ± 2 % less energy', 'time not distinguishable (0.3 ± 0.5 %)', '4 % more time (interval unknown)'.
        """
        if math.isnan(self.change):
            return f"{what} unknown"
        if self.interval is None:
            return f"{change_words(self.change, what)} ({_UNKNOWN})"
        size = f"{percent_words(self.change).removesuffix(' %')} ± {percent_words(self.half_width)}"
        if not self.distinguishable:
            return f"{what} not distinguishable ({'−' if self.change < 0 else ''}{size})"
        return f"{size} {'less' if self.change < 0 else 'more'} {what}"


@dataclass(frozen=True, slots=True)
class Versus:
    """Time and energy of a choice relative to those of another measurement."""

    IN_JSON: ClassVar = ("words",)

    measurement: int  # the number of the other one, from 1
    time: Difference
    energy: Difference

    @property
    def words(self) -> str:
        """'18 ± 2 % less energy, 4 ± 1 % more time'."""
        parts = [self.energy.words("energy"), self.time.words("time")]
        if all(part.endswith(_UNKNOWN + ")") for part in parts):
            return f"{parts[0].removesuffix(f' ({_UNKNOWN})')}, {parts[1].replace('interval', 'intervals')}"
        return ", ".join(parts)


def difference(before: float, after: float, half_width: float) -> Difference:
    """Compare two values of a figure.

    Parameters
    ----------
    before, after : float
        The values, in the same unit; NaN if unknown.
    half_width : float
        Relative half-width of the 95 % interval of their ratio; NaN if unknown.

    Returns
    -------
    Difference
        Of `after`, relative to `before`.
    """
    change = relative_change(before, after)
    return Difference(change, (1 + change) * half_width)


def relative_half_width(measurement: Measurement, name: str, role: Role | None = None) -> float:
    """Return the relative half-width of a figure's own 95 % interval.

    Parameters
    ----------
    measurement : Measurement
        The measurement.
    name : str
        The figure, 'time_s'.
    role : Role, optional
        Of figures that stand for it where it has no interval: a speed for a time, an efficiency for an energy.

    Returns
    -------
    float
        NaN if none has an interval.
    """
    inverse = (other for other in measurement.intervals if role is not None and role_of(other) is role)
    for known in (name, *inverse):
        low, high = measurement.intervals.get(known, (math.nan, math.nan))
        half = (high - low) / 2 / (abs(measurement.values.get(known, math.nan)) or math.nan)
        if math.isfinite(half):
            return half
    return math.nan
