"""`CudaRunner`: measures a specification's kernels on a real board, compiling the next ones meanwhile.

One configuration after the other without a pause: while one is measured the next is compiled and loaded, and its power
is worked out from the driver's samples once the next one runs.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, Final

from ....errors import InputError, WattridgeError
from ....sensors.load import Load
from ...children.scratch import scratch_folder
from ...control.guard import DeviceGuard
from ...control.obeying import disobeyed
from ...measurement import Configuration, Measurement, State
from ...metering.meter import Meter
from ...metering.window import Run, Window
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.cuda_arguments import CallPlan
from ...workloads.cuda_kernel import Build, CudaKernel, KernelRefused, Prepared
from ...workloads.launch import Launch
from ...workloads.machine_code import shortfall
from ..base import OnPreparation
from ..figures import measurement_of
from ..settings_order import by_setting, settings_of
from .comparer import SOURCE
from .compiler import Compiled, Compiler, symbol
from .drift import Drift, reference_figures
from .first_look import look_once
from .gpu import CudaGpu
from .process import KernelFailed

SPARE_S: Final = 1.0  # a first launch may take this much longer than its limit: lazy loading, comparing, once more
LEAST_BATCH: Final = 16
MOST_BATCH: Final = 64
WAIT_S: Final = 0.005  # for the compiler, before the GPU is kept busy


@dataclass(slots=True)
class _Candidate:
    """A row on its way through compiler, check and measurement."""

    row: int
    name: str  # of its kernel in the runner process
    configuration: Configuration
    began: float  # monotonic s, when its turn on the GPU came
    prepared: Prepared | None = None
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
    """Implements `Runner` and `Prepares`. Takes over the guard and the board's runner processes."""

    def __init__(
        self, gpu: CudaGpu, spec: Specification, space: SearchSpace, guard: DeviceGuard, compiler: Compiler
    ) -> None:
        self.source: str = gpu.info.source
        self.batch = max(LEAST_BATCH, min(MOST_BATCH, 4 * compiler.jobs))
        self._gpu = gpu
        self._spec = spec
        self._space = space
        self._guard = guard
        self._compiler = compiler
        self.settle_s = 0.0  # lower bounds, beyond what the meter takes by itself
        self.window_s = 0.0
        self._serial = count()
        self._kernel = CudaKernel.of(spec, gpu.limits, gpu.shared_memory_opt_in)
        self._timeout_s = spec.kernel.timeout_s if spec.kernel else 10.0
        gpu.timeout_s = self._timeout_s
        self._meter = Meter(gpu, needs=spec.uses)
        self._scratch = scratch_folder()
        self._calls: CallPlan | None = None
        self._comparer = compiler.submit(Build(SOURCE, (), (), ()))
        self._drift = Drift(compiler)
        self._busy_with: Load | None = None  # the last kernel that worked: it keeps the board warm while we wait
        self._loaded: list[str] = []
        self._pending: _Candidate | None = None  # ran, and its samples are not all told yet
        self._pending_reference: tuple[_Candidate, Run] | None = (
            None  # the same of the reference kernel, before that one
        )
        self._finished: list[Measurement] = []
        self._unmet = ""  # by the board, of the setting in force

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """Characterise the power sensor where nothing is kept of this board and driver."""
        look_once(self._gpu, self._compiler.toolchain, stop, on_progress)

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows in the order in which they are compiled, those of one device setting together."""
        by_settings = groupby(by_setting(rows, self._space, self._guard), self._setting_of)
        try:
            for setting, group in by_settings:
                for failed in self._measure_setting(list(group), dict(setting), stop):
                    yield from self._told()
                    if failed is not None:
                        yield failed
            self._settle()
            yield from self._told()
        finally:
            self._pending = self._pending_reference = None

    def close(self) -> None:
        """Restore the board's settings and end the compilers. The board's processes go with the board."""
        try:
            self._guard.restore()
        finally:
            self._compiler.close()
            shutil.rmtree(self._scratch, ignore_errors=True)
            with suppress(KernelFailed):
                self._unload(keep=0)
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
        """Figures of what ran last. Its samples are told by now, and not for ever."""
        if self._pending_reference is not None:
            carrier, reference = self._pending_reference
            self._pending_reference = None
            carrier.reference = reference_figures(self._meter.window(reference))
        if self._pending is not None:
            candidate, self._pending = self._pending, None
            self._finished.append(self._measured(candidate))

    def _told(self) -> Iterator[Measurement]:
        while self._finished:
            yield self._finished.pop(0)

    def _measure_setting(
        self, rows: Sequence[int], setting: dict[str, float], stop: threading.Event
    ) -> Iterator[Measurement | None]:
        """Run the rows of one setting: a failure, or None for one that ran, as they come."""
        waiting: dict[Future[Compiled], _Candidate] = {}
        try:
            for row in rows:
                candidate = _Candidate(
                    row, f"{row}.{next(self._serial)}", self._space.configuration(row), time.monotonic()
                )
                try:
                    candidate.prepared = self._kernel.prepare(candidate.configuration)
                    waiting[self._compiler.submit(candidate.prepared.build)] = candidate
                except KernelRefused as refusal:
                    yield self._failed(candidate, refusal.state, str(refusal))
                except InputError as senseless:  # a value of this configuration, not of the specification
                    yield self._failed(candidate, State.CONSTRAINTS, str(senseless))
            if self._guard.apply(**setting):
                self._unmet = self._guard.unmet()
            while waiting and not stop.is_set():
                future = self._next(waiting, stop)
                if future is None:
                    return
                candidate = waiting.pop(future)
                self._look_at_drift(candidate, setting, stop)
                candidate.began = time.monotonic()
                failed = self._run(candidate, future, stop)
                if failed is None and candidate.run is None:  # stopped
                    return
                yield failed
        finally:
            for future in waiting:
                future.cancel()

    def _next(self, waiting: dict[Future[Compiled], _Candidate], stop: threading.Event) -> Future[Compiled] | None:
        """The first that is compiled; until then the board goes on with what it ran last. None when stopped."""
        done, _ = wait(waiting, WAIT_S, FIRST_COMPLETED)
        busy = False
        try:
            while not done:
                if stop.is_set():
                    return None
                if not busy and self._busy_with is not None:
                    self._gpu.begin(self._busy_with)
                    busy = True
                self._settle()
                done, _ = wait(waiting, 0.05, FIRST_COMPLETED)
        finally:
            if busy:
                self._gpu.end()
        return min(done, key=list(waiting).index)

    def _run(self, candidate: _Candidate, future: Future[Compiled], stop: threading.Event) -> Measurement | None:
        """Load, check and run one candidate: its failure, or None where it ran or was stopped."""
        try:
            compiled = future.result()
            candidate.said = compiled.said
            self._load(candidate, compiled.image)
            assert candidate.prepared is not None, "what was compiled was prepared"
            wrong = shortfall(compiled.image, candidate.prepared.instructions) or self._check(candidate)
            if wrong:
                return self._failed(candidate, State.CORRECTNESS, wrong)
            candidate.unmet = self._unmet
            settle_s = max(self.settle_s, self._guard.settling_s)
            for _ in range(self._spec.repeats):
                run = self._meter.run(candidate.load, stop=stop, settle_s=settle_s, window_s=self.window_s)
                if candidate.run is not None:  # its samples have come by now
                    candidate.windows.append(self._meter.window(candidate.run))
                candidate.run = run
                if run is None:
                    break
                self._settle()  # while the samples of the one before are still kept
        except KernelFailed as failure:
            self._settle()
            return self._recovered(candidate, failure)
        self._settle()
        if candidate.run is not None:
            self._pending = candidate
            self._busy_with = candidate.load
            self._gpu.processes.keep_spare()
            self._drift.count()
        return None

    def _look_at_drift(self, candidate: _Candidate, setting: dict[str, float], stop: threading.Event) -> None:
        """The reference kernel's turn, where it is due; a process that it costs is replaced."""
        if not self._drift.due(setting):
            return
        assert candidate.prepared is not None, "what was compiled was prepared"
        self._tell_calls(candidate.prepared.calls)
        try:
            reference = self._drift.look(self._gpu, self._meter, stop)
        except KernelFailed:
            self._gpu.processes.replace()
            self._begin_anew()
            return
        self._settle()
        if reference is not None:
            self._pending_reference = candidate, reference

    # --- the kernel -------------------------------------------------------------------------------------------------

    def _load(self, candidate: _Candidate, image: bytes) -> None:
        prepared = candidate.prepared
        assert prepared is not None, "what was compiled was prepared"
        self._tell_calls(prepared.calls)
        message: dict[str, Any] = {"do": "load", "id": candidate.load.name}
        message["launch"] = _message(prepared.launch, symbol(image, prepared.launch.name))
        if prepared.reference is not None:
            message["reference"] = _message(prepared.reference, symbol(image, prepared.reference.name))
        facts = self._gpu.ask(message, [image])
        self._loaded.append(candidate.load.name)
        candidate.facts = {
            "registers_per_thread": float(facts["registers"]),
            "shared_memory_byte": float(facts["shared_byte"]),
            "local_memory_byte": float(facts["local_byte"]),
            "occupancy": float(facts["occupancy"]),
        }
        self._unload(keep=2)

    def _unload(self, keep: int) -> None:
        while len(self._loaded) > keep:
            name = self._loaded.pop(0)
            if self._busy_with is not None and self._busy_with.name == name:
                self._busy_with = None
            self._gpu.ask({"do": "unload", "id": name})

    def _tell_calls(self, calls: CallPlan) -> None:
        """Arguments and references, where they are others than before: shapes may depend on parameters."""
        if calls == self._calls:
            return
        self._settle()
        for kept in self._scratch.glob("*.npy"):
            kept.unlink()
        messages: list[tuple[dict[str, Any], Sequence[bytes]]] = [
            ({"do": "arguments", "plan": calls.as_message(), "scratch": str(self._scratch)}, ())
        ]
        with suppress(KernelFailed, WattridgeError):  # without it the host compares
            messages.insert(0, ({"do": "comparer"}, [self._comparer.result().image]))
        self._calls, self._busy_with = calls, None
        self._loaded.clear()
        self._gpu.prepare(messages)
        self._gpu.processes.current.ready()

    def _check(self, candidate: _Candidate) -> str:
        """One launch on fresh outputs; what is wrong with them, or nothing."""
        told = self._gpu.ask(
            {"do": "check", "id": candidate.load.name},
            timeout_s=self._timeout_s + SPARE_S,
            meanwhile=self._settle,
        )
        if told["launch_s"] > self._timeout_s:
            raise KernelFailed(
                State.TIMEOUT, f"one launch took {told['launch_s']:.3g} s, {self._timeout_s:g} s at most"
            )
        return "; ".join(
            f"{wrong['output']}: {wrong['wrong']} of {wrong['size']} values are wrong, the first at {wrong['first']}, "
            f"by {wrong['worst']:.4g} at most"
            for wrong in told["wrong"]
        )

    def _recovered(self, candidate: _Candidate, failure: KernelFailed) -> Measurement:
        """The failure as a result; where it took the process along, the spare one takes over."""
        lost_s = time.monotonic() - candidate.began
        values: dict[str, float] = {}
        if failure.lost:
            values["teardown_s"] = self._gpu.processes.replace()
            began = time.monotonic()
            self._begin_anew()
            lost_s += time.monotonic() - began
        values["lost_s"] = lost_s
        what = failure.what
        if failure.state is State.COMPILE and (hint := self._kernel.hidden_parameters()):
            what = f"{hint}. {what}"
        return self._failed(candidate, failure.state, what, {**candidate.facts, **values})

    def _begin_anew(self) -> None:
        """In another process: nothing is loaded there."""
        self._busy_with = None
        self._loaded.clear()
        self._gpu.processes.current.ready()

    # --- measurements -----------------------------------------------------------------------------------------------

    def _measured(self, candidate: _Candidate) -> Measurement:
        assert candidate.run is not None, "only what ran is measured"
        windows = [*candidate.windows, self._meter.window(candidate.run)]
        said = (candidate.said, candidate.unmet, self._disobeyed(candidate, windows))
        return measurement_of(
            self._spec,
            candidate.row,
            candidate.configuration,
            windows,
            source=self.source,
            cost_s=windows[-1].window_ns[1] / 1e9 - candidate.began if self._gpu.clock.speed == 1.0 else 0.0,
            more={**candidate.facts, **candidate.reference},
            message="; ".join(words for words in said if words),
        )

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


def _message(launch: Launch, name: str) -> dict[str, Any]:
    return {"name": name, "grid": launch.grid, "block": launch.block, "shared_byte": launch.shared_byte}
