"""`SimulatedRunner`: measures configurations on a simulated board, through its sensors as on a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

from ...errors import InputError
from ...sensors.load import Load
from ...sensors.simulated.profiles import LaunchRefused
from ..control.guard import DeviceGuard
from ..measurement import Measurement, State
from ..metering.condition import Condition
from ..metering.launching import LaunchingGpu
from ..metering.meter import Meter
from ..metering.window import Window
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..workloads.profiled import ProfiledKernel
from .baseline import Baseline
from .figures import measurement_of
from .reference import ReferenceLooks
from .settings_order import by_setting, settings_of
from .stating import Stating


class SimulatedRunner:
    """Implements `Runner` and `StatesFigures`. Takes over the guard: closing the runner restores the board's settings.

    The first kernel that works is looked at again between the others: a real board has a reference kernel for that.
    """

    source = "simulated"
    batch = 16  # enough to save clock changes, few enough to stop soon

    def __init__(
        self,
        gpu: LaunchingGpu,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard,
        condition: Condition | None = None,
    ) -> None:
        """`condition` is the one to state figures for, where the user chose it."""
        self._gpu = gpu
        self._spec = spec
        self._space = space
        self._guard = guard
        self._kernel = ProfiledKernel.of(spec, gpu.limits)
        self._meter = Meter(gpu, needs=spec.uses)
        self._stating = Stating(spec, gpu.info, condition)
        self._looks = ReferenceLooks()
        self._reference: tuple[str, Load] | None = None  # the first kernel that worked, by its row

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows, those of one device setting together, beginning with the setting in force."""
        for row in by_setting(rows, self._space, self._guard):
            if stop.is_set():
                return
            measurement = self._measure(row, stop)
            if measurement is None:
                return
            yield measurement

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        return self._stating.state(measurements)

    def conclude(self) -> Mapping[str, str]:
        self._stating.keep()
        stated = self._stating.statement.to_origin()
        if self._spec.operator is None:
            return stated
        return {**stated, **Baseline(why_not="a simulated board has no vendor library").to_origin()}

    def close(self) -> None:
        """Restore the board's settings."""
        self._guard.restore()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _measure(self, row: int, stop: threading.Event) -> Measurement | None:
        """One configuration; None when stopped."""
        configuration = self._space.configuration(row)
        start_ns = self._gpu.clock.now_ns()
        try:
            load = self._kernel.prepare(configuration)
        except LaunchRefused as refusal:
            return Measurement.failed(row, configuration, State(refusal.state), str(refusal), source=self.source)
        except InputError as senseless:  # a value of this configuration, not of the specification
            return Measurement.failed(row, configuration, State.CONSTRAINTS, str(senseless), source=self.source)
        settings = settings_of(self._space, configuration)
        self._guard.apply(**settings)
        if self._looks.due(settings):
            self._look_at_reference(str(row), load, stop)
        windows: list[Window] = []
        for _ in range(self._spec.repeats):
            window = self._meter.measure(load, stop=stop)
            if window is None:
                return None
            windows.append(window)
            self._stating.note(str(row), window)
        self._looks.count()
        cost_s = (self._gpu.clock.now_ns() - start_ns) / 1e9
        measured = measurement_of(self._spec, row, configuration, windows, source=self.source, cost_s=cost_s)
        return self._stating.state([measured])[0]

    def _look_at_reference(self, kernel: str, load: Load, stop: threading.Event) -> None:
        """Measure the first kernel once more; the one that is about to be measured becomes it where there is none."""
        self._looks.looked()
        if self._reference is None:
            self._reference = kernel, load
            return
        kernel, load = self._reference
        window = self._meter.measure(load, stop=stop)
        if window is not None:
            self._stating.note(kernel, window)
