"""Names of device settings and figures, here and in other tuners, and the unit in which each figure is stored."""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from ...base.formatting import UNITS_OF_ENDINGS, unit_of_name
from ..specification.model import OF_THE_HOST, KernelSpec

# Kernel Tuner's names of device settings, and ours.
DEVICE_SETTINGS = {
    "nvml_gr_clock": "graphics_clock_mhz",
    "nvml_mem_clock": "memory_clock_mhz",
    "nvml_pwr_limit": "power_limit_w",
}
THEIR_SETTINGS = {ours: theirs for theirs, ours in DEVICE_SETTINGS.items()}
SETTING_NAMES = frozenset((*DEVICE_SETTINGS, *DEVICE_SETTINGS.values()))


# An external meter first: it sees the launch itself, the driver an average around it.
_ENERGY = ("energy_j", "ps_energy", "nvml_energy")
_POWER = ("power_w", "ps_power", "nvml_power")
_OTHERS = {
    "observed_clock_mhz": ("observed_clock_mhz", "core_freq", "pwr_core_freq"),
    "temperature_c": ("temperature_c", "temperature", "pwr_temperature"),
    "observed_memory_clock_mhz": ("observed_memory_clock_mhz", "mem_freq"),
}
# Not among them: Kernel Tuner's gr_voltage, which is an average of voltages and of their time stamps.
_UNITS = {"time": "ms", "core_freq": "MHz", "mem_freq": "MHz", "temperature": "°C", "energy": "J", "power": "W"}
# Names that are their own unit: GFLOP/s, TFLOPS/J, GB/s.
_UNIT_AS_NAME = re.compile(r"[kMGTPE]?(FLOPS?|OPS?|i?B|bit)(/[A-Za-z]+)*|[A-Za-z]+/[A-Za-z]+")
_HAS_UNIT = re.compile(r" \[[^\]\[]*\]$")
# Names that a heading must quote: they look like JSON, a unit, the end of an interval, or quotes.
_NEEDS_QUOTES = re.compile(r'^[\s\ufeff]*["\[{]|\]$|% (?:low|high)\)$|[\x00-\x1f]')


def their_device(kernel: KernelSpec | None) -> dict[str, str]:
    """For the origin of a session: what Kernel Tuner calls the device of functions of the host, whichever they use."""
    of_the_host = kernel is not None and kernel.language in OF_THE_HOST
    return {"known_as": platform.processor()} if of_the_host else {}


class OwnNames:
    """Adds this program's names to what a file calls `names`, where they are not among them."""

    def __init__(self, names: Sequence[str]) -> None:
        energies, powers = ([name for name in names if name.endswith(end)] for end in ("_energy", "_power"))
        self._time = "time_s" not in names and "time" in names
        self._energy = _first(names, (*_ENERGY, *energies, "energy"))
        self._power = _first(names, (*_POWER, *powers, "power"))
        self._others = {ours: theirs for ours, known in _OTHERS.items() if (theirs := _first(names, known))}
        self.power_source = ""
        if "ps_energy" in names or "ps_power" in names:
            self.power_source = "external meter"
        elif "nvml_energy" in names or "nvml_power" in names:
            self.power_source = "driver"

    def add_to(self, values: dict[str, float]) -> None:
        """Add time, energy, power, observed clocks and temperature under our names, as far as they are known."""
        if self._time:
            values["time_s"] = values["time"] / 1e3
        time_s = values.get("time_s", math.nan)
        if self._energy:
            values["energy_j"] = values[self._energy]
        elif self._power and not math.isnan(time_s):
            values["energy_j"] = values[self._power] * time_s
        if self._power:
            values["power_w"] = values[self._power]
        elif self._energy and time_s > 0:
            values["power_w"] = values[self._energy] / time_s
        for ours, theirs in self._others.items():
            values[ours] = values[theirs]


def _first(names: Sequence[str], wanted: Iterable[str]) -> str:
    return next((name for name in wanted if name in names), "")


def units_of(names: Iterable[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Units that do not follow from the names: those `given` by the file, and those of Kernel Tuner's observers."""
    units = dict(given or {})
    for name in names:
        stem = name.removeprefix("pwr_")
        unit = _UNITS.get(stem) or _UNITS.get(stem.rpartition("_")[2] if stem.endswith(("_energy", "_power")) else "")
        if unit:
            units.setdefault(name, unit)
    return units


def unit_of(name: str, units: Mapping[str, str]) -> str:
    """'s' for time_s, 'J' for ps_energy where that is in `units`, 'GFLOPS/W' for itself; '' if there is none."""
    if name in units:
        return units[name]
    if _UNIT_AS_NAME.fullmatch(name):
        return name
    return unit_of_name(DEVICE_SETTINGS.get(name, name))


def heading(name: str, units: Mapping[str, str]) -> str:
    """The name with its unit in brackets where it does not follow from the name: 'ps_energy [J]'.

    A name that would be misread is put in quotes, so that `name_of_heading` gives every name back.
    """
    unit = unit_of(name, units)
    in_name = unit == name or name.endswith(tuple(UNITS_OF_ENDINGS))
    written = json.dumps(name, ensure_ascii=False) if _NEEDS_QUOTES.search(name) else name
    return f"{written} [{unit}]" if unit and not in_name and "]" not in unit else written


def name_of_heading(text: str) -> str:
    """The name in a heading."""
    name = text.rpartition(" [")[0] if _HAS_UNIT.search(text) else text
    if name.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(name))
    return name


def unit_of_heading(text: str) -> str:
    """The unit in a heading; empty if it has none."""
    return text.rpartition(" [")[2].removesuffix("]") if _HAS_UNIT.search(text) else ""
