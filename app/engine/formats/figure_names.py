"""Whether a column holds what was measured or what was chosen, by its name and its values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .entries import BOOKKEEPING, OWN
from .names import DEVICE_SETTINGS, unit_of, units_of

_FIGURES = frozenset(("time", "times", "energy", "power", "objective", OWN, *BOOKKEEPING))
_FIGURE = re.compile(r"(nvml|ps|pwr|pmt|tegra|amd)_|.*_(energy|power|time|times|freq|temperature)|core_|mem_freq")
_MEASURED_SHARE = 0.5  # of different values among floats: with more, they are measured, not chosen
_FEW = 20


def is_figure(name: str, values: Sequence[object]) -> bool:
    """Whether a column is a figure: by its name, or because most of its numbers are different fractions."""
    if name in DEVICE_SETTINGS or name in DEVICE_SETTINGS.values():
        return False
    if name in _FIGURES:
        return True
    numbers = {value for value in values if isinstance(value, float)}
    if numbers and (_FIGURE.fullmatch(name) or unit_of(name, units_of([name]))):
        return True
    return len(numbers) > max(_FEW, _MEASURED_SHARE * len(values))
