"""Do stated joules hold outside their session? Sessions against references measured alone by another process.

Run by hand on a board that nobody else uses: python tests/benchmarks/reference.py [--out FOLDER] [--seconds 520]
Three sessions of the program measure the same 24 random configurations of SGEMM. Another process, with PyCUDA, NVRTC,
NVML and no line of the program, measures 12 of them alone: from idle (6 s without work, then 5 s) and hot (8 s of a
kernel near 700 W, then 5 s), each the mean of its last 2 s, with the temperatures and averages of power at that time.
Where launches keep step with the driver's samples, it is the mean of whole beats between the two, of up to 8 s. The
first two are measured again when the others have been: by so much references themselves differ. The references are
never corrected: each session states its figures for every reference's own condition. Last, within one
process, eight configurations, three of them at the power limit, five times each against 3 s of their steady state.
It reads and never sets: no clock, no limit, no mode. Everything that the tables are made of is kept in FOLDER, every
window and every sample of power too: `reference_report.py FOLDER` makes them again, with a model that has changed.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
N = 4096
HEAVY = (64, 2, 1, 8)  # near 700 W on an H200
IDLE_S, HEAT_S, RUN_S, MEAN_S = 6.0, 8.0, 5.0, 2.0
BEAT_S = 8.0  # the longest that one is waited for
AGAIN = 2  # references that are measured a second time, at the end
STEADY_S = 3.0  # of the steady state within one process, the last of RUN_S
WITHIN_TIMES = 5
WITHIN_S, SESSION_S = 85.0, 18.0  # what they take, about
CAPPED = ((32, 4, 1, 4), (32, 2, 1, 2), (16, 4, 1, 4))  # at an H200's power limit
NAMES = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y")
LIMITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # NVML's event reasons that hold the clock back


def configurations() -> list[tuple[int, ...]]:
    """24 of the example, the same at every run."""
    found = [
        (x, y, tx, ty)
        for x in (16, 32, 64)
        for y in (1, 2, 4, 8, 16, 32)
        for tx in (1, 2, 4, 8)
        for ty in (1, 2, 4, 8)
        if 32 <= x * y <= 1024 and tx * ty <= 32 and 4 * x * (y * ty + x * tx) <= 49152
    ]
    return random.Random(15).sample(found, 24)


# --- the other process: nothing of the program ------------------------------------------------------------------------


class Alone:
    """Measures kernels alone with PyCUDA and NVML."""

    def __init__(self, keys: Sequence[tuple[int, ...]]) -> None:
        import numpy as np
        import pycuda.driver as cuda
        import pynvml as nvml

        self._cuda, self._nvml = cuda, nvml
        cuda.init()
        nvml.nvmlInit()
        self._board = nvml.nvmlDeviceGetHandleByIndex(0)
        self._samples: dict[int, tuple[float, float, float, float]] = {}  # us -> W, and its averages
        self._slow: list[tuple[float, float, float, float, int]] = []
        self._launched: list[tuple[float, float, int]] = []  # when a batch ended, ms per launch, launches
        self._stop = threading.Event()
        self._drain = threading.Thread(target=self._watch, daemon=True)
        self._drain.start()
        self.context = cuda.Device(0).make_context()
        major, minor = cuda.Device(0).compute_capability()
        rng = np.random.default_rng(0)
        self._a, self._b = (cuda.to_device(rng.random((N, N), dtype=np.float32)) for _ in range(2))
        self._c = cuda.mem_alloc(N * N * 4)
        self._functions = {
            key: cuda.module_from_buffer(_image(key, f"sm_{major}{minor}")).get_function("sgemm") for key in keys
        }

    def close(self) -> None:
        self._stop.set()
        self._drain.join()
        self.context.pop()

    def run(self, key: tuple[int, ...], seconds: float) -> tuple[float, float, float]:
        """Back to back for so long, or until a whole beat; (ms per launch of the mean's time, its start and end)."""
        x, y, tx, ty = key
        grid, block = (N // (x * tx), N // (y * ty)), (x, y, 1)
        function, begun, launches, seen = self._functions[key], time.time(), 4, []
        before, after = self._cuda.Event(), self._cuda.Event()
        mean_s, known = MEAN_S, False
        while time.time() - begun < max(seconds, seconds - MEAN_S + mean_s):
            before.record()
            for _ in range(launches):
                function(self._c, self._a, self._b, block=block, grid=grid)
            after.record()
            after.synchronize()
            ms = before.time_till(after) / launches
            seen.append((time.time(), ms, launches))
            self._launched.append(seen[-1])
            launches = max(1, round(30 / ms))
            if not known and seen[-1][0] - begun > 1.0:  # the host's time between launches counts as well
                count = sum(each for _, _, each in seen[1:])
                mean_s, known = self._whole_beats_s((seen[-1][0] - seen[0][0]) / count), True
        end = seen[-1][0]
        last = [each for each in seen if each[0] > end - mean_s]
        total = sum(count for _, _, count in last)
        return sum(ms * count for _, ms, count in last) / total, end - mean_s, end

    def _whole_beats_s(self, launch_s: float) -> float:
        """About MEAN_S: whole beats of the launches with the driver's samples, where they keep step."""
        stamps = list(self._samples)[-1000:]
        if len(stamps) < 200:  # too few to know their rate by
            return MEAN_S
        sample_s = statistics.median(after - before for before, after in pairwise(stamps)) / 1e6  # some come later
        beats_per_s = abs(1 / launch_s - round(sample_s / launch_s) / sample_s)
        beats = max(1, round(MEAN_S * beats_per_s))
        return beats / beats_per_s if beats_per_s * BEAT_S >= 1 and launch_s > 0.004 else MEAN_S

    @property
    def recorded(self) -> dict[str, Any]:
        """Everything that was seen: samples (us, W), slow readings, launches."""
        samples = [(at, values[0]) for at, values in sorted(self._samples.items())]
        return {"samples": samples, "slow": self._slow, "launched": self._launched}

    def measure(self, key: tuple[int, ...]) -> dict[str, float]:
        ms, start, end = self.run(key, RUN_S)
        time.sleep(0.4)  # the driver's buffer is 0.1 s late
        samples = [values for at, values in list(self._samples.items()) if start < at / 1e6 <= end]
        slow = [row for row in self._slow if start < row[0] <= end]
        power_w, fast_w, slow_w = (mean([values[at] for values in samples]) for at in range(3))
        reasons = 0
        for row in slow:
            reasons |= row[4]
        memory = [row[2] for row in slow if row[2] > 0]
        return {
            "time_s": ms / 1e3,
            "power_w": power_w,
            "energy_j": power_w * ms / 1e3,
            "gpu_c": mean([row[1] for row in slow]),
            "memory_c": mean(memory) if memory else math.nan,
            "fast_w": fast_w,
            "slow_w": slow_w,
            "clock_mhz": mean([row[3] for row in slow]),
            "limited": float(bool(reasons & LIMITS)),
            "samples": float(len(samples)),
            "mean_s": end - start,
        }

    def _watch(self) -> None:
        nvml, board = self._nvml, self._board
        newest, last_s, fast_w, slow_w = 0, math.nan, math.nan, math.nan
        while not self._stop.wait(0.05):
            try:
                found = nvml.nvmlDeviceGetSamples(board, nvml.NVML_TOTAL_POWER_SAMPLES, newest)[1]
            except nvml.NVMLError:
                found = []
            for sample in sorted(found, key=lambda each: each.timeStamp):
                if sample.timeStamp <= newest:
                    continue
                newest, now_s, power_w = sample.timeStamp, sample.timeStamp / 1e6, sample.sampleValue.uiVal / 1e3
                if math.isnan(last_s):
                    fast_w = slow_w = mean([each.sampleValue.uiVal / 1e3 for each in found])  # before: unknown
                else:
                    fast_w += (power_w - fast_w) * -math.expm1(-(now_s - last_s) / 1.0)
                    slow_w += (power_w - slow_w) * -math.expm1(-(now_s - last_s) / 30.0)
                last_s = now_s
                self._samples[newest] = (power_w, fast_w, slow_w, now_s)
            try:
                memory_c = nvml.nvmlDeviceGetFieldValues(board, [nvml.NVML_FI_DEV_MEMORY_TEMP])[0].value.uiVal
            except nvml.NVMLError:
                memory_c = -1
            temperature_c, clock_mhz = nvml.nvmlDeviceGetTemperature(board, 0), nvml.nvmlDeviceGetClockInfo(board, 1)
            reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(board)
            self._slow.append((time.time(), temperature_c, memory_c, clock_mhz, reasons))


def _image(key: tuple[int, ...], architecture: str) -> bytes:
    """Machine code by NVRTC, which sessions compile with as well: nvcc's can take another time (`compilers.txt`)."""
    from cuda.bindings import nvrtc

    def done(answer: tuple[Any, ...]) -> Any:
        if answer[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"NVRTC: {answer[0].name}")
        return answer[1] if len(answer) > 1 else None

    defines = "".join(f"#define {name} {value}\n" for name, value in zip(NAMES, key, strict=True))
    source = f"#define n {N}\n{defines}{(ROOT / 'resources/kernels/gemm.cu').read_text()}"
    program = done(nvrtc.nvrtcCreateProgram(source.encode(), b"sgemm.cu", 0, [], []))
    done(nvrtc.nvrtcCompileProgram(program, 1, [f"-arch={architecture}".encode()]))
    image = b" " * done(nvrtc.nvrtcGetCUBINSize(program))
    done(nvrtc.nvrtcGetCUBIN(program, image))
    return image


def alone(history: str, keys: Sequence[tuple[int, ...]], seconds: float, out: Path) -> None:
    """As many references as fit into so many seconds, in that order."""
    began = time.time()
    found = []
    board = Alone([*keys, *([] if HEAVY in keys else [HEAVY])])
    time.sleep(2.0)
    for at, key in enumerate([*keys, *keys[:AGAIN]]):
        needed = RUN_S + (IDLE_S if history == "idle" else HEAT_S) + 0.6
        if time.time() - began + needed > seconds:
            break
        if history == "idle":
            time.sleep(IDLE_S)
        else:
            board.run(HEAVY, HEAT_S)
        found.append({"key": list(key), "history": history, "again": at >= len(keys), **board.measure(key)})
    board.close()
    out.write_text(json.dumps(found))
    out.with_name(f"{history}-recorded.json").write_text(json.dumps(board.recorded))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


# --- the program's sessions -------------------------------------------------------------------------------------------


class Kept:
    """Every window that the program learns from, and every sample of power that it reads; written beside the tables."""

    def __init__(self) -> None:
        from dataclasses import asdict

        from app.engine.metering.thermal import BoardLearning

        self.session = 0
        self.windows: list[dict[str, Any]] = []
        self.samples: dict[int, float] = {}
        note = BoardLearning.note

        def kept(learning: Any, kernel: str, window: Any) -> None:
            self.windows.append({"session": self.session, "kernel": kernel, "window": asdict(window)})
            note(learning, kernel, window)

        BoardLearning.note = kept  # type: ignore[method-assign]

    def watch(self, gpu: Any) -> None:
        """Keep what the board's buffer reports."""
        read = gpu.power_samples

        def kept(since_ns: int) -> Any:
            found = read(since_ns)
            self.samples.update((sample.time_ns, sample.power_w) for sample in found)
            return found

        gpu.power_samples = kept

    def write(self, folder: Path) -> None:
        (folder / "windows.json").write_text(json.dumps(self.windows))
        (folder / "samples.json").write_text(json.dumps(sorted(self.samples.items())))


def specification_text(keys: Sequence[tuple[int, ...]]) -> str:
    """The example with these configurations alone, without clocks."""
    text = (ROOT / "resources/examples/gemm.toml").read_text()
    wanted = (" and ".join(f"{name} == {value}" for name, value in zip(NAMES, key, strict=True)) for key in keys)
    one_of = " or ".join(f"({each})" for each in wanted)
    text = text.replace("restrictions = [", f'restrictions = [\n    "{one_of}",', 1)
    text = text.replace("../kernels/gemm.cu", (ROOT / "resources/kernels/gemm.cu").as_posix())
    head, _, tail = text.partition("[device_settings]")
    return head + tail[tail.index("[metrics]") :]


def opened(kept: Kept) -> Any:
    from app.sensors.select import open_gpu

    gpu = open_gpu(os.environ.get("REFERENCE_GPU"), speed=math.inf)
    kept.watch(gpu)
    return gpu


def session(store: Any, seed: int, path: Path, kept: Kept) -> int:
    """One session over the 24 configurations, in the order of that seed; its number."""
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.engine.session.run import run_session
    from app.engine.specification.plan import SearchOptions

    gpu = opened(kept)
    kept.session = seed
    try:
        plan = plan_specification(
            load_specification(path), gpu, SearchOptions(strategy="random_sample", seed=seed, max_evaluations=24)
        )
        began, said = time.time(), []
        result = run_session(plan, store, said.append, threading.Event())
        faults = [str(event) for event in said if type(event).__name__ == "EngineFault"]
        print(
            f"session {result.session} (seed {seed}): {len(result.table)} configurations, {result.state}, "
            f"{time.time() - began:.1f} s in all, {result.progress.elapsed_s:.1f} s measuring",
            *faults,
            flush=True,
        )
        return result.session
    finally:
        gpu.close()


def within(path: Path, kept: Kept) -> list[dict[str, Any]]:
    """Eight configurations in one process, five times each in random order, and each one's steady state after that."""
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.engine.specification.plan import SearchOptions

    gpu = opened(kept)
    kept.session = 0
    try:
        specification = load_specification(path)
        plan = plan_specification(specification, gpu, SearchOptions(strategy="brute_force"))
        runner = plan.boards.runner(plan)
        try:
            rows, rng = list(range(plan.space.size)), random.Random(2)
            order = [row for _ in range(WITHIN_TIMES) for row in rng.sample(rows, len(rows))]
            repeats = list(runner.measure(order, threading.Event()))
            if hasattr(runner, "settle_s"):  # on a real board
                runner.settle_s, runner.window_s = RUN_S - STEADY_S, STEADY_S
            steady = list(runner.measure(rows, threading.Event()))
            stated = runner.restated([*repeats, *steady])
        finally:
            runner.close()
    finally:
        gpu.close()
    return [
        {
            "key": [m.configuration[name] for name in NAMES],
            "steady": at >= len(repeats),
            "values": dict(m.values),
            "at_cap": bool(m.event_reasons & LIMITS),
            "message": m.message,
        }
        for at, m in enumerate(stated)
        if "energy_j" in m.values
    ]


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("reference-result"))
    parser.add_argument("--seconds", type=float, default=520.0, help="for everything, the first look at the sensor too")
    parser.add_argument("--references", type=int, default=12)
    parser.add_argument("--without-within", action="store_true", help="leave out the repeats within one process")
    parser.add_argument("--alone", choices=("idle", "hot"), help="(the other process)")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    (out / "data").mkdir(parents=True, exist_ok=True)
    chosen = configurations()[: arguments.references]
    if arguments.alone:
        alone(arguments.alone, chosen, arguments.seconds, out / f"{arguments.alone}.json")
        return
    began = time.time()
    os.environ["WATTRIDGE_DATA"] = str(out / "data")
    sys.path.insert(0, str(ROOT))
    from app.engine.store.database import Store

    kept = Kept()
    for name, keys in (("sgemm24.toml", configurations()), ("sgemm8.toml", [*CAPPED, *configurations()[:5]])):
        (out / name).write_text(specification_text(keys))

    def other_process(history: str, seconds: float) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--alone", history, "--seconds", str(seconds)]
        command += ["--references", str(arguments.references), "--out", str(out)]
        subprocess.run(command, check=True)
        found = json.loads((out / f"{history}.json").read_text())
        print(f"{len(found)} references {history}", flush=True)

    def left_s() -> float:
        return float(arguments.seconds) - (time.time() - began) - (0.0 if arguments.without_within else WITHIN_S)

    with Store() as store:
        session(store, 1, out / "sgemm24.toml", kept)
        all_s = 25.0 + (arguments.references + AGAIN) * (IDLE_S + RUN_S + 0.6)
        other_process("idle", min(all_s, left_s() / 2 - SESSION_S))
        session(store, 2, out / "sgemm24.toml", kept)
        other_process("hot", left_s() - SESSION_S)
        session(store, 3, out / "sgemm24.toml", kept)
    kept.write(out)
    if not arguments.without_within:
        (out / "within.json").write_text(json.dumps(within(out / "sgemm8.toml", kept)))
        kept.write(out)
    print(f"{time.time() - began:.0f} s on the board", flush=True)
    subprocess.run([sys.executable, str(Path(__file__).with_name("reference_report.py")), str(out)], check=True)


if __name__ == "__main__":
    main()
