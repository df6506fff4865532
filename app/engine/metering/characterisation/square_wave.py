"""Drives a square wave of load on a board, and polls every power source of it as densely as they answer."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final, Protocol, runtime_checkable

from ....sensors.channel import PowerSample
from ....sensors.event_reasons import LIMITING
from ....sensors.gpu import Load, NotSupported
from ..launching import LaunchingGpu
from .response import Change
from .sensor_figures import CHANNEL_OF

POLL_S: Final = 0.002  # mean time between two polls; it varies, so that polls and ticks never march in step
# Shortest and longest half-period. Mostly off: an average with little power in it scatters less; but never off for so
# long that the clocks go down.
Range = tuple[float, float]
ON_S: Final[Range] = (0.05, 0.35)
OFF_S: Final[Range] = (0.1, 0.75)
READS_TIMED: Final = 15
SHARE_OF_TIME: Final = 0.25  # that polls of a slow source may take


@runtime_checkable
class AsksOneSource(Protocol):
    """A board that can read one power channel alone."""

    def ask_power_w(self, channel: str) -> float:
        """Read one power channel.

        Parameters
        ----------
        channel : str
            Name of the channel.

        Returns
        -------
        float
            Its power, W.

        Raises
        ------
        NotSupported
            If the board does not report it.
        GpuLost
            If the board is gone.
        """
        ...


class Stopped(Exception):
    """Not an error: the user stopped it."""


@dataclass(slots=True)
class WaveRecord:
    """The readings of a wave. Times are ns on the board's clock."""

    changes: dict[str, list[Change]] = field(default_factory=dict)  # of instant, average, counter
    samples: list[PowerSample] = field(default_factory=list)  # of the driver's buffer
    drains: list[tuple[int, int]] = field(default_factory=list)  # (time, stamp of the newest sample), when it changed
    spans: list[tuple[int, int]] = field(default_factory=list)  # when the load ran
    reasons: int = 0  # clock event reasons seen under load
    held_up_s: float = 0.0  # the longest that the program was kept from polling


