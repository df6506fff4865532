"""How good a clock the frequency model finds on simulated boards, whose truth is known, from few and noisy readings.

By hand: `python tests/benchmarks/fit_twins.py [SEEDS]` prints a table; the last one is kept in `fit_twins.txt`.

Each reading of power is the truth times 1 + 2 % noise (normal); time is exact. Regret is the true energy per work at
the recommended clock over that of the best supported clock, minus one. 'held' is how often the 95 % interval of the
optimum holds the truth. The bound is what the Cramer-Rao bound leaves: the 95th percentile of the regret of an
unbiased estimate of the ridge, of the smallest variance that any can have from these readings, all else known.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.models.curve import Curve
from app.engine.models.design import next_clock
from app.engine.models.frequency import FrequencyFit, fit_frequency_model
from app.engine.sweep import FIRST_CLOCKS, spread_clocks
from app.sensors.simulated.truth import truth
from app.sensors.simulated.twin import load_twin

Floats = npt.NDArray[np.float64]
BOARDS = ("a100", "a4000", "h200", "v100", "titan_rtx")
NOISE = 0.02


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
        board, at = self._board, np.asarray(self._at)
        return fit_frequency_model(
            board.observed_mhz[at],
            np.asarray(self._power),
            rate=1 / board.time_s[at],
            limited=board.capped[at],
            supported_mhz=board.clock_mhz,
        )

    def next_clock(self) -> float | None:
        board, at = self._board, np.asarray(self._at)
        return next_clock(
            board.observed_mhz[at],
            np.asarray(self._power),
            1 / board.time_s[at],
            board.capped[at],
            board.clock_mhz,
            board.clock_mhz[at],
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


def steered(board: Board, count: int) -> Callable[[int, float], FrequencyFit]:
    """A fit of at most `count` clocks, each chosen by the readings before it."""
    clocks = spread_clocks([int(c) for c in board.clock_mhz], FIRST_CLOCKS)

    def fit(seed: int, noise: float) -> FrequencyFit:
        readings = Readings(board, seed, noise)
        for clock in clocks:
            readings.take(clock)
        for _ in range(count - len(clocks)):
            chosen = readings.next_clock()
            if chosen is None:
                break
            readings.take(chosen)
        return readings.fit()

    return fit


def bound(board: Board, count: int, lowest_share: float, noise: float) -> float:
    """The 95th percentile of the regret that the Cramer-Rao bound of the ridge allows; see the module."""
    free = ~board.capped
    truth_fit = fit_frequency_model(board.observed_mhz[free], board.power_w[free], rate=1 / board.time_s[free])
    assert truth_fit.curve is not None
    values = np.asarray(truth_fit.curve[:4])
    clocks = np.asarray(spread_clocks([int(c) for c in board.clock_mhz], count, lowest_share), dtype=np.float64)
    clocks = clocks[np.isin(clocks, board.clock_mhz[free])]
    base = Curve(*values).power_w(clocks)
    step = 1e-4
    slopes = [(Curve(*(values * (1 + step * unit))).power_w(clocks) / base - 1) / step for unit in np.eye(4)]
    covariance = np.linalg.inv(np.asarray(slopes) @ np.asarray(slopes).T / noise**2)
    spread = float(np.sqrt(covariance[3, 3]) * values[3])
    guesses = board.optimum_mhz + spread * np.random.default_rng(0).normal(size=4000)
    return min(
        float(np.quantile([board.regret(_nearest(board, guess - shift)) for guess in guesses], 0.95))
        for shift in range(-20, 61, 10)
    )


def _nearest(board: Board, clock_mhz: float) -> float:
    return float(board.clock_mhz[np.abs(board.clock_mhz - clock_mhz).argmin()])


def row(name: str, what: str, board: Board, fit: Callable[[int, float], FrequencyFit], seeds: int, noise: float) -> str:
    """One line of the table."""
    regrets, held, widths, points = [], 0, [], []
    began = time.process_time()
    for seed in range(seeds):
        made = fit(seed, noise)
        assert made.recommended_clock_mhz is not None
        assert made.optimum_interval_mhz is not None
        regrets.append(board.regret(made.recommended_clock_mhz))
        low, high = made.optimum_interval_mhz
        held += low <= board.optimum_mhz <= high
        widths.append(high - low)
        points.append(made.points)
    spent = (time.process_time() - began) / seeds
    shares = [100 * float(q) for q in (np.mean(regrets), *np.quantile(regrets, [0.5, 0.95]))]
    return (
        f"{name:10} {what:34} {np.mean(points):6.1f} {shares[0]:6.2f} {shares[1]:6.2f} {shares[2]:6.2f}"
        f" {100 * held / seeds:6.1f} {np.median(widths):6.0f} {1e3 * spent:7.0f}"
    )


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{seeds} seeds, noise of a reading 2 % unless said; regret in % of energy, interval in MHz")
    heads = ("board", "clocks", "points", "mean", "median", "p95", "held %", "width", "CPU ms")
    print("{:10} {:34} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}".format(*heads))
    for name in BOARDS:
        board = Board.of(name)
        for share, words in ((0.4, "10 even, from 0.4 of the highest"), (0.0, "10 even, from the lowest")):
            print(row(name, words, board, uniform(board, 10, share), seeds, NOISE), flush=True)
            least = 100 * bound(board, 10, share, NOISE)
            print(f"{'':10} {'  bound of any unbiased estimate':34} {least:27.2f}")
        print(row(name, "10 even, noise 0.6 %", board, uniform(board, 10, 0.4), seeds, 0.006), flush=True)
        for count in (8, 10):
            print(row(name, f"{count} steered", board, steered(board, count), seeds, NOISE), flush=True)
        print(row(name, "8 steered, noise 0.6 %", board, steered(board, 8), seeds, 0.006), flush=True)


if __name__ == "__main__":
    main()
