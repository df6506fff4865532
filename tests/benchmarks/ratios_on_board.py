"""Do stated ratios hold outside their session, and what does the default cost beside brute force? On a real board.

    python tests/benchmarks/ratios_on_board.py ratios [--seconds 150]   SGEMM 4096 by `auto`, then another process
    python tests/benchmarks/ratios_on_board.py spaces [NAME ...]        convolution, stencil, reduction: auto, all of it

`ratios`: a session of the default strategy over the 204 configurations. Another process, with PyCUDA, NVRTC, NVML and
no line of the program (`reference.py`), then measures those of its turns and eight others in rounds of random order,
until its time is over. A ratio of it is the mean of the logarithms within rounds, with Student's interval. Compared are
the pairs of the turns, and pairs of any two rows that the session measured.
`spaces`: each space is cut to about 300 configurations and measured twice, each time with a data folder of its own: by
the default, and all of it. The times are those of the boards' work (the session's), the winner of the first is judged
by the ratio that the second measured.
It reads and never sets: no clock, no limit, no mode.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import reference

ROOT = Path(__file__).resolve().parents[2]
OTHERS, RUN_S, MEAN_S = 8, 0.85, 0.6
CUT = {
    "convolution": {
        "block_size_x": [16, 32, 64, 128],
        "block_size_y": [1, 2, 4, 8],
        "tile_size_x": [1, 2, 4],
        "tile_size_y": [1, 2, 4, 8],
        "use_shared_memory": [0, 1],
        "use_padding": [0],
    },
    "stencil": {
        "block_size_x": [32, 64, 128],
        "block_size_y": [1, 4, 8],
        "tile_size_y": [1, 2],
        "tile_size_z": [1, 16, 64],
        "keep_planes": [0, 1],
        "loop_unroll_factor": [1, 4],
    },
    "reduction": {
        "block_size_x": [64, 128, 256, 512, 1024],
        "blocks_per_multiprocessor": [2, 4, 8, 16, 32],
        "loop_unroll_factor": [1, 4],
    },
}


# --- the other process: nothing of the program ------------------------------------------------------------------------


def in_rounds(keys: Sequence[tuple[int, ...]], seconds: float, out: Path) -> None:
    """J of a launch of each, round by round."""
    reference.MEAN_S = MEAN_S
    begun, rng, alone = time.time(), random.Random(7), reference.Alone(keys)
    alone.run(keys[0], 5.0)  # the first is as warm as the others
    rounds: list[dict[str, tuple[float, float, float]]] = []
    try:
        while time.time() - begun < seconds:
            found = {json.dumps(key): alone.run(key, RUN_S) for key in rng.sample(list(keys), len(keys))}
            rounds.append(found)
        time.sleep(0.5)  # the driver's buffer is late
        samples, slow = alone.recorded["samples"], alone.recorded["slow"]
    finally:
        alone.close()
    told = []
    for each in rounds:
        energies = {}
        for key, (ms, start, end) in each.items():
            power_w = statistics.mean(watts for at, watts in samples if start < at / 1e6 <= end)
            limited = any(row[4] & reference.LIMITS for row in slow if start < row[0] <= end)
            energies[key] = (power_w * ms / 1e3, ms / 1e3, limited)
        told.append(energies)
    out.write_text(json.dumps(told))


# --- the program ------------------------------------------------------------------------------------------------------


def specification(name: str, restriction: str | None = None) -> str:
    """The example without clocks, its parameters cut."""
    import tomlkit

    document = tomlkit.parse((ROOT / f"resources/examples/{name}.toml").read_text())
    document.pop("device_settings", None)
    document.pop("search", None)
    document["kernel"]["source"] = (ROOT / f"resources/kernels/{name}.cu").as_posix()
    for parameter, values in CUT.get(name, {}).items():
        document["parameters"][parameter] = values
    if restriction is not None:
        document["restrictions"].append(restriction)
    return str(tomlkit.dumps(document))


def session(path: Path, strategy: str | None = None) -> tuple[Any, Any, float]:
    """Its result, its space, and the s from the beginning, the look at the sensor included, to the end."""
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.engine.session.run import run_session
    from app.engine.specification.plan import SearchOptions
    from app.engine.store.database import Store
    from app.sensors.select import open_gpu

    options = SearchOptions() if strategy is None else SearchOptions(strategy=strategy, max_evaluations=100_000)
    said: list[Any] = []
    gpu = open_gpu(os.environ.get("REFERENCE_GPU", "0"), speed=math.inf)
    begun_ns = gpu.clock.now_ns()
    try:
        plan = plan_specification(load_specification(path), gpu, options)
        with Store() as store:
            result = run_session(plan, store, said.append, threading.Event())
    finally:
        gpu.close()
    for event in said:
        if type(event).__name__ == "EngineFault":
            print(event)
    took = (gpu.clock.now_ns() - begun_ns) / 1e9
    measured = sum(math.isfinite(value) for value in result.table.values("energy_j"))
    print(
        f"{path.stem}, {strategy or 'the default'}: {plan.space.size} configurations, {measured} energies, "
        f"{len(result.table) - measured} timed only or failed, {result.state}; {took:.1f} s with the look",
        flush=True,
    )
    return result, plan.space, took


def stated(table: Any, before: int, after: int) -> tuple[float, float]:
    """(ratio less 1, half-width) of the energies of two rows, as the program has them."""
    import numpy as np

    from app.engine.analysis.iso_lines import Role
    from app.engine.analysis.standing import ratio

    rows = list(table.rows())
    places = [np.array([at for at, row in enumerate(rows) if row == each]) for each in (before, after)]
    values = [float(table.values("energy_j")[place[0]]) for place in places]
    found = ratio(table, (places[0], places[1]), (values[0], values[1]), "energy_j", Role.ENERGY)
    return found.change, found.half_width


def least_of(table: Any) -> int:
    """The row of the least energy."""
    pairs = zip(table.values("energy_j"), table.rows(), strict=True)
    return int(min((value, row) for value, row in pairs if math.isfinite(value))[1])


def ratios(seconds: float, out: Path, restriction: str | None) -> None:
    from app.engine.analysis.finals import Finals

    spec, begun_s = out / "gemm.toml", time.time()
    spec.write_text(specification("gemm", restriction))
    result, space, _ = session(spec)
    table = result.table
    energies = {
        int(m.row): (m.timestamp_s - begun_s, m.values["energy_j"])
        for m in map(table.measurement, range(len(table)))
        if "energy_j" in m.values
    }
    least = min(value for _, value in energies.values())
    good = sorted((at, value / least - 1) for at, value in energies.values() if value <= 1.03 * least)
    print(
        f"  within 3 % of the least first after {good[0][0]:.1f} s ({good[0][1]:+.1%}), the least itself after "
        f"{next(at for at, value in good if value == 0):.1f} s"
    )
    finals = Finals.of_origin(table.origin)
    turned = list(finals.rows) if finals else []
    if finals:
        print(f"turns: {len(turned)} configurations, {finals.seconds:.1f} s")
    known = {
        int(row): value
        for row, value in zip(table.rows(), table.values("energy_j"), strict=True)
        if math.isfinite(value)
    }
    others = sorted(known.keys() - set(turned))
    chosen = turned + random.Random(3).sample(others, min(OTHERS, len(others)))
    keys = {row: tuple(int(space.configuration(row)[name]) for name in reference.NAMES) for row in chosen}
    found = out / "rounds.json"
    command = [sys.executable, str(Path(__file__).resolve()), "alone", "--seconds", str(seconds), "--out", str(out)]
    subprocess.run([*command, "--keys", json.dumps(list(keys.values()))], check=True)
    rounds = json.loads(found.read_text())
    limited = {key for each in rounds for key, (_, _, held) in each.items() if held}
    pairs = []
    for before, after in combinations(chosen, 2):
        names = [json.dumps(keys[row]) for row in (before, after)]
        if limited & set(names):
            continue
        logs = [math.log(each[names[1]][0] / each[names[0]][0]) for each in rounds if all(n in each for n in names)]
        from scipy.stats import t

        own = float(t.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
        value, half = stated(table, before, after)
        pairs.append((before in turned and after in turned, value, half, math.expm1(statistics.mean(logs)), own))
        if pairs[-1][0] and turned[0] in (before, after):
            print(f"  {names[0]} {names[1]}: stated {value:+.4f} ± {half:.4f}, alone {pairs[-1][3]:+.4f} ± {own:.4f}")
    (out / "pairs.json").write_text(json.dumps(pairs))
    print(f"{len(rounds)} rounds of {len(keys)}; {len(limited)} left out, at a limit")
    for title, these in (
        ("turns, against the winner or not", [each for each in pairs if each[0]]),
        ("any two rows of the session", [each for each in pairs if not each[0]]),
    ):
        known = [each for each in these if math.isfinite(each[2])]
        if not known:
            continue
        errors = [abs(value - alone) / (1 + alone) for _, value, _, alone, _ in known]
        hold = sum(abs(value - alone) <= half * (1 + alone) for _, value, half, alone, _ in known)
        held = sum(abs(value - alone) <= math.hypot(half, own) * (1 + alone) for _, value, half, alone, own in known)
        print(
            f"{title}: {len(known)} pairs, error {statistics.median(errors):.2%} median, {max(errors):.2%} at most; "
            f"half-width {statistics.median(each[2] for each in known):.2%}; {hold} hold, {held} with the reference's "
            f"own ({statistics.median(each[4] for each in known):.2%})"
        )


def spaces(names: Sequence[str], out: Path) -> None:
    for name in names:
        spec = out / f"{name}.toml"
        spec.write_text(specification(name))
        os.environ["WATTRIDGE_DATA"] = tempfile.mkdtemp(dir=out)
        result, space, took = session(spec)
        energies = result.table.values("energy_j")
        best = int(
            list(result.table.rows())[
                min(range(len(energies)), key=lambda at: (energies[at] != energies[at], energies[at]))
            ]
        )
        from app.engine.analysis.finals import Finals

        finals = Finals.of_origin(result.table.origin)
        best = finals.winner if finals else best
        os.environ["WATTRIDGE_DATA"] = tempfile.mkdtemp(dir=out)
        whole, _, whole_s = session(spec, "brute_force")
        least = least_of(whole.table)
        value, half = stated(whole.table, least, best)
        print(
            f"  {name}: {took / whole_s:.3f} of the time; its winner {space.configuration(best)} takes {value:+.2%} "
            f"± {half:.2%} of {space.configuration(least)}, the least of brute force by one window",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ratios", "spaces", "alone"))
    parser.add_argument("names", nargs="*", default=list(CUT))
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--out", type=Path, default=Path("ratios-result"))
    parser.add_argument("--restriction", help="one more, such as one that leaves out a winner by far")
    parser.add_argument("--keys", help="(the other process)")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if arguments.what == "alone":
        in_rounds([tuple(key) for key in json.loads(arguments.keys)], arguments.seconds, out / "rounds.json")
        return
    os.environ.setdefault("WATTRIDGE_DATA", tempfile.mkdtemp(dir=out))
    sys.path.insert(0, str(ROOT))
    if arguments.what == "ratios":
        ratios(arguments.seconds, out, arguments.restriction)
    else:
        spaces(arguments.names, out)


if __name__ == "__main__":
    main()
