"""What `advice` would have said to users without rights, against the sweep that somebody with rights made of each load.

By hand: PYTHONPATH=. python tests/benchmarks/administrator.py [--coefficients] [FILE...]

The sweeps are those of the public measurements (`WATTRIDGE_SHARED`). Of each load `advice` gets what a user sees who
may set nothing: the clock at which the board runs it by itself and the power there, at the limit where that binds. The
coefficients are fitted without the board in question, every load of it; simulated boards take no part. The energy at
the clock that is advised is interpolated between the clocks of the sweep, and stands beside the least one of the sweep.
The RTX 4050's limit is not in its file: the power at its highest clock stands for it. The baseline is a fixed share of
the highest clock that the board's files show, fitted to the same other boards.
`--coefficients` prints what `resources/administrator.toml` holds. FILEs are tables of
`board,limit_w,program,clock_mhz,power_w,time_s,memory_share` of boards or loads that took no part: they are answered
with the coefficients that come with the program.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import csv
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.metering.confidence import student_t  # noqa: E402
from app.engine.models.administrator import Advice, CannotSay, Coefficients, advice  # noqa: E402
from app.engine.models.fit.frequency import FrequencyFit, fit_points  # noqa: E402
from app.engine.models.fit.points import Points  # noqa: E402
from app.engine.models.fit.predict import Expected, Predictor  # noqa: E402
from app.engine.models.roofline.points import recorded_sweeps  # noqa: E402
from app.engine.models.series import read_series  # noqa: E402
from app.engine.results.measurement import Measurement, State  # noqa: E402

SHARED = Path(os.environ.get("WATTRIDGE_SHARED", "../shared")) / "data"
SHARES = np.round(np.arange(0.55, 0.976, 0.01), 2)
REACH = 0.6  # of the natural clock: sweeps that end above it bracket no optimum, and take no part in a fit
LEAST_POWER = 0.5  # of the limit
TIME_ERROR = 0.2  # over the time at the natural clock: from `outside`
LOWEST = 0.45  # as `lowest_share` of the coefficients
EVERY = 8  # of the many loads of one board that serve as sweeps of the model


@dataclass(frozen=True, eq=False)
class Load:
    """One load swept on one board; arrays of shape (k,), ascending by clock."""

    board: str
    name: str
    clock: np.ndarray  # MHz
    power: np.ndarray  # W
    time: np.ndarray  # per work
    natural: float  # MHz: of the board as it was
    top: float  # MHz: the highest clock in the board's files
    limit: float  # W
    unit: str  # of the energy
    scale: float = 1.0  # from power times time to it
    memory: float | None = None  # share of the time in which device memory is busy

    @property
    def energy(self) -> np.ndarray:
        """Per work, in `unit`."""
        return self.power * self.time * self.scale

    def at(self, clock: float, what: np.ndarray | None = None) -> float:
        """Energy (or another figure) at a clock; NaN below the sweep."""
        values = np.log(self.energy if what is None else what)
        return float(
            np.exp(np.interp(clock, self.clock, values, left=np.nan if clock < 0.99 * self.clock[0] else values[0]))
        )

    def ratio(self, clock: float) -> float:
        """Energy at a clock over that at the natural one."""
        return self.at(clock) / self.at(self.natural)

    def loss(self, clock: float) -> float:
        """Energy at a clock over the least of the sweep, less 1; above the natural clock nothing changes."""
        return self.at(min(clock, self.natural)) / float(self.energy.min()) - 1

    @property
    def heavy(self) -> bool:
        """Whether it draws enough by itself for anything to be said."""
        return self.at(self.natural, self.power) >= LEAST_POWER * self.limit

    @property
    def reaches(self) -> bool:
        """Whether the sweep goes low enough to show an optimum."""
        return bool(self.clock[0] <= REACH * self.natural)

    @property
    def measured(self) -> list[Measurement]:
        """What a user without rights has."""
        figures = {"power_w": self.at(self.natural, self.power)}
        return [Measurement(0, {}, State.OK, figures, observed_clock_mhz=self.natural, source="nvml")]

    @functools.cached_property
    def fit(self) -> FrequencyFit:
        """Of the whole sweep."""
        supported = tuple(self.clock.tolist())
        return fit_points(Points(self.clock, self.power, rate=1 / self.time, supported_mhz=supported, series=self.name))


def shared_loads(folder: Path = SHARED) -> list[Load]:
    """Every load of the public sweeps."""
    sweeps = folder / "clock-sweeps"
    stream = folder / "clock-cap/a100_babelstream_clock_x_cap.csv"
    served = folder / "service-sweeps/rtx5090_vllm_gemma31b_clocks.csv"
    product = folder / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
    return [
        *_read(sweeps / "a100_synthetic_fp32_10_clocks.json", "A100 PCIe 40GB", 250, "J", 1e-3, name="FP32"),
        *_read(stream, "A100 PCIe 40GB", 250, "J", name="BabelStream", limit=300),
        *_read(sweeps / "h200_fp64_gemm_clock_sweep.csv", "H200", 600, "J/TFLOP", 1e3, name="FP64 GEMM", natural=1410),
        *_read(sweeps / "rtx4050_laptop_conv_transpose2d.csv", "RTX 4050 Laptop", 62, "J", name="convolution"),
        *_read(sweeps / "v100_srad_13_clocks.csv", "V100 SXM2", 300, "J of 1 s", name="srad"),
        *_read(served, "RTX 5090", 575, "J/token", name="vLLM", memory=14001),
        *_read(product, "RTX 4000 Ada", 130, "mJ", name="FP16 GEMM"),
        *_limits(folder / "limits"),
        *_titan(sweeps / "titanxp_micro_peak_idle_HPCAFMAandCF.csv"),
    ]


def _read(
    path: Path, board: str, limit_w: float, unit: str, scale: float = 1.0, *, name: str, natural: float | None = None,
    limit: float | None = None, memory: float | None = None,
) -> list[Load]:  # fmt: skip
    """The loads of a file; of the many kernels of a cache the fastest and the most efficient."""
    loads = []
    for points in read_series(path):
        if (limit is not None and points.limit_w != limit) or (
            memory is not None and points.memory_clock_mhz != memory
        ):
            continue
        assert points.rate is not None
        asked, at = np.unique(points.asked_mhz, return_inverse=True)
        clock, power, time = (
            np.bincount(at, v) / np.bincount(at) for v in (points.clock_mhz, points.power_w, 1 / points.rate)
        )
        order = np.argsort(clock)
        clock, power, time = clock[order], power[order], time[order]
        loads.append(
            Load(board, name, clock, power, time, natural or clock[-1], float(asked[-1]), limit_w, unit, scale)
        )
    if len(loads) > 2:
        full = [load for load in loads if len(load.clock) == max(len(each.clock) for each in loads)]
        return [min(full, key=lambda load: load.time[-1]), min(full, key=lambda load: load.energy.min())]
    return loads


def _limits(folder: Path) -> list[Load]:
    """An RTX 3090 at the clocks that its power limits leave; the default limit, 350 W, is its own state."""
    loads = []
    for name in ("dense", "moe"):
        with (folder / f"rtx3090_{name}_decode.csv").open() as file:
            rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        clock, at = np.unique([row["sm_clk_MHz"] for row in rows], return_inverse=True)
        power, time = (
            np.bincount(at, v) / np.bincount(at)
            for v in ([r["actual_W"] for r in rows], [1 / r["narr_TPS"] for r in rows])
        )
        natural = next(row["sm_clk_MHz"] for row in rows if row["cap_W"] == 350)
        loads.append(Load("RTX 3090", f"decoding, {name}", clock, power, time, natural, 1935, 350, "J/token"))
    return loads


def _titan(path: Path) -> list[Load]:
    """Microbenchmarks without speed: those that hardly use device memory, whose time is that of their clocks."""
    with path.open() as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[4:]]
    loads: dict[tuple[float, ...], list[tuple[float, float]]] = {}
    for power, clock, memory, *use in rows:
        if memory == 5705 and use[-1] <= 0.1:
            loads.setdefault(tuple(use), []).append((clock, power))
    found = []
    for number, points in enumerate(loads.values(), 1):
        clock, power = np.array(sorted(points)).T
        if len(clock) == 12:
            found.append(
                Load(
                    "TITAN Xp",
                    f"microbenchmark {number}",
                    clock,
                    power,
                    1e3 / clock,
                    clock[-1],
                    clock[-1],
                    250,
                    "J of 1e9 clocks",
                )
            )
    return found


def outside_loads(path: Path) -> list[Load]:
    """Loads of a table that took no part in any coefficient."""
    groups: dict[tuple[str, str, float], list[tuple[float, ...]]] = {}
    names = ("clock_mhz", "power_w", "time_s", "memory_share")
    with path.open() as file:
        for row in csv.DictReader(file):
            key = row["board"], row["program"], float(row["limit_w"])
            groups.setdefault(key, []).append(tuple(float(row[name] or "nan") for name in names))
    loads = []
    for (board, program, limit), rows in groups.items():
        clock, power, time, memory = np.array(sorted(rows)).T
        busy = None if np.isnan(memory[-1]) else float(memory[-1])
        loads.append(Load(board, program, clock, power, time, clock[-1], clock[-1], limit, "J", memory=busy))
    return loads


# --- fitting ----------------------------------------------------------------------------------------------------------


def by_board(loads: Iterable[Load]) -> dict[str, list[Load]]:
    """The loads of each board."""
    boards: dict[str, list[Load]] = {}
    for load in loads:
        boards.setdefault(load.board, []).append(load)
    return boards


def fitted(loads: Sequence[Load]) -> Coefficients:
    """The coefficients of these loads; each board counts once."""
    boards = by_board(load for load in loads if load.heavy and load.reaches)
    share = best_share(boards, lambda load: load.natural)
    logs = [np.log([load.ratio(share * load.natural) for load in each]) for each in boards.values()]
    count, middle = len(logs), float(np.mean([each.mean() for each in logs]))
    variance = float(np.mean([((each - middle) ** 2).mean() for each in logs])) * count / (count - 1)
    half = student_t(count - 1) * np.sqrt(variance * (1 + 1 / count))
    energy = Expected(*(float(np.exp(end)) for end in (middle, middle - half, middle + half)))
    return Coefficients(tuple(boards), energy, share, LEAST_POWER, other_load(loads), LOWEST, TIME_ERROR)


def best_share(boards: dict[str, list[Load]], reference: Callable[[Load], float]) -> float:
    """The share of a reference clock with the least loss in the mean over the boards."""
    losses = [
        np.mean([[np.log1p(load.loss(share * reference(load))) for share in SHARES] for load in each], axis=0)
        for each in boards.values()
    ]
    return float(SHARES[int(np.nanmean(losses, axis=0).argmin())])


@functools.cache
def pair_errors(board: str, loads: tuple[Load, ...]) -> float:
    """The mean square error of the logarithm of the ratio from one load of a board to another; NaN without any."""
    errors = []
    for one in loads[:: EVERY if len(loads) > EVERY else 1]:
        predictor, clock = Predictor.of(one.fit), one.fit.recommended_clock_mhz
        if predictor is None or clock is None:
            continue
        for other in loads:
            now, then = predictor.at(other.natural), predictor.at(clock)
            usable = LOWEST * other.natural <= clock <= 0.97 * other.natural
            if other is one or now is None or then is None or not usable or np.isnan(other.at(clock)):
                continue
            change = predictor.change(then, now)
            assert change is not None
            errors.append(np.log(other.ratio(clock) / change[1].value))
    return float(np.mean(np.square(errors))) if errors else float("nan")


def other_load(loads: Sequence[Load]) -> float:
    """95 % half-width from one load to another, about no difference."""
    boards = by_board(load for load in loads if load.heavy)
    squares = [pair_errors(board, tuple(each)) for board, each in boards.items() if len(each) > 1]
    known = [square for square in squares if np.isfinite(square)]
    return float(student_t(len(known)) * np.sqrt(np.mean(known)))


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass
class Score:
    """Of one way to answer: losses in %, intervals that hold, and answers that are none."""

    losses: list[float] = field(default_factory=list)
    said: int = 0
    held: int = 0  # energies within the interval
    timed: int = 0  # times within what was said
    none: int = 0
    unmeasured: int = 0

    def add(self, load: Load, found: Advice | CannotSay) -> str:
        """Count an answer; the words of its row."""
        if isinstance(found, CannotSay):
            self.none += 1
            return f"cannot say: {found.reason.split(',')[0]}"
        there, (low, high) = load.at(found.clock_mhz), found.interval
        if np.isnan(there):
            self.unmeasured += 1
            return f"{found.clock_mhz:5.0f}  below what was measured"
        true, held = load.ratio(found.clock_mhz), low <= load.ratio(found.clock_mhz) <= high
        self.losses.append(100 * load.loss(found.clock_mhz))
        self.said += 1
        self.held += held
        time = load.at(found.clock_mhz, load.time) / load.at(load.natural, load.time)
        self.timed += 0.99 * found.time[0] <= time <= 1.01 * found.time[1]
        error = there - float(load.energy.min())
        words = f"{found.clock_mhz:5.0f} {there:8.4g} {error:8.2g} {self.losses[-1]:5.1f}  {true:5.3f}"
        return f"{words}  {low:5.3f} to {high:5.3f} {'yes' if held else 'NO'}"

    @staticmethod
    def of(scores: Sequence[Score]) -> str:
        """One line over boards: the mean and the median of their means, the worst load, and counts of loads."""
        means = [np.mean(score.losses) for score in scores if score.losses]
        losses = " " * 18
        if means:
            worst = max(loss for score in scores for loss in score.losses)
            losses = f"{np.mean(means):5.1f} {np.median(means):6.1f} {worst:5.1f}"
        counts = (
            sum(getattr(score, name) for score in scores) for name in ("held", "timed", "said", "none", "unmeasured")
        )
        alike = [score.held / score.said for score in scores if score.said]
        share = f"{100 * np.mean(alike):5.0f}" if alike else " " * 5
        return f"{losses}   {share} {' '.join(f'{count:5}' for count in counts)}"


_COLUMNS = " mean median   max     in %  held  time    of  none below"
NATURAL, HIGHEST, AS_IT_IS = "share of the natural clock", "share of the highest clock", "as it is"
SWEEP, CLOCK, OWN = "sweep of another load, its model", "that sweep's clock, unchecked", "model of own natural clocks"


def asked(load: Load, coefficients: Coefficients | None, sweep: FrequencyFit | None = None) -> Advice | CannotSay:
    """What the program says to a user who may set nothing; with a sweep only what rests on it."""
    found = advice(
        load.measured, load.board, sweep, limit_w=load.limit, memory_share=load.memory, coefficients=coefficients
    )
    if sweep is not None and isinstance(found, Advice) and "of this model" not in found.source:
        return CannotSay("the sweep cannot")
    return found


def leave_one_out(loads: Sequence[Load]) -> None:
    """Each board without its own data."""
    print("Each board without its own data. Energies in the unit of the row; error: over the least of the sweep; held:")
    print(
        "the 95 % interval of the energy at the advised clock over that now holds the true one. In MHz. Of the TITAN Xp"
    )
    print("every eighth load is printed; all count.\n")
    row = "{:30} {:>17} {:>7} {:>8} {:>8} {:>5} | {:52} | {}"
    advised = f"{'at':>5} {'energy':>8} {'error':>8} {'%':>5}  {'ratio':5}  interval       held"
    head = f"{'at':>5} {'energy':>8} {'error':>8} {'%':>5}"
    print(row.format("", "", "by", "", "", "", "share of the natural clock", "share of the highest clock"))
    print(row.format("board, load", "unit", "itself", "energy", "least", "at", advised, head))
    ways: dict[str, list[Score]] = {name: [] for name in (AS_IT_IS, NATURAL, HIGHEST, SWEEP, CLOCK, OWN)}
    for board, mine in by_board(loads).items():
        others = [load for load in loads if load.board != board]
        known = fitted(others)
        top = best_share(by_board(load for load in others if load.heavy and load.reaches), lambda load: load.top)
        for scores in ways.values():
            scores.append(Score())
        now = {name: scores[-1] for name, scores in ways.items()}
        donors = mine[:: EVERY if len(mine) > EVERY else 1]
        for load in mine:
            words = now[NATURAL].add(load, asked(load, known))
            fixed, least = min(top * load.top, load.natural), float(load.energy.min())
            baseline = f"{fixed:5.0f}  below what was measured"
            if load.heavy and np.isfinite(load.at(fixed)):
                now[HIGHEST].losses.append(100 * load.loss(fixed))
                now[AS_IT_IS].losses.append(100 * load.loss(load.natural))
                error = load.at(fixed) - least
                baseline = f"{fixed:5.0f} {load.at(fixed):8.4g} {error:8.2g} {100 * load.loss(fixed):5.1f}"
            if load in donors:
                figures = f"{load.natural:5.0f}", f"{load.at(load.natural):8.4g}", f"{least:8.4g}"
                best = f"{load.clock[load.energy.argmin()]:5.0f}"
                print(row.format(f"{board}, {load.name}", load.unit, *figures, best, words, baseline))
            own = load.clock >= 0.99 * load.natural
            fit = fit_points(Points(load.clock[own], load.power[own], rate=1 / load.time[own]))
            now[OWN].none += not fit.identifiable
            for sweep in donors:
                clock = sweep.fit.recommended_clock_mhz
                if sweep is load or not (sweep.heavy and load.heavy):
                    continue
                now[SWEEP].add(load, asked(load, known, sweep.fit))
                if clock is not None and np.isfinite(load.at(clock)):
                    now[CLOCK].losses.append(100 * load.loss(clock))
    print("\nOver the boards, each counted alike: loss in % over the least of the sweep; of loads (or pairs of a load")
    print("and a sweep) of which something is said, intervals of the energy that hold, and times within what is said;")
    print("in %: the same, the boards alike; none: cannot say; below: the sweep does not reach the advised clock.\n")
    print(f"{'':34} boards {_COLUMNS}")
    for name, scores in ways.items():
        print(f"{name:34} {sum(bool(score.losses) for score in scores):6} {Score.of(scores)}")


def limits(loads: Sequence[Load], folder: Path = SHARED) -> None:
    """A share of the power in place of one of the clock, as a power limit would have it."""
    curves: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    shares = np.round(np.arange(0.4, 1.001, 0.01), 2)

    def add(board: str, power: np.ndarray, energy: np.ndarray, natural_w: float) -> None:
        order = np.argsort(power)
        there = np.exp(np.interp(shares * natural_w, power[order], np.log(energy[order])))
        curves.setdefault(board, []).append((np.log(there / energy.min()), np.log(there / there[-1])))

    for load in loads:
        if load.heavy and load.reaches:
            add(load.board, load.power, load.energy, load.at(load.natural, load.power))
    for name, board, limit_w in (("v100", "V100 SXM2", 300), ("a40", "A40", 300)):
        runs: dict[tuple[str, ...], list[tuple[float, float, float]]] = {}
        with (folder / f"power-limits/summary_power_{name}.csv").open() as file:
            for row in csv.DictReader(file):
                key = tuple(row[each] for each in ("dataset", "network", "batch_size", "optimizer"))
                figures = float(row["power_limit"]), float(row["average_power"]), float(row["time_per_epoch"])
                runs.setdefault(key, []).append(figures)
        for rows in runs.values():
            limit, power, time = np.array(sorted(rows)).T
            if len(limit) >= 5 and power[-1] >= LEAST_POWER * limit_w:
                add(board, limit, power * time, float(power[-1]))
    print("\nA power limit at a fixed share of the power that is drawn now, fitted on the other boards\n")
    print(f"{'board':18} loads  share  loss %   max   energy over that now: true  expected")
    losses = []
    means = {board: np.mean(curves[board], axis=0) for board in curves}
    for board, mine in curves.items():
        others = [mean for name, mean in means.items() if name != board]
        place = int(np.mean([loss for loss, _ in others], axis=0).argmin())
        loss = 100 * np.expm1([each[0][place] for each in mine])
        losses.append(loss.mean())
        true, said = np.exp(means[board][1][place]), np.exp(np.mean([ratio[place] for _, ratio in others]))
        figures = f"{len(mine):5}  {shares[place]:5.2f} {loss.mean():7.1f} {loss.max():5.1f}"
        print(f"{board:18} {figures}  {true:26.3f}  {said:8.3f}")
    print(f"{'mean of boards':18} {'':12} {np.mean(losses):7.1f}")


def roofline_clocks() -> None:
    """How far down the clocks reach that rooflines of boards on file show at their limits, without any setting."""
    print("\nNatural clocks at the limit in recorded rooflines: below them nothing is known of its law. The only board")
    print("with a sweep as well, the H200, runs that load at 0.71 of its highest clock by itself: below all of them.\n")
    for sweep in recorded_sweeps():
        seen = sweep.points.clock()[sweep.held()]
        if len(seen):
            print(f"{sweep.label:36} down to {seen.min():4.2f} of the highest clock, {len(seen)} points at the limit")


def outside(paths: Sequence[Path]) -> None:
    """Boards and loads that took no part in the coefficients that come with the program."""
    print(
        "\nLoads that took no part, with the coefficients that come with the program; as above, a row for each board\n"
    )
    print(f"{'':32} loads {_COLUMNS}")
    loads = [load for path in paths for load in outside_loads(path)]
    for board, mine in by_board(loads).items():
        heavy, score, pairs = [load for load in mine if load.heavy], Score(), Score()
        for load in mine:
            score.add(load, asked(load, None))
        for one, other in itertools.permutations(heavy, 2):
            pairs.add(other, asked(other, None, one.fit))
        untouched = np.mean([100 * load.loss(load.natural) for load in heavy])
        print(f"{board:32} {len(mine):5} {Score.of([score])}   as it is {untouched:.1f} %")
        print(f"{'  by a sweep of another load':32} {'':5} {Score.of([pairs])}")


def main() -> int:
    paths = [Path(word) for word in sys.argv[1:] if word != "--coefficients"]
    loads = shared_loads()
    if "--coefficients" in sys.argv:
        known = fitted(loads)
        ends = ", ".join(f"{end:.3f}" for end in (known.energy.low, known.energy.value, known.energy.high))
        print(f"share = {known.share:.2f}\nenergy = [{ends}]\nother_load = {known.other_load:.2f}")
        print(f"# {', '.join(known.boards)}")
        return 0
    leave_one_out(loads)
    limits(loads)
    roofline_clocks()
    if paths:
        outside(paths)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
