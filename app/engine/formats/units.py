"""The unit in which a named figure is stored: from its name, or from what its file says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.engine.formats.kernel_tuner import DEVICE_SETTINGS

_ENDINGS = {
    "_s": "s",
    "_j": "J",
    "_w": "W",
    "_mhz": "MHz",
    "_c": "°C",
    "_mv": "mV",
    "_mib": "MiB",
    "_percent": "%",
}
# Names that are their own unit: GFLOP/s, TFLOPS/J, GB/s.
_UNIT_AS_NAME = re.compile(r"[kMGTPE]?(FLOPS?|OPS?|i?B|bit)(/[A-Za-z]+)*|[A-Za-z]+/[A-Za-z]+")


def unit_of(name: str, units: Mapping[str, str]) -> str:
    """'s' for time_s, 'J' for ps_energy where `units` says so, 'GFLOPS/W' for itself; '' where there is none."""
    if name in units:
        return units[name]
    if _UNIT_AS_NAME.fullmatch(name):
        return name
    known = DEVICE_SETTINGS.get(name, name)
    return next((unit for ending, unit in _ENDINGS.items() if known.endswith(ending) and len(known) > len(ending)), "")


def heading(name: str, units: Mapping[str, str]) -> str:
    """The name with its unit in brackets where the name does not tell it: 'ps_energy [J]'."""
    unit = unit_of(name, units)
    tells = unit == name or any(name.endswith(ending) for ending in _ENDINGS)
    return f"{name} [{unit}]" if unit and not tells else name


def name_of_heading(text: str) -> str:
    """The name in a heading."""
    return text.rpartition(" [")[0] if text.endswith("]") and " [" in text else text
