"""What other tuners call things, and what they are called here: device settings, measured values and their units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

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
_CLOCK = ("observed_clock_mhz", "core_freq", "pwr_core_freq")
_TEMPERATURE = ("temperature_c", "temperature", "pwr_temperature")
_MEMORY_CLOCK = ("observed_memory_clock_mhz", "mem_freq")
# Not among them: Kernel Tuner's gr_voltage, which is an average of voltages and of their time stamps.
_UNITS = {"time": "ms", "core_freq": "MHz", "mem_freq": "MHz", "temperature": "°C", "energy": "J", "power": "W"}


class OwnNames:
    """Gives what a file tells under `names` under this program's names too, where they are not among them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._time = "" if "time_s" in names or "time" not in names else "time"
        self._energy = _first(names, (*_ENERGY, *_ending(names, "_energy"), "energy"))
        self._power = _first(names, (*_POWER, *_ending(names, "_power"), "power"))
        self._clock = _first(names, _CLOCK)
        self._temperature = _first(names, _TEMPERATURE)
        self._memory_clock = _first(names, _MEMORY_CLOCK)
        self.power_source = ""
        if "ps_energy" in names or "ps_power" in names:
            self.power_source = "external meter"
        elif "nvml_energy" in names or "nvml_power" in names:
            self.power_source = "driver"

    def add_to(self, values: dict[str, float]) -> None:
        """Add time, energy, power, observed clocks and temperature under our names, as far as they follow."""
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
        if self._clock:
            values["observed_clock_mhz"] = values[self._clock]
        if self._temperature:
            values["temperature_c"] = values[self._temperature]
        if self._memory_clock:
            values["observed_memory_clock_mhz"] = values[self._memory_clock]


def _first(names: Sequence[str], wanted: Iterable[str]) -> str:
    return next((name for name in wanted if name in names), "")


def _ending(names: Sequence[str], suffix: str) -> list[str]:
    return [name for name in names if name.endswith(suffix)]


def units_of(names: Iterable[str], told: Mapping[str, str] | None = None) -> dict[str, str]:
    """Units of values whose names do not tell them: those that the file told, and those of Kernel Tuner's observers."""
    units = dict(told or {})
    for name in names:
        stem = name.removeprefix("pwr_")
        unit = _UNITS.get(stem) or _UNITS.get(stem.rpartition("_")[2] if stem.endswith(("_energy", "_power")) else "")
        if unit:
            units.setdefault(name, unit)
    return units
