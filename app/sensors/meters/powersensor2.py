"""PowerSensor2 (ASTRON): up to five current sensors on an Arduino over USB serial, 2.87 kHz with three of them.

As its public sources have it (Romein and Veenboer, ISPASS 2018; firmware and host library copied by the Netherlands
eScience Center to github.com/NLeSC/PowerSensor): `r` is answered by three floats for each of five sensors: the volts of
its supply, 0 if it is not in use, the volts per ampere of its converter, and the watts that it reports at rest. `S`
starts and `T` stops a stream of words of two bytes, iii lllll and 111 lllll, one sensor in use after the other: ten
bits, 512 at no current, 2.5 V above it at 1024. There are no time stamps: a round of values lies where it arrives.
"""

from __future__ import annotations

import struct
import time
from typing import Final

import numpy as np
import numpy.typing as npt

from ..gpu import SensorError
from .meter import MeterInfo, Samples, meter_channels, nothing
from .serial_port import SerialPort, end_stream, exchange, open_port

KIND: Final = "powersensor2"
SENSORS: Final = 5
CONVERSION_NS: Final = 116_100  # of one sensor; a round takes as many as are in use
DECODE_NS: Final = 50_000_000
BEGIN_S: Final = 0.4
_BAUD: Final = 2_000_000
_PATIENCE_S: Final = 3.0  # some boards restart when their port is opened
_SETTINGS: Final = struct.Struct("<15f")


class RoundReader:
    """Cuts a stream of bytes into rounds: one level of each sensor in use."""

    def __init__(self, used: tuple[int, ...]) -> None:
        self._used = np.asarray(used)
        self._rest = b""

    def feed(self, data: bytes) -> npt.NDArray[np.int64]:
        """The rounds that are whole now, shape (n, sensors in use); what breaks the order is left out."""
        raw = np.frombuffer(self._rest + data, np.uint8).astype(np.int64)
        begins = np.flatnonzero((raw[:-1] >> 5 < SENSORS) & (raw[1:] >> 5 == 7))
        numbers, levels = raw[begins] >> 5, (raw[begins] & 0x1F) << 5 | raw[begins + 1] & 0x1F
        width = len(self._used)
        starts = np.flatnonzero(numbers[: max(0, len(numbers) - width + 1)] == self._used[0])
        places = starts[:, None] + np.arange(width)
        whole = (numbers[places] == self._used).all(axis=1) if len(starts) else np.empty(0, np.bool_)
        rounds = places[whole]
        kept = int(begins[rounds[-1, -1]]) + 2 if len(rounds) else max(0, len(raw) - 2 * width)
        self._rest = raw[kept:].astype(np.uint8).tobytes()
        result: npt.NDArray[np.int64] = levels[rounds] if len(rounds) else np.empty((0, width), np.int64)
        return result


class PowerSensor2:
    """Implements `PowerMeter`."""

    def __init__(self, path: str) -> None:
        """Raises InputError if there is no such port, and SensorError if no PowerSensor2 answers there."""
        self._path = path
        self.missed = 0
        self._port: SerialPort | None = None
        self._data: list[bytes] = []
        self._decoded_ns = self._newest_ns = self._last_ns = 0
        self._open()

    def read(self) -> Samples:
        if self._port is None:
            raise SensorError("the meter is closed", self._path)
        data = self._port.read()
        now_ns = time.monotonic_ns()
        if data:
            self._data.append(data)
            self._newest_ns = now_ns
        if not self._data or now_ns - self._decoded_ns < DECODE_NS:
            return nothing(len(self.channels))
        self._decoded_ns = now_ns
        levels = self._rounds.feed(b"".join(self._data))
        self._data = []
        if not len(levels):
            return nothing(len(self.channels))
        since_ns = min(self._newest_ns - self._last_ns, 2 * len(levels) * self._period_ns)
        apart_ns = max(1, since_ns // len(levels))  # they came evenly since the last ones
        self._last_ns = max(self._last_ns + len(levels), self._newest_ns)
        stamps = self._last_ns - apart_ns * np.arange(len(levels) - 1, -1, -1, dtype=np.int64)
        parts = (levels - 512) * self._weights - self._at_rest_w
        total = parts.sum(axis=1, keepdims=True)
        return Samples(stamps, total if parts.shape[1] < 2 else np.hstack([total, parts]))

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            end_stream(port)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        port = open_port(self._path, _BAUD)
        try:
            port.write(b"T")
            time.sleep(0.05)
            port.read()
            answer = exchange(port, b"r", _SETTINGS.size, _PATIENCE_S)
            if len(answer) != _SETTINGS.size:
                raise SensorError("what answers here is no PowerSensor2", self._path, "name its port")
            self._configure(np.asarray(_SETTINGS.unpack(answer)).reshape(SENSORS, 3))
            self._port = port
            self._begin()
        except BaseException:
            self._port = None
            port.close()
            raise

    def _configure(self, settings: npt.NDArray[np.float64]) -> None:
        volts, volts_per_ampere, at_rest_w = settings.T
        used = tuple(int(i) for i in np.flatnonzero(volts))
        if not used or not np.isfinite(settings).all() or not volts_per_ampere[list(used)].all():
            remedy = "calibrate it with psconfig, the device's own tool"
            raise SensorError("no sensor of this PowerSensor2 is set up", self._path, remedy)
        chosen = list(used)
        self._weights = 2.5 / 512 * volts[chosen] / volts_per_ampere[chosen]
        self._at_rest_w = at_rest_w[chosen]
        self._used = used
        self._period_ns = CONVERSION_NS * len(used)
        self.channels = meter_channels(KIND, "PowerSensor2", tuple(f"sensor {i} ({volts[i]:g} V)" for i in used))
        period_s = self._period_ns / 1e9
        self.info = MeterInfo(KIND, f"PowerSensor2 on {self._path}", "board", period_s, period_s, poll_s=0.02)

    def _begin(self) -> None:
        """Start the stream and see how long a round takes: it is not stamped."""
        assert self._port is not None
        self._rounds = RoundReader(self._used)
        self._data = []
        self._decoded_ns = self._newest_ns = self._last_ns = 0
        self._port.write(b"S")
        seen: list[tuple[int, int]] = []  # rounds by then, and when
        rounds = 0
        begun = time.monotonic()
        while time.monotonic() < begun + BEGIN_S:
            data = self._port.read()
            if data:
                rounds += len(self._rounds.feed(data))
                seen.append((rounds, time.monotonic_ns()))
            time.sleep(0.002)
        if rounds < 10:
            raise SensorError("the device sends no values", self._path, "plug it in again")
        (first, from_ns), (last, to_ns) = seen[len(seen) // 4], seen[-1]
        if last > first:
            self._period_ns = round((to_ns - from_ns) / (last - first))
        self._newest_ns = self._last_ns = to_ns
