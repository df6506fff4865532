"""Regret and intervals on sweeps of real boards. By hand: python tests/benchmarks/public_sweeps.py N FILE...

Each FILE is a CSV or cache of clocks, powers and times, of many programs or of one; files of one folder share a line.
N of the clocks of a program, evenly spread, are fitted with all their repeats, 0 for all clocks; the regret is the
energy at the recommended clock over the least of all its clocks. Energies are means of the repeats; where 30 clocks or
more were measured, medians of five neighbours of those. `held` counts the programs whose 95 % interval of the optimum
holds a clock with an energy within the scatter of the repeats (of their mean) of the least one; without repeats, within
the scatter about those medians, and of fewer clocks the very clock. `width` is the median one, in MHz.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.models.fit.frequency import FrequencyFit, fit_points  # noqa: E402
from app.engine.models.fit.points import Points  # noqa: E402
from app.engine.models.series import read_series  # noqa: E402

_DENSE = 30
_ROWS = ("clock_mhz", "power_w", "rate", "temperature_c", "requested_mhz")


class Sweep:
    """One program: its energy at each clock, ascending; shape (k,)."""

    def __init__(self, points: Points) -> None:
        assert points.rate is not None
        known = np.isfinite(points.clock_mhz) & (points.power_w > 0) & (points.rate > 0)
        self._points = _rows(points, known)
        asked = self._points.requested_mhz if self._points.requested_mhz is not None else self._points.clock_mhz
        self.clock, self._at = np.unique(asked, return_inverse=True)
        repeats = np.bincount(self._at)
        log_energy = np.log(self._points.power_w / self._points.rate)
        mean = np.bincount(self._at, log_energy) / repeats
        self.energy, degrees = np.exp(mean), len(self._at) - len(repeats)
        dense = len(self.clock) >= _DENSE
        if dense:
            self.energy = np.array([np.median(self.energy[max(0, k - 2) : k + 3]) for k in range(len(self.energy))])
        if degrees >= 5:
            spread = np.sqrt(((log_energy - mean[self._at]) ** 2).sum() / degrees / repeats.mean())
        else:
            spread = np.std(mean - np.log(self.energy)) if dense else 0.0
        self.good = self.clock[self.energy <= self.energy.min() * np.exp(spread)]

    def fit(self, count: int) -> FrequencyFit:
        """To `count` of the clocks, evenly spread, or to all where that is 0."""
        kept = np.ones(len(self._at), dtype=bool)
        if count:
            kept = np.isin(self._at, np.linspace(0, len(self.clock) - 1, count).round().astype(int))
        supported = self._points.supported_mhz or tuple(self.clock.tolist())
        return fit_points(replace(_rows(self._points, kept), supported_mhz=supported))

    def regret(self, clock_mhz: float | None) -> float:
        """Without a recommendation that of the highest clock. Share of the least energy."""
        there = self.clock[-1] if clock_mhz is None else clock_mhz
        return float(np.interp(there, self.clock, self.energy) / self.energy.min() - 1)


def _rows(points: Points, kept: np.ndarray) -> Points:
    known = {name: getattr(points, name) for name in _ROWS}
    rows = {name: None if values is None else values[kept] for name, values in known.items()}
    return replace(points, **rows, limited=None, voltage_mv=None)


def row(name: str, sweeps: list[Sweep], count: int) -> str:
    """One line of the table."""
    fits = [sweep.fit(count) for sweep in sweeps]
    both = list(zip(sweeps, fits, strict=True))
    intervals = [(sweep, *fit.optimum_interval_mhz) for sweep, fit in both if fit.optimum_interval_mhz is not None]
    held = sum(bool(((sweep.good >= low) & (sweep.good <= high)).any()) for sweep, low, high in intervals)
    width = np.median([high - low for _, low, high in intervals]) if intervals else np.nan
    words = []
    for choices in ([fit.recommended_clock_mhz for fit in fits], [fit.best_measured_mhz for fit in fits]):
        told = 100 * np.array([sweep.regret(clock) for sweep, clock in zip(sweeps, choices, strict=True)])
        words.append(f"{np.median(told):8.2f} {told.mean():6.2f} {np.percentile(told, 90):6.2f} {told.max():6.2f}")
    clocks = max(len(sweep.clock) for sweep in sweeps)
    return f"{name:16} {len(sweeps):8} {clocks:7} {' '.join(words)} {held:5} of {len(intervals):2} {width:7.0f}"


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    count = int(sys.argv[1])
    print(f"{count or 'all'} clocks, regret in %{'':22} recommended            least measured of them   interval")
    print(f"{'':16} programs  clocks   median   mean    p90    max   median   mean    p90    max     held   width")
    files: dict[str, list[Path]] = {}
    for file in map(Path, sys.argv[2:]):
        files.setdefault(file.stem if file.parent.name in ("", ".") else file.parent.name, []).append(file)
    for name, group in files.items():
        series = [points for file in group for points in read_series(file)]
        sweeps = [Sweep(points) for points in series if points.rate is not None and points.clocks >= 3]
        print(row(name, sweeps, count))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
