"""A PowerSensor3 on a pseudo-terminal, written from what its public firmware and host library say of the protocol.

It shares no code with the program. `power(pair, t)` gives the watts that each pair really draws at seconds `t` of the
host's monotonic clock, shape (n,); what the device reports of them goes through its ten-bit converters. Run as a
program it prints the terminal's path and serves until its input ends: `python powersensor3_device.py [SECONDS_PERIOD]`.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

RATE_HZ = 20_000
BUFFERED = 640 << 10  # bytes that wait for a host: Linux keeps as many for a serial port, of a pseudo-terminal 13 KB
Power = Callable[[int, np.ndarray], np.ndarray]
PAIRS = (("slot 3.3V", 3.3), ("slot 12V", 12.0), ("ext 12V", 12.0))  # name and volts; the fourth is not in use


def steady(watts: float) -> Power:
    """So many watts on every pair."""
    return lambda pair, t: np.full(len(t), watts)


class PowerSensor3Device:
    """Serves on a thread of its own. `link` is a path that stays when the cable is pulled and plugged in again."""

    def __init__(
        self,
        power: Power,
        *,
        pairs: Sequence[tuple[str, float]] = PAIRS,
        drift: float = 0.0,
        noise: float = 0.4,
        link: Path | None = None,
        version: bytes = b"F411-1.6.1",
    ) -> None:
        self.power, self.pairs, self.drift, self.noise = power, tuple(pairs), drift, noise
        self.version = version
        self.sent = 0  # frames put on the wire
        self.dropped = 0  # frames that the wire had no room for
        self.marks: list[int] = []  # host's time at which each marked frame was finished, ns
        self.sensitivity = {n: (0.0635, 0.85 * 3.3 / volts) for n, (_, volts) in enumerate(self.pairs)}
        self.null_v = 1.65
        self.link = link
        self._random = np.random.default_rng(1)
        self._damage: list[Callable[[bytes], bytes]] = []
        self._stop = threading.Event()
        self.plug()

    # --- the cable --------------------------------------------------------------------------------------------------

    def plug(self) -> None:
        self._master, slave = os.openpty()
        import tty  # not on Windows, where the tests that need it are left out

        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave = slave  # kept open, so that the terminal lives while no host has it open
        os.set_blocking(self._master, False)
        if self.link is not None:
            with suppress(FileNotFoundError):
                self.link.unlink()
            self.link.symlink_to(self.path)
            self.path = str(self.link)
        self._streaming = False
        self._marks_due = 0
        self._stop.clear()
        self._thread = threading.Thread(target=self._serve, name="PowerSensor3 device", daemon=True)
        self._thread.start()

    def pull(self) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._slave)
        os.close(self._master)
        if self.link is not None:
            self.link.unlink()

    def close(self) -> None:
        if not self._stop.is_set():
            self.pull()

    def damage(self, change: Callable[[bytes], bytes]) -> None:
        """Change the bytes of the next write of the stream, as a bad wire does."""
        self._damage.append(change)

    # --- the firmware -----------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        self._left = b""
        while not self._stop.is_set():
            asked = self._received()
            for letter in asked:
                self._obey(bytes([letter]))
            if self._streaming:
                data = self._frames_due()
                if self._damage and data:
                    data = self._damage.pop(0)(data)
                self._left = self._write(self._left + data)
            time.sleep(0.0005)

    def _received(self) -> bytes:
        try:
            return os.read(self._master, 64)
        except (BlockingIOError, OSError):
            return b""

    def _obey(self, letter: bytes) -> None:
        if letter == b"R":
            self._send_settings()
        elif letter == b"S":
            self._streaming = True
            self._left = b""
            self._begun_ns = time.monotonic_ns()
            self._frame = 0
        elif letter == b"T":
            self._streaming = False
        elif letter == b"X":
            self._streaming = False
            self._write(b"\xff\x3f\xff\x3f")
        elif letter == b"M":
            self._marks_due += 1
        elif letter == b"V":
            self._write(self.version + b"\r\n")

    def _send_settings(self) -> None:
        for number in range(8):
            pair = number // 2
            used = pair < len(self.pairs)
            name = self.pairs[pair][0].encode() if used else b"none"
            amps, gain = self.sensitivity[pair] if used else (1.0, 1.0)
            current = number % 2 == 0
            kind = b"MLX91221" if current else b"ACPL-C87B"
            null_v, sensitivity = (self.null_v, amps) if current else (0.0, gain)
            self._write(struct.pack("<16s16sff?", kind, name, null_v, sensitivity, used))
            for _ in range(2000):
                if self._received():
                    break
                time.sleep(0.0005)
        self._write(b"D")

    def _write(self, data: bytes) -> bytes:
        """Put on the wire what it has room for. Frames behind what was begun are dropped where there is none."""
        sent = 0
        with suppress(BlockingIOError):
            sent = os.write(self._master, data)
        rest = data[sent:]
        if len(rest) > BUFFERED:
            kept = BUFFERED - (BUFFERED - len(rest)) % 18  # whole frames are dropped
            self.dropped += (len(rest) - kept) // 18
            rest = rest[:kept]
        return rest

    def _frames_due(self) -> bytes:
        """Frames of the time since the last call, as the converters and the firmware make them."""
        now_ns = time.monotonic_ns()
        due = int((now_ns - self._begun_ns) * (1.0 + self.drift) / 1e9 * RATE_HZ) - self._frame
        if due <= 0:
            return b""
        number = self._frame + 1 + np.arange(due)
        seconds = self._begun_ns / 1e9 + number / RATE_HZ / (1.0 + self.drift)  # the host's time at each frame's end
        self._frame += due
        self.sent += due
        stamps = (number * (1_000_000 // RATE_HZ) + 123) % 1024
        frames = np.zeros((due, 18), np.uint8)
        frames[:, 0] = 0xF0 | stamps >> 6
        frames[:, 1] = 0x40 | stamps & 0x3F
        for sensor in range(8):
            level = self._levels(sensor, seconds - 0.5 / RATE_HZ)
            frames[:, 2 + 2 * sensor] = 0x80 | sensor << 4 | level >> 6
            frames[:, 3 + 2 * sensor] = level & 0x3F
        if self._marks_due:
            self._marks_due -= 1
            frames[-1, 3] |= 0x40
            self.marks.append(int(seconds[-1] * 1e9))
        return frames.tobytes()

    def _levels(self, sensor: int, seconds: np.ndarray) -> np.ndarray:
        pair = sensor // 2
        if pair >= len(self.pairs):
            return np.zeros(len(seconds), np.int64)
        volts = self.pairs[pair][1]
        amps, gain = self.sensitivity[pair]
        if sensor % 2:
            at_input = np.full(len(seconds), volts * gain)
        else:
            at_input = self.power(pair, seconds) / volts * amps + self.null_v
        noisy = at_input / 3.3 * 1023 + self.noise * self._random.standard_normal(len(seconds))
        return np.clip(np.rint(noisy), 0, 1023).astype(np.int64)


def square(period_s: float, low_w: float, high_w: float) -> Power:
    """Low in the first half of each period of the host's monotonic clock, high in the second."""
    return lambda pair, t: np.where(t % period_s < period_s / 2, low_w, high_w)


if __name__ == "__main__":
    period = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    link = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    device = PowerSensor3Device(square(period, 10.0, 90.0) if period else steady(50.0), link=link)
    print(device.path, flush=True)
    sys.stdin.readline()
    device.close()
    print(f"{device.sent} {device.dropped}", flush=True)
