"""PowerSensor3 (ASTRON and the Netherlands eScience Center): eight sensors at 20 kHz over USB serial.

As its public sources have it (github.com/nlesc-recruit/PowerSensor3, firmware and host library 1.6.1): `R` is answered
by the settings of eight sensors, 41 bytes each, every one to be acknowledged by any byte, then `D`. Sensors 2n and
2n + 1 are the current and the voltage of pair n. `S` starts and `T` stops a stream of frames of nine words of two
bytes, 1 iii llll and 0 m llllll: first the time, microseconds modulo 1024, under number 7 with m set, then a level of
ten bits for each sensor, 3.3 V at 1023. `M` sets m in the word of sensor 0 of the next frame. `V` is answered by the
firmware's version and a line feed.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..gpu import SensorError
from .device_clock import DeviceClock
from .meter import MeterInfo, Powers, Samples, Times, meter_channels, nothing
from .serial_port import SerialPort, end_stream, exchange, open_port

KIND: Final = "powersensor3"
SENSORS: Final = 8
PERIOD_NS: Final = 50_000
FRAME: Final = 2 * (SENSORS + 1)
SUPPLY_V: Final = 3.3
MOST_LEVEL: Final = 1023
STAMP_US: Final = 1024  # at which time stamps begin again
DECODE_NS: Final = 50_000_000  # bytes are collected for so long: a block costs about as much as a frame
BEGIN_S: Final = 0.3  # of a stream before its time stamps count: the promptest arrivals show where they lie
MARKS: Final = 5  # at the beginning, to see how far the time stamps may be off
LATE_S: Final = 1.0  # more, where a busy host has sent or seen no mark by then
_PATIENCE_S: Final = 1.0
_QUIET_S: Final = 0.04  # without a byte: the stream has ended
_ATTEMPTS: Final = 3
_SENSOR: Final = struct.Struct("<16s16sff?")

# What is the same in every frame: the ends of the words, and the sensors' numbers in their order.
_KNOWN = np.array([0xF0, 0xC0, *([0xF0, 0x80] + [0xF0, 0xC0] * (SENSORS - 1))], np.uint8)
_VALUE = np.array([0xF0, 0x40] + [part for i in range(SENSORS) for part in (0x80 | i << 4, 0x00)], np.uint8)


class Sensor(NamedTuple):
    """One sensor as the device keeps it: value = (volts at its input - reference) / sensitivity, in A or V."""

    kind: str
    pair: str  # the pair's name, as the user of the device gave it
    reference_v: float
    sensitivity: float  # V per A, or V per V; below 0 if the polarity is reversed
    in_use: bool


class Frames(NamedTuple):
    """Whole frames of a stream, in their order."""

    stamps_us: npt.NDArray[np.int64]  # shape (n,), modulo 1024
    levels: npt.NDArray[np.uint16]  # shape (n, 8)
    marked: npt.NDArray[np.bool_]  # shape (n,)
    ends: npt.NDArray[np.int64]  # shape (n,): the byte of the stream behind each
    broken: int  # bytes that belong to no whole frame


class FrameReader:
    """Cuts a stream of bytes into frames; finds the next one where bytes are missing or wrong."""

    def __init__(self) -> None:
        self._rest = b""
        self._read = 0  # bytes of the stream before the rest

    def feed(self, data: bytes) -> Frames:
        """The frames that are whole now."""
        raw = np.frombuffer(self._rest + data, np.uint8)
        frames: list[tuple[int, npt.NDArray[np.uint8]]] = []  # place of the first byte, frames of shape (n, 18)
        offset = broken = 0
        while offset + FRAME <= len(raw):
            whole = (len(raw) - offset) // FRAME
            block = raw[offset : offset + whole * FRAME].reshape(whole, FRAME)
            right = ((block & _KNOWN) == _VALUE).all(axis=1)
            good = whole if right.all() else int(np.argmin(right))
            if good:
                frames.append((offset, block[:good]))
                offset += good * FRAME
            if good < whole:
                skipped = _to_next(raw[offset:])
                offset, broken = offset + skipped, broken + skipped
        self._rest = raw[offset:].tobytes()
        first, self._read = self._read, self._read + offset
        if not frames:
            none = np.empty(0, np.int64)
            return Frames(none, np.empty((0, SENSORS), np.uint16), none.astype(np.bool_), none, broken)
        words = frames[0][1] if len(frames) == 1 else np.concatenate([block for _, block in frames])
        ends = np.concatenate([first + place + FRAME * np.arange(1, len(block) + 1) for place, block in frames])
        high, low = (words[:, 0::2] & 0x0F).astype(np.uint16), words[:, 1::2] & 0x3F
        values = np.left_shift(high, 6, dtype=np.uint16) | low
        return Frames(values[:, 0].astype(np.int64), values[:, 1:], (words[:, 3] & 0x40) != 0, ends, broken)


def _to_next(raw: npt.NDArray[np.uint8]) -> int:
    """How many bytes lie before the next that may begin a frame, at least one."""
    begins = ((raw[1:-1] & 0xF0) == 0xF0) & ((raw[2:] & 0xC0) == 0x40)
    return 1 + (int(np.argmax(begins)) if begins.any() else len(raw) - 2)


def read_sensors(port: SerialPort, where: str) -> tuple[Sensor, ...]:
    """The settings that a device keeps of its sensors. Raises SensorError if what answers is no PowerSensor3."""
    results = []
    asked = b"R"
    for _ in range(SENSORS):
        answer = exchange(port, asked, _SENSOR.size, _PATIENCE_S)
        if len(answer) != _SENSOR.size:
            raise SensorError("what answers here is no PowerSensor3", where, "name its port, or reset the device")
        kind, pair, reference_v, sensitivity, in_use = _SENSOR.unpack(answer)
        results.append(Sensor(_text(kind), _text(pair), reference_v, sensitivity, bool(in_use)))
        asked = b"s"
    if exchange(port, asked, 1, _PATIENCE_S) != b"D":
        raise SensorError("the device's settings do not end as they should", where, "reset the device")
    return tuple(results)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("ascii", "replace").strip()


class PowerSensor3:
    """Implements `PowerMeter`."""

    def __init__(self, path: str) -> None:
        """Raises InputError if there is no such port, and SensorError if no PowerSensor3 answers there."""
        self._path = path
        self._gaps = 0  # samples that gaps between time stamps say are missing
        self._behind_ns = 0  # what was lost without a gap, by the clocks
        self._port: SerialPort | None = None
        self._asked_ns: deque[int] = deque()
        self._marked: list[tuple[int, int]] = []
        self._decoded_ns = 0
        self._open()

    @property
    def missed(self) -> int:
        return self._gaps + int(self._behind_ns / PERIOD_NS)

    def read(self) -> Samples:
        if self._port is None:
            raise SensorError("the meter is closed", self._path)
        data = self._port.read()
        now_ns = time.monotonic_ns()
        if data:
            self._bytes += len(data)
            self._data.append(data)
            self._arrivals.append((self._bytes, now_ns))
        if not self._data or now_ns - self._decoded_ns < DECODE_NS:
            return nothing(len(self.channels))
        self._decoded_ns = now_ns
        return self._decode()

    def mark(self) -> None:
        if self._port is not None:
            self._asked_ns.append(time.monotonic_ns())
            self._port.write(b"M")

    def marked(self) -> list[tuple[int, int]]:
        marked, self._marked = self._marked, []
        return marked

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            end_stream(port)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        port = open_port(self._path, 115_200)
        try:
            sensors = _settings(port, self._path)
            version = exchange(port, b"V", b"\n", _PATIENCE_S).decode("ascii", "replace").strip()
            self._configure(sensors, version)
            self._port = port
            self._begin()
        except BaseException:
            self._port = None
            port.close()
            raise

    def _configure(self, sensors: tuple[Sensor, ...], version: str) -> None:
        pairs = [n for n in range(SENSORS // 2) if sensors[2 * n].in_use and sensors[2 * n + 1].in_use]
        if not pairs:
            remedy = "switch pairs on with psconfig, the device's own tool"
            raise SensorError("no pair of sensors of this PowerSensor3 is in use", self._path, remedy)
        if any(sensors[i].sensitivity == 0.0 for n in pairs for i in (2 * n, 2 * n + 1)):
            raise SensorError("a sensor of this device has a sensitivity of 0", self._path, "calibrate it: psconfig")
        self.sensors = sensors
        used = [i for n in pairs for i in (2 * n, 2 * n + 1)]
        self._used = np.asarray(used)
        self._reference_v = np.asarray([sensors[i].reference_v for i in used])
        self._sensitivity = np.asarray([sensors[i].sensitivity for i in used])
        names = tuple(sensors[2 * n].pair or f"pair {n}" for n in pairs)
        self.channels = meter_channels(KIND, "PowerSensor3", names)
        label = f"PowerSensor3 on {self._path}" + (f", firmware {version}" if version else "")
        self.info = MeterInfo(KIND, label, "board", PERIOD_NS / 1e9, PERIOD_NS / 1e9, poll_s=0.008)

    def _begin(self) -> None:
        """Start the stream, and watch it until its time stamps have their place on the host's clock."""
        assert self._port is not None
        self._frames = FrameReader()
        self._clock = DeviceClock()
        self._bytes = 0
        self._data: list[bytes] = []
        self._arrivals: list[tuple[int, int]] = []  # bytes by then, and when
        self._decoded_ns = 0
        self._device_us = -1  # of the last frame; below 0 before the first
        self._asked_ns.clear()
        self._port.write(b"S")
        begun = time.monotonic()
        marks = [begun + BEGIN_S * (0.4 + 0.1 * i) for i in range(MARKS)]
        end = begun + BEGIN_S
        while (now := time.monotonic()) < end or (not self._marked and now < end + LATE_S):
            if marks and now >= marks[0]:
                marks.pop(0)
                self.mark()
            self.read()
            time.sleep(0.001)
        if self._device_us < 0:
            raise SensorError("the device sends no values", self._path, "reset it, or plug it in again")
        answered_ns = [stamp_ns - asked_ns for asked_ns, stamp_ns in self.marked()]
        if answered_ns:  # a sample is marked after it was asked for, so its stamp is late by that much at most
            self.info = replace(self.info, margin_s=max(PERIOD_NS, min(answered_ns)) / 1e9)

    def _decode(self) -> Samples:
        frames = self._frames.feed(b"".join(self._data))
        arrivals, self._arrivals, self._data = self._arrivals, [], []
        if not len(frames.ends):
            return nothing(len(self.channels))
        device_ns = self._count(frames.stamps_us)
        for place, host_ns in arrivals:  # the newest frame that each read brought whole
            newest = int(np.searchsorted(frames.ends, place, side="right")) - 1
            if newest >= 0:
                self._behind_ns += self._clock.note(int(device_ns[newest]), host_ns)
        stamps = self._clock.on_host(device_ns)
        for index in np.flatnonzero(frames.marked):
            if self._asked_ns:
                self._marked.append((self._asked_ns.popleft(), int(stamps[index])))
        return Samples(stamps, self._powers(frames.levels))

    def _count(self, stamps_us: npt.NDArray[np.int64]) -> Times:
        """The device's own time since its stream began, in ns, and what its gaps say is missing."""
        if self._device_us < 0:
            self._device_us = int(stamps_us[0]) - PERIOD_NS // 1000
        since = np.diff(stamps_us, prepend=self._device_us % STAMP_US) % STAMP_US
        gaps = since[since * 2000 > 3 * PERIOD_NS]
        self._gaps += int(np.rint(gaps * 1000 / PERIOD_NS - 1).sum())
        counted = self._device_us + np.cumsum(since)
        self._device_us = int(counted[-1])
        return counted * 1000

    def _powers(self, levels: npt.NDArray[np.uint16]) -> Powers:
        volts = levels[:, self._used] * (SUPPLY_V / MOST_LEVEL)
        values = (volts - self._reference_v) / self._sensitivity
        pairs: Powers = values[:, 0::2] * values[:, 1::2]
        total = pairs.sum(axis=1, keepdims=True)
        return total if pairs.shape[1] < 2 else np.hstack([total, pairs])


def _settings(port: SerialPort, where: str) -> tuple[Sensor, ...]:
    """The device's settings, once it is silent: a program that was killed leaves the stream on.

    Raises SensorError.
    """
    for attempt in range(_ATTEMPTS):
        _silence(port)
        try:
            return read_sensors(port, where)
        except SensorError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("it returns or raises")


def _silence(port: SerialPort) -> None:
    port.write(b"T")
    quiet = time.monotonic()
    end = quiet + _PATIENCE_S
    while time.monotonic() < quiet + _QUIET_S and time.monotonic() < end:
        if port.read():
            quiet = time.monotonic()
        time.sleep(0.002)
