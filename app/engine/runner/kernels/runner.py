"""`KernelRunner`: measures a specification's kernels on a real board, compiling the next ones meanwhile.

One configuration after the other without a pause: while one is measured the next is compiled and loaded, and its power
is attributed from the driver's samples once the next one runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from statistics import fmean
from typing import Final

import numpy as np
import numpy.typing as npt

from ....base.errors import InputError
from ....sensors.gpu import Load
from ....sensors.unmetered import NO_ENERGY
from ...control.guard import DeviceGuard
from ...control.obeying import disobeyed
from ...metering.condition import Condition
from ...metering.external_meters import meters_beside
from ...metering.meter import TIMED_S, Meter
from ...metering.stopwatch import WINDOW_S, Stopwatch
from ...metering.window import Run, Window
from ...results.measurement import Configuration, Depth, Measurement, State
from ...results.objectives import Objective
from ...space.search_space import SearchSpace
from ...specification.model import Specification, names_at_time
from ...workloads.machine_code import as_rows, shortfall
from ...workloads.source_kernel import KernelRefused, Prepared
from ..base import BoardRunner, More, OnPreparation, by_setting, no_more, settings_of
from ..measurement_figures import measurement_of, timed_measurement
from ..stating import Stating, seen_again
from .compiler import Compiled, once_compiled
from .gpu import ProcessGpu
from .language import Language
from .loaded import LoadedKernels, Reader, idle_words, reader_of, what_is_wrong
from .process import KernelFailed
from .reference import DRIFT_LOAD, LibraryRow, reference_figures
from .script_side import ScriptSide

LEAST_BATCH: Final = 16
MOST_BATCH: Final = 64
MOST_AHEAD: Final = 256  # images that are kept for rows that may be asked for
WAIT_S: Final = 0.06  # for the compiler, before the GPU is kept busy: ending that takes as long
TURN_S: Final = 0.05  # between looks while the GPU is kept busy
TIME_ALONE: Final = "no energy: the script asks for the time alone"


Setting = tuple[tuple[str, float], ...]  # of the board


@dataclass(slots=True)
class _Candidate:
    """A row on its way through compiler, check and measurement."""

    row: int
    name: str  # of its kernel in the runner process
    configuration: Configuration
    prepared: Prepared
    depth: Depth
    began: float = field(default_factory=time.monotonic)  # when its turn on the GPU came
    said: str = ""  # by the compiler, though it compiled
    unmet: str = ""  # settings that the board does not have as they were asked for
    facts: dict[str, float] = field(default_factory=dict)
    reference: dict[str, float] = field(default_factory=dict)  # what the reference kernel showed just before
    windows: list[Window] = field(default_factory=list)  # of the repeats whose samples are reported
    reported: list[dict[str, float]] = field(default_factory=list)  # by the launches themselves, in each window
    run: Run | None = None  # the last repeat, or the only one
    time_s: float | None = None  # of a launch, where no more is asked for
    cost_s: float = 0.0

    @property
    def load(self) -> Load:
        return Load(self.name, "fp32", 0.0, 0.0)  # on a real board the work is not known, only its name

    @property
    def ran(self) -> bool:
        """Measure all requested rows."""
        return self.run is not None or self.time_s is not None


class KernelRunner(BoardRunner):
    """Measures kernels on a real board. Takes over the guard and the runner processes.

    This class schedules: compiling ahead, the reference kernel, repeats, and recovery from faults. `LoadedKernels` is
    what happens to a kernel in the runner process, `Meter` how its launches are measured.
    """

    _gpu: ProcessGpu

    def __init__(
        self,
        language: Language,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard,
        condition: Condition | None = None,
        script: ScriptSide | None = None,
    ) -> None:
        """`condition` is the one to state figures for, where the user chose it; `script` what a script contributes."""
        gpu = language.gpu
        super().__init__(gpu, spec, space, guard)
        self.batch = max(LEAST_BATCH, min(MOST_BATCH, 4 * language.compiler.jobs))
        # a script may ask for what meters beside a board report, where its own sensor reports none
        metered = gpu.info.source != "unmetered" if script is None else gpu.info.reports_power
        time_alone = script is not None and script.time_alone
        # kernels of other languages report their times themselves
        quick = metered and spec.kernel is not None and spec.kernel.language == "CUDA"
        self._metered = metered and not time_alone
        self._time_alone = time_alone
        self._few_are_enough = quick and time_alone  # launches of a configuration: the time is all that is wanted
        self.timed = names_at_time(spec, space.names) if quick and not time_alone else frozenset[str]()
        self.settle_s = 0.0  # lower bounds, beyond what the meter takes by itself
        self.window_s = 0.0 if script is None else script.window_s
        self._language = language
        self.feature_names = language.feature_names
        self._compiler = language.compiler
        self._script = script
        self._kernel = language.kernel(spec) if script is None else language.kernel(spec, script.kernel)
        timeout_s = spec.kernel.timeout_s if spec.kernel else 10.0
        self._kernels = LoadedKernels(language, timeout_s, self._settle)
        self._enough_s = TIMED_S if time_alone else WINDOW_S  # of launches whose time is all that can be measured
        if self._metered or self._few_are_enough:
            self._meter: Meter | Stopwatch = Meter(gpu, needs=spec.uses)
        else:
            self._meter = Stopwatch(gpu, TIME_ALONE if metered else NO_ENERGY, self._enough_s)
        self._reported: Reader = reader_of(spec.kernel) if spec.kernel else lambda _: {}
        self._by_library = LibraryRow()
        self._stating = Stating(spec, gpu.info, condition)
        self._features: dict[int, dict[str, float]] = {}  # of rows, once asked for
        self._serial = count()
        self._ahead: dict[int, tuple[_Candidate, Future[Compiled]]] = {}  # compiling since before they are asked for
        self._unsettled: list[Callable[[], None]] = []  # figures of what ran, once all its samples are reported
        self._finished: list[Measurement] = []
        self._following: dict[Future[Compiled], _Candidate] = {}  # what comes after the one that runs
        self._looked: _Candidate | None = None  # the last that ran: its time per launch is looked at once more

    @classmethod
    def on(
        cls,
        language: Language,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard,
        condition: Condition | None = None,
        script: ScriptSide | None = None,
    ) -> KernelRunner:
        """The runner of a specification; the device is closed if there can be none. Raises InputError."""
        with ExitStack() as undo:
            undo.callback(language.close)
            runner = cls(language, spec, space, guard, condition, script)
            undo.pop_all()
        return runner

    def prepare(self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation) -> None:
        """What the board needs before its first measurement; the first rows compile meanwhile, their arguments and
        references are made, and a spare process starts."""
        self._gpu.stop = stop
        for row in rows[: self.batch]:
            candidate = self._candidate(row, Depth.ENERGY)
            if isinstance(candidate, _Candidate) and row not in self._ahead:
                self._ahead[row] = candidate, self._compiler.submit(candidate.prepared.build)
        first = next(iter(self._ahead.values()), None)
        if first is not None:
            self._kernels.make_arguments(first[0].prepared.calls)
        self._keep_spare()
        if self._metered:
            self._language.prepare(stop, on_progress)
        self._gpu.processes.inform_spare()

    def expect(self, rows: Sequence[int]) -> None:
        """Compile rows ahead on half of the cores only, so that requested rows do not wait for them."""
        idle = self._compiler.jobs // 2 - sum(not future.done() for _, future in self._ahead.values())
        for row in rows:
            if idle <= 0:
                return
            if row in self._ahead:
                continue
            candidate = self._candidate(row, Depth.TIME)
            if isinstance(candidate, _Candidate):
                self._ahead[row] = candidate, self._compiler.submit(candidate.prepared.build)
                idle -= 1
            if len(self._ahead) > MOST_AHEAD:  # its image stays on disk
                del self._ahead[next(iter(self._ahead))]

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        """Measure the rows in the order in which they are compiled, those of one device setting together.

        The next rows compile, and the first of them is loaded, meanwhile. At `Depth.TIME` a row is compiled, loaded,
        verified, and launched for a few milliseconds.
        """
        self._gpu.stop = stop
        if self._kernels.lost:
            self._kernels.replace_process()
        self._keep_spare()
        todo = list(rows)
        try:
            while todo and not stop.is_set():
                ordered = by_setting(todo, self._space, self._guard)
                setting = self._setting_of(ordered[0])
                todo = [row for row in ordered if self._setting_of(row) != setting]

                def alike(setting: Setting = setting, later: list[int] = todo) -> list[int]:
                    rows = more()
                    later += [row for row in rows if self._setting_of(row) != setting]
                    return [row for row in rows if self._setting_of(row) == setting]

                group = [row for row in ordered if self._setting_of(row) == setting]
                for failed in self._look_at_setting(group, dict(setting), depth, stop, alike):
                    yield from self._take_finished()
                    if failed is not None:
                        yield failed
                self._look_again(stop)
                todo += more()
            yield from self._take_finished()
        finally:
            self._unsettled.clear()
            self._looked = None

    def features(self, rows: Sequence[int], stop: threading.Event | None = None) -> npt.NDArray[np.float64]:
        """The features of the rows' images, compiled already where they were timed or measured. NaN if one fails."""
        waiting: dict[int, tuple[Prepared, Future[Compiled]]] = {}
        for row in rows:
            if row not in self._features:
                self._features[row] = {}
                with suppress(KernelRefused, InputError):
                    prepared = self._kernel.prepare(self._space.configuration(row))
                    waiting[row] = prepared, self._compiler.submit(prepared.build)
        for row, (prepared, image) in waiting.items():
            with suppress(KernelFailed):
                self._features[row] = self._language.features(once_compiled(image, stop).image, prepared)
        result = as_rows(self.feature_names, [self._features[row] for row in rows])
        if stop is not None and stop.is_set():  # some were not waited for
            self._features.clear()
        return result

    def restated(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        return self._stating.restate(measurements) if self._metered else measurements

    def finish(
        self, measurements: Sequence[Measurement], again: Sequence[int], objective: Objective, stop: threading.Event
    ) -> Sequence[Measurement]:
        return self.restated(seen_again(self, measurements, again, stop))

    def conclude(self) -> Mapping[str, str]:
        origin = {"compiler": self._compiler.identity}
        if not self._metered:
            return origin
        self._stating.keep()
        return {**origin, **self._stating.statement.to_origin(), **self._by_library.to_origin(self._stating.state)}

    def close(self) -> None:
        """Restore the board's settings and end the compilers. The board's processes go with the board."""
        try:
            super().close()
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

    def _setting_of(self, row: int) -> Setting:
        return tuple(settings_of(self._space, self._space.configuration(row)).items())

    def _settle(self) -> None:
        """Figures of what ran last. Its samples are reported by now, and the driver does not keep them for ever."""
        unsettled, self._unsettled = self._unsettled, []
        for settle in unsettled:
            settle()

    def _take_finished(self) -> Iterator[Measurement]:
        while self._finished:
            yield self._finished.pop(0)

    def _keep_spare(self) -> None:
        """A spare process, which takes over after a fault. Where the time is all that is wanted, only once there was a
        fault: its start would take longer than what it saves, and disturb the first launches."""
        if not self._time_alone or self.replaced:
            self._gpu.processes.keep_spare()

    def _look_at_setting(
        self,
        rows: Sequence[int],
        setting: dict[str, float],
        depth: Depth,
        stop: threading.Event,
        more: Callable[[], Sequence[int]],
    ) -> Iterator[Measurement | None]:
        """Run the rows of one setting, and those that come meanwhile: a failure, or None for one that ran."""
        waiting: dict[Future[Compiled], _Candidate] = {}
        try:
            yield from self._submit(rows, depth, waiting)
            if self._guard.hold(**setting):
                self._unmet = self._guard.unmet()
            while not stop.is_set():
                yield from self._submit(more(), depth, waiting)
                if not waiting:
                    return
                future = self._next(waiting, stop)
                if future is None:
                    return
                candidate = waiting.pop(future)
                self._following = waiting
                candidate.unmet = self._unmet
                if depth is Depth.ENERGY and self._metered:
                    self._look_at_drift(candidate, setting, stop)
                candidate.began = time.monotonic()
                failed = self._run(candidate, future, stop)
                if failed is None and not candidate.ran:  # stopped
                    return
                yield failed
        finally:
            for future in waiting:
                future.cancel()

    def _submit(
        self, rows: Sequence[int], depth: Depth, waiting: dict[Future[Compiled], _Candidate]
    ) -> Iterator[Measurement]:
        """Let the rows compile, where they do not already; failures of those that make no kernel."""
        for row in rows:
            if row in self._ahead:
                ahead, compiling = self._ahead.pop(row)
                ahead.depth = depth
                waiting[compiling] = ahead
                continue
            refused = self._candidate(row, depth)
            if isinstance(refused, Measurement):
                yield refused
            else:
                waiting[self._compiler.submit(refused.prepared.build)] = refused

    def _candidate(self, row: int, depth: Depth) -> _Candidate | Measurement:
        """A row as it goes to the compiler; its failure where the kernel cannot have such values."""
        configuration, began = self._space.configuration(row), time.monotonic()
        try:
            prepared = self._kernel.prepare(configuration)
        except (KernelRefused, InputError) as refusal:
            # an InputError is about a value of this configuration, not about the specification
            state = refusal.state if isinstance(refusal, KernelRefused) else State.CONSTRAINTS
            cost_s, message, source = time.monotonic() - began, str(refusal), self.source
            return Measurement.failed(row, configuration, state, message, source=source, cost_s=cost_s, depth=depth)
        return _Candidate(row, f"{row}.{next(self._serial)}", configuration, prepared, depth)

    def _next(self, waiting: dict[Future[Compiled], _Candidate], stop: threading.Event) -> Future[Compiled] | None:
        """The first row to be compiled; until then the board keeps running the previous kernel. None if stopped."""
        loaded = next((image for image, candidate in waiting.items() if self._kernels.holds(candidate.name)), None)
        if loaded is not None:
            return loaded
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
        """Load, check and run one candidate: its failure, or None if it ran or was stopped."""
        try:
            compiled = future.result()
            candidate.said = compiled.said
            if not self._kernels.holds(candidate.name):
                candidate.facts = self._kernels.load(candidate.name, candidate.prepared, compiled.image)
            if wrong := self._wrong(candidate, compiled, stop):
                return self._failed(candidate, State.CORRECTNESS, wrong)
            if self._few_are_enough and self._script is not None:
                self._gpu.processes.await_opened()
                candidate.facts |= self._observed(self._script, candidate)
            if candidate.depth is Depth.TIME or self._few_are_enough:
                if not self._load_following(candidate):
                    return self._run(candidate, future, stop)
                assert isinstance(self._meter, Meter), "nothing is only timed where there is no energy"
                settle_s = self._guard.settling_s
                candidate.time_s = self._meter.time(candidate.load, stop=stop, settle_s=settle_s)
            else:
                if self._script is not None:
                    candidate.facts |= self._observed(self._script, candidate)
                    candidate.time_s = self._time_of_launches(self._script, candidate)
                if candidate.time_s is None:
                    self._run_repeats(candidate, stop)
        except KernelFailed as failure:
            self._settle()
            if failure.lost and stop.is_set():
                self._kernels.replace_process()
                return None
            if failure.compiler_s and self._script is not None:
                self._script.spent(candidate.row, failure.compiler_s, 0.0)
            return self._recovered(candidate, failure)
        self._settle()
        self._look_again(stop)  # at the one before: it is still loaded, and this window lies between
        if candidate.ran:
            self._kernels.last = candidate.load
            self._keep_spare()
        if candidate.time_s is not None:
            self._finished.append(self._timed(candidate, candidate.time_s))
        elif candidate.run is not None:
            self._unsettled.append(partial(self._describe, candidate))
            self._looked = candidate
            if self._language.drift is not None:
                self._language.drift.count()
        return None

    def _wrong(self, candidate: _Candidate, compiled: Compiled, stop: threading.Event) -> str:
        """What is wrong with the image or with what its first launch wrote; empty if nothing is."""
        began = time.monotonic()
        try:
            return (
                shortfall(compiled.image, candidate.prepared.instructions)
                or self._kernels.check(candidate.name)
                or self._verify(candidate, stop)
            )
        finally:
            if self._script is not None:
                self._script.spent(candidate.row, compiled.compiler_s, time.monotonic() - began)

    def _load_following(self, candidate: _Candidate) -> bool:
        """Load the next kernel, if compiled, while this one warms up; False if the process was lost.

        Nothing is loaded once the launches that are timed have begun.
        """
        following, self._following = self._following, {}
        next_compiled = next(
            ((image, later) for image, later in following.items() if image.done() and not image.exception()), None
        )
        if next_compiled is None:
            return True
        future, next_one = next_compiled
        try:
            self._kernels.warm(candidate.name)
            facts = self._kernels.load_ahead(next_one.name, next_one.prepared, future.result().image)
        except KernelFailed as failure:
            if not failure.lost:
                raise
            self._kernels.replace_process()  # by which of the two is seen when each runs alone
            return False
        next_one.facts = facts or {}
        return True

    def _verify(self, candidate: _Candidate, stop: threading.Event) -> str:
        """The error that the user's program or script, if any, reports for the outputs."""
        if self._script is not None and (wrong := self._script.wrong(candidate.configuration, self._kernels.outputs)):
            return wrong
        command = candidate.prepared.verifier
        if not command:
            return ""
        self._settle()
        arrays = [argument.name for argument in candidate.prepared.calls.arguments if argument.shape is not None]
        return self._kernels.verify_by_program(command, arrays, self._spec.path.resolve().parent, stop)

    def _observed(self, script: ScriptSide, candidate: _Candidate) -> dict[str, float]:
        """What a script's own launches and observers show."""
        self._settle()
        launches = self._kernels.launches(candidate.name, self._reported)
        return script.observe(candidate.row, candidate.configuration, launches, candidate.facts)

    def _time_of_launches(self, script: ScriptSide, candidate: _Candidate) -> float | None:
        """Seconds per launch by the script's own launches, where they report it themselves and lasted long enough, and
        nothing but the time can be measured; else None."""
        if self._metered or meters_beside(self._gpu.info) is not None or self._spec.kernel is None:
            return None
        times = script.times_s(candidate.row)
        wrong = any(what_is_wrong(self._spec.kernel, {"time_s": value}) for value in times)
        return None if wrong or sum(times) < self._enough_s else fmean(times)

    def _run_repeats(self, candidate: _Candidate, stop: threading.Event) -> None:
        """Every repeat's run; `run` stays None if the first was stopped."""
        settle_s = max(self.settle_s, self._guard.settling_s)
        self._gpu.processes.await_spare()
        for _ in range(self._spec.repeats):
            run = self._meter.run(candidate.load, stop=stop, settle_s=settle_s, window_s=self.window_s)
            if candidate.run is not None:  # its samples have come by now
                self._take_window(candidate, candidate.run)
            candidate.run = run
            if run is None:
                return
            self._settle()  # while the samples of the one before are still kept

    def _describe(self, candidate: _Candidate) -> None:
        assert candidate.run is not None, "only what ran is described"
        self._take_window(candidate, candidate.run)
        if self._gpu.clock.speed == 1.0:
            candidate.cost_s = candidate.run.runs[-1].ended.end_ns / 1e9 - candidate.began

    def _look_again(self, stop: threading.Event) -> None:
        """Finish the last that ran, after a second look at its time per launch: where they differ, a second window.

        Something else that runs on the board for a while, or a clock that is slow to come back, shows between the two.
        """
        looked, self._looked = self._looked, None
        if looked is None:
            return
        meter, holds = self._meter, self._kernels.holds(looked.name)
        if isinstance(meter, Meter) and looked.run is not None and holds and not stop.is_set():
            try:
                self._second_look(meter, looked, looked.run, stop)
            except KernelFailed as failure:  # it worked before: what was measured stays
                if failure.lost:
                    self._kernels.replace_process()
        self._settle()
        self._finish(looked)

    def _second_look(self, meter: Meter, looked: _Candidate, run: Run, stop: threading.Event) -> None:
        meter.look_again(run)
        if not looked.windows:  # its samples are still to come
            self._settle()
        first = looked.windows[-1] = replace(looked.windows[-1], again=run.again)
        if not first.unsteady:
            return
        settle_s = max(self.settle_s, self._guard.settling_s)
        second = meter.run(looked.load, stop=stop, settle_s=settle_s, window_s=self.window_s)
        if second is not None:
            meter.look_again(second)
            looked.run = second
            del looked.windows[-1], looked.reported[-1]
            self._take_window(looked, second)

    def _look_at_drift(self, candidate: _Candidate, setting: dict[str, float], stop: threading.Event) -> None:
        """Measure the reference kernel if due; a process that is lost is replaced."""
        drift = self._language.drift
        if drift is None or not drift.due(setting):
            return
        self._kernels.use_arguments(candidate.prepared.calls)
        self._gpu.processes.await_spare()
        try:
            reference = drift.look(self._gpu, self._meter, stop)
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
        self._stating.note(DRIFT_LOAD.name, window)
        candidate.reference = reference_figures(window)

    def _take_window(self, candidate: _Candidate, run: Run) -> None:
        """The figures of a repeat that ran."""
        assert run.execution is not None, "it has ended"
        candidate.windows.append(self._meter.window(run))
        candidate.reported.append(self._reported(run.execution.reported))

    def _timed(self, candidate: _Candidate, time_s: float) -> Measurement:
        cost_s = time.monotonic() - candidate.began if self._gpu.clock.speed == 1.0 else 0.0
        measurement = timed_measurement(
            self._spec, candidate.row, candidate.configuration, time_s, source=self.source, cost_s=cost_s
        )
        measurement = replace(measurement, depth=candidate.depth)  # the time is all there is where it is all asked for
        message = "; ".join(text for text in (candidate.said, candidate.unmet) if text)
        return replace(measurement, values={**measurement.values, **candidate.facts}, message=message)

    def _finish(self, candidate: _Candidate) -> None:
        assert candidate.run is not None, "only what ran is measured"
        assert candidate.run.execution is not None, "it has ended"
        assert self._spec.kernel is not None, "a kernel ran"
        windows, reported = candidate.windows, candidate.reported
        if wrong := next((w for value in reported if (w := what_is_wrong(self._spec.kernel, value))), ""):
            self._finished.append(self._failed(candidate, State.CORRECTNESS, wrong, candidate.facts))
            return
        idle = idle_words(self._spec.kernel, candidate.run.execution, reported[-1])
        unsteady = [window.unsteady for window in windows]
        of_meters = [text for window in windows for text in window.said]
        ours = (candidate.unmet, self._disobeyed(candidate, windows), self._rounded(candidate))
        remarks = (candidate.said, *ours, *unsteady, idle, *of_meters)
        measurement = measurement_of(
            self._spec,
            candidate.row,
            candidate.configuration,
            windows,
            source=self.source,
            cost_s=candidate.cost_s,
            more={**candidate.facts, **candidate.reference},
            reported=reported,
        )
        for window in windows if self._metered else ():
            self._stating.note(str(candidate.row), window)
        message = "; ".join(dict.fromkeys(label for label in remarks if label))
        finished = replace(measurement, message=message)
        self._by_library.note(finished, self._kernels.libraries.get(candidate.name, ""))
        self._finished.append(self._stating.state(finished) if self._metered else finished)

    def _disobeyed(self, candidate: _Candidate, windows: Sequence[Window]) -> str:
        """The remark on a clock that the configuration requests and the board did not reach."""
        asked = settings_of(self._space, candidate.configuration).get("graphics_clock_mhz")
        remarks = (disobeyed(self._gpu, asked, window.observed_clock_mhz, window.event_reasons) for window in windows)
        return next((text for text in remarks if text), "")

    def _rounded(self, candidate: _Candidate) -> str:
        """The remark on a part of the SMs that has others than the configuration requests."""
        asked, used = candidate.prepared.launch.sms, candidate.facts.get("sms_used", 0.0)
        if used == asked:
            return ""
        least, step = self._gpu.described.get("sm_granularity") or (1, 1)
        return f"{asked} SMs were asked for and {used:g} ran it: the driver gives {least} or more, by {step}"

    def _failed(
        self, candidate: _Candidate, state: State, error: str, values: dict[str, float] | None = None
    ) -> Measurement:
        failed = Measurement.failed(
            candidate.row,
            candidate.configuration,
            state,
            error,
            source=self.source,
            values={**(values or {}), **candidate.reference},
            message=candidate.said,
            cost_s=time.monotonic() - candidate.began,
            depth=candidate.depth,
        )
        self._by_library.note(failed, self._kernels.libraries.get(candidate.name, ""))
        return failed
