"""Do stated joules hold outside their session? Sessions against references measured alone by another process.

Run by hand on a board that nobody else uses: python tests/benchmarks/reference.py [--out FOLDER] [--seconds 480]
Three sessions of the program measure the same 24 random configurations of SGEMM. Another process, with PyCUDA, NVML
and no line of the program, measures 12 of them alone: from idle (6 s without work, then 5 s) and hot (8 s of a kernel
near 700 W, then 5 s), each the mean of its last 2 s, with the temperatures and averages of power at that time. The
references are never corrected: each session states its figures for every reference's own condition.
It reads and never sets: no clock, no limit, no mode. Prints tables and writes them as JSON.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
N = 4096
HEAVY = (64, 2, 1, 8)  # near 700 W on an H200
IDLE_S, HEAT_S, RUN_S, MEAN_S = 6.0, 8.0, 5.0, 2.0
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

    def __init__(self, keys: Sequence[tuple[int, ...]], folder: Path) -> None:
        import numpy as np
        import pycuda.driver as cuda
        import pynvml as nvml

        self._cuda, self._nvml = cuda, nvml
        cuda.init()
        nvml.nvmlInit()
        self._board = nvml.nvmlDeviceGetHandleByIndex(0)
        self._samples: dict[int, tuple[float, float, float, float]] = {}  # us -> W, and its averages
        self._slow: list[tuple[float, float, float, float, int]] = []
        self._stop = threading.Event()
        self._drain = threading.Thread(target=self._watch, daemon=True)
        self._drain.start()
        self.context = cuda.Device(0).make_context()
        major, minor = cuda.Device(0).compute_capability()
        rng = np.random.default_rng(0)
        self._a, self._b = (cuda.to_device(rng.random((N, N), dtype=np.float32)) for _ in range(2))
        self._c = cuda.mem_alloc(N * N * 4)
        with ThreadPoolExecutor(8) as pool:
            paths = list(pool.map(lambda key: self._build(key, folder, f"sm_{major}{minor}"), keys))
        self._functions = {
            key: cuda.module_from_file(path).get_function("sgemm") for key, path in zip(keys, paths, strict=True)
        }

    def close(self) -> None:
        self._stop.set()
        self._drain.join()
        self.context.pop()

    def run(self, key: tuple[int, ...], seconds: float) -> tuple[float, float]:
        """Back to back for so long; (ms per launch over the last seconds, when it ended)."""
        x, y, tx, ty = key
        grid, block = (N // (x * tx), N // (y * ty)), (x, y, 1)
        function, begun, launches, seen = self._functions[key], time.time(), 4, []
        before, after = self._cuda.Event(), self._cuda.Event()
        while time.time() - begun < seconds:
            before.record()
            for _ in range(launches):
                function(self._c, self._a, self._b, block=block, grid=grid)
            after.record()
            after.synchronize()
            ms = before.time_till(after) / launches
            seen.append((time.time(), ms, launches))
            launches = max(1, round(30 / ms))
        last = [each for each in seen if each[0] > seen[-1][0] - MEAN_S]
        total = sum(count for _, _, count in last)
        return sum(ms * count for _, ms, count in last) / total, seen[-1][0]

    def measure(self, key: tuple[int, ...]) -> dict[str, float]:
        ms, end = self.run(key, RUN_S)
        time.sleep(0.4)  # the driver's buffer is 0.1 s late
        start = end - MEAN_S
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
        }

    def _build(self, key: tuple[int, ...], folder: Path, architecture: str) -> str:
        path = folder / f"sgemm_{'_'.join(map(str, key))}.cu"
        defines = "".join(f"#define {name} {value}\n" for name, value in zip(NAMES, key, strict=True))
        source = (ROOT / "resources/kernels/gemm.cu").read_text()
        path.write_text(f"#define n {N}\n{defines}{source}")
        made = path.with_suffix(".cubin")
        subprocess.run(["nvcc", "-cubin", f"-arch={architecture}", "-o", str(made), str(path)], check=True)
        return str(made)

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


def alone(history: str, keys: Sequence[tuple[int, ...]], seconds: float, out: Path) -> None:
    """As many references as fit into so many seconds, in that order."""
    began = time.time()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        board = Alone([*keys, *([] if HEAVY in keys else [HEAVY])], Path(folder))
        time.sleep(2.0)
        for key in keys:
            needed = RUN_S + (IDLE_S if history == "idle" else HEAT_S) + 0.6
            if time.time() - began + needed > seconds:
                break
            if history == "idle":
                time.sleep(IDLE_S)
            else:
                board.run(HEAVY, HEAT_S)
            found.append({"key": list(key), "history": history, **board.measure(key)})
        board.close()
    out.write_text(json.dumps(found))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


# --- the program's sessions -------------------------------------------------------------------------------------------


def session(store: Any, seed: int) -> int:
    """One session over the 24 configurations, in the order of that seed; its number."""
    import dataclasses

    from app.engine.session.load import load_specification
    from app.engine.session.plan import SearchOptions
    from app.engine.session.planning import plan_specification
    from app.engine.session.run import run_session
    from app.sensors.select import open_gpu

    path = Path(os.environ["WATTRIDGE_DATA"]) / "sgemm24.toml"
    if not path.exists():
        text = (ROOT / "resources/examples/gemm.toml").read_text()
        wanted = (
            " and ".join(f"{name} == {value}" for name, value in zip(NAMES, key, strict=True))
            for key in configurations()
        )
        one_of = " or ".join(f"({each})" for each in wanted)
        text = text.replace("restrictions = [", f'restrictions = [\n    "{one_of}",', 1)
        text = text.replace("../kernels/gemm.cu", (ROOT / "resources/kernels/gemm.cu").as_posix())
        head, _, tail = text.partition("[device_settings]")
        path.write_text(head + tail[tail.index("[metrics]") :])
    specification = dataclasses.replace(load_specification(path))
    gpu = open_gpu(os.environ.get("REFERENCE_GPU"), speed=math.inf)
    try:
        plan = plan_specification(specification, gpu, SearchOptions(strategy="random_sample", seed=seed))
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


def compared(store: Any, sessions: Sequence[int], references: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every pair of a session and a reference: the session's figures stated for the reference's own condition."""
    from app.engine.metering.condition import Condition
    from app.engine.session.restating import restated

    pairs = []
    for number in sessions:
        for reference in references:
            condition = Condition(*(float(reference[name]) for name in ("gpu_c", "memory_c", "fast_w", "slow_w")))
            _, table = restated(store, number, condition)
            at = next(
                (
                    i
                    for i in range(len(table))
                    if [table.measurement(i).configuration[name] for name in NAMES] == reference["key"]
                ),
                None,
            )
            if at is None or "energy_j" not in table.measurement(at).values:
                continue
            m = table.measurement(at)
            low, high = m.intervals["energy_j"]
            pairs.append(
                {
                    "session": number,
                    "key": reference["key"],
                    "history": reference["history"],
                    "at_cap": bool(reference["limited"]) or bool(m.event_reasons & LIMITS),
                    "raw_error": m.values["energy_raw_j"] / reference["energy_j"] - 1,
                    "error": m.values["energy_j"] / reference["energy_j"] - 1,
                    "power_error": m.values["power_w"] / reference["power_w"] - 1,
                    "time_error": m.values["time_s"] / reference["time_s"] - 1,
                    "half_width": (high - low) / 2 / m.values["energy_j"],
                    "covered": low <= reference["energy_j"] <= high,
                    "raw_covered": abs(m.values["energy_raw_j"] / reference["energy_j"] - 1)
                    <= (m.intervals["energy_raw_j"][1] - m.intervals["energy_raw_j"][0]) / 2 / m.values["energy_raw_j"],
                    "correction": m.values["thermal_correction"] - 1,
                    "flagged": "second look" in m.message,
                }
            )
    return pairs


