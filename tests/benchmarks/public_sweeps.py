"""Regret of the recommended clock on sweeps of real boards. By hand: python tests/benchmarks/public_sweeps.py N FILE...

Each FILE is a CSV of clocks, powers and times, of many programs or of one. N of the clocks of a program, evenly spread,
are fitted; the regret is the energy at the recommended clock over the least of all its clocks. Where more than 30 were
measured, energies are medians of five neighbours. Beside it: the clock with the least measured energy of the N.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.engine.models.points import Points, fit_points  # noqa: E402
from app.engine.models.series import read_series  # noqa: E402

_DENSE = 30


def regrets(points: Points, count: int) -> tuple[float, float]:
    """Of the recommended clock, and of the best one that was measured. Shares of the least energy."""
    assert points.rate is not None
    clock, first = np.unique(points.clock_mhz, return_index=True)
    power, rate = points.power_w[first], points.rate[first]
    energy = power / rate
    if len(clock) > _DENSE:
        energy = np.array([np.median(energy[max(0, at - 2) : at + 3]) for at in range(len(energy))])
    at = np.unique(np.linspace(0, len(clock) - 1, min(count, len(clock))).round().astype(int))
    few = replace(
        points,
        clock_mhz=clock[at],
        power_w=power[at],
        rate=rate[at],
        limited=None,
        supported_mhz=tuple(clock.tolist()),
        voltage_mv=None,
        temperature_c=None,
    )
    chosen = fit_points(few).recommended_clock_mhz
    chosen = clock[-1] if chosen is None else chosen
    best_of_few = at[(power[at] / rate[at]).argmin()]
    return tuple(energy[place] / energy.min() - 1 for place in (np.abs(clock - chosen).argmin(), best_of_few))


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    count = int(sys.argv[1])
    print(f"{count} clocks, regret in %{'':22} recommended            least measured of them")
    print(f"{'':16} programs  clocks   median   mean    p90    max   median   mean    p90    max")
    for file in map(Path, sys.argv[2:]):
        series = [points for points in read_series(file) if points.rate is not None and points.clocks >= 3]
        told = 100 * np.array([regrets(points, count) for points in series])
        words = [
            f"{np.median(each):8.2f} {each.mean():6.2f} {np.percentile(each, 90):6.2f} {each.max():6.2f}"
            for each in told.T
        ]
        print(f"{file.stem:16} {len(series):8} {max(points.clocks for points in series):7} {' '.join(words)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
