"""Power sensors of a simulated board: refresh, averaging, lag, gain, noise, quantisation, and the driver's buffer.

A value belongs to its tick, however often it is read: noise is a hash of (seed, channel, tick). The power drawn is kept
as constant pieces with running integrals, so that the mean over any window is exact.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Final

from ..channel import PowerSample
from .twin import PowerBuffer, PowerSensor, Sensors

_TRIM_FROM: Final = 512  # pieces; each is a dozen objects

# power W, memory W, busy 0..1, memory busy 0..1, launches per second; or their integrals, in s
Rates = tuple[float, float, float, float, float]


class History:
    """Pieces [start, next start) of constant power, of the last few seconds. The last piece has no end yet.

    Before the first piece the board is taken to have drawn what the first piece says.
    """

    def __init__(self, kept_s: float) -> None:
        self._kept_ns = round(kept_s * 1e9)
        self._trim_at = _TRIM_FROM
        self._start_ns: list[int] = []
        self._rates: list[Rates] = []
        self._sums: list[Rates] = []  # their integrals up to the piece's start

    def __len__(self) -> int:
        """Pieces held."""
        return len(self._start_ns)

    def append(
        self, start_ns: int, power_w: float, memory_w: float, busy: float, memory_busy: float, per_s: float
    ) -> None:
        """A new piece from `start_ns` on, with `per_s` launches a second.

        One that begins where the last began replaces it.
        """
        rates = (power_w, memory_w, busy, memory_busy, per_s)
        if self._start_ns and start_ns <= self._start_ns[-1]:
            self._rates[-1] = rates
            return
        self._sums.append(self._at(start_ns) if self._start_ns else (0.0, 0.0, 0.0, 0.0, 0.0))
        self._start_ns.append(start_ns)
        self._rates.append(rates)
        if len(self._start_ns) > self._trim_at:
            self._trim(start_ns - self._kept_ns)

    def energy_j(self, time_ns: int) -> float:
        """Energy drawn since the first piece."""
        return self._at(time_ns)[0]

    def launches(self, time_ns: int) -> float:
        """Launches since the first piece, of whatever: a load ends with a whole one."""
        return self._at(time_ns)[4]

    def means(self, from_ns: int, to_ns: int) -> tuple[float, float, float, float]:
        """Mean power W, memory power W, share of time busy and of memory busy over a window, from_ns < to_ns."""
        seconds = (to_ns - from_ns) / 1e9
        before, after = self._at(from_ns), self._at(to_ns)
        return (
            (after[0] - before[0]) / seconds,
            (after[1] - before[1]) / seconds,
            (after[2] - before[2]) / seconds,
            (after[3] - before[3]) / seconds,
        )

    def _at(self, time_ns: int) -> Rates:
        i = max(0, bisect_right(self._start_ns, time_ns) - 1)
        seconds = (time_ns - self._start_ns[i]) / 1e9
        sums, rates = self._sums[i], self._rates[i]
        return (
            sums[0] + rates[0] * seconds,
            sums[1] + rates[1] * seconds,
            sums[2] + rates[2] * seconds,
            sums[3] + rates[3] * seconds,
            sums[4] + rates[4] * seconds,
        )

    def _trim(self, before_ns: int) -> None:
        gone = max(0, bisect_right(self._start_ns, before_ns) - 1)
        del self._start_ns[:gone], self._rates[:gone], self._sums[:gone]
        self._trim_at = max(_TRIM_FROM, 2 * len(self._start_ns))


_MASK: Final = (1 << 64) - 1
_SWINGS_FROM_NS: Final = 4_000_000  # launches that are shorter average out within a sample


def hashed(seed: int, channel: int, tick: int) -> int:
    """64 well-mixed bits (the finaliser of the splitmix64 generator, once per word)."""
    z = seed & _MASK
    for word in (channel, tick):
        z = (z + 0x9E3779B97F4A7C15 + word) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
    return z


def gaussian(seed: int, channel: int, tick: int) -> float:
    """A standard normal deviate by the Box-Muller transform."""
    bits = hashed(seed, channel, tick)
    u, v = ((bits >> 32) + 1) / 2**32, (bits & 0xFFFFFFFF) / 2**32
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


class _Imperfect:
    """Gain, noise and quantisation, common to every source of a board."""

    def __init__(self, sensors: Sensors, seed: int, channel: int) -> None:
        self._sensors = sensors
        self._seed = seed
        self._channel = channel

    def phase_ns(self, period_ns: int) -> int:
        """Where in a period this board's ticks lie."""
        return hashed(self._seed, self._channel, -1) % period_ns

    def reported(self, power_w: float, tick: int) -> float:
        sensors = self._sensors
        noise = sensors.noise_share * power_w + sensors.noise_w
        value = power_w * sensors.gain + noise * gaussian(self._seed, self._channel, tick)
        if sensors.quantum_w > 0:
            value = round(round(value / sensors.quantum_w) * sensors.quantum_w, 9)
        return max(0.0, value)


