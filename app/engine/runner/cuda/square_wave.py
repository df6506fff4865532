"""`WaveGpu`: a real board with loads of its own, for the characterisation of its power sensors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from ....errors import WattridgeError
from ....paths import resources
from ....sensors.gpu import Gpu
from ....sensors.load import Load
from ...metering.characterisation.characterise import characterise, wave_loads
from ...metering.characterisation.square_wave import AsksOneSource
from ...metering.characterisation.store import save_characterisation, stored_characterisation
from ...workloads.cuda_arguments import Argument, CallPlan, Launch
from ...workloads.source_kernel import Build
from ..base import OnPreparation, PreparationFailed
from .compiler import cuda_compiler
from .gpu import CudaGpu
from .toolchain import Toolchain

PREPARING: Final = "characterising the power sensor, once for this board and driver"
REPORT_S: Final = 0.5
NAME: Final = "square_wave"
THREADS: Final = 1024  # of a block: a multiprocessor full
SHARES: Final = (1.0, 0.7, 0.5, 0.3, 0.15)  # of the multiprocessors that work


def wave_build() -> Build:
    """The kernel, to be compiled."""
    source = resources() / "kernels" / f"{NAME}.cu"
    return Build(f'#include "{source.as_posix()}"\n', (source,), (source.parent,), ())


def wave_launch(blocks: int) -> dict[str, Any]:
    """How it is launched to keep so many multiprocessors busy, as a message."""
    return Launch(NAME, (blocks, 1, 1), (THREADS, 1, 1)).as_message()


class WaveGpu(CudaGpu):
    """Implements `BringsLoads` over the sensors of a board. `close` ends its process; the sensors stay open."""

    def __init__(self, sensors: Gpu, *, backend: str | None = None, toolchain: Toolchain | None = None) -> None:
        """Compiles and loads. Raises WattridgeError where the board cannot run it."""
        super().__init__(sensors, backend=backend)
        try:
            self._load(toolchain)
        except WattridgeError as failure:
            self.close()
            raise WattridgeError(f"its load does not run: {failure.what}", sensors.info.label, failure.remedy) from None

    def wave_loads(self) -> Sequence[Load]:
        """The same kernel on fewer and fewer multiprocessors."""
        return [Load(self._name(share), "fp32", 0.0, 0.0) for share in SHARES]

    def ask_power_w(self, channel: str) -> float:
        """One power channel, asked alone where the board can."""
        if isinstance(self.sensors, AsksOneSource):
            return self.sensors.ask_power_w(channel)
        return self.read().values[[described.name for described in self.channels].index(channel)]

    # --- inside -----------------------------------------------------------------------------------------------------

    def _name(self, share: float) -> str:
        return f"multiply-adds on {share:.0%} of the multiprocessors"

    def _load(self, toolchain: Toolchain | None) -> None:
        compiler = cuda_compiler(self.compute_capability, toolchain=toolchain, jobs=1)
        try:
            image = compiler.image(wave_build())
        finally:
            compiler.close()
        arrays = [Argument(name, "float32", (1,), "zeros", None, False, False, 0) for name in ("out", "start")]
        calls = CallPlan(tuple(arrays), (), {})
        self.prepare([({"do": "arguments", "plan": calls.as_message(), "scratch": None}, ())])
        self.processes.current.ready()
        for share in SHARES:
            blocks = max(1, round(share * self.limits.multiprocessors))
            self.ask({"do": "load", "id": self._name(share), "launch": wave_launch(blocks)}, [image])
            self.ask({"do": "check", "id": self._name(share)})


def characterise_once(
    gpu: CudaGpu, toolchain: Toolchain | None, stop: threading.Event, on_progress: OnPreparation
) -> None:
    """Characterise the board, in a process beside its runner's, unless that is kept already; nothing when stopped.

    It takes a minute or two. Raises PreparationFailed where it cannot be done: measurements use defaults then.
    """
    if stored_characterisation(gpu.info) is not None:
        return
    reported_s = -REPORT_S

    def report(done_s: float, total_s: float) -> None:
        nonlocal reported_s
        if done_s - reported_s >= REPORT_S:
            reported_s = done_s
            on_progress(PREPARING, done_s, total_s)

    report(0.0, 1.0)
    try:
        with closing(WaveGpu(gpu.sensors, backend=gpu.backend, toolchain=toolchain)) as board:
            found = characterise(board, wave_loads(board), on_progress=report, stop=stop)
        if found is not None:
            save_characterisation(found)
    except (WattridgeError, OSError) as error:
        what = f"the power sensor could not be characterised, and its defaults are used: {error}"
        raise PreparationFailed(what, remedy="to try again: wattridge characterise") from error
