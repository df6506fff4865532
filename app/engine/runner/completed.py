"""`CompletedRunner`: a runner whose measurements a script's functions complete."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..results.measurement import Depth, Measurement
from ..results.objectives import Objective
from .base import More, OnPreparation, Runner, no_more

Complete = Callable[[Measurement], Measurement]


class CompletedRunner(Runner):
    """Wraps a runner and adds the derived figures to each measurement, again whenever it is restated."""

    def __init__(self, runner: Runner, complete: Complete) -> None:
        self._runner, self._complete = runner, complete
        self.source, self.batch, self.timed = runner.source, runner.batch, runner.timed
        self.feature_names = runner.feature_names

    @property
    def board_count(self) -> int:
        return self._runner.board_count

    def prepare(self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation) -> None:
        self._runner.prepare(rows, stop, on_progress)

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        measuring = self._runner.measure(rows, stop, depth, more)
        try:
            yield from map(self._complete, measuring)
        finally:
            close = getattr(measuring, "close", None)  # a generator releases the GPU at once
            if close is not None:
                close()

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        return self._runner.features(rows, stop)

    def expect(self, rows: Sequence[int]) -> None:
        self._runner.expect(rows)

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        return self._changed(measurements, self._runner.restated(measurements))

    def finish(
        self, measurements: Sequence[Measurement], again: Sequence[int], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        return self._changed(measurements, self._runner.finish(measurements, again, objective, stop))

    def conclude(self) -> Mapping[str, str]:
        return self._runner.conclude()

    def close(self) -> None:
        self._runner.close()

    def _changed(self, before: Sequence[Measurement], after: Sequence[Measurement]) -> list[Measurement]:
        pairs = zip(before, after, strict=True)
        return [new if new is old else self._complete(new) for old, new in pairs]