class PolledPower:
    """A source that a program polls: a new value at every tick, the mean of a window before it."""

    def __init__(self, spec: PowerSensor, sensors: Sensors, seed: int, channel: int, *, memory: bool = False) -> None:
        self._refresh_ns = round(spec.refresh_ms * 1e6)
        self._window_ns = round(spec.window_ms * 1e6)
        self._lag_ns = round(spec.lag_ms * 1e6)
        self._imperfect = _Imperfect(sensors, seed, channel)
        self._phase_ns = self._imperfect.phase_ns(self._refresh_ns)
        self._which = 1 if memory else 0
        self._last: tuple[int, float] = (-1, math.nan)

    def value_w(self, history: History, now_ns: int) -> float:
        """What a read at this time reports."""
        tick = (now_ns - self._phase_ns) // self._refresh_ns
        if tick != self._last[0]:
            to_ns = tick * self._refresh_ns + self._phase_ns - self._lag_ns
            mean = history.means(to_ns - self._window_ns, to_ns)[self._which]
            self._last = (tick, self._imperfect.reported(mean, tick))
        return self._last[1]


class EnergyCounter:
    """Cumulative energy in J, reported in whole mJ."""

    def __init__(self, sensors: Sensors, seed: int, channel: int) -> None:
        self._refresh_ns = round(sensors.counter_refresh_ms * 1e6)
        self._gain = sensors.gain * sensors.counter_gain
        self._phase_ns = _Imperfect(sensors, seed, channel).phase_ns(self._refresh_ns)

    def value_j(self, history: History, now_ns: int) -> float:
        """What a read at this time reports."""
        tick_ns = (now_ns - self._phase_ns) // self._refresh_ns * self._refresh_ns + self._phase_ns
        return max(0, round(history.energy_j(tick_ns) * self._gain * 1e3)) / 1e3


class BufferedPower:
    """The driver's buffer: a sample per period, published a few at a time.

    A sample is the mean of its window, and follows the phase of the launch at its end, by `launch_swing`.
    """

    def __init__(self, spec: PowerBuffer, sensors: Sensors, seed: int, channel: int) -> None:
        self._sample_ns = round(spec.sample_ms * 1e6)
        self._window_ns = round(spec.averages_ms * 1e6)
        self._published_ns = round(spec.published_ms * 1e6)
        self._kept = spec.kept
        self._swing = spec.launch_swing
        self._imperfect = _Imperfect(sensors, seed, channel)
        self._phase_ns = self._imperfect.phase_ns(self._sample_ns)

    def samples(self, history: History, since_ns: int, now_ns: int) -> list[PowerSample]:
        """Samples newer than `since_ns` that a drain at this time finds, oldest first."""
        visible_ns = (now_ns - self._phase_ns) // self._published_ns * self._published_ns + self._phase_ns
        last = (visible_ns - self._phase_ns) // self._sample_ns
        first = max(last - self._kept + 1, (since_ns - self._phase_ns) // self._sample_ns + 1)
        results = []
        for tick in range(first, last + 1):
            at_ns = tick * self._sample_ns + self._phase_ns
            mean = history.means(at_ns - self._window_ns, at_ns)[0]
            if self._swing:
                mean *= 1.0 + self._swings(history, at_ns)
            results.append(PowerSample(at_ns, self._imperfect.reported(mean, tick)))
        return results

    def _swings(self, history: History, at_ns: int) -> float:
        before, now = history.launches(at_ns - _SWINGS_FROM_NS), history.launches(at_ns)
        return self._swing * math.cos(2.0 * math.pi * now) if 0.0 < now - before <= 1.0 else 0.0
