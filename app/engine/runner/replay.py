"""`ReplayRunner`: answers with what was measured before instead of a GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from ..measurement import Measurement


class ReplayRunner:
    """Implements `Runner` over rows whose measurements are known."""

    source = "recorded"
    batch = 64  # an answer costs nothing, but stopping should take effect at once

    def __init__(self, measurement: Callable[[int], Measurement]) -> None:
        """`measurement` gives that of a row, as `Recording.measurement` does of the rows of its space."""
        self._measurement = measurement

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """The known measurements of the rows, in the order asked for."""
        for row in rows:
            if stop.is_set():
                return
            yield self._measurement(row)

    def close(self) -> None:
        """Nothing to let go of."""
