"""`MeterRecord`: what a meter reported lately, sample by sample, and for hours as means. One thread adds, any reads."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Final

import numpy as np

from ..channel import Channel, Reading
from ..trace import Trace
from .meter import MeterInfo, Powers, Samples, Times

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
        """Time stamps and total power of the samples in (start, end]; None where they do not reach back that far."""
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
