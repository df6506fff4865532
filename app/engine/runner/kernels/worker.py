"""The runner process: owns the device's context, checks kernels, and launches them back to back until it is stopped.

Started as `python -P -m PACKAGE.engine.runner.kernels.worker MODULE DEVICE`; its parent sends and gets frames, and what
kernels print goes the way of errors. `MODULE` offers `open_backend(device)`.
"""

from __future__ import annotations

import importlib
import os
import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....base.conversation import Message, Parent
from ....base.errors import InputError
from ...workloads.kernel_arguments import Argument, CallPlan, Launch, make_array, make_references
from .backend import Array, Backend, DeviceFault, Kernel, LocalMemory, Mark, PageLocked, ReportingMark, VendorKernel
from .made_image import facts_of

BATCH_S: Final = 0.012  # launches between two marks; two batches in the queue bridge what the host may be late by
AHEAD: Final = 2  # batches in the queue
WARM_S: Final = 0.005  # of launches before the few that are timed
SEVERAL_S: Final = 0.001  # of launches, SEVERAL at most, by which it is known how long one of them is:
SEVERAL: Final = 8  # one by itself may take the host longer than the device
LOOK_S: Final = 0.001
HALVES: Final = 6  # marks at least that two halves of a lap are compared by
ORPHAN_S: Final = 5.0  # from the end of the other side to ours
MOST_LAUNCHES: Final = 20_000  # in one batch


@dataclass(slots=True)
class Loaded:
    """A loaded kernel, and the duration of the launch that verified it."""

    kernel: Kernel
    image: bytes
    launch: Launch
    launch_s: float = BATCH_S


