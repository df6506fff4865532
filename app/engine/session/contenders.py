"""`Contender`: one side of `wattridge check`: a program, a function or a kernel, which does its work in blocks."""

from __future__ import annotations

import json
import math
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.conversation import Conversation, Frame, receive
from ...base.errors import InputError, WattridgeError
from ...sensors.gpu import SensorError
from ...sensors.meters.rapl import Rapl
from ..children.python import python_command, python_environment
from ..metering.meter import RISE_S, least_window_s
from ..metering.span import read_span
from ..metering.watching import Watch
from ..results.evidence import Evidence, unpack
from ..results.measurement import State
from ..runner.base import Runner
from ..runner.function import call_repeatedly, find_timer
from ..workloads.command import CommandFailed, run_command

KERNEL_BLOCK_S: Final = 0.4  # at least, of kernels and functions
PROGRAM_BLOCK_S: Final = 1.0  # a shorter program runs several times
_LOOK_S: Final = 0.05  # between looks at `stop`
_CHILD: Final = f"{Runner.__module__.rpartition('.')[0]}.function_child"
_ENDS_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Look:
    """What a side did in one block, and what the board's sensor reported of it."""

    start_ns: int  # on the board's clock
    end_ns: int
    time_s: float  # of one unit of work
    work: float  # units
    evidence: Evidence | None
    unknown: str = ""  # why there is none
    host_w: float = math.nan  # of the host's processors
    clock_mhz: float = math.nan  # observed


class Contender(ABC):
    """One side. Between its blocks it holds what it needs, and does nothing."""

    unit: str  # of its work: 'run', 'call' or 'launch'

    @abstractmethod
    def block(self, stop: threading.Event) -> Look | None:
        """Do its work for a block; None where `stop` was set. Raises WattridgeError if it fails."""

    def close(self) -> None:  # noqa: B027  (nothing to release)
        """End what it holds."""


class ProgramContender(Contender):
    """A program, run to its end; a short one again and again."""

    unit = "run"

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        watch: Watch,
        *,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is the user's own if none is given."""
        self._environment = environment
        self._words, self._folder, self._watch = list(words), folder, watch
        self._timeout_s, self._host = timeout_s, Host()
        self._least_ns = round(_least_s(watch, PROGRAM_BLOCK_S) * 1e9)

    def block(self, stop: threading.Event) -> Look | None:
        start_ns, runs, now_ns = 0, 0, self._watch.gpu.clock.now_ns
        self._watch.mark()
        self._host.mean_w()
        while True:
            try:
                ended = run_command(
                    self._words,
                    self._folder,
                    self._timeout_s,
                    stop=stop,
                    now_ns=now_ns,
                    environment=self._environment,
                )
            except CommandFailed as failure:
                remedy = "run it by itself to see what it prints"
                raise WattridgeError(f"it failed: {failure}", " ".join(self._words), remedy) from None
            if ended.stopped:
                return None
            start_ns, runs = start_ns or ended.start_ns, runs + 1
            if ended.end_ns - start_ns >= self._least_ns:
                time_s = (ended.end_ns - start_ns) / 1e9 / runs
                return seen(self._watch, start_ns, ended.end_ns, time_s, runs, self._host.mean_w())


