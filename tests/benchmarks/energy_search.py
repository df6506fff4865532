"""The energy model held out, and the search that measures only what it must, where the truth is known. By hand:

    python tests/benchmarks/energy_search.py model [--recorded FOLDER]
    python tests/benchmarks/energy_search.py arms [--seeds N] [--recorded FOLDER] [--operators NAME ...]
    python tests/benchmarks/energy_search.py options [--seeds N] [--recorded FOLDER]
    python tests/benchmarks/energy_search.py short [--seeds N] [--operators NAME ...]
    python tests/benchmarks/energy_search.py prior [--seeds N]
    python tests/benchmarks/energy_search.py board [--seeds N] [--recorded FOLDER] [--operators NAME ...]

FOLDER holds Kernel Tuner's caches with energies. `model`: rank correlation and median error of held-out kernels of one
space, of all and of the fastest quarter, beside mean power x measured time. `arms`: each of ARMS with the same seeds
and first candidates, on simulated boards and recorded caches: regret by the truth, energies measured, configurations
timed; means with 95 % intervals by bootstrap over the seeds. `options`: the same with one constant changed at a time,
on the recorded caches where there are any.
`short`: as many rounds as a board's benchmark affords, on simulated boards: the share of energies, and how much more
energy the row found needs by the truth than what measuring everything finds in as many rounds.
`prior`: what the model of another shape or board saves. `board`: the board's seconds of the arms and of genetic search
that measures the energy of all it looks at, at 0.07 s for a time and 0.25 s for an energy; regret at equal seconds, a
half and all of those that the k search takes. No board is measured: times and energies scatter by 0.5 %.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
from energy_arms import ARMS  # noqa: E402
from fixtures.energy_tables import (  # noqa: E402
    COST_S,
    Found,
    Table,
    model_of,
    recorded_table,
    sample_of,
    search,
    table_of,
    twin_table,
)
from scipy.stats import spearmanr  # noqa: E402

import app.engine.strategies  # noqa: E402, F401  (registers them)
from app.engine.models.energy_cost import fit  # noqa: E402
from app.engine.results.measurement import Depth  # noqa: E402
from app.sensors.simulated.twin import load_twin  # noqa: E402

BOARDS: Final = ("a100", "h200", "v100")
EXAMPLE: Final = "sgemm"
CACHES: Final = ("ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz", "ktpaper_hotspot_RTX_A4000.json.gz")
SIZES: Final = (32, 64, 128, 256, 512)
SPLITS: Final = 5
WITHIN: Final = 0.01


def twins(operators: Sequence[str]) -> Iterator[Table]:
    for board in BOARDS:
        yield twin_table(EXAMPLE, board)
    for operator in operators:
        yield operator_table(operator, "h200")


def operator_table(text: str, board: str) -> Table:
    """An operator such as mm:1,512,512,512 on a simulated board."""
    from app.engine.session.load import load_specification
    from app.engine.specification.operator_kernels import kept_specification
    from app.engine.specification.operator_shapes import parse_operator

    spec = load_specification(kept_specification(parse_operator(text)))
    return table_of(spec, load_twin(board), f"{text} on {board}")


def caches(folder: Path | None) -> Iterator[Table]:
    for name in CACHES if folder is not None else ():
        assert folder is not None
        yield recorded_table(folder / name)


# --- the model --------------------------------------------------------------------------------------------------------


def held_out(table: Table, size: int, split: int) -> tuple[float, ...]:
    """(rank correlation, median error) of all and of the fastest quarter, by the model; then of those by mean power."""
    rows = np.random.default_rng((size, split)).permutation(table.worked)
    learnt, others = rows[:size], rows[size:]
    model = fit(sample_of(table, learnt), table.energy_j[learnt])
    truth, times = table.energy_j[others], table.time_s[others]
    predicted = model.energy_j(sample_of(table, others))
    by_power = (table.energy_j[learnt] / table.time_s[learnt]).mean() * times
    fast = times <= np.quantile(times, 0.25)
    figures: list[float] = []
    for guess, which in ((predicted, slice(None)), (predicted, fast), (by_power, fast)):
        figures += [spearmanr(guess[which], truth[which])[0], np.median(np.abs(guess[which] / truth[which] - 1))]
    return tuple(figures)


def print_model(tables: Iterator[Table]) -> None:
    print("Held-out kernels of the same space, mean of", SPLITS, "random splits. Median errors in %.")
    row = "{:>38} {:>6} {:>7} {:>7}   {:>7} {:>7}   {:>7} {:>7}"
    print(row.format("space", "known", "rank", "error", "fastest", "quarter", "mean P", "x time"))
    for table in tables:
        for size in SIZES:
            if size < len(table.worked) / 2:
                mean = np.mean([held_out(table, size, split) for split in range(SPLITS)], axis=0)
                shown = [f"{v:.3f}" if at % 2 == 0 else f"{100 * v:.2f}" for at, v in enumerate(mean)]
                print(row.format(table.name[:38], size, *shown), flush=True)


# --- the search -------------------------------------------------------------------------------------------------------


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and its 95 % interval by bootstrap."""
    of = np.asarray(values, float)
    means = of[np.random.default_rng(1).integers(len(of), size=(2000, len(of)))].mean(axis=1)
    return float(of.mean()), float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def words(values: Sequence[float], form: str = "{:.2f}") -> str:
    mean, low, high = (form.format(each) for each in interval(values))
    return f"{mean} ({low}..{high})"


