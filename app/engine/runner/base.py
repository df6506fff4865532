"""The `Runner` seam: takes rows of a search space, returns measurements."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

from app.engine.measurement import Measurement


class Runner(Protocol):
    """A local GPU, a simulated one, or the replay of a recording."""

    source: str  # nvml, simulated or recorded
    batch: int  # how many rows are worth handing over at once

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows one after another, in an order of the runner's choice, yielding each as soon as it is known.

        Ends early when `stop` is set. A failed configuration is a result, never an exception.
        """
        ...

    def close(self) -> None: ...
