"""One row after another: how every runner ends that measures by itself, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from ..measurement import Measurement


def each_row(
    rows: Iterable[int], stop: threading.Event, measure: Callable[[int, threading.Event], Measurement | None]
) -> Iterator[Measurement]:
    """Measure the rows in their order; over when `stop` is set, or when `measure` returns None since it was."""
    for row in rows:
        if stop.is_set():
            return
        measurement = measure(row, stop)
        if measurement is None:
            return
        yield measurement
