"""Values as the window shows them: a fixed number of decimals per quantity, a unit, a dash if nothing is known.

Where an axis carries its marks.
"""

from __future__ import annotations

import math

from ...base.formatting import MINUS, UNKNOWN
from ...sensors.event_reasons import names as reason_names

_DECIMALS = {"W": 1, "MHz": 0, "°C": 1, "%": 0, "mV": 0, "MiB": 0, "MB/s": 1, "V/V₀": 3}


def value_text(channel: str, unit: str, value: float) -> str:
    """A channel's value with its unit; '–' if it is unknown. Event reasons and P-states in words."""
    if math.isnan(value):
        return UNKNOWN
    if channel == "event_reasons":
        return ", ".join(reason_names(int(value))) or "none"
    if channel == "performance_state":
        return f"P{int(value)}"
    if unit == "J":
        return energy_text(value)
    if unit == "MiB":
        return f"{value:,.0f} MiB".replace(",", "\u202f")
    return f"{signed(value, _DECIMALS.get(unit, 2))} {unit}".rstrip()


def signed(value: float, decimals: int) -> str:
    """A number with a true minus sign and never '-0'."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def energy_text(energy_j: float) -> str:
    """Energy in J, kJ, MJ or GJ with about four significant digits."""
    if math.isnan(energy_j):
        return UNKNOWN
    for factor, unit in ((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")):
        if abs(energy_j) >= 10 * factor:
            return f"{signed(energy_j / factor, 2)} {unit}"
    return f"{signed(energy_j, 1)} J"


def ago_text(seconds: float, step: float) -> str:
    """A time before now for an axis whose ticks are `step` seconds apart: 'now', '−20 s', '−5 min', '−1:30 h'."""
    if abs(seconds) < step / 1000:
        return "now"
    sign, size = (MINUS, -seconds) if seconds < 0 else ("+", seconds)
    if step < 1:
        return f"{sign}{size:.1f} s" if step >= 0.1 else f"{sign}{size:.2f} s"
    whole = round(size)
    if step >= 3600 or (whole >= 3600 and whole % 3600 == 0):
        return f"{sign}{whole / 3600:g} h"
    if step >= 60:
        return f"{sign}{whole // 3600}:{whole % 3600 // 60:02d} h" if whole >= 3600 else f"{sign}{whole // 60} min"
    if whole < 60 or step < 15:
        return f"{sign}{whole} s" if whole < 100 else f"{sign}{whole // 60}:{whole % 60:02d}"
    return f"{sign}{whole // 60} min" if whole % 60 == 0 else f"{sign}{whole // 60}:{whole % 60:02d}"


_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
_TIME_STEPS_S = (*_SECONDS, *(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240)))
_SHORT_STEPS_S = (*(factor * 10.0**power for power in range(-9, -2) for factor in (1, 2, 5)), *_SECONDS)
_SHORT_S = 0.1


def time_ticks(start_s: float, end_s: float, at_most: int) -> tuple[float, list[float]]:
    """(step, marks) in s at whole multiples of a customary step, no more than about `at_most`."""
    length = end_s - start_s
    steps = _TIME_STEPS_S if length >= _SHORT_S else _SHORT_STEPS_S
    step = next((s for s in steps if length / s <= max(1, at_most)), _TIME_STEPS_S[-1])
    first = math.ceil(start_s / step - 1e-9)
    last = math.floor(end_s / step + 1e-9)
    return step, [k * step for k in range(first, last + 1)]


def round_up(value: float) -> float:
    """The next round number at or above a positive value, in steps fine enough to waste little of an axis."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1.0, 1.2, 1.5, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0):
        if value <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power
