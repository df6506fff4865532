"""`SampledMeter`: an open meter with its record and the thread that fills it, through unplugging and back.

`MeterRecord`: what a meter reported lately, sample by sample, and for hours as means. One thread adds, any reads.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ..channel import Channel, Reading
from ..gpu import SensorError
from ..trace.sampler import SensorEvent
from ..trace.trace import Trace
from .meter import MeterInfo, MeterLost, PowerMeter, Powers, Samples, Times

FINE_S: Final = 60.0  # of single samples
MEAN_S: Final = 0.01  # of the means that are kept for hours
KEPT_S: Final = 8 * 3600.0
_MOST_ROWS: Final = 1 << 21


class MeterRecord:
    """The samples of the last minute, and `trace`: means of 10 ms of the last hours, or a slow meter's own values."""

    def __init__(self, info: MeterInfo, channels: Sequence[Channel]) -> None:
        self.mean_s = max(MEAN_S, info.period_s)
        self.trace = Trace(channels, rate_hz=1.0 / self.mean_s, span_s=KEPT_S)
        self.count = 0  # samples ever added
        self._lock = threading.Lock()
        self._rows = min(_MOST_ROWS, max(1024, math.ceil(FINE_S / info.period_s)))
        self._time_ns = np.zeros(self._rows, np.int64)
        self._total_w = np.zeros(self._rows)
        self._mean_ns = round(self.mean_s * 1e9) if info.period_s < MEAN_S else 0
        self._open: tuple[Times, Powers] | None = None  # of the mean that is not complete yet

    @property
    def newest_ns(self) -> int:
        """Time stamp of the newest sample; 0 before any."""
        return int(self._time_ns[(self.count - 1) % self._rows]) if self.count else 0

    def add(self, samples: Samples) -> None:
        """Keep what a meter reported: newer than all before."""
        time_ns, power_w = samples
        if not len(time_ns):
            return
        fine = slice(max(0, len(time_ns) - self._rows), None)
        with self._lock:
            slots = (self.count + np.arange(len(time_ns))[fine]) % self._rows
            self._time_ns[slots] = time_ns[fine]
            self._total_w[slots] = power_w[fine, 0]
            self.count += len(time_ns)
        self._keep(time_ns, power_w)

    def gap(self, time_ns: int) -> None:
        """The meter was lost until then: nothing is known between."""
        self._open = None
        self.trace.append(Reading(time_ns, (math.nan,) * len(self.trace.channels)))

    def fine(self, start_ns: int, end_ns: int) -> tuple[Times, Powers] | None:
        """Time stamps and total power of the samples in (start, end]; None if they do not reach back that far."""
        with self._lock:
            first = max(0, self.count - self._rows)
            order = np.arange(first, self.count) % self._rows
            time_ns = self._time_ns[order] if first else self._time_ns[: self.count]
            if first and (not len(time_ns) or time_ns[0] > start_ns):
                return None
            from_, to = np.searchsorted(time_ns, (start_ns, end_ns), side="right")
            total_w = self._total_w[order[from_:to]]
            return time_ns[from_:to].copy(), total_w

    def _keep(self, time_ns: Times, power_w: Powers) -> None:
        if not self._mean_ns:
            for stamp, row in zip(time_ns.tolist(), power_w.tolist(), strict=True):
                self.trace.append(Reading(stamp, tuple(row)))
            return
        if self._open is not None:
            time_ns = np.concatenate([self._open[0], time_ns])
            power_w = np.concatenate([self._open[1], power_w])
        bins = time_ns // self._mean_ns
        starts = np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))
        complete = starts[-1]
        self._open = time_ns[complete:], power_w[complete:]
        if complete:
            counts = np.diff(starts)
            means = np.add.reduceat(power_w[:complete], starts[:-1], axis=0) / counts[:, None]
            last = time_ns[starts[1:] - 1]
            for stamp, row in zip(last.tolist(), means.tolist(), strict=True):
                self.trace.append(Reading(stamp, tuple(row)))


RETRY_S: Final = 1.0  # between looks for a meter that was lost


class SampledMeter:
    """A meter that is read from now on. It owns the meter. `on_event` is called on its thread, once per change."""

    def __init__(self, meter: PowerMeter, on_event: Callable[[SensorEvent], None] | None = None) -> None:
        self.meter = meter
        self.info = meter.info
        self.channels = meter.channels
        self.record = MeterRecord(meter.info, meter.channels)
        self.lost = False
        self._on_event = on_event
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"meter {meter.info.kind}", daemon=True)
        if not meter.info.on_demand:
            self._thread.start()

    def wait_until(self, time_ns: int, patience_s: float) -> bool:
        """Wait for samples up to a time on the meter's clock that has passed; False if they do not come."""
        if self.info.on_demand:
            self.record.add(self.meter.read())
            return self.record.newest_ns >= time_ns - round(self.info.period_s * 1e9)
        deadline = time.monotonic() + patience_s
        while self.record.newest_ns < time_ns:
            if time.monotonic() > deadline or not self._thread.is_alive():
                return False
            time.sleep(0.002)
        return True

    def close(self) -> None:
        """Stop reading and close the meter. Safe to call twice."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.meter.close()

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self.record.add(self.meter.read())
            except SensorError as error:
                self._lose(error)
                if not self._find_again():
                    return
                due = time.monotonic()
            except Exception as error:  # noqa: BLE001 - the thread's last line of defence: it reports and goes on
                self._lose(MeterLost(f"{type(error).__name__}: {error}", self.info.label))
                if not self._find_again():
                    return
            due = max(due + self.info.poll_s, time.monotonic())
            self._stop.wait(max(0.0, due - time.monotonic()) or self.info.poll_s)

    def _lose(self, error: SensorError) -> None:
        self.lost = True
        now_ns = time.monotonic_ns()
        self.record.gap(now_ns)
        self._report(SensorEvent(now_ns, "lost", self.info.kind, str(error)))

    def _find_again(self) -> bool:
        """Try once a second; False once it is to stop."""
        while not self._stop.wait(RETRY_S):
            try:
                self.meter.reopen()
            except Exception:  # noqa: BLE001 - it is not back yet, whatever is in its place
                continue
            if self.meter.channels != self.channels:
                self.meter.close()
                continue  # another device is in its place
            self.lost = False
            self._report(SensorEvent(time.monotonic_ns(), "back", self.info.kind, f"{self.info.label} answers again"))
            return True
        return False

    def _report(self, event: SensorEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)
