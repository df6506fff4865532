"""`ReplayRunner`: answers from a recording of measurements instead of a GPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from app.engine.formats.kernel_tuner import Cache
from app.engine.measurement import Measurement


class ReplayRunner:
    """Implements `Runner` over the rows of `cache.space()`."""

    source = "recorded"
    batch = 64  # an answer costs nothing, but a person wants to stop at once

    def __init__(self, cache: Cache) -> None:
        self._entries = cache.measurements()

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """The recorded measurements of the rows, in the order asked for."""
        for row in rows:
            if stop.is_set():
                return
            yield self._entries[row]

    def close(self) -> None:
        """Nothing to let go of."""
