"""What a power meter of another package is made of: the public names of `sensors.meters`."""

from .sensors.meters.meter import EnergyCounters, MeterInfo, MeterLost, PowerMeter, Samples, meter_channels, nothing

__all__ = ["EnergyCounters", "MeterInfo", "MeterLost", "PowerMeter", "Samples", "meter_channels", "nothing"]