ARM = "{:>30} {:20} {:>18} {:>6} {:>18} {:>18} {:>8} {:>6}"


def print_head() -> None:
    print(ARM.format("space", "arm", "regret %", "in 1 %", "energies measured", "timed", "slower %", "s each"))


def print_arm(name: str, arm: str, found: Sequence[Found], seconds: float) -> None:
    regrets = [100 * each.regret for each in found]
    print(
        ARM.format(
            name[:30],
            arm,
            words(regrets),
            f"{np.mean(np.array(regrets) <= 100 * WITHIN):.2f}",
            words([len(each.measured) for each in found], "{:.0f}"),
            words([len(each.timed) for each in found], "{:.0f}"),
            f"{100 * np.mean([each.slowdown for each in found]):.1f}",
            f"{seconds / len(found):.1f}",
        ),
        flush=True,
    )


def print_arms(tables: Iterator[Table], seeds: int, arms: Mapping[str, Mapping[str, Any]]) -> None:
    print_head()
    for table in tables:
        counts: dict[str, Sequence[int]] = {}
        for arm, options in arms.items():
            begun = time.monotonic()
            found = [search(table, seed, options) for seed in range(seeds)]
            counts[arm] = [len(each.measured) for each in found]
            print_arm(table.name, arm, found, time.monotonic() - begun)
        if "everything measured" in counts:
            few, many = (np.array(counts[arm], float) for arm in ("k search", "everything measured"))
            print(f"{'':>30} energies measured, of those of everything: {words((few / many.mean()).tolist())}")


OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "as it is": {},
    **{f"first_generation {n}": {"first_generation": n} for n in (128, 256)},
    **{f"generation {n}": {"generation": n} for n in (48, 192)},
    **{f"M {n}": {"fastest": n} for n in (16, 48)},
    **{f"threshold {x}": {"threshold": x} for x in (0.03, 0.12)},
    **{f"k_step {x}": {"k_step": x} for x in (0.5, 0.8)},
    **{f"least_k {x}": {"least_k": x} for x in (0.06, 0.25)},
    **{f"neighbours {x}": {"neighbours": x} for x in (0.0, 0.5)},
    **{f"patience {n}": {"patience": n} for n in (5, 12)},
}


SHORT: Final[Mapping[str, Any]] = {"first_generation": 48, "generation": 16, "fastest": 12, "rounds": 8}
ROUNDS: Final = (1, 2, 3, 4, 6, 8)
STARTS: Final[Mapping[str, Mapping[str, Any]]] = {  # of k, and by chance or not
    "k from 1, none by chance": {"start_k": 1, "drawn": 0},
    "k from 0.35, none": {"drawn": 0},
    "k from 0.35, 0.4": {},
    "k from 0.5, 0.4": {"start_k": 0.5},
}


def after_rounds(found: Found) -> list[tuple[float, int]]:
    """(true energy of the row that would be chosen, energies measured) after each round; the last one is repeated."""
    states, before, count, chosen = [], Depth.TIME, 0, -1
    for depth, row in found.asked:
        if depth is Depth.TIME and before is Depth.ENERGY:
            states.append((float(found.table.energy_j[chosen]), count))
        before, count = depth, count + (depth is Depth.ENERGY)
        if found.measured.get(row, math.inf) < found.measured.get(chosen, math.inf) and depth is Depth.ENERGY:
            chosen = row
    states.append((float(found.table.energy_j[chosen]), count))
    return states + states[-1:] * (1 + SHORT["rounds"] - len(states))


def print_short(tables: Iterator[Table], seeds: int) -> None:
    """Each start of k against measuring everything, round by round, from the same seeds."""
    row = "{:>36} {:26}" + " {:>17}" * len(ROUNDS)
    print("Energy % more than by everything: mean / 95th percentile; share of the energies")
    print(row.format("space", "k search", *(f"{rounds} rounds" for rounds in ROUNDS)))
    together: dict[str, list[Any]] = {}
    for table in tables:
        many = np.array([after_rounds(search(table, seed, {**SHORT, "least_k": 1})) for seed in range(seeds)])
        for arm, options in STARTS.items():
            few = np.array([after_rounds(search(table, seed, {**SHORT, **options})) for seed in range(seeds)])
            together.setdefault(arm, []).append(few / many)
            print(row.format(table.name[:36], arm, *short_figures(few / many)), flush=True)
    for arm, each in together.items():
        print(row.format("all", arm, *short_figures(np.concatenate(each))))


