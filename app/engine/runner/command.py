"""`CommandRunner`: runs a program once per configuration and measures what the board draws meanwhile.

On a simulated or recorded board the program and its time are real, but it draws nothing there: power and energy are
that board's own, and every measurement says so.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence

from ...sensors.gpu import Gpu
from ..control.guard import DeviceGuard
from ..control.obeying import disobeyed
from ..measurement import Measurement, State
from ..metering.span import Span, read_span
from ..metering.watching import Watch, watch
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..workloads.command import Command, CommandFailed
from .figures import Figures, over_repeats, with_metrics
from .settings_order import by_setting, setting_names, settings_of


def not_its_own(source: str) -> str:
    """What to say of power on a board that is not there; empty for a real one."""
    if source == "nvml":
        return ""
    whose = "idle board's, as simulated" if source == "simulated" else "recording's"
    return f"a program draws nothing on a {source} board: time is the program's, power and energy are the {whose}"


class CommandRunner:
    """Implements `Runner`. Takes over the guard: closing the runner restores the board's settings."""

    def __init__(self, gpu: Gpu, spec: Specification, space: SearchSpace, guard: DeviceGuard) -> None:
        self.source: str = gpu.info.source
        # each row takes seconds, so a strategy learns from every one, unless a change of clocks would be for one only
        self.batch = 8 if setting_names(space) else 1
        self._gpu = gpu
        self._spec = spec
        self._space = space
        self._guard = guard
        self._command = Command(spec)
        self._watch: Watch | None = None
        self._unmet = ""  # by the board, of the setting in force

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows, those of one device setting together, beginning with the setting in force."""
        if self._watch is None:
            self._watch = watch(self._gpu)
        for row in by_setting(rows, self._space, self._guard):
            if stop.is_set():
                return
            measurement = self._measure(row, self._watch, stop)
            if measurement is None:
                return
            yield measurement

    def close(self) -> None:
        """Restore the board's settings."""
        if self._watch is not None:
            self._watch.release()
            self._watch = None
        self._guard.restore()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _measure(self, row: int, watched: Watch, stop: threading.Event) -> Measurement | None:
        """One configuration; None when stopped."""
        configuration = self._space.configuration(row)
        settings = settings_of(self._space, configuration)
        if self._guard.apply(**settings):
            self._unmet = self._guard.unmet()
            if self._gpu.clock.wait(self._guard.settling_s, stop):
                return None
        begun = time.monotonic()
        spans: list[Span] = []
        runs: list[Figures] = []
        start_ns = end_ns = 0
        try:
            for _ in range(self._command.spec.repeats):
                ended = self._command.run(configuration, stop=stop, now_ns=self._gpu.clock.now_ns)
                if ended.stopped:
                    return None
                start_ns, end_ns = start_ns or ended.start_ns, ended.end_ns
                values = self._command.values(ended, stop)
                if values is None:
                    return None
                spans.append(read_span(watched, ended.start_ns, ended.end_ns))
                runs.append({**_measured(spans[-1], ended.time_s), **values})
        except CommandFailed as failure:
            cost_s, source = time.monotonic() - begun, self.source
            return Measurement.failed(row, configuration, failure.state, str(failure), source=source, cost_s=cost_s)
        each = [
            with_metrics(self._spec, configuration, run, span.power_interval_w)
            for run, span in zip(runs, spans, strict=True)
        ]
        values, intervals = each[0] if len(each) == 1 else over_repeats(self._spec, configuration, each)
        reasons = 0
        for span in spans:
            reasons |= span.event_reasons
        return Measurement(
            row=row,
            configuration=configuration,
            state=State.OK,
            values=values,
            intervals=intervals,
            message=self._said(spans, settings.get("graphics_clock_mhz"), values.get("observed_clock_mhz"), reasons),
            window_ns=(start_ns, end_ns),
            observed_clock_mhz=values.get("observed_clock_mhz", math.nan),
            event_reasons=reasons,
            power_source=spans[-1].power_source
            if self.source == "nvml"
            else f"{spans[-1].power_source}, {self.source}",
            source=self.source,
            timestamp_s=time.time(),
            cost_s=time.monotonic() - begun,
        )

    def _said(self, spans: Sequence[Span], asked: float | None, clock_mhz: float | None, reasons: int) -> str:
        """What speaks against the figures: energy that is not known, a setting that the board does not keep."""
        said = [f"energy is not known: {span.unknown}" for span in spans if span.unknown]
        if self.source == "nvml":
            said += [self._unmet, disobeyed(self._gpu, asked, clock_mhz, reasons)]
        return "; ".join(dict.fromkeys(words for words in said if words))


def _measured(span: Span, time_s: float) -> dict[str, float]:
    """What is known of one run. Its time is the program's own, on the wall."""
    told = {
        "time_s": time_s,
        "energy_j": span.mean_power_w * time_s,
        "power_w": span.mean_power_w,
        "observed_clock_mhz": span.clock_mhz.mean,
        "temperature_c": span.temperature_c,
        "core_voltage_mv": span.core_voltage_mv,
        "observed_memory_clock_mhz": span.memory_clock_mhz,
    }
    return {name: value for name, value in told.items() if not math.isnan(value)}
