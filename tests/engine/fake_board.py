"""A board of known power behind a sensor of known faults, on a virtual clock: a meter can be checked exactly."""

from __future__ import annotations

from collections.abc import Sequence

from app.sensors.channel import PowerSample, Reading, channel
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import Execution, GpuInfo, Load, NotSupported, PowerLimit, Source
from app.sensors.limits import limits_of

IDLE_W = 50.0
CLOCKS = tuple(range(300, 1501, 50))
MEMORY_CLOCKS = (800, 1600)
HEAVY = Load("heavy", "fp32", 1e12, 1e9)  # 200 W at 1500 MHz, 10 ms a launch
LIGHT = Load("light", "fp32", 1e11, 1e9)  # 100 W


class FakeBoard:
    """Power is proportional to the clock above idle, time inversely; it changes at once, the sensor does not."""

    limits = limits_of((8, 0))

    def __init__(
        self,
        *,
        buffer: bool = False,
        refresh_s: float = 0.1,
        averaging_s: float = 0.025,
        source: Source = "simulated",
        cap_clock_mhz: Sequence[float] = (),
        obeys: bool = True,
    ) -> None:
        self.clock = VirtualClock()
        self.channels = tuple(
            channel(name)
            for name in (
                "power_average_w" if averaging_s >= 1.0 else "power_instant_w",
                "power_limit_w",
                "graphics_clock_mhz",
                "requested_graphics_clock_mhz",
                "memory_clock_mhz",
                "requested_memory_clock_mhz",
                "temperature_c",
                "event_reasons",
            )
        )
        self.info = GpuInfo(0, "fake", "Fake board", source, "0", PowerLimit(100.0, 300.0, 250.0, 250.0))
        self.settings_made: list[tuple[str, float | None]] = []
        self.launched: list[str] = []
        self.busy = False
        self._buffer = buffer
        self._refresh_ns, self._averaging_ns = round(refresh_s * 1e9), round(averaging_s * 1e9)
        self._cap_clocks = list(cap_clock_mhz)
        self._obeys = obeys
        self._locked: int | None = None
        self._memory: int | None = None
        self._limit_w = 250.0
        self._history: list[tuple[int, float]] = [(0, IDLE_W)]
        self._load: Load | None = None
        self._began_ns = 0

    # --- looking

    @property
    def clock_mhz(self) -> float:
        if self.busy and self._cap_clocks:
            return self._cap_clocks[0]
        return float(self._locked or CLOCKS[-1]) if self._obeys else 1500.0

    def read(self) -> Reading:
        now = self.clock.now_ns()
        reasons = EventReason.NONE if self.busy else EventReason.IDLE
        if self.busy and self._cap_clocks:
            reasons = EventReason.POWER_CAP
        refreshed = now - now % self._refresh_ns
        dither = (now // self._refresh_ns) % 3 * 1e-3  # each refresh is a new value, as noise makes it
        nan = float("nan")
        values = (
            self._mean_w(refreshed - self._averaging_ns, refreshed) + dither,
            self._limit_w,
            self.clock_mhz,
            nan if self._locked is None else float(self._locked),
            float(self._memory or 1600),
            nan if self._memory is None else float(self._memory),
            60.0,
            float(reasons),
        )
        return Reading(now, values)

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        if not self._buffer:
            raise NotSupported("no buffer")
        step, now = 20_000_000, self.clock.now_ns()
        newest = now - now % 100_000_000
        first = max(since_ns + 1, newest - 118 * step)
        stamps = range(first + (-first) % step, newest + 1, step)
        return [PowerSample(t, self._mean_w(t - step, t)) for t in stamps]

    def energy_j(self) -> float:
        raise NotSupported("no counter")

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return CLOCKS

    def memory_clocks_mhz(self) -> Sequence[int]:
        return MEMORY_CLOCKS

    def close(self) -> None:
        pass

    # --- setting

    def lock_graphics_clock(self, clock_mhz: int | None) -> None:
        self.settings_made.append(("graphics_clock_mhz", clock_mhz))
        self._locked = clock_mhz

    def lock_memory_clock(self, clock_mhz: int | None) -> None:
        self.settings_made.append(("memory_clock_mhz", clock_mhz))
        self._memory = clock_mhz

    def set_power_limit(self, limit_w: float | None) -> None:
        self.settings_made.append(("power_limit_w", limit_w))
        self._limit_w = 250.0 if limit_w is None else limit_w

    # --- running

    def begin(self, load: Load) -> None:
        assert not self.busy
        self.busy, self._load, self._began_ns = True, load, self.clock.now_ns()
        self.launched.append(load.name)
        self._history.append((self._began_ns, self.power_w(load)))

    def end(self) -> Execution:
        assert self.busy
        assert self._load is not None
        now = self.clock.now_ns()
        time_s = self.time_s(self._load)
        execution = Execution(max(1, int((now - self._began_ns) / 1e9 / time_s)), time_s, self._began_ns, now)
        if self._cap_clocks and now - self._began_ns >= 290_000_000:
            del self._cap_clocks[: len(self._cap_clocks) > 1]  # the controller moves on, window by window
        self.busy = False
        self._history.append((now, IDLE_W))
        return execution

    # --- the truth

    def power_w(self, load: Load) -> float:
        return IDLE_W + (150.0 if load.name == "heavy" else 50.0) * self.clock_mhz / 1500.0

    def time_s(self, load: Load) -> float:
        return load.work_flop / 1e14 * 1500.0 / self.clock_mhz

    def _mean_w(self, start_ns: int, end_ns: int) -> float:
        energy = 0.0
        for i in range(len(self._history) - 1, -1, -1):
            since, power = self._history[i]
            until = self._history[i + 1][0] if i + 1 < len(self._history) else end_ns
            overlap = min(until, end_ns) - max(since, start_ns)
            energy += power * max(0, overlap)
            if since <= start_ns:
                break
        return energy / (end_ns - start_ns)
