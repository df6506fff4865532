"""`ReplayRunner`: answers from a recording of measurements instead of a GPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from ..formats.recording import Recording
from ..measurement import Measurement


class ReplayRunner:
    """Implements `Runner` over the rows of `recording.space()`."""

    source = "recorded"
    batch = 64  # an answer costs nothing, but stopping should take effect at once

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """The recorded measurements of the rows, in the order asked for."""
        for row in rows:
            if stop.is_set():
                return
            yield self._recording.measurement(row)

    def close(self) -> None:
        """Nothing to let go of."""