class Worker:
    """Answers messages. One thread; `pump` keeps the queue of launches full in between.

    `now_ns` is the clock of the board's sensors, the host's monotonic one where the board is real.
    """

    def __init__(self, backend: Backend, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._backend = backend
        self._now_ns = now_ns
        self._plan = CallPlan((), (), {})
        self._arrays: dict[str, Array] = {}
        self._references: dict[str, Array] = {}
        self._buffers: dict[str, Any] = {}  # on the device, by argument; "reference of NAME", "start of NAME" too
        self._kernels: dict[str, Loaded] = {}
        self._running: Loaded | None = None
        self._queue: deque[tuple[Mark, int]] = deque()  # marks not passed yet, with the launches before them
        self._base: Mark | None = None  # the first mark since `begin`, and when it passed
        self._base_ns = 0
        self._passed: tuple[Mark, int] | None = None  # the newest mark that has passed
        self._lapped: tuple[Mark, int] | None = None  # where the present lap began
        self._on_the_way: list[tuple[Mark, int]] = []  # marks that have passed in this lap
        self._launched = 0
        self._fault: DeviceFault | None = None
        self._reference_kernel: Message | None = None
        self._once: tuple[Mark, Mark] | None = None  # around the launch that was started last
        self._warmed: tuple[Loaded, Mark] | None = None  # what was launched to warm up, and when that ends

    @property
    def running(self) -> bool:
        return self._running is not None

    def answer(self, message: Message, blocks: list[bytes]) -> Message:
        """The reply to one message. Raises DeviceFault and InputError."""
        answer = _ANSWERS.get(message.get("do"))
        if answer is None:
            raise InputError(f"there is no '{message.get('do')}'", "runner process")
        return answer(self, message, blocks) or {}

    # --- arguments --------------------------------------------------------------------------------------------------

    def _make_arguments(self, message: Message) -> None:
        """Make the arrays on the host; they go to the device with the first kernel."""
        plan, scratch = CallPlan.of_message(message["plan"]), message.get("scratch")
        self._stop_launching()
        self._release()
        arrays = {argument.name: make_array(argument, index) for index, argument in enumerate(plan.arguments)}
        self._references = make_references(plan, arrays, Path(scratch) if scratch else None)
        self._plan, self._arrays = plan, arrays

    def _release(self) -> None:
        for loaded in self._kernels.values():
            loaded.kernel.unload()
        self._kernels.clear()
        for buffer in self._buffers.values():
            self._backend.free(buffer)
        self._buffers.clear()

    def _upload(self) -> None:
        """What the device does not have yet."""
        for argument in self._plan.arguments:
            if argument.shape is None or argument.constant or argument.local or argument.name in self._buffers:
                continue
            self._buffers[argument.name] = self._backend.upload(self._arrays[argument.name])
            if argument.output:
                self._buffers[f"start of {argument.name}"] = self._backend.upload(self._arrays[argument.name])
        for name, array in self._references.items():
            if f"reference of {name}" not in self._buffers:
                self._buffers[f"reference of {name}"] = self._backend.upload(array)

    def _rewrite(self) -> None:
        """Write every buffer again, in case a kernel wrote out of bounds."""
        for name, buffer in self._buffers.items():
            kind, _, of = name.rpartition(" of ")
            array = self._references.get(of) if kind == "reference" else self._arrays[of]
            if array is not None:
                self._backend.write(buffer, array)

    def _bound(self, image: bytes, launch: Launch) -> Kernel:
        arguments = [self._given(argument) for argument in self._plan.arguments if not argument.constant]
        constants = {a.name: self._arrays[a.name] for a in self._plan.arguments if a.constant}
        made = facts_of(image)
        if made is not None and not made[1]:
            arrays = [argument.name for argument in self._plan.arguments if argument.shape is not None]
            return self._backend.vendor(made[0], {name: (self._buffers[name], self._arrays[name]) for name in arrays})
        return self._backend.load(image, launch, arguments, constants)

    def _given(self, argument: Argument) -> Any:
        """What a kernel is given for an argument."""
        if argument.shape is None:
            value = self._arrays[argument.name]
            return value if argument.by_reference else value[()]
        if argument.local:
            return LocalMemory(self._arrays[argument.name].nbytes)
        buffer = self._buffers[argument.name]
        return PageLocked(buffer) if argument.page_locked else buffer

    def _save(self, message: Message) -> None:
        """Arrays as they are now, as files NAME.npy."""
        for name in message["names"]:
            array = self._arrays[name]
            np.save(Path(message["folder"]) / f"{name}.npy", self._backend.read(self._buffers[name], array))

    # --- kernels ----------------------------------------------------------------------------------------------------

    def _load(self, message: Message, image: bytes) -> Message:
        self._upload()
        launch = Launch.of_message(message["launch"])
        kernel = self._bound(image, launch)
        self._kernels[message["id"]] = Loaded(kernel, image, launch)
        self._reference_kernel = message.get("reference")
        if not isinstance(kernel, VendorKernel):
            return asdict(kernel.facts)
        self._timed(self._kernels[message["id"]])  # the first launch of a library loads its kernels
        return {**asdict(kernel.facts), "library": kernel.library}

    def _load_drift(self, message: Message, image: bytes) -> Message:
        """The vendor's matrix product, else the kernel given, under that name; a kernel that is there stays."""
        name = message["id"]
        if name not in self._kernels:
            kernel, launch = self._backend.product(), Launch.of_message(message["launch"])
            if kernel is None:
                arrays = [np.zeros(1, np.float32) for _ in range(2)]
                kernel = self._backend.load(image, launch, [self._backend.upload(array) for array in arrays], {})
            self._kernels[name] = loaded = Loaded(kernel, image, launch)
            for _ in range(2):  # the first launch of a library loads its kernels
                loaded.launch_s = self._timed(loaded)
        return {}

    def _unload(self, name: str) -> None:
        loaded = self._kernels.pop(name, None)
        if loaded is not None:
            if loaded is self._running:
                self._stop_launching()
            loaded.kernel.unload()

    def _check(self, loaded: Loaded) -> Message:
        """One launch on fresh outputs, timed; how the outputs differ from what they must be."""
        self._stop_launching()
        self._run_reference(loaded)
        loaded.launch_s = self._launch_once(loaded)
        wrong = self._differences()
        if wrong:  # an earlier kernel may have written over the inputs: once more, with everything rewritten
            self._rewrite()
            self._launch_once(loaded)
            wrong = self._differences()
            if wrong:
                self._rewrite()
        return {"launch_s": loaded.launch_s, "wrong": wrong}

    def _launch_once(self, loaded: Loaded) -> float:
        for argument in self._plan.outputs:
            nbyte = self._arrays[argument.name].nbytes
            self._backend.copy(self._buffers[f"start of {argument.name}"], self._buffers[argument.name], nbyte)
        time_s = self._timed(loaded)
        if isinstance(loaded.kernel, VendorKernel):
            loaded.kernel.deliver()
        return time_s

    def _start_once(self, loaded: Loaded) -> Message:
        """Queue one launch between two marks and return at once; `finished` says when it has run."""
        self._stop_launching()
        before = self._backend.mark()
        loaded.kernel.launch(1)
        self._once = before, self._backend.mark()
        return {}

    def _once_finished(self) -> Message:
        if self._once is None:
            raise InputError("no launch was started", "runner process")
        before, after = self._once
        return {"passed": True, **_between(before, after)} if after.passed else {"passed": False}

    def _times(self, message: Message) -> Message:
        """So many launches of a kernel, each timed by itself."""
        self._stop_launching()
        loaded = self._kernels[message["id"]]
        return {"launches": [_between(*self._marked(loaded)) for _ in range(message["launches"])]}

    def _timed(self, loaded: Loaded, launches: int = 1) -> float:
        before, after = self._marked(loaded, launches)
        return max(after.seconds_since(before) / launches, 1e-7)

    def _marked(self, loaded: Loaded, launches: int = 1) -> tuple[Mark, Mark]:
        """Launches, and the marks around them, which have passed."""
        before = self._backend.mark()
        loaded.kernel.launch(launches)
        after = self._backend.mark()
        after.wait()
        return before, after

    def _run_reference(self, loaded: Loaded) -> None:
        """What a reference kernel of the same image writes, once."""
        kernels = [reference for reference in self._plan.references if reference.kind == "kernel"]
        if not kernels or self._reference_kernel is None:
            return
        if all(f"reference of {argument.name}" in self._buffers for argument in self._plan.outputs):
            return
        launch = Launch.of_message(self._reference_kernel)
        reference = Loaded(self._bound(loaded.image, launch), loaded.image, launch)
        self._launch_once(reference)
        for argument in self._plan.outputs:
            like = self._arrays[argument.name]
            kept = self._backend.upload(like)
            self._backend.copy(self._buffers[argument.name], kept, like.nbytes)
            self._buffers[f"reference of {argument.name}"] = kept
        reference.kernel.unload()

    def _differences(self) -> list[Message]:
        results = []
        for argument in self._plan.outputs:
            reference = next((r for r in self._plan.references if r.output in ("", argument.name)), None)
            buffer = self._buffers.get(f"reference of {argument.name}")
            if reference is None or buffer is None:
                continue
            like = self._arrays[argument.name]
            difference = self._backend.difference(
                self._buffers[argument.name], buffer, like, reference.rtol, reference.atol
            )
            if difference.wrong:
                results.append({"output": argument.name, "size": int(like.size), **difference._asdict()})
        return results

    # --- launching --------------------------------------------------------------------------------------------------

    def _begin(self, loaded: Loaded) -> None:
        self._stop_launching()
        self._fault = None
        self._base = self._backend.mark()
        self._base.wait()
        self._base_ns = self._now_ns()
        self._passed = self._lapped = (self._base, 0)
        self._on_the_way.clear()
        self._launched = 0
        self._running = loaded
        self.pump()

    def _warm(self, loaded: Loaded) -> None:
        """Queue launches that do not count, and wait for none of these: the host may load the next kernel meanwhile.

        None if one takes much longer than that: it is itself long enough for its beginning not to count.
        """
        self._stop_launching()
        several = min(SEVERAL, _launches(SEVERAL_S, loaded.launch_s))
        if several > 1 and not loaded.launch.pause_s:
            loaded.launch_s = min(loaded.launch_s, self._timed(loaded, several))
        if loaded.launch_s < 2 * WARM_S:
            self._launch(loaded, _launches(WARM_S, max(loaded.launch_s, loaded.launch.pause_s)))
        self._warmed = loaded, self._backend.mark()

    def _few(self, loaded: Loaded, seconds: float) -> Message:
        """Launches for about so long between two marks, right behind those that warm up; nothing else is queued."""
        warmed, self._warmed = self._warmed, None
        if warmed is None or warmed[0] is not loaded or warmed[1].passed:
            self._warm(loaded)
        launches, before = _launches(seconds, max(loaded.launch_s, loaded.launch.pause_s)), self._backend.mark()
        self._launch(loaded, launches)
        after = self._backend.mark()
        after.wait()
        end_ns, took_s = self._now_ns(), max(after.seconds_since(before), 1e-7 * launches)
        return {
            "launches": launches,
            "time_s": took_s / launches,
            "start_ns": end_ns - round(took_s * 1e9),
            "end_ns": end_ns,
        }

    def _launch(self, loaded: Loaded, times: int) -> None:
        """Queue launches; with a pause, each runs and the host waits after it."""
        pause_s = loaded.launch.pause_s
        if not pause_s:
            loaded.kernel.launch(times)
            return
        for _ in range(times):
            loaded.kernel.launch(1)
            self._backend.mark().wait()
            time.sleep(pause_s)

    @property
    def patience_s(self) -> float:
        """How long the queue may be left alone: not at all where it has run already, as on the host itself."""
        try:
            done = self._running is not None and bool(self._queue) and self._queue[0][0].passed
        except DeviceFault:  # `pump` keeps it
            return LOOK_S
        return 0.0 if done else LOOK_S

    def pump(self) -> None:
        """Note what has passed and keep the queue full. A fault is kept for the next lap or end."""
        if self._running is None:
            return
        try:
            while self._queue and self._queue[0][0].passed:
                self._pass_mark()
            while len(self._queue) < AHEAD:
                times = _launches(BATCH_S, max(self._launch_s(), self._running.launch.pause_s))
                self._launch(self._running, times)
                self._launched += times
                self._queue.append((self._backend.mark(), self._launched))
        except DeviceFault as fault:
            self._fault, self._running = fault, None
            self._queue.clear()

    def _launch_s(self) -> float:
        """Of the running kernel: as observed, else as it was when it was checked."""
        assert self._running is not None
        assert self._base is not None
        if self._passed is not None and self._passed[1]:
            self._running.launch_s = max(self._passed[0].seconds_since(self._base) / self._passed[1], 1e-7)
        return self._running.launch_s

    def _lap(self) -> Message:
        """Launches between two marks: the newest that has passed, and the one that ended the lap before."""
        self.pump()
        if self._passed is self._lapped and self._queue:
            self._queue[0][0].wait()
            self.pump()
        return self._execution()

    def _end(self) -> Message:
        self._stop_launching()
        return self._execution()

    def _stop_launching(self) -> None:
        self._running = None
        try:
            while self._queue:
                self._queue[0][0].wait()
                self._pass_mark()
        except DeviceFault as fault:
            self._fault = fault
            self._queue.clear()

    def _pass_mark(self) -> None:
        self._passed = self._queue.popleft()
        self._on_the_way.append(self._passed)

    def _change(self, first: tuple[Mark, int], last: tuple[Mark, int]) -> float:
        """Of the time of one launch, from one half of the marks of a lap to the other; 0 with too few."""
        inner = self._on_the_way[:-1]
        if len(inner) < HALVES:
            return 0.0
        middle = inner[len(inner) // 2]
        before, after = (
            right[0].seconds_since(left[0]) / (right[1] - left[1]) for left, right in ((first, middle), (middle, last))
        )
        return after / before - 1.0

    def _execution(self) -> Message:
        if self._fault is not None:
            raise self._fault
        if self._base is None or self._passed is None or self._lapped is None:
            raise InputError("nothing was begun", "runner process")
        first, last = self._lapped, self._passed
        launches = last[1] - first[1]
        seconds = last[0].seconds_since(first[0]) if launches else 0.0
        start_s = first[0].seconds_since(self._base) if first[0] is not self._base else 0.0
        change = self._change(first, last) if launches else 0.0
        marked = last[0]
        reported = marked.reported_since(first[0]) if launches and isinstance(marked, ReportingMark) else None
        self._lapped = last
        self._on_the_way.clear()
        start_ns = self._base_ns + round(start_s * 1e9)
        return {
            "launches": launches,
            "time_s": seconds / launches if launches else 0.0,
            "start_ns": start_ns,
            "end_ns": start_ns + round(seconds * 1e9),
            "change": change,
            "reported": None if reported is None else reported / launches,
        }


def _of_kernel(
    answer: Callable[[Worker, Loaded], Message | None],
) -> Callable[[Worker, Message, list[bytes]], Message | None]:
    return lambda worker, message, _: answer(worker, worker._kernels[message["id"]])


_ANSWERS: Final[Mapping[Any, Callable[[Worker, Message, list[bytes]], Message | None]]] = {
    "describe": lambda worker, message, blocks: worker._backend.describe(),
    "arguments": lambda worker, message, blocks: worker._make_arguments(message),
    "comparer": lambda worker, message, blocks: worker._backend.use_comparer(blocks[0]),
    "load": lambda worker, message, blocks: worker._load(message, blocks[0]),
    "check": _of_kernel(Worker._check),
    "save": lambda worker, message, blocks: worker._save(message),
    "drift": lambda worker, message, blocks: worker._load_drift(message, blocks[0]),
    "times": lambda worker, message, blocks: worker._times(message),
    "start": _of_kernel(Worker._start_once),
    "finished": lambda worker, message, blocks: worker._once_finished(),
    "begin": _of_kernel(Worker._begin),
    "warm": _of_kernel(Worker._warm),
    "few": lambda worker, message, blocks: worker._few(worker._kernels[message["id"]], message["seconds"]),
    "lap": lambda worker, message, blocks: worker._lap(),
    "end": lambda worker, message, blocks: worker._end(),
    "unload": lambda worker, message, blocks: worker._unload(message["id"]),
}


def _between(before: Mark, after: Mark) -> Message:
    """The time of the one launch between two marks, and what it reported of itself."""
    reported = after.reported_since(before) if isinstance(after, ReportingMark) else None
    return {"time_s": after.seconds_since(before), "reported": reported}


def _launches(seconds: float, launch_s: float) -> int:
    """As many as take about so long."""
    return max(1, min(MOST_LAUNCHES, round(seconds / launch_s)))


def serve(backend: Backend, parent: Parent) -> None:
    """Answer frames until the other side goes or the context is lost."""
    worker = Worker(backend)
    while True:
        try:
            frame = parent.inbox.get(timeout=worker.patience_s if worker.running else None)
        except queue.Empty:
            worker.pump()
            continue
        if frame is None:
            return
        message, blocks = frame
        fatal = False
        try:
            reply = {"reply": worker.answer(message, blocks)}
        except DeviceFault as fault:
            fatal = fault.fatal
            reply = {"fault": {"message": str(fault), "fatal": fatal}}
        except InputError as error:
            reply = {"wrong": {"what": error.what, "where": error.where, "remedy": error.remedy}}
        except MemoryError:
            reply = {"fault": {"message": "the host is out of memory", "fatal": False}}
        parent.send({**reply, "number": message.get("number")})
        if fatal:
            return


def main() -> None:
    """The process's life."""
    # a kernel without end holds this thread, and nothing else is left to kill the process
    parent = Parent(ORPHAN_S, outlasts_signals=True)
    module, device = sys.argv[1], sys.argv[2]
    try:
        backend: Backend = importlib.import_module(module).open_backend(device)
    except (DeviceFault, ImportError) as error:
        parent.send({"fault": {"message": str(error), "fatal": True}, "number": 0})
        return
    parent.send({"reply": {}, "number": 0})
    try:
        serve(backend, parent)
    except OSError:
        pass  # the other side has gone
    finally:
        os._exit(0)  # the driver takes the context down faster than its destructors, and never hangs in them


if __name__ == "__main__":
    main()