class FunctionContender(Contender):
    """A Python function in a process of its own, so that two versions of one module do not meet."""

    unit = "call"

    def __init__(self, asked: Mapping[str, Any], watch: Watch, variables: Mapping[str, str] | None = None) -> None:
        """`asked` as `function_child` reads it: file, function, folder, inputs, copies, seed, data, sms.

        `variables` are those that its environment has beside this process's.
        """
        self._watch, self._host = watch, Host()
        self._name = f"{asked['file']}:{asked['function']}"
        self._heard: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        command, environment = python_command(_CHILD, json.dumps(asked)), python_environment(variables)
        self._child = Conversation(command, receive, self._heard.put, environment=environment)

    def block(self, stop: threading.Event) -> Look | None:
        self._watch.mark()
        self._host.mean_w()
        self._child.send({"seconds": _least_s(self._watch, KERNEL_BLOCK_S)})
        while not stop.is_set():
            with suppress(queue.Empty):
                frame = self._heard.get(timeout=_LOOK_S)
                if frame is None or "failed" in frame[0]:
                    words = self._child.last_words(_ENDS_S) if frame is None else [frame[0]["failed"]]
                    what = f"it failed: {'; '.join(words[-3:]) or 'its process ended'}"
                    raise WattridgeError(what, self._name, "call it by itself to see what happens")
                one = frame[0]
                return seen(
                    self._watch, one["start_ns"], one["end_ns"], one["time_s"], one["calls"], self._host.mean_w()
                )
        return None

    def close(self) -> None:
        self._child.end(_ENDS_S)


class KernelContender(Contender):
    """One configuration of a specification, launched back to back by its runner."""

    unit = "launch"

    def __init__(self, runner: Runner, row: int, name: str) -> None:
        self._runner, self._row, self._name = runner, row, name
        if hasattr(runner, "window_s"):  # others choose by themselves
            runner.window_s = max(runner.window_s, KERNEL_BLOCK_S)

    def block(self, stop: threading.Event) -> Look | None:
        measured = next(iter(self._runner.measure([self._row], stop)), None)
        if measured is None:
            return None
        if measured.state is not State.OK or measured.window_ns is None:
            raise WattridgeError(f"it failed ({measured.state}): {measured.error}", self._name, "measure it with tune")
        start_ns, end_ns = measured.window_ns
        time_s = measured.values["time_s"]
        if not measured.evidence:
            return Look(start_ns, end_ns, time_s, 1.0, None, measured.message or "no sample of power was reported")
        evidence = unpack(measured.evidence)
        end_ns = start_ns + round(float(evidence.ends_s[-1]) * 1e9)
        work, clock_mhz = evidence.seconds / time_s, measured.observed_clock_mhz
        return Look(start_ns, end_ns, time_s, work, evidence, clock_mhz=clock_mhz)


class CallContender(Contender):
    """A function of this process, as `pytest --energy` measures it."""

    unit = "call"

    def __init__(self, call: Callable[[], object], watch: Watch) -> None:
        self._call, self._watch = call, watch
        call()  # compiles, allocates, fills caches
        self._timer = find_timer()

    def block(self, stop: threading.Event) -> Look | None:
        self._watch.mark()
        seconds, now_ns = _least_s(self._watch, KERNEL_BLOCK_S), self._watch.gpu.clock.now_ns
        run = call_repeatedly(
            self._call, self._timer, now_ns, rise_s=RISE_S, least_s=seconds, most_s=seconds, target=0.0, stop=stop
        )
        return None if run is None else seen(self._watch, run.start_ns, run.end_ns, run.time_s, run.calls)


def seen(watch: Watch, start_ns: int, end_ns: int, time_s: float, work: float, host_w: float = math.nan) -> Look:
    """What the board drew between two times."""
    span = read_span(watch, start_ns, end_ns)
    return Look(start_ns, end_ns, time_s, work, span.evidence, span.unknown, host_w, span.clock_mhz.mean)


class Host:
    """The energy counters of the host's processors, read when a block begins and when it ends."""

    def __init__(self) -> None:
        self._counters: Rapl | None = None
        with suppress(InputError, SensorError):  # there are none, or they may not be read
            self._counters = Rapl()

    def mean_w(self) -> float:
        """The mean power since it was asked for last; NaN where it is not known."""
        with suppress(SensorError):
            samples = None if self._counters is None else self._counters.read()
            return math.nan if samples is None or not len(samples.power_w) else float(samples.power_w[-1, 0])
        return math.nan


def _least_s(watch: Watch, least_s: float) -> float:
    """The length of a block: longer than the sensor takes to show it."""
    sensor = watch.sensor()
    return least_s if sensor is None else max(least_s, least_window_s(sensor))
