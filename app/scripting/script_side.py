"""The side of a script in the measurement of its kernels: its `verify` function and its observers."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..engine.formats.names import THEIR_SETTINGS
from ..engine.results.measurement import Configuration, State
from ..engine.runner.kernels.loaded import Launches
from ..engine.runner.kernels.process import KernelFailed
from ..engine.specification.model import Specification
from ..engine.workloads.kernel_arguments import Array
from ..sensors.limits import DeviceLimits
from .described_kernel import ScriptedKernel, ScriptedParts
from .observers import BenchmarkObserver, ContinuousObserver, OutputObserver, PrologueObserver
from .tuned import Result

_CONTINUOUS_S = 1.0  # of launches for continuous observers, at least
Verify = Callable[[Sequence[Any], Sequence[Any]], object]


@dataclass(slots=True)
class ScriptOfKernel:
    """Implements `ScriptSide`."""

    parts: ScriptedParts
    names: Sequence[str]  # of the arguments
    answer: Sequence[Any] | None
    verify: Verify | None
    observers: Sequence[BenchmarkObserver]  # the script's own
    iterations: int
    timeout_s: float
    device: SimpleNamespace  # what observers see of the board
    more: dict[int, Result]  # by row: what observers report that is no number, and the single times
    time_alone: bool = False
    window_s: float = 0.0
    observed: set[int] = field(default_factory=set)  # rows

    def kernel(self, spec: Specification, limits: DeviceLimits, shared_opt_in: int) -> ScriptedKernel:
        """The kernel, its text and launch by the script's functions.

        Parameters
        ----------
        spec : Specification
            The kernel's specification.
        limits : DeviceLimits
            Limits of the board.
        shared_opt_in : int
            Shared memory of a block that the board allows on request, in bytes.

        Returns
        -------
        ScriptedKernel
            With the script's parts.
        """
        return ScriptedKernel(spec, limits, shared_opt_in, self.parts)

    def wrong(self, configuration: Configuration, outputs: Callable[[], Mapping[str, Array]]) -> str:
        """Show the outputs to the script's observers, and have its `verify` function judge them.

        Parameters
        ----------
        configuration : mapping
            The configuration that wrote them; not used.
        outputs : callable
            Returns the arrays by name; it is called only if the function or an observer needs them.

        Returns
        -------
        str
            What is wrong with them, in words; empty if nothing is.
        """
        shown = [value for value in self.observers if isinstance(value, OutputObserver)]
        if self.verify is None and not shown:
            return ""
        actual = outputs()
        written = [actual.get(name) for name in self.names]
        for observer in shown:
            observer.process_output(self.answer, written)
        if self.verify is not None and not self.verify(self.answer or (), written):
            return "the script's verify function says that the outputs are wrong"
        return ""

    def observe(
        self, row: int, configuration: Configuration, launches: Launches, facts: Mapping[str, float]
    ) -> dict[str, float]:
        """Launch as the script asks, and watch; a row that was observed already is not launched again.

        Parameters
        ----------
        row : int
            Row of the space.
        configuration : mapping
            Its parameters and device settings.
        launches : Launches
            Starts launches of its kernel and times them.
        facts : mapping of str to float
            What the driver reports of the kernel, by the names of a measurement.

        Returns
        -------
        dict of float
            Numbers that observers report, for the measurement of the row; what is no number, and the single times in
            milliseconds, are kept in `more`.

        Raises
        ------
        KernelFailed
            If a launch that is watched takes longer than `timeout_s`.
        """
        if row in self.observed:  # a second look at it is the session's own
            return {}
        self.observed.add(row)
        if not self.observers:
            self.more.setdefault(row, {})["times"] = [time_s * 1e3 for time_s in launches.times_s(self.iterations)]
            return {}
        self.device.num_regs = int(facts.get("registers_per_thread", 0))
        parameters = {THEIR_SETTINGS.get(name, name): value for name, value in configuration.items()}
        for observer in self.observers:
            observer.register_configuration(parameters)
        prologue = [item for item in self.observers if isinstance(item, PrologueObserver)]
        continuous = [item for item in self.observers if isinstance(item, ContinuousObserver)]
        continuous += [found for item in self.observers if (found := getattr(item, "continuous_observer", None))]
        usual = [item for item in self.observers if item not in prologue and item not in continuous]
        results: Result = {}
        for observer in prologue:
            self._launch(launches, [observer])
            results.update(observer.get_results())
        times = [self._launch(launches, usual) * 1e3 for _ in range(self.iterations)]
        results |= {"time": math.fsum(times) / len(times), "times": times}
        for observer in usual:
            results.update(observer.get_results())
        duration_s = max(_CONTINUOUS_S, *(float(element.continuous_duration) for element in continuous), 0.0)
        for observer in continuous:
            observer.results = results
            self._launch_for(duration_s, launches, observer)
            results.update(observer.get_results())
        del results["time"]  # the measurement's own is a mean over a longer window
        return self._kept(row, results)

    def spent(self, row: int, compiler_s: float, check_s: float) -> None:
        """Record the time that compiling and verifying a row took.

        Parameters
        ----------
        row : int
            Row of the space.
        compiler_s, check_s : float
            Seconds; `more` keeps them in milliseconds.
        """
        figures = self.more.setdefault(row, {})
        figures |= {"compile_time": compiler_s * 1e3, "verification_time": check_s * 1e3}

    def times_s(self, row: int) -> Sequence[float]:
        """Times of the launches of a row that the script asked for.

        Parameters
        ----------
        row : int
            Row of the space.

        Returns
        -------
        sequence of float
            Seconds; empty if the row was not observed.
        """
        return [value / 1e3 for value in self.more.get(row, {}).get("times", ())]

    def _kept(self, row: int, results: Result) -> dict[str, float]:
        """The numbers; the rest is kept beside the measurement."""
        numbers: dict[str, float] = {}
        for name, value in results.items():
            try:
                numbers[name] = float(value)
            except (TypeError, ValueError):
                self.more.setdefault(row, {})[name] = value
        return numbers

    def _launch(self, launches: Launches, observers: Sequence[BenchmarkObserver]) -> float:
        """One launch, watched; its seconds."""
        for observer in observers:
            observer.before_start()
        launches.start()
        for observer in observers:
            observer.after_start()
        took_s = self._await(launches, observers)
        for observer in observers:
            observer.after_finish()
        return took_s

    def _launch_for(self, seconds: float, launches: Launches, observer: BenchmarkObserver) -> None:
        """Launches one after the other for that long, watched as one."""
        observer.before_start()
        until = time.monotonic() + seconds
        launches.start()
        observer.after_start()
        while True:
            self._await(launches, [observer])
            if time.monotonic() >= until:
                break
            launches.start()
        observer.after_finish()

    def _await(self, launches: Launches, observers: Sequence[BenchmarkObserver]) -> float:
        deadline = time.monotonic() + self.timeout_s
        while (took_s := launches.finished_s()) is None:
            if time.monotonic() > deadline:
                raise KernelFailed(State.TIMEOUT, f"one launch took longer than {self.timeout_s:g} s", lost=True)
            for observer in observers:
                observer.during()
        return took_s


def read_verify(given: Any, atol: float) -> Verify | None:
    """A script's `verify` as a function of the answer and the output.

    Parameters
    ----------
    given : callable or None
        Of answer and output, and of `atol` where it takes one.
    atol : float
        Absolute tolerance that it is called with.

    Returns
    -------
    callable or None
        None if none was given.
    """
    if given is None:
        return None
    try:
        takes_atol = "atol" in inspect.signature(given).parameters
    except (TypeError, ValueError):
        takes_atol = False
    return (lambda answer, output: given(answer, output, atol=atol)) if takes_atol else given
