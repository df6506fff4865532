"""The characterisation of a real board's power sensors: `WaveGpu`, the board with loads of its own, and the quick look
that its first session begins with, while the first kernels are compiled."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import closing
from typing import Any, Final

from ....base.errors import WattridgeError
from ....base.paths import resources
from ....sensors.gpu import Gpu, Load
from ...metering.characterisation.characterise import wave_loads
from ...metering.characterisation.quick_look import QUICK_S, Estimate, quick_look
from ...metering.characterisation.square_wave import AsksOneSource
from ...metering.characterisation.store import one_look, save_characterisation, stored_characterisation
from ...workloads.kernel_arguments import Argument, CallPlan, Launch
from ...workloads.source_kernel import Build
from ..base import OnPreparation, PreparationFailed
from ..kernels.compiler import Compiled
from .gpu import CudaGpu
from .toolchain import Toolchain, cuda_compiler

NAME: Final = "square_wave"
THREADS: Final = 1024  # of a block: a multiprocessor full
SHARES: Final = (1.0, 0.7, 0.5, 0.3, 0.15)  # of the multiprocessors that work
LOOKING: Final = "a quick look at the power sensor, once for this GPU and driver"
STARTING: Final = "compiling the load of a quick look at the power sensor"
WAITING: Final = "another process looks at the power sensor"
STARTING_S: Final = 12.0  # a compiler and a CUDA context, at most
REPORT_S: Final = 0.25
_LOOK_S: Final = 0.05


def wave_build() -> Build:
    """The kernel, to be compiled."""
    source = resources() / "kernels" / f"{NAME}.cu"
    return Build(f'#include "{source.as_posix()}"\n', (source,), (source.parent,), ())


def wave_launch(blocks: int) -> dict[str, Any]:
    """How it is launched to keep so many multiprocessors busy, as a message."""
    return Launch(NAME, (blocks, 1, 1), (THREADS, 1, 1)).as_message()


class WaveGpu(CudaGpu):
    """Implements `BringsLoads` over the sensors of a board. `close` ends its process; the sensors stay open."""

    def __init__(
        self,
        sensors: Gpu,
        *,
        backend: str | None = None,
        toolchain: Toolchain | None = None,
        image: bytes | None = None,
    ) -> None:
        """Loads, and compiles where the `image` of `wave_build` is not given. Raises WattridgeError if it cannot."""
        super().__init__(sensors, backend=backend)
        try:
            self._load(self._compiled(toolchain) if image is None else image)
        except WattridgeError as failure:
            self.close()
            raise WattridgeError(f"its load does not run: {failure.what}", sensors.info.label, failure.remedy) from None

    def wave_loads(self) -> Sequence[Load]:
        """The same kernel on fewer and fewer multiprocessors."""
        return [Load(self._name(share), "fp32", 0.0, 0.0) for share in SHARES]

    def ask_power_w(self, channel: str) -> float:
        """One power channel, read alone where the board can."""
        if isinstance(self.sensors, AsksOneSource):
            return self.sensors.ask_power_w(channel)
        return self.read().values[[described.name for described in self.channels].index(channel)]

    # --- inside -----------------------------------------------------------------------------------------------------

    def _name(self, share: float) -> str:
        return f"multiply-adds on {share:.0%} of the multiprocessors"

    def _compiled(self, toolchain: Toolchain | None) -> bytes:
        compiler = cuda_compiler(self.compute_capability, toolchain=toolchain, jobs=1)
        try:
            return compiler.image(wave_build())
        finally:
            compiler.close()

    def _load(self, image: bytes) -> None:
        arrays = [Argument(name, "float32", (1,), "zeros", None, False, False, 0) for name in ("out", "start")]
        calls = CallPlan(tuple(arrays), (), {})
        self.prepare([({"do": "arguments", "plan": calls.as_message(), "scratch": None}, ())])
        self.processes.current.ready()
        for share in SHARES:
            blocks = max(1, round(share * self.limits.multiprocessors))
            self.ask({"do": "load", "id": self._name(share), "launch": wave_launch(blocks)}, [image])
            self.ask({"do": "check", "id": self._name(share)})


def look_once(gpu: CudaGpu, load: Future[Compiled], stop: threading.Event, on_progress: OnPreparation) -> None:
    """A quick look at the board, unless one that was not broken off is kept; one that is stopped keeps what it has.

    `load` is the kernel of the square wave, which may still be on its way. Raises PreparationFailed where the look
    cannot be made: measurements use defaults then.
    """
    if _looked(gpu):
        return
    report = _now_and_then(on_progress)
    try:
        with one_look(gpu.info) as ours:
            if ours and not _looked(gpu):
                estimate = Estimate(gpu.clock, {STARTING: STARTING_S, LOOKING: QUICK_S}, report)
                _look(gpu, load, estimate, stop)
                return
        _await_another(gpu, Estimate(gpu.clock, {WAITING: STARTING_S + QUICK_S}, report), stop)
    except (WattridgeError, OSError) as error:
        what = f"the power sensor could not be looked at, and its defaults are used: {error}"
        raise PreparationFailed(what, remedy="to try again: wattridge characterise") from error


def _look(gpu: CudaGpu, load: Future[Compiled], estimate: Estimate, stop: threading.Event) -> None:
    estimate.begin(STARTING)
    image = None
    while image is None:
        try:
            image = load.result(_LOOK_S).image
        except NotYet:
            estimate.report()
        except CancelledError:
            return
        if stop.is_set():
            return
    with closing(WaveGpu(gpu.sensors, backend=gpu.backend, image=image)) as board:
        gpu.processes.await_opened()
        estimate.begin(LOOKING)
        characterisation = quick_look(board, wave_loads(board), estimate=estimate, stop=stop)
    if characterisation is not None:
        save_characterisation(characterisation)
    if not stop.is_set():
        estimate.end()


def _await_another(gpu: CudaGpu, estimate: Estimate, stop: threading.Event) -> None:
    """Until the process that looks has kept what it found. Raises WattridgeError if it takes too long."""
    estimate.begin(WAITING)
    while not _looked(gpu):
        estimate.report()
        if estimate.seconds > STARTING_S + QUICK_S:
            raise WattridgeError("another process looks at it and does not end", gpu.info.label, "end that first")
        if gpu.clock.wait(_LOOK_S, stop):
            return
    estimate.end()


def _looked(gpu: CudaGpu) -> bool:
    characterisation = stored_characterisation(gpu.info)
    return characterisation is not None and bool(characterisation.parts)


def _now_and_then(on_progress: OnPreparation) -> OnPreparation:
    """Not at every poll: when something else is done, and else every quarter of a second."""
    last: tuple[str, float] = ("", 0.0)

    def report(what: str, done_s: float, total_s: float) -> None:
        nonlocal last
        if what != last[0] or done_s - last[1] >= REPORT_S or done_s == total_s:
            last = what, done_s
            on_progress(what, done_s, total_s)

    return report
