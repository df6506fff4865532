"""What measuring SGEMM on a real board costs and how well it repeats, beside Kernel Tuner where that is installed.

Run by hand on a board that nobody else uses: python tests/benchmarks/h200_sgemm.py [--out FOLDER] [--parts abcd]
Parts: a seconds per configuration (and Kernel Tuner's); b repeatability; c what monitoring costs; d faults; e a session
over the whole space, with what is needed to replay it.
It reads and never sets: no clock, no limit, no mode. Prints tables and writes them as JSON, without what identifies the
board.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.control.guard import DeviceGuard  # noqa: E402
from app.engine.metering.characterisation.characterise import characterise, wave_loads  # noqa: E402
from app.engine.metering.characterisation.store import save_characterisation, stored_characterisation  # noqa: E402
from app.engine.results.measurement import Measurement, State  # noqa: E402
from app.engine.runner.cuda.language import open_cuda  # noqa: E402
from app.engine.runner.cuda.square_wave import WaveGpu  # noqa: E402
from app.engine.runner.kernels.runner import KernelRunner  # noqa: E402
from app.engine.session.load import load_specification  # noqa: E402
from app.engine.space.build import build_space  # noqa: E402
from app.engine.space.search_space import SearchSpace  # noqa: E402
from app.engine.specification.model import Specification  # noqa: E402
from app.sensors.event_reasons import LIMITING  # noqa: E402
from app.sensors.gpu import Gpu  # noqa: E402
from app.sensors.limits import limits_of  # noqa: E402
from app.sensors.select import open_gpu  # noqa: E402
from app.sensors.trace.sampler import Sampler  # noqa: E402
from app.sensors.trace.trace import Trace  # noqa: E402

CONFIGURATIONS = 60
PICKED = 12
REPEATS = 5
PARAMETERS = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y")


def sgemm() -> Specification:
    """The example, without the clocks that this must not set."""
    return dataclasses.replace(load_specification(ROOT / "resources/examples/gemm.toml"), device_settings={})


def space_of(spec: Specification, gpu: Gpu) -> SearchSpace:
    limits = limits_of(gpu.info.compute_capability or (9, 0), gpu.info.multiprocessors)
    return build_space(spec.parameters, spec.restrictions, spec.constants, limits)


@contextmanager
def runner_of(spec: Specification, gpu: Gpu, space: SearchSpace) -> Iterator[KernelRunner]:
    runner = KernelRunner.on(open_cuda(gpu), spec, space, DeviceGuard(gpu))
    try:
        yield runner
    finally:
        runner.close()


def words(measurement: Measurement) -> str:
    return "x".join(str(measurement.configuration[name]) for name in PARAMETERS)


def limited(measurement: Measurement) -> bool:
    return bool(measurement.event_reasons & LIMITING) or "settled" in measurement.values


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    print(f"\n{title}")
    for line in lines:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), flush=True)


def characterised(gpu: Gpu) -> None:
    """Once per board and driver, the full look."""
    known = stored_characterisation(gpu.info)
    if known is None or not known.complete:
        begun = time.monotonic()
        with closing(WaveGpu(gpu)) as board:
            known = characterise(board, wave_loads(board))
        if known is None:
            return
        save_characterisation(known)
        print(f"characterised in {time.monotonic() - begun:.0f} s: {known.words}")
    if known.aftereffect is not None:
        print(known.aftereffect.words)


# --- a: seconds per configuration -------------------------------------------------------------------------------------


def part_a(gpu: Gpu, result: dict[str, Any]) -> list[Measurement]:
    spec = sgemm()
    space = space_of(spec, gpu)
    rows = np.random.default_rng(1).choice(space.size, CONFIGURATIONS, replace=False).tolist()
    begun = time.monotonic()
    with runner_of(spec, gpu, space) as runner:
        opened = time.monotonic()
        stamps: list[float] = []
        measured: list[Measurement] = []
        for measurement in runner.measure(rows, threading.Event()):
            measured.append(measurement)
            stamps.append(time.monotonic())
        compiled = runner.compiled
    whole_s, warm_s = stamps[-1] - opened, stamps[0] - opened
    ok = [m for m in measured if m.state is State.OK]
    best = min(ok, key=lambda m: m.values["energy_j"])
    rest = (stamps[-1] - stamps[0]) / (len(stamps) - 1)
    table(
        f"a  SGEMM 4096, {len(rows)} random configurations, {len(ok)} ok, {sum(map(limited, ok))} under a limit, "
        f"{compiled} images compiled",
        ("", "s per configuration", "s in all"),
        [
            ("Wattridge, everything", f"{(stamps[-1] - begun) / len(rows):.3f}", f"{stamps[-1] - begun:.1f}"),
            ("  of that: processes and contexts", "", f"{opened - begun:.1f}"),
            ("  first compilation, warm-up, first one", "", f"{warm_s:.1f}"),
            ("  the others", f"{rest:.3f}", f"{whole_s - warm_s:.1f}"),
        ],
    )
    result["a"] = {
        "configurations": len(rows),
        "ok": len(ok),
        "limited": sum(map(limited, ok)),
        "seconds_per_configuration": rest,
        "seconds_per_configuration_with_warm_up": whole_s / len(rows),
        "warm_up_s": warm_s,
        "open_s": opened - begun,
        "best": words(best),
        "measured": [summary(m) for m in measured],
    }
    return measured


def summary(measurement: Measurement) -> dict[str, Any]:
    window = measurement.window_ns
    return {
        "configuration": words(measurement),
        "state": str(measurement.state),
        "error": measurement.error[:200],
        "values": {name: value for name, value in measurement.values.items() if math.isfinite(value)},
        "interval_w": measurement.intervals.get("power_w"),
        "window_s": None if window is None else (window[1] - window[0]) / 1e9,
        "cost_s": measurement.cost_s,
        "event_reasons": measurement.event_reasons,
    }


def kernel_tuner(measured: Sequence[Measurement], result: dict[str, Any], out: Path) -> str | None:
    """The same configurations through Kernel Tuner, in a process of its own; its best one."""
    chosen = out / "configurations.json"
    chosen.write_text(json.dumps([[m.configuration[name] for name in PARAMETERS] for m in measured]))
    told = subprocess.run(
        [sys.executable, __file__, "--kernel-tuner", str(chosen)], capture_output=True, text=True, check=False
    )
    if told.returncode:
        print(f"\nKernel Tuner did not run: {told.stderr.strip().splitlines()[-1:]}")
        return None
    theirs = json.loads(told.stdout.strip().splitlines()[-1])
    ours_s = result["a"]["seconds_per_configuration"]
    table(
        "a  the same through Kernel Tuner (PyCUDA, NVMLObserver nvml_energy, its defaults)",
        ("", "s per configuration", "times ours"),
        [("Kernel Tuner, everything", f"{theirs['s_per_config']:.3f}", f"{theirs['s_per_config'] / ours_s:.1f}")],
    )
    result["kernel_tuner"] = theirs
    return str(theirs["best"])


def run_kernel_tuner(chosen: Path) -> None:
    import kernel_tuner
    from kernel_tuner.observers.nvml import NVMLObserver

    wanted = json.loads(chosen.read_text())
    weights = (1_000_000, 10_000, 100, 1)  # the configurations as a restriction that Kernel Tuner can read
    numbers = [sum(weight * value for weight, value in zip(weights, one, strict=True)) for one in wanted]
    number = "+".join(f"{weight}*{name}" for weight, name in zip(weights, PARAMETERS, strict=True))
    spec = sgemm()
    n = 4096
    rng = np.random.default_rng(0)
    a, b = (rng.random((n, n), dtype=np.float32) for _ in range(2))
    source = spec.kernel.sources[0].read_text() if spec.kernel else ""
    begun = time.perf_counter()
    results, _ = kernel_tuner.tune_kernel(
        "sgemm",
        source,
        (n, n),
        [np.zeros_like(a), a, b],
        {name: list(values) for name, values in spec.parameters.items()},
        grid_div_x=["block_size_x", "tile_size_x"],
        grid_div_y=["block_size_y", "tile_size_y"],
        restrictions=[f"{number} in {numbers}"],
        observers=[NVMLObserver(["nvml_energy", "nvml_power", "core_freq", "temperature"])],
        objective="nvml_energy",
        objective_higher_is_better=False,
        lang="CUDA",
        strategy="brute_force",
        quiet=True,
    )
    wall = time.perf_counter() - begun
    ok = [r for r in results if isinstance(r["time"], float)]
    best = min(ok, key=lambda r: r["nvml_energy"])
    told = {
        "version": getattr(kernel_tuner, "__version__", "1.5.0"),
        "configurations": len(results),
        "ok": len(ok),
        "s_per_config": wall / len(results),
        "best": "x".join(str(best[name]) for name in PARAMETERS),
        "best_energy_j": float(best["nvml_energy"]),
        "mean_ms": {
            key: float(np.mean([r[key] for r in ok]))
            for key in ("compile_time", "benchmark_time", "verification_time", "framework_time", "strategy_time")
            if key in ok[0]
        },
    }
    print(json.dumps(told))


def winners(gpu: Gpu, best: Sequence[str], result: dict[str, Any]) -> None:
    """Both winners again, for 5 s each, one after the other and back."""
    spec = sgemm()
    space = space_of(spec, gpu)
    by_words = {"x".join(str(space.configuration(row)[name]) for name in PARAMETERS): row for row in range(space.size)}
    with runner_of(spec, gpu, space) as runner:
        runner.settle_s, runner.window_s = 2.0, 3.0
        rows = [by_words[one] for one in best]
        again = list(runner.measure([*rows, *reversed(rows)], threading.Event()))
    energy = {one: statistics.fmean(m.values["energy_j"] for m in again if words(m) == one) for one in best}
    ours, theirs = energy[best[0]], energy[best[1]]
    table(
        "a  both winners measured again, the last 3 of 5 s, twice",
        ("", "configuration", "J", "over Kernel Tuner's"),
        [
            ("Wattridge's", best[0], f"{ours:.4f}", f"{(ours / theirs - 1) * 100:+.2f} %"),
            ("Kernel Tuner's", best[1], f"{theirs:.4f}", ""),
        ],
    )
    result["winners"] = {"ours": best[0], "theirs": best[1], "ours_j": ours, "theirs_j": theirs}


# --- b: repeatability -------------------------------------------------------------------------------------------------


class Counter(threading.Thread):
    """The board's energy counter over time, for the figure beside ours."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(daemon=True)
        self._gpu = gpu
        self._stop_it = threading.Event()
        self.told: list[tuple[int, float]] = []

    def run(self) -> None:
        while not self._stop_it.wait(0.02):
            before = self._gpu.clock.now_ns()
            joule = self._gpu.energy_j()
            if not self.told or joule != self.told[-1][1]:
                self.told.append(((before + self._gpu.clock.now_ns()) // 2, joule))

    def stop(self) -> None:
        self._stop_it.set()
        self.join()

    def power_w(self, window: tuple[int, int]) -> float:
        times, joules = np.asarray([t for t, _ in self.told], float), np.asarray([e for _, e in self.told])
        first, last = np.interp(window, times, joules)
        return float((last - first) / ((window[1] - window[0]) / 1e9))


def part_b(gpu: Gpu, measured: Sequence[Measurement], result: dict[str, Any], out: Path) -> None:
    spec = sgemm()
    space = space_of(spec, gpu)
    ok = sorted((m for m in measured if m.state is State.OK), key=lambda m: m.values["power_w"])
    capped = [m for m in ok if limited(m)][-4:]
    free = [m for m in ok if not limited(m)]
    spread = [free[round(at)] for at in np.linspace(0, len(free) - 1, PICKED - len(capped))]
    rows = [m.row for m in (*spread, *capped)]
    rng = np.random.default_rng(2)
    counter = Counter(gpu)
    with runner_of(spec, gpu, space) as runner:
        counter.start()
        before = references_of(runner, rng.permutation(rows).tolist())
        order = [int(row) for _ in range(REPEATS) for row in rng.permutation(rows)]
        begun = time.monotonic()
        repeats = list(runner.measure(order, threading.Event()))
        seconds = (time.monotonic() - begun) / len(order)
        after = references_of(runner, rng.permutation(rows).tolist())
    counter.stop()
    lines, errors, capped_errors, spreads, counters, drifts, uncovered = [], [], [], [], [], [], 0
    for row in rows:
        reference = before[row]
        told = [m[row].values["energy_j"] for m in (before, after)]
        energy, drift = statistics.fmean(told), (told[1] / told[0] - 1) * 100
        drifts.append(drift)
        mine = [m for m in repeats if m.row == row and m.state is State.OK]
        apart = [(m.values["energy_j"] / energy - 1) * 100 for m in mine]
        by_counter = [
            (counter.power_w(m.window_ns) * m.values["time_s"] / energy - 1) * 100 for m in mine if m.window_ns
        ]
        spread_percent = statistics.stdev(m.values["energy_j"] for m in mine) / energy * 100
        cap = limited(reference)
        (capped_errors if cap else errors).extend(apart)
        if not cap:
            spreads.append(spread_percent)
        counters.extend(by_counter)
        for m, error in zip(mine, apart, strict=True):
            low, high = m.intervals.get("energy_j", (math.nan, math.nan))
            if cap and abs(error) > 4 and not (m.values.get("settled") == 0.0 and low <= energy <= high):
                uncovered += 1
        lines.append(
            (
                words(reference),
                f"{reference.values['power_w']:.1f}",
                f"{reference.values['time_s'] * 1e3:.3f}",
                "cap" if cap else "",
                f"{drift:+.2f}",
                " ".join(f"{error:+.2f}" for error in apart),
                f"{spread_percent:.2f}",
                " ".join(f"{error:+.1f}" for error in by_counter),
                " ".join("s" if m.values.get("settled", 1.0) else "n" for m in mine),
            )
        )
    head = (
        "configuration",
        "W",
        "ms",
        "",
        "reference after over before, %",
        "energy off by, %",
        "CV %",
        "energy counter off by, %",
        "settled",
    )
    table(f"b  {len(rows)} configurations, {REPEATS} times each in random order; {seconds:.3f} s each", head, lines)
    figures = {
        "below the cap": shares(errors),
        "at the cap": shares(capped_errors),
        "energy counter, all": shares(counters),
    }
    figures["below the cap"]["cv"] = statistics.median(spreads) if spreads else math.nan
    table(
        "b  against each one's reference: the buffer over the last 3 of 5 s, mean of before and after the repeats",
        ("", "n", "median %", "95th percentile %", "CV %, median"),
        [
            (name, f["n"], f"{f['median']:.2f}", f"{f['p95']:.2f}", f"{f['cv']:.2f}" if "cv" in f else "")
            for name, f in figures.items()
        ],
    )
    print(f"  beyond 4 % at the cap without saying so: {uncovered}")
    print(f"  the references themselves, after over before: median {statistics.median(map(abs, drifts)):.2f} %")
    result["b"] = {
        "figures": figures,
        "seconds_each": seconds,
        "uncovered": uncovered,
        "references": [summary(m[row]) for m in (before, after) for row in rows],
        "repeats": [summary(m) for m in repeats],
    }


def references_of(runner: KernelRunner, rows: Sequence[int]) -> dict[int, Measurement]:
    """Each row's steady state: the last 3 of 5 s."""
    runner.settle_s, runner.window_s = 2.0, 3.0
    try:
        return {m.row: m for m in runner.measure(rows, threading.Event())}
    finally:
        runner.settle_s = runner.window_s = 0.0


def shares(errors: Sequence[float]) -> dict[str, float]:
    apart = np.abs(errors)
    if not len(apart):
        return {"n": 0, "median": math.nan, "p95": math.nan}
    return {"n": len(apart), "median": float(np.median(apart)), "p95": float(np.percentile(apart, 95))}


# --- c: what monitoring costs -----------------------------------------------------------------------------------------


def part_c(gpu: Gpu, result: dict[str, Any]) -> None:
    """Time of one kernel with and without a sampler at 50 Hz, in turns. The meter itself looks only at the end."""
    from app.engine.runner.cuda.gpu import CudaGpu
    from app.engine.runner.cuda.toolchain import cuda_compiler, symbol
    from app.engine.workloads.source_kernel import SourceKernel
    from app.sensors.gpu import Load

    spec = sgemm()
    board = CudaGpu(gpu)
    compiler = cuda_compiler(board.compute_capability)
    prepared = SourceKernel.of(spec, board.limits).prepare(dict(zip(PARAMETERS, (32, 16, 2, 8), strict=True)))
    image = compiler.image(prepared.build)
    board.prepare([({"do": "arguments", "plan": prepared.calls.as_message()}, ())])
    launch = dataclasses.asdict(prepared.launch) | {"name": symbol(image, prepared.launch.name)}
    board.ask({"do": "load", "id": "k", "launch": launch}, [image])
    board.ask({"do": "check", "id": "k"})
    load = Load("k", "fp32", 0.0, 0.0)

    def timed() -> float:
        board.begin(load)
        board.clock.wait(0.2)
        board.lap()
        board.clock.wait(0.8)
        told = board.lap().time_s * 1e3
        board.end()
        return told

    for _ in range(3):
        timed()
    alone, watched = [], []
    for _ in range(8):
        alone.append(timed())
        sampler = Sampler(gpu, Trace(gpu.channels))
        sampler.start()
        watched.append(timed())
        sampler.stop()
        sampler.join()
    compiler.close()
    board.close()
    change = (statistics.median(watched) / statistics.median(alone) - 1) * 100
    table(
        "c  one kernel, alone and watched at 50 Hz, in turns, 8 times",
        ("alone, ms", "watched, ms", "change"),
        [(f"{statistics.median(alone):.5f}", f"{statistics.median(watched):.5f}", f"{change:+.4f} %")],
    )
    result["c"] = {"alone_ms": alone, "watched_ms": watched, "change_percent": change}


# --- d: faults --------------------------------------------------------------------------------------------------------

FAULTS = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
]
verify = { reference = "2 * x" }
shared_memory = "240000 * (fault == 2)"
timeout_s = 3
[constants]
n = 16777216
[parameters]
fault = [0, 1, 2, 3, 4, 5, 6]
block_size_x = [128, 256, 512]
"""
FAULTY = """
#if fault == 1
this does not compile
#endif
#if fault == 6
__shared__ float too_much[20000];
#endif
extern "C" __global__ void scale(float *y, const float *x) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
#if fault == 3
    y[i + ((size_t)1 << 38)] = 1.0f;
#endif
#if fault == 4
    while (true) __nanosleep(100);
#endif
#if fault == 6
    too_much[threadIdx.x + n % 19000] = x[i];
    __syncthreads();
    if (too_much[(threadIdx.x * 7) % 19000] == 3.0f) y[0] = 1.0f;
#endif
    if (i < n) y[i] = (fault == 5 ? 3.0f : 2.0f) * x[i];
}
"""
NAMES = ("good", "does not compile", "240 kB of dynamic shared memory", "writes out of bounds", "loops for ever")
NAMES = (*NAMES, "computes wrongly", "80 kB of static shared memory")


def part_d(gpu: Gpu, result: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "scale.cu").write_text(FAULTY)
        path = Path(folder) / "scale.toml"
        path.write_text(FAULTS)
        spec = load_specification(path)
        space = space_of(spec, gpu)
        begun = time.monotonic()
        with runner_of(spec, gpu, space) as runner:
            order = np.random.default_rng(3).permutation(space.size).tolist()
            measured = list(runner.measure(order, threading.Event()))
            seconds, replaced = time.monotonic() - begun, runner.replaced
    measured.sort(key=lambda m: (m.configuration["fault"], m.configuration["block_size_x"]))
    table(
        f"d  {len(measured)} configurations, good and faulty, mixed; {seconds:.0f} s, {replaced} processes lost",
        ("", "block", "state", "lost s", "teardown s", "message"),
        [
            (
                NAMES[int(m.configuration["fault"])],
                m.configuration["block_size_x"],
                m.state,
                f"{m.values['lost_s']:.2f}" if "lost_s" in m.values else "",
                f"{m.values['teardown_s']:.2f}" if "teardown_s" in m.values else "",
                " ".join(m.error.split())[-70:] if m.error else f"{m.values['power_w']:.1f} W",
            )
            for m in measured
        ],
    )
    result["d"] = {"seconds": seconds, "replaced": replaced, "measured": [faulty(m) for m in measured]}


def faulty(m: Measurement) -> dict[str, Any]:
    fault = NAMES[int(m.configuration["fault"])]
    return {"fault": fault, "state": str(m.state), "values": dict(m.values), "error": " ".join(m.error.split())[-200:]}


# --- e: a session to replay -------------------------------------------------------------------------------------------


def part_e(gpu: Gpu, result: dict[str, Any], out: Path) -> None:
    """The whole space by the program's own session, kept as a Kernel Tuner cache, and what the sensors told."""
    from app.engine.formats.kernel_tuner import write_cache
    from app.engine.formats.own import About
    from app.engine.session.planning import plan_specification
    from app.engine.session.run import run_session
    from app.engine.specification.plan import SearchOptions
    from app.engine.store.database import Store
    from app.sensors.recorded.recording import RecordingWriter

    plan = plan_specification(sgemm(), gpu, SearchOptions(strategy="brute_force", max_evaluations=10_000))
    with Store(out / "session.sqlite") as store, RecordingWriter(out / "h200-sgemm.csv.gz", gpu) as recorder:
        sampler = Sampler(gpu, Trace(gpu.channels), recorder=recorder)
        sampler.start()
        time.sleep(1.0)
        ended = run_session(plan, store, lambda event: None, threading.Event())
        time.sleep(1.0)
        sampler.stop()
        sampler.join()
    (out / "session.sqlite").unlink()
    cache = out / "h200-sgemm-session.json"
    write_cache(ended.table, cache, About(gpu.info.name, "sgemm", ended.plan.objective, "nvml"))
    seconds = ended.progress.elapsed_s
    told = [ended.table.measurement(at) for at in range(len(ended.table))]
    looks = [(at, m.values) for at, m in enumerate(told) if "reference_energy_j" in m.values]
    table(
        "e  the reference kernel (cuBLAS SGEMM 4096) during that session",
        ("before configuration", "ms", "W", "J"),
        [
            (
                at,
                *(
                    f"{v[f'reference_{name}'] * unit:.3f}"
                    for name, unit in (("time_s", 1e3), ("power_w", 1), ("energy_j", 1))
                ),
            )
            for at, v in looks
        ],
    )
    table(
        f"e  a session over the whole space, {ended.state}",
        ("configurations", "failed", "s", "s per configuration"),
        [(len(ended.table), ended.progress.failed, f"{seconds:.1f}", f"{seconds / len(ended.table):.3f}")],
    )
    result["e"] = {"configurations": len(ended.table), "failed": ended.progress.failed, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--parts", default="abcd")
    parser.add_argument("--kernel-tuner", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--without-kernel-tuner", action="store_true")
    given = parser.parse_args()
    if given.kernel_tuner:
        run_kernel_tuner(given.kernel_tuner)
        return
    gpu = open_gpu("0")
    characterised(gpu)
    print(f"{gpu.info.name}, driver {gpu.info.driver}, power from {gpu.info.power_source}")
    result: dict[str, Any] = {"gpu": gpu.info.name, "driver": gpu.info.driver}
    measured: list[Measurement] = []
    if "a" in given.parts or "b" in given.parts:
        measured = part_a(gpu, result)
    if "b" in given.parts:
        part_b(gpu, measured, result, given.out)
    if "c" in given.parts:
        part_c(gpu, result)
    if "d" in given.parts:
        part_d(gpu, result)
    if "e" in given.parts:
        part_e(gpu, result, given.out)
    if "a" in given.parts and not given.without_kernel_tuner:
        theirs = kernel_tuner(measured, result, given.out)
        if theirs is not None:
            winners(gpu, (result["a"]["best"], theirs), result)
    gpu.close()
    (given.out / "h200_sgemm.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
