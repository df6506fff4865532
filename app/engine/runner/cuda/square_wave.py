"""`WaveGpu`: a real board with loads of its own, for the characterisation of its power sensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....base.errors import WattridgeError
from ....base.paths import resources
from ....sensors.gpu import Gpu, Load
from ...metering.characterisation.square_wave import AsksOneSource
from ...workloads.kernel_arguments import Argument, CallPlan, Launch
from ...workloads.source_kernel import Build
from .compiler import cuda_compiler
from .gpu import CudaGpu
from .toolchain import Toolchain

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
        """One power channel, asked alone where the board can."""
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
