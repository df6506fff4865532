"""A PowerSensor2 on a pseudo-terminal, written from what its public firmware says of the protocol; shares no code."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

CONVERSIONS_HZ = 8613.0  # of one sensor after the other: 2.87 kHz for each of three


class PowerSensor2Device:
    """Three of five sensors in use. `power(sensor, t)` gives what each draws at seconds `t`."""

    def __init__(self, power: Callable[[int, float], float]) -> None:
        self.power = power
        self.settings = [(3.3, 0.185, 0.0), (0.0, 0.0, 0.0), (12.0, 0.1, 0.5), (12.0, 0.066, 0.0), (0.0, 0.0, 0.0)]
        self.used = [i for i, (volts, _, _) in enumerate(self.settings) if volts]
        self._master, self._slave = os.openpty()
        import tty  # not on Windows, where the tests that need it are left out

        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        os.set_blocking(self._master, False)
        self._streaming = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="PowerSensor2 device", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._slave)
        os.close(self._master)

    def _serve(self) -> None:
        left = b""
        while not self._stop.is_set():
            with suppress(BlockingIOError, OSError):
                for letter in os.read(self._master, 64):
                    if letter == ord("r"):
                        os.write(self._master, struct.pack("<15f", *(v for row in self.settings for v in row)))
                    elif letter == ord("S"):
                        self._streaming, self._begun, self._conversion = True, time.monotonic(), 0
                    elif letter == ord("T"):
                        self._streaming = False
            if self._streaming:
                left += self._due()
                with suppress(BlockingIOError):
                    left = left[os.write(self._master, left) :] if left else left
            time.sleep(0.002)

    def _due(self) -> bytes:
        due = int((time.monotonic() - self._begun) * CONVERSIONS_HZ)
        out = bytearray()
        for number in range(self._conversion, due):
            sensor = self.used[number % len(self.used)]
            volts, volts_per_ampere, at_rest_w = self.settings[sensor]
            watts = self.power(sensor, self._begun + number / CONVERSIONS_HZ) + at_rest_w
            dither = (number * 0.618) % 1.0 - 0.5
            level = max(0, min(1023, round(512 + watts / volts * volts_per_ampere / 2.5 * 512 + dither)))
            out += bytes((sensor << 5 | level >> 5, 0xE0 | level & 0x1F))
        self._conversion = due
        return bytes(out)
