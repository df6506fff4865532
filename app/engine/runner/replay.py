"""`ReplayRunner`: answers with what was measured before instead of a GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ..formats.recording import Recording
from ..results.measurement import Depth, Measurement
from ..workloads.machine_code import RECORDED, as_rows
from .base import More, Runner, no_more

# Of what a measurement costs on a board: 0.042 of 0.242 s on an H200 in a session of `auto` over the example's matrix
# product (medians of 144 rows that were timed and of 60 that were measured, without what compilers were waited for).
TIMED_SHARE: Final = 0.17
ONLY_TIMED: Final = "it was only timed when it was recorded"


class ReplayRunner(Runner):
    """Answers with measurements that are known."""

    source = "recorded"
    batch = 64  # an answer costs nothing, but stopping should take effect at once

    def __init__(
        self,
        measurement: Callable[[int], Measurement],
        timed: frozenset[str] = frozenset(),
        value_names: Collection[str] = (),
    ) -> None:
        """`measurement` gives that of a row; `timed` are the values that timing alone gives, among `value_names`."""
        self._measurement = measurement
        self.timed = timed
        self._recorded = [name for name in value_names if name in RECORDED]
        self.feature_names = tuple(dict.fromkeys(RECORDED[name] for name in self._recorded))

    @classmethod
    def of(cls, recording: Recording) -> ReplayRunner:
        """Over the rows of `recording.space()`."""
        return cls(recording.measurement, recording.names_at_time, recording.value_names)

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        """Yield the recorded measurements of the rows in the order given; at `Depth.TIME` nothing of their energy."""
        for row in rows:
            if stop.is_set():
                return
            measurement = self._measurement(row)
            if not measurement.final:
                measurement = replace(measurement, depth=Depth.ENERGY, message=ONLY_TIMED)
            yield measurement if depth is Depth.ENERGY else at_time(measurement, self.timed)

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        """What the recording holds of the rows' compiled kernels."""
        values = [self._measurement(row).values for row in rows]
        by_row = [{RECORDED[name]: value[name] for name in self._recorded if name in value} for value in values]
        return as_rows(self.feature_names, by_row)


def at_time(measurement: Measurement, names: frozenset[str]) -> Measurement:
    """What timing alone would have shown of a recorded measurement: the values of these names."""
    return replace(
        measurement,
        values={name: value for name, value in measurement.values.items() if name in names},
        intervals={name: ends for name, ends in measurement.intervals.items() if name in names},
        window_ns=None,
        event_reasons=0,
        power_source="",
        cost_s=TIMED_SHARE * measurement.cost_s,
        depth=Depth.TIME,
    )
