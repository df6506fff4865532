"""`LoadedKernels`: a kernel's life in the runner process, from its image to its unloading.

Its outputs are compared there, or checked by the user's own program, whose exit status is 0 if they are right.
What its launches report of themselves, their own time or a value, becomes figures of a measurement.
"""

from __future__ import annotations

import math
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ....base.errors import WattridgeError
from ....sensors.gpu import Execution, Load
from ...children.scratch import scratch_folder
from ...results.measurement import State
from ...specification.model import NOTHING, OF_THE_HOST, RETURNED_TIMES, KernelSpec
from ...workloads.command import fill_places
from ...workloads.kernel_arguments import Array, CallPlan, Launch, read_array
from ...workloads.source_kernel import Prepared
from ...workloads.subprocesses import run_process
from .compiler import once_compiled
from .gpu import ProcessGpu
from .language import Language
from .process import KernelFailed

Figures = dict[str, float]
IDLE: Final = 0.1  # share of a window between launches that is worth a remark


Reader = Callable[[float | None], Figures]  # of the mean that launches report; None if they report nothing


def reader_of(kernel: KernelSpec) -> Reader:
    """How figures of a launch follow from what the kernel's launches report."""
    returns = kernel.returns if kernel.language in OF_THE_HOST else "time_s"

    def read(reported: float | None) -> Figures:
        if reported is None or returns == NOTHING:
            return {}
        if returns in RETURNED_TIMES:
            return {"time_s": reported * RETURNED_TIMES[returns]}
        return {returns: reported}

    return read


def what_is_wrong(kernel: KernelSpec, figures: Figures) -> str:
    """Why they cannot be a launch's; empty if they can."""
    time_s = figures.get("time_s", 1.0)
    if math.isfinite(time_s) and time_s > 0:
        return ""
    if kernel.language not in OF_THE_HOST:
        return "the device reports no time for its launches"
    return (
        f"it returned {time_s / RETURNED_TIMES[kernel.returns]:g} as its {kernel.returns}: "
        f"return the time of a call as float, or write returns = '{NOTHING}'"
    )


def idle_words(kernel: KernelSpec, execution: Execution, figures: Figures) -> str:
    """The remark on a window in which the device waited for the host between launches; empty for any other."""
    own_s = figures.get("time_s", execution.time_s)
    if kernel.language != "OpenCL" or own_s >= (1.0 - IDLE) * execution.time_s:
        return ""
    share = 1.0 - own_s / execution.time_s
    return f"the device was idle for {share:.0%} of the window between launches, which their energy contains"


SPARE_S: Final = 1.0  # a first launch may take this much longer than its limit: lazy loading, comparing, once more
VERIFY_S: Final = 300.0  # for the user's program
_SHOWN: Final = 2000  # characters of what it says
KEPT: Final = 3  # kernels that stay loaded: the one that runs, the next, and the one that keeps the board warm
FACTS: Final = {  # as measurements report them -> as the backend does
    "registers_per_thread": "registers",
    "shared_memory_byte": "shared_byte",
    "local_memory_byte": "local_byte",
    "occupancy": "occupancy",
    "sms_used": "sms",
}


