"""`CudaRunner`: measures a specification's kernels on a real board, compiling the next ones meanwhile.

One configuration after the other without a pause: while one is measured the next is compiled and loaded, and its power
is attributed from the driver's samples once the next one runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby
from typing import Final

from ....errors import InputError
from ....sensors.event_reasons import LIMITING
from ....sensors.load import Load
from ...control.guard import DeviceGuard
from ...control.obeying import disobeyed
from ...measurement import Configuration, Measurement, State
from ...metering.condition import Condition
from ...metering.meter import STEADY_TIME, Meter
from ...metering.window import Run, Window
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.cuda_kernel import CudaKernel, KernelRefused, Prepared
from ...workloads.machine_code import shortfall
from ..base import OnPreparation
from ..figures import measurement_of
from ..settings_order import by_setting, settings_of
from ..stating import Stating
from .compiler import Compiled, Compiler
from .drift import LOAD, Drift, reference_figures
from .gpu import CudaGpu
from .kernels import LoadedKernels
from .process import KernelFailed
from .script_side import ScriptSide
from .square_wave import characterise_once

LEAST_BATCH: Final = 16
MOST_BATCH: Final = 64
WAIT_S: Final = 0.005  # for the compiler, before the GPU is kept busy
TURN_S: Final = 0.05  # between looks while the GPU is kept busy


@dataclass(slots=True)
class _Candidate:
    """A row on its way through compiler, check and measurement."""

    row: int
    name: str  # of its kernel in the runner process
    configuration: Configuration
    prepared: Prepared
    began: float = field(default_factory=time.monotonic)  # when its turn on the GPU came
    said: str = ""  # by the compiler, though it compiled
    unmet: str = ""  # settings that the board does not have as they were asked for
    facts: dict[str, float] = field(default_factory=dict)
    reference: dict[str, float] = field(default_factory=dict)  # what the reference kernel showed just before
    windows: list[Window] = field(default_factory=list)  # of all repeats but the last
    run: Run | None = None  # the last repeat, or the only one

    @property
    def load(self) -> Load:
        return Load(self.name, "fp32", 0.0, 0.0)  # on a real board the work is not known, only its name


class CudaRunner:
    """Implements `Runner`, `Prepares` and `StatesFigures`. Takes over the guard and the board's runner processes.

    This class schedules: compiling ahead, the reference kernel, repeats, and recovery from faults. `LoadedKernels` is
    what happens to a kernel in the runner process, `Meter` how its launches are measured.
    """

    def __init__(
        self,
        gpu: CudaGpu,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard,
        compiler: Compiler,
        condition: Condition | None = None,
        script: ScriptSide | None = None,
    ) -> None:
        """`condition` is the one to state figures for, where the user chose it; `script` what a script contributes."""
        self.source: str = gpu.info.source
        self.batch = max(LEAST_BATCH, min(MOST_BATCH, 4 * compiler.jobs))
        self.settle_s = 0.0  # lower bounds, beyond what the meter takes by itself
        self.window_s = 0.0
        self._gpu = gpu
        self._spec = spec
        self._space = space
        self._guard = guard
        self._compiler = compiler
        self._script = script
        make_kernel = CudaKernel.of if script is None else script.kernel
        self._kernel = make_kernel(spec, gpu.limits, gpu.shared_memory_opt_in)
        timeout_s = spec.kernel.timeout_s if spec.kernel else 10.0
        self._kernels = LoadedKernels(gpu, compiler, timeout_s, self._settle)
        self._meter = Meter(gpu, needs=spec.uses)
        self._drift = Drift(compiler)
        self._stating = Stating(spec, gpu.info, condition)
        self._serial = count()
        self._unsettled: list[Callable[[], None]] = []  # figures of what ran, once all its samples are reported
        self._finished: list[Measurement] = []
        self._unmet = ""  # by the board, of the setting in force

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """Characterise the power sensor where nothing is kept of this board and driver."""
        characterise_once(self._gpu, self._compiler.toolchain, stop, on_progress)

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows in the order in which they are compiled, those of one device setting together."""
        self._gpu.processes.keep_spare()
        by_settings = groupby(by_setting(rows, self._space, self._guard), self._setting_of)
        try:
            for setting, group in by_settings:
                for failed in self._measure_setting(list(group), dict(setting), stop):
                    yield from self._take_finished()
                    if failed is not None:
                        yield failed
            self._settle()
            yield from self._take_finished()
        finally:
            self._unsettled.clear()

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        return self._stating.state(measurements)

    def conclude(self) -> Mapping[str, str]:
        self._stating.keep()
        return self._stating.statement.to_origin()

    def close(self) -> None:
        """Restore the board's settings and end the compilers. The board's processes go with the board."""
        try:
            self._guard.restore()
        finally:
            self._compiler.close()
            self._kernels.close()
            self._gpu.close()

    @property
    def compiled(self) -> int:
        """Images made in this session rather than found on disk."""
        return self._compiler.compiled

    @property
    def replaced(self) -> int:
        """Runner processes that a kernel cost."""
        return self._gpu.processes.replaced

    # --- the order of things ----------------------------------------------------------------------------------------

    def _setting_of(self, row: int) -> tuple[tuple[str, float], ...]:
        return tuple(settings_of(self._space, self._space.configuration(row)).items())

    def _settle(self) -> None:
        """Figures of what ran last. Its samples are reported by now, and the driver does not keep them for ever."""
        unsettled, self._unsettled = self._unsettled, []
        for settle in unsettled:
            settle()

    def _take_finished(self) -> Iterator[Measurement]:
        while self._finished:
            yield self._finished.pop(0)

    def _measure_setting(
        self, rows: Sequence[int], setting: dict[str, float], stop: threading.Event
    ) -> Iterator[Measurement | None]:
        """Run the rows of one setting: a failure, or None for one that ran, as they come."""
        waiting: dict[Future[Compiled], _Candidate] = {}
        try:
            for row in rows:
                candidate = self._candidate(row)
                if isinstance(candidate, Measurement):
                    yield candidate
                else:
                    waiting[self._compiler.submit(candidate.prepared.build)] = candidate
            if self._guard.apply(**setting):
                self._unmet = self._guard.unmet()
            while waiting and not stop.is_set():
                future = self._next(waiting, stop)
                if future is None:
                    return
                candidate = waiting.pop(future)
                candidate.unmet = self._unmet
                self._look_at_drift(candidate, setting, stop)
                candidate.began = time.monotonic()
                failed = self._run(candidate, future, stop)
                if failed is None and candidate.run is None:  # stopped
                    return
                yield failed
        finally:
            for future in waiting:
                future.cancel()

    def _candidate(self, row: int) -> _Candidate | Measurement:
        """A row as it goes to the compiler; its failure where the kernel cannot have such values."""
        configuration, began = self._space.configuration(row), time.monotonic()
        try:
            prepared = self._kernel.prepare(configuration)
        except (KernelRefused, InputError) as refusal:
            # an InputError is about a value of this configuration, not about the specification
            state = refusal.state if isinstance(refusal, KernelRefused) else State.CONSTRAINTS
            cost_s = time.monotonic() - began
            return Measurement.failed(row, configuration, state, str(refusal), source=self.source, cost_s=cost_s)
        return _Candidate(row, f"{row}.{next(self._serial)}", configuration, prepared)

    def _next(self, waiting: dict[Future[Compiled], _Candidate], stop: threading.Event) -> Future[Compiled] | None:
        """The first that is compiled; until then the board goes on with what it ran last. None when stopped."""
        done, _ = wait(waiting, WAIT_S, FIRST_COMPLETED)
        with ExitStack() as stack:
            if not done and not stop.is_set():
                stack.enter_context(self._kernels.keep_board_busy())
            while not done:
                if stop.is_set():
                    return None
                self._settle()
                done, _ = wait(waiting, TURN_S, FIRST_COMPLETED)
        return min(done, key=list(waiting).index)

    def _run(self, candidate: _Candidate, future: Future[Compiled], stop: threading.Event) -> Measurement | None:
        """Load, check and run one candidate: its failure, or None where it ran or was stopped."""
        try:
            compiled = future.result()
            candidate.said = compiled.said
            candidate.facts = self._kernels.load(candidate.name, candidate.prepared, compiled.image)
            wrong = shortfall(compiled.image, candidate.prepared.instructions) or self._kernels.check(candidate.name)
            if not wrong and self._script is not None:
                wrong = self._script.wrong(candidate.configuration, self._kernels.outputs)
            if wrong:
                return self._failed(candidate, State.CORRECTNESS, wrong)
            if self._script is not None:
                launches = self._kernels.launches(candidate.name)
                candidate.facts |= self._script.observe(
                    candidate.row, candidate.configuration, launches, candidate.facts
                )
            self._run_repeats(candidate, stop)
        except KernelFailed as failure:
            self._settle()
            return self._recovered(candidate, failure)
        self._settle()
        if candidate.run is not None:
            self._unsettled.append(partial(self._finish, candidate))
            self._kernels.last = candidate.load
            self._gpu.processes.keep_spare()
            self._drift.count()
        return None

    def _run_repeats(self, candidate: _Candidate, stop: threading.Event) -> None:
        """Every repeat's run; `run` stays None where the first was stopped."""
        settle_s = max(self.settle_s, self._guard.settling_s)
        self._gpu.processes.await_spare()
        for _ in range(self._spec.repeats):
            run = self._meter.run(candidate.load, stop=stop, settle_s=settle_s, window_s=self.window_s)
            if candidate.run is not None:  # its samples have come by now
                candidate.windows.append(self._meter.window(candidate.run))
            candidate.run = run
            if run is None:
                return
            self._settle()  # while the samples of the one before are still kept

    def _look_at_drift(self, candidate: _Candidate, setting: dict[str, float], stop: threading.Event) -> None:
        """The reference kernel's turn, where it is due; a process that it costs is replaced."""
        if not self._drift.due(setting):
            return
        self._kernels.use_arguments(candidate.prepared.calls)
        try:
            reference = self._drift.look(self._gpu, self._meter, stop)
        except KernelFailed:
            self._kernels.replace_process()
            return
        self._settle()
        if reference is not None:
            self._unsettled.append(partial(self._take_reference, candidate, reference))

    def _recovered(self, candidate: _Candidate, failure: KernelFailed) -> Measurement:
        """The failure as a result; where it took the process along, the spare one takes over."""
        values: dict[str, float] = {}
        if failure.lost:
            values["teardown_s"] = self._kernels.replace_process()
        values["lost_s"] = time.monotonic() - candidate.began - values.get("teardown_s", 0.0)
        what = failure.what
        if failure.state is State.COMPILE and (hint := self._kernel.hidden_parameters()):
            what = f"{hint}. {what}"
        return self._failed(candidate, failure.state, what, {**candidate.facts, **values})

    # --- measurements -----------------------------------------------------------------------------------------------

    def _take_reference(self, candidate: _Candidate, reference: Run) -> None:
        window = self._meter.window(reference)
        self._stating.note(LOAD.name, window)
        candidate.reference = reference_figures(window)

    def _finish(self, candidate: _Candidate) -> None:
        assert candidate.run is not None, "only what ran is measured"
        windows = [*candidate.windows, self._meter.window(candidate.run)]
        said = (candidate.said, candidate.unmet, self._disobeyed(candidate, windows), _unsteady(windows))
        measurement = measurement_of(
            self._spec,
            candidate.row,
            candidate.configuration,
            windows,
            source=self.source,
            cost_s=windows[-1].window_ns[1] / 1e9 - candidate.began if self._gpu.clock.speed == 1.0 else 0.0,
            more={**candidate.facts, **candidate.reference},
        )
        for window in windows:
            self._stating.note(str(candidate.row), window)
        message = "; ".join(words for words in said if words)
        self._finished += self._stating.state([replace(measurement, message=message)])

    def _disobeyed(self, candidate: _Candidate, windows: Sequence[Window]) -> str:
        """What is to be said of a clock that the configuration asks for and the board did not run at."""
        asked = settings_of(self._space, candidate.configuration).get("graphics_clock_mhz")
        said = (disobeyed(self._gpu, asked, each.observed_clock_mhz, each.event_reasons) for each in windows)
        return next((words for words in said if words), "")

    def _failed(
        self, candidate: _Candidate, state: State, error: str, values: dict[str, float] | None = None
    ) -> Measurement:
        return Measurement.failed(
            candidate.row,
            candidate.configuration,
            state,
            error,
            source=self.source,
            values={**(values or {}), **candidate.reference},
            message=candidate.said,
            cost_s=time.monotonic() - candidate.began,
        )


def _unsteady(windows: Sequence[Window]) -> str:
    """What is to be said where the time per launch changed within a window, also when it was measured again."""
    most = max((window.change for window in windows if not window.event_reasons & LIMITING), key=abs, default=0.0)
    return f"the time per launch changed by {100 * most:+.1f} % within its window" if abs(most) > STEADY_TIME else ""
