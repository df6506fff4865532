"""How numbers and their units are written wherever they are shown; a dash stands for what is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

UNKNOWN: Final = "–"
MINUS: Final = "−"  # of numbers that are read in a window or a chart, not copied from a terminal
# The unit in which a figure is stored, by the end of its name: time_s, power_limit_w.
UNITS_OF_ENDINGS: Final[Mapping[str, str]] = {
    "_per_s": "1/s",
    "_s": "s",
    "_j": "J",
    "_w": "W",
    "_mhz": "MHz",
    "_c": "°C",
    "_mv": "mV",
    "_mib": "MiB",
    "_percent": "%",
}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_WHOLE_FROM, _WHOLE_BELOW = 1e3, 1e7  # figures written without decimals


def finite_or_none(value: float | None) -> float | None:
    """The value; None if it is NaN or infinite, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float | None, digits: int = 4) -> str:
    """A figure with `digits` significant digits: '0.01235', '12.35', '123456'; a dash if it is unknown.

    Whole numbers, and figures from a thousand to ten million, are written out.
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    if isinstance(value, int) or max(_WHOLE_FROM, 10.0 ** (digits - 1)) <= size < _WHOLE_BELOW:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def count_text(count: int) -> str:
    """A whole number in groups of three, as a power of ten where it is very long."""
    if count < 10**15:
        return f"{count:,}".replace(",", "\u202f")
    exponent = math.floor(math.log10(count))
    return f"{count // 10 ** (exponent - 2) / 100:.2f}·10{str(exponent).translate(_SUPERSCRIPTS)}"


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun: '1 session', '5 120 sessions'; `many` where the plural is no plain 's'."""
    return f"{count_text(count)} {one if count == 1 else many or one + 's'}"


def name_and_unit(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit: ('power_limit', 'W') for 'power_limit_w', (name, '') if it has none."""
    for ending, unit in UNITS_OF_ENDINGS.items():
        if name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending), unit
    return name, ""


def unit_of_name(name: str) -> str:
    """'W' for 'power_limit_w'; '' where the name ends in no unit."""
    return name_and_unit(name)[1]


def percent(share: float | None, decimals: int = 1) -> str:
    """A share as '12.3 %'; a dash if it is unknown."""
    return UNKNOWN if share is None or not math.isfinite(share) else f"{100 * share:.{decimals}f} %"


def change(ratio: float | None, decimals: int = 1) -> str:
    """A ratio as the change it makes: 0.82 is '-18.0 %'; a dash if it is unknown."""
    return UNKNOWN if ratio is None or not math.isfinite(ratio) else f"{100 * (ratio - 1):+.{decimals}f} %"


def duration(seconds: float | None) -> str:
    """A length of time: '350 ms', '12.4 s', '3 min 05 s', '2 h 07 min'; a dash if it is unknown."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 1.0:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def round_ticks(low: float, high: float, at_most: int) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) within [low, high], no more than `at_most` of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or at_most < 1:
        return []
    step = 10.0 ** math.floor(math.log10((high - low) / at_most))
    for factor in (1.0, 2.0, 5.0, 10.0, 20.0):
        first = math.ceil(low / (step * factor) - 1e-9)
        last = math.floor(high / (step * factor) + 1e-9)
        if last - first + 1 <= at_most:
            return [k * step * factor for k in range(first, last + 1)]
    return []
