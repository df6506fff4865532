"""`SimulatedRunner`: measures configurations on a simulated board, through its sensors as on a real one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...sensors.gpu import Load
from ...sensors.simulated.profiles import LaunchRefused
from ..control.guard import DeviceGuard
from ..metering.condition import Condition
from ..metering.launching import LaunchingGpu
from ..metering.meter import Meter
from ..metering.window import Window
from ..results.measurement import Configuration, Depth, Measurement, State
from ..results.objectives import Objective
from ..space.search_space import SearchSpace
from ..specification.model import Specification, names_at_time
from ..workloads.machine_code import FEATURES, as_rows
from ..workloads.profiled import ProfiledKernel
from .base import BoardRunner, More, by_setting, no_more, settings_of
from .kernels.reference import LibraryRow, ReferenceLooks
from .measurement_figures import measurement_of, timed_measurement
from .stating import Stating, seen_again

MODELLED: Final = "a model of the vendor's library"
TIMED_SCATTER: Final = 0.005  # of the time by a few launches on a real board; those of a simulated one are all alike
SMS_MODELLED: Final = "a part of the SMs is modelled: by the roofline of as many, with the others idle"
_Look = Callable[[int, Configuration, Load, threading.Event], Measurement | None]  # one configuration; None: stopped


class SimulatedRunner(BoardRunner):
    """Measures on a simulated board. Takes over the guard: closing it restores the board's settings.

    The first kernel that works is looked at again between the others: a real board has a reference kernel for that.
    """

    source = "simulated"
    feature_names = tuple(name for name, feature in FEATURES.items() if feature.simulated)
    batch = 16  # enough to save clock changes, few enough to stop soon

    def __init__(
        self,
        gpu: LaunchingGpu,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard,
        condition: Condition | None = None,
        *,
        time_alone: bool = False,
        window_s: float = 0.0,
    ) -> None:
        """Make a runner.

        `condition` is the one to state figures for, where the user chose it. With `time_alone` a row is only timed.
        `window_s`: of each energy measurement, at least.
        """
        super().__init__(gpu, spec, space, guard)
        self.window_s = window_s
        self._kernel = ProfiledKernel.of(spec, gpu.limits)
        self.timed = frozenset[str]() if time_alone else names_at_time(spec, space.names)
        self._time_alone = time_alone
        self._meter = Meter(gpu, needs=spec.uses)
        self._seed: int = getattr(gpu, "seed", 0)
        self._stating = Stating(spec, gpu.info, condition)
        self._looks = ReferenceLooks()
        self._by_library = LibraryRow()
        self._reference: tuple[str, Load] | None = None  # the first kernel that worked, by its row

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        """Measure the rows, those of one device setting together, beginning with the setting in force."""
        full = self._time_fully if self._time_alone else self._measure
        look, todo = full if depth is Depth.ENERGY else self._time, by_setting(rows, self._space, self._guard)
        while not stop.is_set():
            if rows := more():
                todo = by_setting([*todo, *rows], self._space, self._guard)
            if not todo:
                return
            measurement = self._one(todo.pop(0), look, depth, stop)
            if measurement is None:
                return
            self._by_library.note(measurement, MODELLED)
            yield measurement

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        """What a compiler would report of the rows' kernels; nothing of what the board is made to do with them."""
        rows_of_features = [self._kernel.features(self._space.configuration(row)) for row in rows]
        return as_rows(self.feature_names, rows_of_features)

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        return self._stating.restate(measurements)

    def finish(
        self, measurements: Sequence[Measurement], again: Sequence[int], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        return self.restated(seen_again(self, measurements, again, stop))

    def conclude(self) -> Mapping[str, str]:
        self._stating.keep()
        return {**self._stating.statement.to_origin(), **self._by_library.to_origin(self._stating.state)}

    # --- inside -----------------------------------------------------------------------------------------------------

    def _one(self, row: int, look: _Look, depth: Depth, stop: threading.Event) -> Measurement | None:
        configuration = self._space.configuration(row)
        try:
            load = self._kernel.prepare(configuration)
        except (LaunchRefused, InputError) as refusal:  # or a value of this configuration makes no sense
            state = State(refusal.state) if isinstance(refusal, LaunchRefused) else State.CONSTRAINTS
            return Measurement.failed(row, configuration, state, str(refusal), source=self.source, depth=depth)
        return look(row, configuration, load, stop)

    def _time(self, row: int, configuration: Configuration, load: Load, stop: threading.Event) -> Measurement | None:
        """A few launches of one configuration; None when stopped."""
        start_ns = self._gpu.clock.now_ns()
        self._guard.hold(**settings_of(self._space, configuration))
        time_s = self._meter.time(load, stop=stop)
        if time_s is None:
            return None
        cost_s = (self._gpu.clock.now_ns() - start_ns) / 1e9
        time_s *= 1.0 + TIMED_SCATTER * np.random.default_rng((self._seed, row)).standard_normal()
        return timed_measurement(self._spec, row, configuration, time_s, source=self.source, cost_s=cost_s)

    def _time_fully(
        self, row: int, configuration: Configuration, load: Load, stop: threading.Event
    ) -> Measurement | None:
        """The same if only the time is requested."""
        timed = self._time(row, configuration, load, stop)
        return timed and replace(timed, depth=Depth.ENERGY)

    def _measure(self, row: int, configuration: Configuration, load: Load, stop: threading.Event) -> Measurement | None:
        """One configuration; None when stopped."""
        start_ns = self._gpu.clock.now_ns()
        settings = settings_of(self._space, configuration)
        self._guard.hold(**settings)
        if self._looks.due(settings):
            self._look_at_reference(str(row), load, stop)
        windows: list[Window] = []
        for _ in range(self._spec.repeats):
            window = self._meter.measure(load, stop=stop, window_s=self.window_s)
            if window is None:
                return None
            windows.append(window)
            self._stating.note(str(row), window)
        self._looks.count()
        cost_s = (self._gpu.clock.now_ns() - start_ns) / 1e9
        measured = measurement_of(self._spec, row, configuration, windows, source=self.source, cost_s=cost_s)
        if load.sm_share < 1.0:
            measured = replace(measured, message=SMS_MODELLED)
        return self._stating.state(measured)

    def _look_at_reference(self, kernel: str, load: Load, stop: threading.Event) -> None:
        """Measure the reference kernel again; the first kernel to be measured becomes the reference."""
        self._looks.looked()
        if self._reference is None:
            self._reference = kernel, load
            return
        kernel, load = self._reference
        window = self._meter.measure(load, stop=stop)
        if window is not None:
            self._stating.note(kernel, window)