def coverage_interval(pairs: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """95 % of the share covered, the configurations resampled [bootstrap clustered by configuration]."""
    groups: dict[tuple[int, ...], list[bool]] = {}
    for pair in pairs:
        groups.setdefault(tuple(pair["key"]), []).append(pair["covered"])
    rng, shares = random.Random(1), []
    for _ in range(2000):
        drawn = [hit for key in rng.choices(list(groups), k=len(groups)) for hit in groups[key]]
        shares.append(mean(drawn))
    shares.sort()
    return shares[50], shares[1949]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def report(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    kinds = {"all": pairs}
    for history in ("idle", "hot"):
        kinds[history] = [pair for pair in pairs if pair["history"] == history]
    kinds["below the cap"] = [pair for pair in pairs if not pair["at_cap"]]
    kinds["at the cap"] = [pair for pair in pairs if pair["at_cap"]]
    print(
        "\npairs                 n   raw: median 95th %  stated: median 95th % bias %   covered (95 %)       half %"
        "  raw covered"
    )
    for kind, some in kinds.items():
        if not some:
            continue
        raw, stated = [abs(p["raw_error"]) for p in some], [abs(p["error"]) for p in some]
        low, high = coverage_interval(some)
        row = {
            "pairs": len(some),
            "raw_median": quantile(raw, 0.5),
            "raw_p95": quantile(raw, 0.95),
            "median": quantile(stated, 0.5),
            "p95": quantile(stated, 0.95),
            "bias": mean([p["error"] for p in some]),
            "coverage": mean([p["covered"] for p in some]),
            "coverage_95": [low, high],
            "half_width": quantile([p["half_width"] for p in some], 0.5),
            "raw_coverage": mean([p["raw_covered"] for p in some]),
        }
        document[kind] = row
        print(
            f"{kind:<18}{row['pairs']:>5}{100 * row['raw_median']:>13.2f}{100 * row['raw_p95']:>8.2f}"
            f"{100 * row['median']:>16.2f}{100 * row['p95']:>8.2f}{100 * row['bias']:>8.2f}"
            f"{100 * row['coverage']:>9.0f} % ({100 * low:.0f} to {100 * high:.0f}){100 * row['half_width']:>10.2f}"
            f"{100 * row['raw_coverage']:>8.0f} %"
        )
    off = [p for p in pairs if abs(p["time_error"]) > 0.01]
    document["time_errors_above_1_percent"] = len(off)
    document["of_which_unflagged"] = len([p for p in off if not p["flagged"] and not p["at_cap"]])
    print(f"times off by more than 1 %: {len(off)} pairs, unflagged below the cap: {document['of_which_unflagged']}")
    for p in sorted(pairs, key=lambda p: -abs(p["error"]))[:8]:
        errors = {name: f"{100 * p[name]:+.2f}" for name in ("error", "raw_error", "power_error", "time_error")}
        said = [word for word, so in (("at the cap", p["at_cap"]), ("flagged", p["flagged"])) if so]
        print(
            f"  {'x'.join(map(str, p['key'])):<14}{p['history']:<5} session {p['session']}:"
            f" energy {errors['error']} % (raw {errors['raw_error']}), power {errors['power_error']},"
            f" time {errors['time_error']}, ± {100 * p['half_width']:.2f} {', '.join(said)}"
        )
    return document


def between_sessions(store: Any, sessions: Sequence[int]) -> dict[str, Any]:
    """Coefficient of variation of each configuration over the sessions, at the board's condition; and their models."""
    import statistics

    from app.engine.runner.stating import Statement

    seen: dict[tuple[int, str], list[float]] = {}
    models = []
    for number in sessions:
        loaded = store.load(number)
        stated = Statement.of_origin(loaded.record.origin)
        if stated is not None:
            model = stated.model
            models.append(
                {
                    "condition": stated.condition.words,
                    "coefficients": model.coefficients,
                    "repeatability": model.repeatability,
                    "reproducibility": model.uncertainty(0.0),
                }
            )
            named = ", ".join(f"{each:+.4f}" for each in model.coefficients)
            print(
                f"session {number}: stated for {stated.condition.words}; per °C GPU, memory, share 1 s, 30 s: {named}; "
                f"repeatability ±{100 * model.repeatability:.2f} %"
            )
        for at in range(len(loaded.table)):
            m = loaded.table.measurement(at)
            for name in ("energy_j", "energy_raw_j", "time_s"):
                if name in m.values:
                    seen.setdefault((m.row, name), []).append(m.values[name])
    variation = {}
    for name in ("energy_raw_j", "energy_j", "time_s"):
        each = [statistics.stdev(v) / mean(v) for (_, figure), v in seen.items() if figure == name and len(v) > 1]
        variation[name] = statistics.median(each) if each else math.nan
        print(
            f"CV between sessions, {name}: median {100 * variation[name]:.2f} %, "
            f"95th percentile {100 * quantile(each, 0.95) if each else math.nan:.2f} %"
        )
    return {"models": models, "cv": variation}


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("reference-result"))
    parser.add_argument("--seconds", type=float, default=480.0, help="for everything, the first look at the sensor too")
    parser.add_argument("--references", type=int, default=12)
    parser.add_argument("--alone", choices=("idle", "hot"), help="(the other process)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    chosen = configurations()[: arguments.references]
    if arguments.alone:
        alone(arguments.alone, chosen, arguments.seconds, arguments.out / f"{arguments.alone}.json")
        return
    began = time.time()
    data = Path(tempfile.mkdtemp(prefix="wattridge-reference-"))
    os.environ["WATTRIDGE_DATA"] = str(data)
    sys.path.insert(0, str(ROOT))
    from app.engine.store.database import Store

    def other_process(history: str, seconds: float) -> list[dict[str, Any]]:
        command = [sys.executable, str(Path(__file__).resolve()), "--alone", history, "--seconds", str(seconds)]
        command += ["--references", str(arguments.references), "--out", str(arguments.out)]
        subprocess.run(command, check=True)
        found: list[dict[str, Any]] = json.loads((arguments.out / f"{history}.json").read_text())
        print(f"{len(found)} references {history}", flush=True)
        return found

    def left_s() -> float:
        return arguments.seconds - (time.time() - began)

    with Store() as store:
        sessions = [session(store, 1)]
        references = other_process("idle", min(20.0 + arguments.references * (IDLE_S + RUN_S + 0.6), left_s() / 2))
        sessions.append(session(store, 2))
        references += other_process("hot", left_s() - 15.0)
        sessions.append(session(store, 3))
        pairs = compared(store, sessions, references)
        document = {"summary": report(pairs), "sessions": between_sessions(store, sessions)}
    document |= {"pairs": pairs, "references": references, "seconds": time.time() - began}
    (arguments.out / "reference.json").write_text(json.dumps(document, indent=1))
    print(f"{document['seconds']:.0f} s in all")


if __name__ == "__main__":
    main()
