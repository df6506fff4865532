"""How often `wattridge check` is wrong, and how soon it knows: on simulated boards, and in harsh noise drawn here.

By hand: PYTHONPATH=. python tests/benchmarks/energy_test.py [boards] [noise] [--runs 200]

`boards`: a kernel in registers against the same with 0, 0.5, 1 and 2 % more rounds, by what the command uses, on
simulated boards that start cold: their temperature, and with it their power, climbs throughout. At most 60 s of the
board. The truth is the ratio of what the boards' own formulas say both draw at one temperature.
`noise`: blocks whose joules are drawn here, with no line of the program: drift, tails, neighbours, steps; looked at
after every pair, for as long as 240 blocks. Ever wrong: runs whose interval at any look excluded the truth; as many as
1 in 100 are allowed. Blocks of 0.5 s stand for kernels, those of 5 s for programs.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

PLANTED = (0.0, 0.005, 0.01, 0.02)
ROUNDS = 20000
BOARDS = ("h200", "a100", "rtx5090")
MOST_S = 60.0
Found = tuple[str, float, tuple[float, float] | None, float]  # verdict, seconds on the board, interval, truth


# --- boards -----------------------------------------------------------------------------------------------------------


def boards(runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["WATTRIDGE_DATA"] = str(Path(name) / "data")
        text = Path(__file__).with_name("energy_test_on_board.py").read_text()
        specification = text.split('SPECIFICATION = """')[1].split('"""')[0]
        rounds = [round(ROUNDS * (1 + share)) for share in PLANTED]
        specification = specification.replace("[20000, 20200, 20400]", str(rounds))
        (Path(name) / "rounds.toml").write_text(specification)
        (Path(name) / "rounds.cu").write_text("")
        for board in BOARDS:
            for place, share in enumerate(PLANTED):
                began = time.monotonic()
                found = [one_check(Path(name) / "rounds.toml", board, place, seed) for seed in range(runs)]
                row(f"{board}, cold", share, found, time.monotonic() - began)


def one_check(path: Path, board: str, place: int, seed: int) -> Found:
    """Verdict, seconds on the board, interval, truth."""
    from app.engine.runner.boards import open_runner
    from app.engine.session.check import Terms, in_turns
    from app.engine.session.contenders import KernelContender
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.sensors.select import open_gpu

    stop = threading.Event()
    with closing(open_gpu(f"simulated:{board}", seed=seed, speed=math.inf)) as gpu:
        plan = plan_specification(load_specification(path), gpu)
        rows = [int(plan.space.rows_with({"operations": round(ROUNDS * (1 + share))})[0]) for share in PLANTED]
        with open_runner(plan, plan.boards) as runner:
            sides = {"A": KernelContender(runner, rows[0], "A"), "B": KernelContender(runner, rows[place], "B")}
            result, _, _ = in_turns(sides, gpu, Terms(MOST_S, seed=seed), stop)
        return str(result.verdict), result.seconds, result.energy.interval, truth_of(gpu, plan, rows[0], rows[place])


def truth_of(gpu: object, plan: object, a: int, b: int) -> float:
    """By how much B draws more per launch, by the board's formulas at one temperature."""
    from app.engine.workloads.profiled import ProfiledKernel
    from app.sensors.simulated import laws

    joules = []
    for number in (a, b):
        load = ProfiledKernel.of(plan.specification, gpu.limits).prepare(plan.space.configuration(number))
        point, drawn_w, _ = laws.settled_under_limits(
            gpu.twin,
            load,
            gpu.twin.clocks.graphics_mhz[-1],
            gpu.twin.clocks.memory_mhz[-1],
            gpu.info.power_limit.current_w,
        )
        joules.append(drawn_w * point.launch_s)
    return joules[1] / joules[0] - 1


def row(what: str, share: float, found: list[Found], took: float, more: str = "") -> None:
    verdicts = [verdict for verdict, _, _, _ in found]
    known = [(ends, truth) for _, _, ends, truth in found if ends is not None]
    covered = sum(low <= truth <= high for (low, high), truth in known)
    seconds = sorted(took_s for _, took_s, _, _ in found)
    half = statistics.median((high - low) / 2 for (low, high), _ in known)
    print(
        f"{what:27} planted {100 * share:3.1f} % (true {100 * found[0][3]:5.3f} %): worse {verdicts.count('worse'):3},"
        f" no worse {verdicts.count('no worse'):3}, open {verdicts.count('undecided'):3} of {len(found)};"
        f" covered {100 * covered / len(found):5.1f} %; ± {100 * half:4.2f} %;"
        f" {seconds[len(seconds) // 2]:5.1f} s, 90 % in {seconds[int(0.9 * len(seconds))]:5.1f} s{more}"
        f"  [{took:.0f} s]",
        flush=True,
    )


