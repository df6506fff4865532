"""How good a clock the frequency model finds on simulated boards, whose truth is known, from few and noisy readings.

By hand: `python tests/benchmarks/fit_twins.py [SEEDS]` prints a table; the last one is kept in `fit_twins.txt`.

Each reading of power is the truth times 1 + 2 % noise (normal); time is exact. Regret is the true energy per work at
the recommended clock over that of the best supported clock, minus one. 'held' is how often the 95 % interval of the
optimum holds the truth. The bound is what the Cramer-Rao bound leaves: the 95th percentile of the regret of an
unbiased estimate of the ridge, of the smallest variance that any can have from these readings by someone who knows that
the board is of the sharp form. Beside it the bound with what other boards teach beforehand: a ridge at 0.67 +- 0.1 of
the highest clock, P_idle known to 40 %, the voltage at the highest clock to 15 %. The last bound is that of the ten
different clocks that tell the ridge best, which only someone who knows it beforehand could choose.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads only wait for each other

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.engine.models.fit.curve import Curve
from app.engine.models.fit.design import next_clock
from app.engine.models.fit.frequency import FrequencyFit, fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.sweep import FIRST_CLOCKS, spread_clocks
from app.sensors.simulated.truth import truth
from app.sensors.simulated.twin import load_twin

Floats = npt.NDArray[np.float64]
BOARDS = ("a100", "a4000", "h200", "v100", "titan_rtx")
NOISE = 0.02
COUNTS = (8, 10)  # of steered clocks


@dataclass(frozen=True)
class Board:
    """The truth at every supported clock; shape (n,)."""

    clock_mhz: Floats
    observed_mhz: Floats
    power_w: Floats
    time_s: Floats
    capped: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, name: str) -> Board:
        rows = truth(load_twin(name))
        columns = ("clock_mhz", "observed_clock_mhz", "power_w", "time_s")
        return cls(
            *(np.asarray([float(row[key]) for row in rows]) for key in columns),
            np.asarray([bool(row["capped"]) for row in rows]),
        )

    @property
    def energy(self) -> Floats:
        return self.power_w * self.time_s

    @property
    def optimum_mhz(self) -> float:
        return float(self.observed_mhz[self.energy.argmin()])

    def regret(self, clock_mhz: float) -> float:
        return float(np.interp(clock_mhz, self.clock_mhz, self.energy) / self.energy.min() - 1)


class Readings:
    """Noisy readings of a board at chosen clocks."""

    def __init__(self, board: Board, seed: int, noise: float) -> None:
        self._board, self._noise, self._rng = board, noise, np.random.default_rng(seed)
        self._at: list[int] = []
        self._power: list[float] = []

    def take(self, clock_mhz: float) -> None:
        at = int(np.searchsorted(self._board.clock_mhz, clock_mhz))
        self._at.append(at)
        self._power.append(float(self._board.power_w[at] * (1 + self._noise * self._rng.normal())))

    def fit(self) -> FrequencyFit:
        return fit_frequency_model(self._points())

    def next_clock(self) -> float | None:
        return next_clock(replace(self._points(), requested_mhz=self._board.clock_mhz[np.asarray(self._at)]))

    def _points(self) -> Points:
        board, at = self._board, np.asarray(self._at)
        return Points(
            board.observed_mhz[at],
            np.asarray(self._power),
            rate=1 / board.time_s[at],
            limited=board.capped[at],
            supported_mhz=board.clock_mhz,
        )


def uniform(board: Board, count: int, lowest_share: float) -> Callable[[int, float], FrequencyFit]:
    """A fit of `count` clocks, evenly spread, per seed and noise."""
    clocks = spread_clocks([int(c) for c in board.clock_mhz], count, lowest_share)

    def fit(seed: int, noise: float) -> FrequencyFit:
        readings = Readings(board, seed, noise)
        for clock in clocks:
            readings.take(clock)
        return readings.fit()

    return fit


def steered(board: Board, counts: Sequence[int]) -> Callable[[int, float], list[FrequencyFit]]:
    """Fits of at most so many clocks, each chosen by the readings before it; one series of readings for all counts."""
    clocks = spread_clocks([int(c) for c in board.clock_mhz], FIRST_CLOCKS)

    def fits(seed: int, noise: float) -> list[FrequencyFit]:
        readings = Readings(board, seed, noise)
        for clock in clocks:
            readings.take(clock)
        made: list[FrequencyFit] = []
        chosen: float | None = clocks[-1]
        for count in range(len(clocks), max(counts) + 1):
            if count > len(clocks) and chosen is not None:
                chosen = readings.next_clock()
                if chosen is not None:
                    readings.take(chosen)
            if count in counts:
                made.append(readings.fit())
        return made

    return fits


class Bound:
    """What the Cramer-Rao bound of the ridge leaves of regret; see the module."""

    def __init__(self, board: Board, noise: float) -> None:
        free = ~board.capped
        truth_fit = fit_frequency_model(
            Points(board.observed_mhz[free], board.power_w[free], rate=1 / board.time_s[free])
        )
        assert truth_fit.curve is not None
        values, step = np.asarray(truth_fit.curve[:4]), 1e-4
        self._board, self._clocks, self._ridge_mhz = board, board.clock_mhz[free], float(values[3])
        base = Curve(*values).power_w(self._clocks)
        slopes = [(Curve(*(values * (1 + step * unit))).power_w(self._clocks) / base - 1) / step for unit in np.eye(4)]
        self._slopes = np.stack(slopes, axis=1) / noise  # (clocks, parameters)
        top = float(board.clock_mhz[-1])
        rise, top_voltage = values[2], 1 + values[2] * (top - self._ridge_mhz)
        self._beforehand = np.asarray(  # what each piece of knowledge says of the relative parameters
            [
                [1 / 0.4, 0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, self._ridge_mhz / top / 0.1],
                [
                    0.0,
                    0.0,
                    rise * (top - self._ridge_mhz) / top_voltage / 0.15,
                    -rise * self._ridge_mhz / top_voltage / 0.15,
                ],
            ]
        )

    def at(self, clocks_mhz: Floats, *, taught: bool = False) -> float:
        """The 95th percentile of regret, of readings at these clocks; those under a cap tell nothing.

        `taught`: with what other boards teach.
        """
        at = np.flatnonzero(np.isin(self._clocks, clocks_mhz))
        spread = float(np.sqrt(self._variance(at, taught=taught)) * self._ridge_mhz)
        board = self._board
        guesses = board.optimum_mhz + spread * np.random.default_rng(0).normal(size=4000)
        return min(
            float(np.quantile([board.regret(_nearest(board, guess - shift)) for guess in guesses], 0.95))
            for shift in range(-20, 61, 10)
        )

    def best(self, count: int) -> float:
        """... of the `count` different clocks that tell the ridge best, by exchanging one for another."""
        found: list[tuple[float, Floats]] = []
        for seed in range(6):
            at = np.random.default_rng(seed).choice(len(self._clocks), count, replace=False)
            variance = np.inf
            while self._variance(at) < variance * (1 - 1e-9):
                variance = self._variance(at)
                for place in range(count):
                    others = np.setdiff1d(np.arange(len(self._clocks)), np.delete(at, place))
                    at[place] = min(others, key=lambda other: self._variance(_with(at, place, other)))
            found.append((variance, self._clocks[at]))
        return self.at(min(found, key=lambda each: each[0])[1])

    def _variance(self, at: npt.NDArray[np.intp], *, taught: bool = False) -> float:
        """Of the ridge, relative."""
        slopes = np.concatenate([self._slopes[at], self._beforehand]) if taught else self._slopes[at]
        information = slopes.T @ slopes
        return float(np.linalg.inv(information)[3, 3]) if np.linalg.cond(information) < 1e14 else np.inf


def _with(at: npt.NDArray[np.intp], place: int, other: int) -> npt.NDArray[np.intp]:
    changed = at.copy()
    changed[place] = other
    return changed


def _nearest(board: Board, clock_mhz: float) -> float:
    return float(board.clock_mhz[np.abs(board.clock_mhz - clock_mhz).argmin()])


def row(name: str, what: str, board: Board, fits: Sequence[FrequencyFit], spent_s: float) -> str:
    """One line of the table: of a fit for each seed."""
    regrets = [board.regret(fit.recommended_clock_mhz) for fit in fits if fit.recommended_clock_mhz is not None]
    intervals = [fit.optimum_interval_mhz for fit in fits if fit.optimum_interval_mhz is not None]
    assert len(regrets) == len(intervals) == len(fits)
    held = np.mean([low <= board.optimum_mhz <= high for low, high in intervals])
    width = np.median([high - low for low, high in intervals])
    shares = [100 * float(q) for q in (np.mean(regrets), *np.quantile(regrets, [0.5, 0.95]))]
    points = np.mean([fit.points for fit in fits])
    return (
        f"{name:10} {what:34} {points:6.1f} {shares[0]:6.2f} {shares[1]:6.2f} {shares[2]:6.2f}"
        f" {100 * held:6.1f} {width:6.0f} {1e3 * spent_s:7.0f}"
    )


def even(name: str, what: str, board: Board, share: float, seeds: int, noise: float) -> str:
    """The line of ten evenly spread clocks."""
    fit = uniform(board, 10, share)
    began = time.process_time()
    fits = [fit(seed, noise) for seed in range(seeds)]
    return row(name, what, board, fits, (time.process_time() - began) / seeds)


def chosen(name: str, board: Board, seeds: int, noise: float) -> list[str]:
    """The lines of at most eight and ten clocks, each chosen by the readings before it."""
    fit = steered(board, COUNTS)
    began = time.process_time()
    fits = [fit(seed, noise) for seed in range(seeds)]
    spent = (time.process_time() - began) / seeds
    by_count = zip(*fits, strict=True)
    return [row(name, f"{n} steered", board, made, spent) for n, made in zip(COUNTS, by_count, strict=True)]


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{seeds} seeds, noise of a reading 2 % unless said; regret in % of energy, interval in MHz; CPU per seed,")
    print("for the steered ones of the whole series: every choice, and both fits. Bounds are of the 95th percentile.")
    heads = ("board", "clocks", "points", "mean", "median", "p95", "held %", "width", "CPU ms")
    print("{:10} {:34} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}".format(*heads))
    for name in BOARDS:
        board = Board.of(name)
        bound = Bound(board, NOISE)
        for share, words in ((0.4, "10 even, from 0.4 of the highest"), (0.0, "10 even, from the lowest")):
            print(even(name, words, board, share, seeds, NOISE), flush=True)
            clocks = np.asarray(spread_clocks([int(c) for c in board.clock_mhz], 10, share))
            for words, taught in (("  bound of any unbiased estimate", False), ("  ... with what boards teach", True)):
                print(f"{'':10} {words:34} {100 * bound.at(clocks, taught=taught):27.2f}")
        print(even(name, "10 even, noise 0.6 %", board, 0.4, seeds, 0.006), flush=True)
        for line in chosen(name, board, seeds, NOISE):
            print(line, flush=True)
        print(f"{'':10} {'  bound of the ten best clocks':34} {100 * bound.best(10):27.2f}", flush=True)


if __name__ == "__main__":
    main()
