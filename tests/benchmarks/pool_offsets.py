"""Do the intervals of a pool's ratios hold the truth? Whole sessions on two simulated boards, of which it is known.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/pool_offsets.py [SESSIONS [FIRST_SEED [KIND]]]

A second board of the model reports 0.95 to 1.05 times what the first would; in the second kind of session it leaks 0.3
to 1.7 times as much, too. In the last three its air is 12 degC warmer, and leakage doubles every 25, 40 or 80 degC.
Both begin cold, in virtual time, and measure the SGEMM example, or random rows of it. The truth is the ratio of the
power of all configurations, at the temperature for which the reference states its figures, by the laws of the
simulation. Seeds are those of the boards' noise, of the rows and of the gain.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "engine"))

from fake_pool import FakePool

from app.engine.control.guard import DeviceGuard
from app.engine.metering.board_offsets import Ratio
from app.engine.metering.condition import Condition
from app.engine.runner.pool.gpu import PooledGpu, boards_of_origin
from app.engine.session.board_offsets import offsets_of_origin
from app.engine.session.load import load_specification
from app.engine.session.plan import SearchOptions
from app.engine.session.planning import plan_specification
from app.engine.session.pool.board_work import BoardWork
from app.engine.session.run import run_session
from app.engine.specification.model import Specification
from app.engine.store.database import Store
from app.engine.workloads.profiled import ProfiledKernel
from app.paths import resources
from app.sensors.clock import VirtualClock
from app.sensors.simulated import laws
from app.sensors.simulated.figures import Twin
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.individual import with_gain
from app.sensors.simulated.profiles import LaunchRefused
from app.sensors.simulated.twin import load_twin


@dataclass(frozen=True)
class Kind:
    """Sessions of one kind."""

    words: str
    model: str
    rows: int
    leaks: tuple[float, float] = (1.0, 1.0)
    clocks: bool = False
    warmer_c: float = 0.0  # the air of the second board
    doubling_c: float | None = None  # of leakage; None: as the model has it


KINDS = (
    Kind("V100, 60 rows, the sensor alone differs", "v100", 60),
    Kind("V100, 60 rows, and the leakage", "v100", 60, (0.3, 1.7)),
    Kind("A100, 60 rows over clocks, the sensor alone", "a100", 60, clocks=True),
    Kind("V100, 12 degC apart, leakage doubles in 25", "v100", 60, warmer_c=12.0, doubling_c=25.0),
    Kind("V100, 12 degC apart, leakage doubles in 40", "v100", 60, warmer_c=12.0),
    Kind("V100, 12 degC apart, leakage doubles in 80", "v100", 60, warmer_c=12.0, doubling_c=80.0),
)


@cache
def specification(clocks: bool) -> Specification:
    loaded = load_specification(resources() / "examples" / "gemm.toml")
    return loaded if clocks else replace(loaded, device_settings={})


def leaking(twin: Twin, share: float) -> Twin:
    return replace(twin, power=replace(twin.power, leakage_share=twin.power.leakage_share * share))


def doubling(twin: Twin, rise_c: float | None) -> Twin:
    return twin if rise_c is None else replace(twin, power=replace(twin.power, leakage_doubling_c=rise_c))


def in_warmer_air(twin: Twin, by_c: float) -> Twin:
    return replace(twin, thermal=replace(twin.thermal, ambient_c=twin.thermal.ambient_c + by_c))


def power_w(twin: Twin, temperature_c: float, kind: Kind) -> dict[int, float]:
    """Of every configuration at which no limit acts, at that temperature."""
    spec, found = specification(kind.clocks), {}
    gpu = SimulatedGpu(twin, clock=VirtualClock())
    space, kernel = plan_specification(spec, gpu).space, ProfiledKernel.of(spec, twin.limits)
    for row in range(space.size):
        configuration = space.configuration(row)
        clock_mhz = int(configuration.get("graphics_clock_mhz", twin.clocks.graphics_mhz[-1]))
        with suppress(LaunchRefused):
            load, memory_mhz = kernel.prepare(configuration), twin.clocks.memory_mhz[-1]
            limit_w = twin.power.limit_default_w
            point, _, limited = laws.settled_under_limits(twin, load, clock_mhz, memory_mhz, limit_w)
            if not limited:
                found[row] = laws.power_w(twin, point, temperature_c)
    return found


def session(kind: Kind, seed: int) -> tuple[Ratio, float] | None:
    """The ratio that a session ends with, and the true one; None where the boards could not be compared."""
    rng, model = np.random.default_rng(seed), doubling(load_twin(kind.model), kind.doubling_c)
    gain, leaks = rng.uniform(0.95, 1.05), rng.uniform(*kind.leaks)
    twins = {"0": model, "1": in_warmer_air(leaking(model, leaks), kind.warmer_c)}
    gains, sides = {"0": 1.0, "1": gain}, []
    for key, twin in twins.items():
        named = replace(with_gain(twin, gains[key]), key=f"{kind.model}-{seed}-{key}")
        gpu = SimulatedGpu(named, seed=1000 * seed + int(key), clock=VirtualClock())
        sides.append(BoardWork(gpu, DeviceGuard(gpu), host="here", key=key))
    pool = FakePool(*sides)
    try:
        options = SearchOptions(max_evaluations=kind.rows, strategy="random_sample", seed=seed)
        plan = plan_specification(specification(kind.clocks), PooledGpu(pool, pool.boards()), options)
        with Store() as store:
            origin = run_session(plan, store, lambda _: None, threading.Event()).plan.origin
    finally:
        pool.close()
        for side in sides:
            side.close()
    offsets, reference = offsets_of_origin(origin)
    [other] = set(twins) - {reference}
    if other not in offsets:
        return None
    temperature_c = Condition.parse(boards_of_origin(origin)[reference]["condition"], "the session").gpu_c
    own, others = (power_w(twins[key], temperature_c, kind) for key in (reference, other))
    leak = math.exp(statistics.fmean(math.log(others[row] / own[row]) for row in own.keys() & others.keys()))
    return offsets[other].ratios["power_w"], leak * gains[other] / gains[reference]


def main(sessions: int, first: int, *chosen: int) -> None:
    print(f"load {os.getloadavg()[0]:.1f} at the start; {sessions} sessions of a kind, seeds from {first}")
    for kind in [KINDS[number] for number in chosen] or KINDS:
        began = time.process_time()
        found = [each for seed in range(first, first + sessions) if (each := session(kind, seed)) is not None]
        held = sum(ratio.interval[0] <= true <= ratio.interval[1] for ratio, true in found)
        off = [100 * math.log(ratio.value / true) for ratio, true in found]
        halves = [100 * ratio.half for ratio, _ in found]
        print(
            f"{kind.words:<45} held in {held:>3} of {len(found):>3} ({held / len(found):.0%}); off by"
            f" {statistics.fmean(off):+.3f} % on average, {statistics.pstdev(off):.3f} % one sigma; half-width"
            f" {statistics.median(halves):.2f} % (median); {(time.process_time() - began) / sessions:.1f} s each",
            flush=True,
        )


if __name__ == "__main__":
    asked = [int(each) for each in sys.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="pool-offsets-") as data:
        os.environ["WATTRIDGE_DATA"] = data
        main(*asked, *(60, 800)[len(asked) :])
