"""A meter that reports the same power all the time: `wattridge measure --meter constant:150 -- ./program`."""

import time

import numpy as np
from wattridge import InputError
from wattridge.meters import MeterInfo, Samples, meter_channels, nothing

PERIOD_S = 0.01


class ConstantMeter:
    """Stands for a device: open it, and return from `read` what it has reported since the last call."""

    def __init__(self, power_w):
        self.info = MeterInfo("constant", f"a constant {power_w:g} W", "host", PERIOD_S, PERIOD_S, PERIOD_S)
        self.channels = meter_channels("constant", self.info.label, ())
        self.missed = 0
        self._power_w = power_w
        self.reopen()

    def read(self):
        now_ns = time.monotonic_ns()
        stamps = np.arange(self._last_ns + round(PERIOD_S * 1e9), now_ns + 1, round(PERIOD_S * 1e9), np.int64)
        if not len(stamps):
            return nothing(1)
        self._last_ns = int(stamps[-1])
        return Samples(stamps, np.full((len(stamps), 1), self._power_w))

    def reopen(self):
        self._last_ns = time.monotonic_ns()

    def close(self):
        pass


def open_meter(text):
    """What stands after `constant:`."""
    try:
        return ConstantMeter(float(text))
    except ValueError:
        raise InputError(f"'{text}' is no power in W", "--meter constant", "as in constant:150") from None