class LoadedKernels:
    """The kernels of one session in the runner process. A load's name is its kernel's."""

    def __init__(self, language: Language, timeout_s: float, on_wait: Callable[[], None]) -> None:
        """`on_wait` is called before and during what takes long, while the driver still keeps the last samples."""
        self.last: Load | None = None  # the last kernel that worked
        self.libraries: dict[str, str] = {}  # whose kernel that of a name is, where it is a library's
        self.lost = False  # the process, by a fault or a stop: another one has yet to take over
        self._gpu = language.gpu
        self._gpu.timeout_s = timeout_s
        self._timeout_s = timeout_s
        self._on_wait = on_wait
        self._scratch = scratch_folder()
        self._language = language
        comparer = language.comparer
        self._comparer = language.compiler.submit(comparer) if comparer is not None else None
        self._calls: CallPlan | None = None
        self._loaded: list[str] = []

    def use_arguments(self, calls: CallPlan) -> None:
        """Make arguments and references, where they differ from the last: shapes may depend on parameters."""
        if calls != self._calls:
            self.make_arguments(calls)
            self._gpu.processes.current.ready()

    def make_arguments(self, calls: CallPlan) -> None:
        """The same, on the host and without waiting for it: nothing of it runs on the device until a kernel is loaded.

        What is wrong with them is raised by the first kernel.
        """
        self._on_wait()
        for kept in self._scratch.glob("*.npy"):
            kept.unlink()
        messages: list[tuple[dict[str, Any], Sequence[bytes]]] = [
            ({"do": "arguments", "plan": calls.as_message(), "scratch": str(self._scratch)}, ())
        ]
        if self._comparer is not None:
            with suppress(KernelFailed, WattridgeError):  # without it the host compares
                messages.insert(0, ({"do": "comparer"}, [once_compiled(self._comparer, self._gpu.stop).image]))
        self._calls, self.last = calls, None
        self._loaded.clear()
        self._gpu.prepare(messages)

    def load(self, name: str, prepared: Prepared, image: bytes) -> dict[str, float]:
        """Load a kernel under a name; what the driver reports of it. Raises KernelFailed."""
        self.use_arguments(prepared.calls)
        message: dict[str, Any] = {"do": "load", "id": name, "launch": self._named(prepared.launch, image)}
        if prepared.reference is not None:
            message["reference"] = self._named(prepared.reference, image)
        reported = self._gpu.ask(message, [image])
        if "library" in reported:
            self.libraries[name] = str(reported["library"])
        self._loaded.append(name)
        self._unload(keep=KEPT)
        return {figure: float(reported[key]) for figure, key in FACTS.items() if reported.get(key) is not None}

    def load_ahead(self, name: str, prepared: Prepared, image: bytes) -> dict[str, float] | None:
        """The same for the next kernel, while the board warms up for this one; None if that cannot be.

        What is wrong with it is found when its own turn comes. Raises KernelFailed if the process is lost.
        """
        if prepared.calls != self._calls:
            return None
        try:
            return self.load(name, prepared, image)
        except KernelFailed as failure:
            if failure.lost:
                raise
            return None

    def warm(self, name: str) -> None:
        """Launch it for a moment, so that the board is warm when it is timed; returns at once. Raises KernelFailed."""
        self._gpu.ask({"do": "warm", "id": name})

    def holds(self, name: str) -> bool:
        """Whether the kernel of that name is still loaded."""
        return name in self._loaded

    def check(self, name: str) -> str:
        """One launch on fresh outputs; what is wrong with them, or nothing. Raises KernelFailed."""
        reply = self._gpu.ask({"do": "check", "id": name}, timeout_s=self._timeout_s + SPARE_S, meanwhile=self._on_wait)
        if reply["launch_s"] > self._timeout_s:
            raise KernelFailed(
                State.TIMEOUT, f"one launch took {reply['launch_s']:.3g} s, {self._timeout_s:g} s at most"
            )
        return "; ".join(
            f"{wrong['output']}: {wrong['wrong']} of {wrong['size']} values are wrong, the first at {wrong['first']}, "
            f"by {wrong['worst']:.4g} at most"
            for wrong in reply["wrong"]
        )

    def outputs(self) -> dict[str, Array]:
        """What the outputs hold since the last check, by their names. Raises KernelFailed."""
        folder = self._scratch / "outputs"
        folder.mkdir(exist_ok=True)
        names = [argument.name for argument in self._calls.outputs] if self._calls is not None else []
        self._gpu.ask({"do": "save", "names": names, "folder": str(folder)})
        return {name: read_array(folder / f"{name}.npy", None) for name in names}

    def verify_by_program(
        self, command: Sequence[str], arrays: Collection[str], folder: Path, stop: threading.Event
    ) -> str:
        """What is wrong with the outputs of the launch before, in words; empty if nothing is, or when stopped.

        `{name}` in the command stands for the file of an array (.npy). Raises KernelFailed.
        """
        named = {name for word in command for name in re.findall(r"\{(\w+)\}", word)} & set(arrays)
        kept = Path(scratch_folder())
        try:
            self._gpu.ask({"do": "save", "names": sorted(named), "folder": str(kept)})
            filled = fill_places(list(command), {name: str(kept / f"{name}.npy") for name in named})
            program = Path(filled[0]).name
            try:
                ended = run_process(filled, folder=folder, timeout_s=VERIFY_S, stop=stop)
            except (OSError, ValueError) as error:  # ValueError: a NUL in a word
                return f"{program} does not start: {error}"
            if ended.stopped or (ended.exit_status == 0 and not ended.timed_out):
                return ""
            how = f"took longer than {VERIFY_S:g} s" if ended.timed_out else ended.how
            message = (ended.errors.strip() or ended.output.strip())[-_SHOWN:]
            return f"{program} says that the output is wrong: {how}" + (f"\n{message}" if message else "")
        finally:
            shutil.rmtree(kept, ignore_errors=True)

    def launches(self, name: str, reader: Reader) -> Launches:
        """Single launches of a loaded kernel, each timed: by itself where it reports its time."""
        return Launches(self._gpu, name, self._timeout_s, reader)

    @contextmanager
    def keep_board_busy(self) -> Iterator[None]:
        """The last kernel that worked runs on, so that the board stays warm."""
        load = self.last
        if load is not None:
            self._gpu.begin(load)
        try:
            yield
        finally:
            if load is not None:
                try:
                    self._gpu.end()
                except KernelFailed:  # where the session was stopped, its process may have been ended
                    if not self._gpu.stop.is_set():
                        raise

    def replace_process(self) -> float:
        """After a fault that cost the process: the spare takes over, and nothing is loaded there.

        Returns the seconds that the driver took to end the old one. After a stop nothing takes over yet.
        """
        self.lost = self._gpu.stop.is_set()
        if self.lost:
            return 0.0
        teardown_s = self._gpu.processes.replace()
        self.last = None
        self._loaded.clear()
        self._gpu.processes.current.ready()
        return teardown_s

    def close(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        with suppress(KernelFailed):
            self._unload(keep=0)

    def _unload(self, keep: int) -> None:
        while len(self._loaded) > keep:
            name = self._loaded.pop(0)
            if self.last is not None and self.last.name == name:
                self.last = None
            self._gpu.ask({"do": "unload", "id": name})

    def _named(self, launch: Launch, image: bytes) -> dict[str, Any]:
        """A launch as a message, under the name that the image has."""
        return launch.as_message(self._language.symbol(image, launch.name))


class Launches:
    """Single launches of one loaded kernel. All raise KernelFailed."""

    def __init__(self, gpu: ProcessGpu, name: str, timeout_s: float, reader: Reader) -> None:
        self._gpu = gpu
        self._name = name
        self._timeout_s = timeout_s
        self._reader = reader

    def times_s(self, launches: int) -> list[float]:
        """That many launches, one after the other."""
        message = {"do": "times", "id": self._name, "launches": launches}
        reply = self._gpu.ask(message, timeout_s=launches * self._timeout_s + SPARE_S)
        return [self._time_s(value) for value in reply["launches"]]

    def start(self) -> None:
        """Queue one launch; returns at once."""
        self._gpu.ask({"do": "start", "id": self._name})

    def finished_s(self) -> float | None:
        """How long the launch that was started took; None while it runs."""
        reply = self._gpu.ask({"do": "finished"})
        return self._time_s(reply) if reply["passed"] else None

    def _time_s(self, launch: Mapping[str, Any]) -> float:
        return float(self._reader(launch["reported"]).get("time_s", launch["time_s"]))