# --- noise ------------------------------------------------------------------------------------------------------------

Noise = Callable[[np.random.Generator, np.ndarray], np.ndarray]  # of times in s, the log of what a block draws


def white(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    return 0.004 * rng.standard_normal(len(at_s))


def warming(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    return white(rng, at_s) + 0.04 * (1 - np.exp(-at_s / 15.0))


def tails(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    return warming(rng, at_s) + 0.003 * rng.standard_t(1.5, len(at_s))


def alike(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    """Neighbours that are alike: a correlation of 0.9 from one block to the next."""
    values = rng.standard_normal(len(at_s))
    for place in range(1, len(values)):
        values[place] = 0.9 * values[place - 1] + math.sqrt(1 - 0.81) * values[place]
    return 0.006 * values + 0.002 * rng.standard_normal(len(at_s))


def neighbour(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    """Another process draws 20 % for a while now and then."""
    switches = np.cumsum(rng.exponential(4.0, 1000))
    return warming(rng, at_s) + 0.2 * (np.searchsorted(switches, at_s) % 2)


def alternating(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    """A disturbance that keeps step with the pairs: every second block draws 2 % more."""
    return white(rng, at_s) + 0.02 * (np.arange(len(at_s)) % 2)


def outliers(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    """Now and then a block in which something else ran: up to several times its joules."""
    return warming(rng, at_s) + (rng.random(len(at_s)) < 0.03) * rng.exponential(0.5, len(at_s))


def steps(rng: np.random.Generator, at_s: np.ndarray) -> np.ndarray:
    """The clock of the board moves twice, by 5 %."""
    places = np.sort(rng.uniform(0, at_s[-1], 2))
    return white(rng, at_s) + 0.05 * np.searchsorted(places, at_s)


NOISES: tuple[Noise, ...] = (white, warming, tails, alike, neighbour, alternating, steps, outliers)


def noise(runs: int) -> None:
    for length_s, blocks in ((0.5, 240), (5.0, 120)):
        for drawn in NOISES:
            for share in PLANTED:
                began = time.monotonic()
                found = [one_run(drawn, share, length_s, blocks, seed) for seed in range(runs)]
                ever = sum(wrong for _, wrong in found)
                what, took = f"{drawn.__name__}, {length_s:g} s", time.monotonic() - began
                row(what, share, [each for each, _ in found], took, f"; ever wrong {ever}")


def excluded(units: np.ndarray, centre: float) -> np.ndarray:
    """After each unit, whether their intervals leave that log ratio out: the estimator's rule, written once more."""
    stakes = 2.0 ** np.arange(2, 14)[:, None]
    x = 2 * np.clip(stakes * (units - centre), -1.5, 1.5)
    sides = [np.cumsum(np.log(2 / (1 + np.exp(-of))), axis=1) for of in (x, -x)]
    return np.any([np.exp(np.clip(of, None, 600)).mean(axis=0) > 200 for of in sides], axis=0)


def one_run(drawn: Noise, share: float, length_s: float, count: int, seed: int) -> tuple[Found, bool]:
    """As the command stops it, and whether any interval, until then or without stopping, was wrong."""
    from app.engine.analysis.in_turns import Block, compare_in_turns

    rng = np.random.default_rng((seed, round(1e4 * share), count))
    at_s, first = length_s * (np.arange(count) + 0.5), rng.random(count // 2) < 0.5  # the pairs that A begins
    of_b = np.stack([~first, first], axis=1)
    logs = drawn(rng, at_s) + of_b.ravel() * math.log1p(share)
    blocks = [
        Block("B" if b else "A", at - length_s / 2, at + length_s / 2, length_s, math.exp(log))
        for b, at, log in zip(of_b.ravel(), at_s, logs, strict=True)
    ]
    pairs = logs.reshape(-1, 2)
    level = pairs.mean(axis=1)
    after = np.diff(level) / 2
    before = np.append(after[0], after[:-1])
    drift = np.where(before * after > 0, np.sign(after) * np.minimum(abs(before), abs(after)), 0.0)
    units = np.where(first, 1, -1)[:-1] * (pairs[:-1, 1] - pairs[:-1, 0] - drift)
    told = np.flatnonzero(excluded(units, math.log(1.005)) & (np.arange(len(units)) >= 9))
    for place in [*told[:2], len(units) - 1]:  # at the very edge the two may differ by a pair
        result = compare_in_turns(blocks[: 2 * (place + 2)])
        if result.verdict != "undecided":
            break
    assert (result.verdict == "undecided") == (not len(told)), "the program agrees"
    return (str(result.verdict), result.seconds, result.energy.interval, share), excluded(
        units, math.log1p(share)
    ).any()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["boards", "noise"])
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    for part in arguments.parts:
        {"boards": boards, "noise": noise}[part](arguments.runs)


if __name__ == "__main__":
    main()