class WaveDriver:
    """Polls the sources of one board into a `WaveRecord`."""

    def __init__(self, gpu: LaunchingGpu, seed: int, on_time: Callable[[], None] = lambda: None) -> None:
        self.gpu = gpu
        self.missing: dict[str, str] = {}
        self.read_s: dict[str, float] = {}
        self._dither = random.Random(seed)
        self._on_time = on_time
        self._place = {c.name: place for place, c in enumerate(gpu.channels) if c.available}
        self._why = {c.name: c.unavailable or "" for c in gpu.channels}
        self._polled = {source: self._place[name] for source, name in CHANNEL_OF.items() if name in self._place}
        self._last: dict[str, tuple[int, float]] = {}
        self._due_ns: dict[str, int] = {}
        self._newest_ns = 0
        self._time_reads()
        self.start()

    def start(self) -> WaveRecord:
        """Begin a new record."""
        self.seen = WaveRecord({source: [] for source in (*self._polled, "counter")})
        return self.seen

    def has(self, source: str) -> bool:
        """Return whether the board has a source.

        Parameters
        ----------
        source : str
            The source, one in SOURCES.

        Returns
        -------
        bool
            Whether it answered when the driver began.
        """
        return source in self.read_s

    def wave(
        self, load: Load, seconds: float, stop: threading.Event | None, *, on_s: Range = ON_S, off_s: Range = OFF_S
    ) -> None:
        """Turn a load on and off; half-periods vary so that the edges meet the sensors at every phase.

        Parameters
        ----------
        load : Load
            The load.
        seconds : float
            How long, s; the last period may last longer.
        stop : threading.Event or None
            Ends the wave when set.
        on_s, off_s : Range, optional
            The shortest and longest half-period, s.

        Raises
        ------
        Stopped
            When `stop` was set.
        SensorError
            Where the board does not answer.
        """
        for busy_s, idle_s in self._half_periods(seconds, on_s, off_s):
            self.run(load, busy_s, stop)
            self.rest(idle_s, stop)

    def run(self, load: Load, seconds: float, stop: threading.Event | None) -> None:
        """Run a load.

        Parameters
        ----------
        load : Load
            The load.
        seconds : float
            How long, s on the board's clock.
        stop : threading.Event or None
            Ends the load when set.

        Raises
        ------
        Stopped
            When `stop` was set.
        SensorError
            Where the board does not answer.
        """
        self.gpu.begin(load)
        try:
            self._poll_for(seconds, stop, under_load=True)
        finally:
            execution = self.gpu.end()
            self.seen.spans.append((execution.start_ns, execution.end_ns))  # also of one that was stopped

    def rest(self, seconds: float, stop: threading.Event | None) -> None:
        """Run no load.

        Parameters
        ----------
        seconds : float
            How long, s on the board's clock.
        stop : threading.Event or None
            Ends the rest when set.

        Raises
        ------
        Stopped
            When `stop` was set.
        SensorError
            Where the board does not answer.
        """
        self._poll_for(seconds, stop, under_load=False)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _half_periods(self, seconds: float, *ranges: Range) -> Iterator[tuple[float, float]]:
        while seconds > 0:
            on_s, off_s = (math.exp(self._dither.uniform(math.log(a), math.log(b))) for a, b in ranges)
            yield on_s, off_s
            seconds -= on_s + off_s

    def _poll_for(self, seconds: float, stop: threading.Event | None, *, under_load: bool) -> None:
        end_ns = self.gpu.clock.now_ns() + round(seconds * 1e9)
        while (left_ns := end_ns - (polled_ns := self.gpu.clock.now_ns())) > 0:
            if self.gpu.clock.wait(min(left_ns / 1e9, POLL_S * self._dither.uniform(0.5, 1.5)), stop):
                raise Stopped
            self.seen.held_up_s = max(self.seen.held_up_s, (self.gpu.clock.now_ns() - polled_ns) / 1e9)
            self._poll(under_load)
            self._on_time()

    def _poll(self, under_load: bool) -> None:
        reading = self.gpu.read()
        for source, place in self._polled.items():
            self._note(source, reading.time_ns, reading.values[place])
        if under_load and "event_reasons" in self._place:
            bits = reading.values[self._place["event_reasons"]]
            self.seen.reasons |= 0 if math.isnan(bits) else int(bits) & LIMITING
        if "counter" not in self.missing and self._is_due("counter"):
            asked_ns = self.gpu.clock.now_ns()
            self._note("counter", asked_ns, self.gpu.energy_j())
        if "buffer" not in self.missing and self._is_due("buffer"):
            self._drain()

    def _note(self, source: str, time_ns: int, value: float) -> None:
        if math.isnan(value):
            return
        before = self._last.get(source)
        self._last[source] = (time_ns, value)
        if before is not None and before[1] != value:
            self.seen.changes[source].append(Change(before[0], time_ns, value))

    def _drain(self) -> None:
        samples = self.gpu.power_samples(self._newest_ns)
        if samples:
            self._newest_ns = samples[-1].time_ns
            self.seen.samples.extend(samples)
            self.seen.drains.append((self.gpu.clock.now_ns(), self._newest_ns))

    def _is_due(self, source: str) -> bool:
        """Whether to read a source now: a slow one is read less often, so that it does not hold up the others."""
        now_ns = self.gpu.clock.now_ns()
        if now_ns < self._due_ns.get(source, 0):
            return False
        speed = self.gpu.clock.speed
        pause_s = self.read_s[source] / SHARE_OF_TIME * speed if math.isfinite(speed) else 0.0
        self._due_ns[source] = now_ns + round(pause_s * 1e9)
        return True

    def _time_reads(self) -> None:
        for source, name in CHANNEL_OF.items():
            if name not in self._place:
                self.missing[source] = self._why.get(name) or "this board does not report it"
            elif isinstance(self.gpu, AsksOneSource):
                self.read_s[source] = _cost_s(partial(self.gpu.ask_power_w, name))
            else:
                self.read_s[source] = _cost_s(self.gpu.read)
        for source, ask in (("counter", self.gpu.energy_j), ("buffer", lambda: self.gpu.power_samples(0))):
            try:
                answer = ask()
                if source == "buffer" and not answer:
                    raise NotSupported("the driver's buffer of power samples is empty")
                self.read_s[source] = _cost_s(ask)
            except NotSupported as error:
                self.missing[source] = error.what


def _cost_s(ask: Callable[[], object]) -> float:
    """The median time of several calls on the wall clock, s."""
    took = []
    for _ in range(READS_TIMED):
        before = time.perf_counter()
        ask()
        took.append(time.perf_counter() - before)
    return median(took)
