"""Channels and readings: what a GPU reports, and one instant of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Channel:
    """One quantity that a GPU reports. `unavailable` holds the reason where this board does not."""

    name: str  # snake case and ending in the unit, as in CSV headers and JSON keys: "power_instant_w"
    unit: str  # as shown: "W", "MHz", "°C"; empty for a count or a state
    label: str  # as shown: "Power, instant"
    unavailable: str | None = None

    @property
    def available(self) -> bool:
        return self.unavailable is None


class Reading(NamedTuple):
    """One instant: `values[i]` belongs to `gpu.channels[i]`, NaN if unknown, never 0 in its place."""

    time_ns: int  # the GPU's clock (`gpu.clock`): monotonic ns for a real board
    values: tuple[float, ...]


class PowerSample(NamedTuple):
    """One entry of the driver's power buffer: mean power over the ~20 ms before `time_ns`."""

    time_ns: int
    power_w: float


# Every channel the program knows, in the order in which they are shown. (name, unit, label)
_CATALOGUE: tuple[tuple[str, str, str], ...] = (
    ("power_instant_w", "W", "Power, instant"),
    ("power_average_w", "W", "Power, 1 s average"),
    ("memory_power_w", "W", "Memory power"),
    ("module_power_w", "W", "Module power"),
    ("power_limit_w", "W", "Power limit"),
    ("energy_j", "J", "Energy counter"),
    ("graphics_clock_mhz", "MHz", "Graphics clock"),
    ("sm_clock_mhz", "MHz", "SM clock"),
    ("memory_clock_mhz", "MHz", "Memory clock"),
    ("video_clock_mhz", "MHz", "Video clock"),
    ("requested_graphics_clock_mhz", "MHz", "Graphics clock, locked or requested"),
    ("requested_memory_clock_mhz", "MHz", "Memory clock, locked or requested"),
    ("core_voltage_mv", "mV", "Core voltage"),
    ("temperature_c", "°C", "GPU temperature"),
    ("junction_temperature_c", "°C", "Junction temperature"),
    ("memory_temperature_c", "°C", "Memory temperature"),
    ("utilisation_percent", "%", "GPU utilisation"),
    ("memory_utilisation_percent", "%", "Memory controller utilisation"),
    ("memory_used_mib", "MiB", "Memory used"),
    ("fan_percent", "%", "Fan"),
    ("performance_state", "", "P-state"),
    ("pcie_rx_mb_per_s", "MB/s", "PCIe received"),
    ("pcie_tx_mb_per_s", "MB/s", "PCIe sent"),
    ("event_reasons", "", "Clock event reasons"),
)
CHANNELS: Mapping[str, Channel] = {name: Channel(name, unit, label) for name, unit, label in _CATALOGUE}

# The fine power trace: the driver's buffer where it answers. Kept as a series of its own time stamps.
POWER_SAMPLES = Channel("power_samples_w", "W", "Power, driver buffer")


def channel(name: str, unavailable: str | None = None) -> Channel:
    """The catalogue's channel of that name, marked with the reason where this GPU does not report it."""
    return replace(CHANNELS[name], unavailable=unavailable)


def figure_text(name: str, value: float) -> str:
    """A channel's value as files hold it: seven digits, the energy counter's millijoules; empty if unknown."""
    if not math.isfinite(value):
        return ""
    return f"{value:.3f}" if name == "energy_j" else f"{value:.7g}"
