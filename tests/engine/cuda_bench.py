"""A specification of one kernel, its runner on a board that is not there, and everything it needs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import Measurement
from app.engine.runner.cuda.open import open_cuda_runner
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.sensors.channel import PowerSample, Reading, channel
from app.sensors.clock import HostClock
from app.sensors.gpu import Gpu, GpuInfo, NotSupported, PowerLimit
from app.sensors.limits import limits_of

HERE = Path(__file__).parent
POWER_W = 300.0


class SteadySensors:
    """A board at 300 W, 1500 MHz and 50 degrees, whose driver keeps samples of 20 ms."""

    channels = tuple(channel(name) for name in ("graphics_clock_mhz", "temperature_c", "event_reasons"))

    def __init__(self) -> None:
        self.clock = HostClock()
        self.info = GpuInfo(0, "fake", "Fake board", "nvml", "0", PowerLimit(100.0, 700.0, 700.0, 700.0), (9, 0), 132)

    def read(self) -> Reading:
        return Reading(self.clock.now_ns(), (1500.0, 50.0, 0.0))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        step, now = 20_000_000, self.clock.now_ns()
        first = max(since_ns + 1, now - 119 * step)
        stamps = range(first + (-first) % step, now + 1, step)
        return [PowerSample(t, POWER_W + (t // step % 3 - 1)) for t in stamps]

    def energy_j(self) -> float:
        raise NotSupported("no counter")

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return ()

    def memory_clocks_mhz(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        pass


SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = {{ x = ["block_size_x"] }}
arguments = [
    {{ name = "y", type = "float32", shape = ["n"], output = true }},
    {{ name = "x", type = "float32", shape = ["n"], fill = "random" }},
]
verify = {{ reference = "{reference}", rtol = 1e-6 }}
timeout_s = 0.3
{kernel}
[constants]
n = 1000
factor = 2
[parameters]
block_size_x = [64]
{parameters}
[metrics]
"J/Mvalue" = "energy_j / n * 1e6"
[objective]
minimise = "energy_j"
"""


class Bench:
    """A runner over a specification, and everything it opened."""

    def __init__(self, folder: Path, parameters: str, reference: str, sensors: Gpu, kernel: str = "") -> None:
        (folder / "scale.cu").write_text("// what the fake compiler reads are the defines\n")
        path = folder / "scale.toml"
        path.write_text(SPECIFICATION.format(parameters=parameters, reference=reference, kernel=kernel))
        spec = load_specification(path)
        limits = limits_of((9, 0), 132)
        self.space = build_space(spec.parameters, spec.restrictions, spec.constants, limits)
        toolchain = Toolchain((sys.executable, str(HERE / "fake_cuda.py")), "fake 1")
        self.runner = open_cuda_runner(
            spec, sensors, self.space, DeviceGuard(sensors), backend="fake_cuda", toolchain=toolchain, jobs=2
        )

    def rows(self) -> list[Measurement]:
        return list(self.runner.measure(range(self.space.size), threading.Event()))

    def measure(self) -> dict[object, Measurement]:
        """Every row, by the value of its last parameter."""
        name = self.space.parameters[-1].name
        return {m.configuration[name]: m for m in self.rows()}