def short_figures(ratios: Any) -> list[str]:
    """Of ratios of energy and of energies measured, shape (seeds, rounds, 2)."""
    more, share = 100 * (ratios[:, ROUNDS, 0] - 1), ratios[:, ROUNDS, 1].mean(axis=0)
    high = np.quantile(more, 0.95, axis=0)
    return [f"{m:+.2f} / {h:.1f}; {s:.2f}" for m, h, s in zip(more.mean(axis=0), high, share, strict=True)]


PRIORS: Final = (  # a space, and those whose models it may start from; no constant was chosen on the operators
    ("mv:8,1,4096,1024@h200", ("mv:8,1,8192,2048@h200",)),
    ("mv:8,1,4096,1024@a100", ("mv:8,1,4096,1024@h200",)),
    ("conv2d:16,56,56,64,64,1,1,0@h200", ("conv2d:64,56,56,64,64,1,1,0@h200",)),
    ("sgemm@v100", ("sgemm@a100",)),
    ("stencil@a100", ("stencil@a4000", "stencil@h200")),
)


def space_named(text: str) -> Table:
    what, _, board = text.partition("@")
    return operator_table(what, board) if ":" in what else twin_table(what, board)


def print_prior(seeds: int) -> None:
    """With and without the model of another shape or board."""
    print_head()
    for own_name, others in PRIORS:
        own = space_named(own_name)
        for other in (None, *others):
            begun = time.monotonic()
            prior = None if other is None else model_of(space_named(other), 200)
            found = [search(own, seed, prior=prior) for seed in range(seeds)]
            early = np.mean([each.before[min(3, len(each.before) - 1)] for each in found])
            board = words([each.board_s for each in found], "{:.0f}")
            used = sum(any("it is used" in remark for remark in each.remarks) for each in found)
            start = f"of {other}, used from the start in {used}" if other else "none"
            print(f"{'':>30} prior: {start}; {early:.0f} energies in the first three rounds; board {board} s")
            print_arm(own.name, "with it" if other else "without", found, time.monotonic() - begun)


BOARD = "{:>30} {:20} {:>16} {:>16} {:>7} {:>18} {:>18} {:>18}"


def print_board(tables: Iterator[Table], seeds: int) -> None:
    """Board time, where the counts of energies are only a part of it."""
    head = ("space", "arm", "board s", "energies s", "to 1 %", "regret % at half", "of k's seconds", "at its end")
    print(BOARD.format(*head))
    for table in tables:
        found = {arm: [search(table, seed, options) for seed in range(seeds)] for arm, options in ARMS.items()}
        limits = [each.board_s for each in found["k search"]]
        for strategy in ("genetic_algorithm", "greedy_ils"):
            longest = 2 * max(limits)
            found[strategy] = [search(table, seed, strategy=strategy, seconds=longest) for seed in range(seeds)]
        for arm, each in found.items():
            energies = [sum(COST_S[depth] for depth, _ in one.asked if depth is Depth.ENERGY) for one in each]
            reached = [one.seconds_to(WITHIN) for one in each]
            after = [
                [100 * one.regret_after(share * limit) for one, limit in zip(each, limits, strict=True)]
                for share in (0.5, 1.0)
            ]
            print(
                BOARD.format(
                    table.name[:30],
                    arm,
                    words([one.board_s for one in each], "{:.0f}"),
                    words(energies, "{:.0f}"),
                    f"{np.median(reached):.0f}",
                    *(words(regrets) for regrets in after),
                    words([100 * one.regret for one in each]),
                ),
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("model", "arms", "options", "short", "prior", "board"))
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--operators", nargs="*", default=())
    given = parser.parse_args()

    def tables() -> Iterator[Table]:
        yield from twins(given.operators)
        yield from caches(given.recorded)

    if given.what == "model":
        print_model(tables())
    elif given.what == "board":
        print_board(tables(), given.seeds)
    elif given.what == "short":
        print_short(twins(given.operators), given.seeds)
    elif given.what == "prior":
        print_prior(given.seeds)
    elif given.what == "arms":
        print_arms(tables(), given.seeds, ARMS)
    else:
        print_arms(caches(given.recorded) if given.recorded else twins(()), given.seeds, OPTIONS)


if __name__ == "__main__":
    main()
