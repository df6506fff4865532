"""`LiveBoard`: an open board with the trace of what it reports, its sampler, a recording, and a check for alarms."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.errors import WattridgeError
from ..gpu import Gpu
from .alarms import Alarm, AlarmKind, AlarmRules, AlarmWatch
from .sampler import Sampler, SensorEvent
from .trace import Trace

if TYPE_CHECKING:
    from ..recorded.writer import Writer

KEPT_S: Final = 24 * 3600.0


class LiveBoard:
    """A board that is read every `interval_s` of its clock from now on; its trace keeps the last `span_s`.

    It owns the board. `rate_hz` is the highest rate at which it will be read (as now, where it is not given), and
    `allow_for` that of `Trace` (a recording's own steps, where it is not given). A recording to `record_to` begins with
    the first reading. `on_event`, `backlog_s` and `duration_s` are those of `Sampler`.
    """

    def __init__(
        self,
        gpu: Gpu,
        *,
        interval_s: float,
        rate_hz: float | None = None,
        span_s: float = KEPT_S,
        allow_for: float | None = None,
        on_event: Callable[[SensorEvent], None] | None = None,
        record_to: Path | None = None,
        backlog_s: float = 0.0,
        duration_s: float = math.inf,
    ) -> None:
        self.gpu = gpu
        self.trace = Trace(gpu.channels, rate_hz=rate_hz or 1.0 / interval_s, span_s=span_s)
        if allow_for is None:
            from ..recorded.gpu import RecordedGpu  # imported late: the window starts without it

            allow_for = gpu.gap_s if isinstance(gpu, RecordedGpu) else 1.0
        self.trace.allow_for(allow_for)
        self.sampler = Sampler(
            gpu, self.trace, interval_s=interval_s, on_event=on_event, backlog_s=backlog_s, duration_s=duration_s
        )
        self.recording: Writer | None = None  # the newest one, which may be finished
        if record_to is not None:
            self.record(record_to)
        self._alarms = AlarmWatch(self.trace)
        self.sampler.start()

    def record(self, path: Path) -> Writer:
        """Write what is read from now on to a file, columnar where its name ends in .wrec. Raises InputError."""
        from ..recorded.marks import MarkInbox  # imported late: few record
        from ..recorded.recording import new_recording

        self.recording = new_recording(path, self.gpu)
        with suppress(OSError, WattridgeError):  # without a data folder no other program can set a mark
            self.recording.inbox = MarkInbox(path)
        self.sampler.record(self.recording)
        return self.recording

    def finish_recording(self) -> None:
        """Complete the file of the recording, if there is one. Raises WattridgeError if that fails."""
        self.sampler.record(None)
        if self.recording is not None:
            self.recording.close()

    def new_alarms(self, rules: AlarmRules) -> list[Alarm]:
        """Return the crossings of thresholds since the last call."""
        return self._alarms.check(rules, lost=self.sampler.lost)

    @property
    def active_alarms(self) -> frozenset[AlarmKind]:
        """The kinds of alarms that were raised and are not over yet."""
        return self._alarms.active

    def stop(self) -> None:
        """Stop reading; returns at once. The board stays open, and its trace can be read."""
        self.sampler.stop()

    def close(self) -> None:
        """Stop reading, wait for the last reading, finish the recording and close the board. Safe to call twice."""
        self.stop()
        self.sampler.join()
        self.finish_recording()
        self.gpu.close()
