"""`CommandRunner`: runs a program once per configuration and measures what the board draws meanwhile.

On a simulated or recorded board the program and its time are real, but it draws nothing there: power and energy are
that board's own, and every measurement says so.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from ...sensors.gpu import LIVE, Gpu
from ...sensors.unmetered import NO_ENERGY
from ..control.guard import DeviceGuard
from ..metering.external_meters import meters_beside
from ..metering.span import Span, read_span, window_of
from ..metering.watching import Watch, watch
from ..metering.window import Window
from ..results.measurement import Measurement
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..workloads.command import Command, CommandFailed
from ..workloads.subprocesses import Ended
from .base import BoardRunner, RowByRow, by_setting, setting_names, settings_of
from .measurement_figures import Figures, measurement_of


def not_its_own(source: str, what: str = "a program") -> str:
    """The remark on power on a board that is not there, or not known; empty for a real one."""
    if source in LIVE:
        return ""
    if source == "unmetered":
        return NO_ENERGY
    power_of = "idle board's, as simulated" if source == "simulated" else "recording's"
    return f"{what} draws nothing on a {source} board: time is its own, power and energy are the {power_of}"


class CommandRunner(RowByRow, BoardRunner):
    """Runs a program once per configuration. Takes over the guard: closing the runner restores the board's settings."""

    def __init__(self, gpu: Gpu, spec: Specification, space: SearchSpace, guard: DeviceGuard) -> None:
        super().__init__(gpu, spec, space, guard)
        # each row takes seconds, so a strategy learns from every one, unless a change of clocks would be for one only
        self.batch = 8 if setting_names(space) else 1
        self._command = Command(spec)
        self._watch: Watch | None = None

    def close(self) -> None:
        """Restore the board's settings."""
        if self._watch is not None:
            self._watch.release()
            self._watch = None
        super().close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ordered(self, rows: Sequence[int]) -> Sequence[int]:
        """Rows of one device setting together, beginning with the setting in force."""
        return by_setting(rows, self._space, self._guard)

    def _measure(self, row: int, stop: threading.Event) -> Measurement | None:
        watched = self._watch = self._watch or watch(self._gpu)
        configuration = self._space.configuration(row)
        settings = settings_of(self._space, configuration)
        if not self._set(settings, stop):
            return None
        begun = time.monotonic()
        spans: list[Span] = []
        windows: list[Window] = []
        reported: list[Figures] = []
        lines: list[str] = []  # what speaks against the figures
        try:
            for _ in range(self._command.spec.repeats):
                watched.mark()
                ended = self._command.run(configuration, stop=stop, now_ns=self._gpu.clock.now_ns)
                if ended.stopped:
                    return None
                values = self._command.values(ended, stop)
                if values is None:
                    return None
                spans.append(read_span(watched, ended.start_ns, ended.end_ns))
                # what the program drew stays the figure; its time is its own, on the wall
                stated_j = spans[-1].energy_at_condition_j * ended.time_s / spans[-1].time_s
                reported.append(values if math.isnan(stated_j) else {**values, "energy_at_condition_j": stated_j})
                windows.append(self._window(spans[-1], ended))
                lines += windows[-1].said
        except CommandFailed as failure:
            cost_s, source = time.monotonic() - begun, self.source
            return Measurement.failed(row, configuration, failure.state, str(failure), source=source, cost_s=cost_s)
        measurement = measurement_of(
            self._spec,
            row,
            configuration,
            windows,
            source=self.source,
            cost_s=time.monotonic() - begun,
            reported=reported,
        )
        lines += self._disobedience(measurement, settings)
        return replace(measurement, message="; ".join(line for line in dict.fromkeys(lines) if line))

    def _window(self, span: Span, ended: Ended) -> Window:
        """What is known of one run. Its time is the program's own, on the wall."""
        window = window_of(span, (ended.start_ns, ended.end_ns), ended.time_s)
        beside = meters_beside(self._gpu.info)
        return window if beside is None else beside.complete(window, steady=False)
