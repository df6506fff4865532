"""When to look at a load that does not end by itself: from when it is steady, until its figures are known well enough.

The beginning is cut off by the marginal standard error rule [White1997]: of all places to begin at, the one after which
the mean is known best. It counts as steady once that place lies in the first half of what was seen, for throughput and
for power. The means' 95 % intervals are Student's t over blocks of time, widened for neighbours that are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .confidence import student_t

Floats = npt.NDArray[np.float64]

BLOCKS: Final = 24  # that the time since the load began is divided into
FEWEST: Final = 8  # of them in a window
_MOST_ALIKE: Final = 0.9  # correlation of neighbours that is believed


@dataclass(frozen=True, slots=True)
class Look:
    """A window over a load as it would be now."""

    start_s: float  # since the load began
    end_s: float
    steady: bool  # in throughput and in power
    rate_half: float  # half-width of the 95 % interval of the throughput, relative; inf where not known
    power_half: float  # the same of the mean power, by its changes alone
    cost_half: float  # the same of the energy for a unit of work: what both do together is not in it

    def narrow(self, precision: float) -> bool:
        """Whether both are known to so much."""
        return self.steady and max(self.rate_half, self.power_half) <= precision


def look(times_s: Floats, work: Floats, power_times_s: Floats, power_w: Floats, end_s: float) -> Look:
    """The best window over a load that began at 0 and is looked at until `end_s`.

    `work` has what was done until each of `times_s` (ascending, shape (n,)) since the one before, and `power_w` the
    power at each of `power_times_s`.
    """
    edges = np.linspace(0.0, end_s, BLOCKS + 1)
    done = np.interp(edges, np.concatenate([[0.0], times_s]), np.concatenate([[0.0], np.cumsum(work)]))
    rate = np.diff(done)
    count = np.histogram(power_times_s, edges)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        power = np.histogram(power_times_s, edges, weights=power_w)[0] / count
    known = np.isfinite(power)
    first = begins_at(rate)
    if known.sum() >= FEWEST:
        first = max(first, int(np.flatnonzero(known)[begins_at(power[known])]))
    latest = BLOCKS // 2
    steady = first < latest
    first = min(first, latest)
    kept, done = power[first:][known[first:]], rate[first:][known[first:]]
    work_for_each = float(done.sum() / kept.sum()) if len(kept) and kept.sum() > 0 else math.nan
    return Look(
        start_s=float(edges[first]),
        end_s=end_s,
        steady=steady,
        rate_half=half_width(rate[first:]),
        power_half=half_width(kept) if len(kept) else 0.0,
        # of a ratio of means by what each block is off it [Cochran1977, eq. 6.13]
        cost_half=half_width(done - work_for_each * kept, float(done.mean())) if len(kept) else math.inf,
    )


def begins_at(values: Floats) -> int:
    """The place from which on the mean of these is known best [White1997]; at the latest where FEWEST are left."""
    last = max(0, len(values) - FEWEST)
    errors = [float(np.var(values[at:])) / (len(values) - at) for at in range(last + 1)]
    least = min(errors)
    return next(at for at, error in enumerate(errors) if error <= least * (1 + 1e-9))


def half_width(values: Floats, scale: float | None = None) -> float:
    """Half of the 95 % interval of the mean, relative to it or to `scale`; inf where that is not known.

    Neighbours that are alike count for less than as many independent ones: by (1 + r) / (1 - r) of a first-order
    autoregression.
    """
    count, mean = len(values), float(np.mean(values)) if len(values) else 0.0
    scale = mean if scale is None else scale
    if count < FEWEST or not scale > 0:
        return math.inf
    apart = values - mean
    squares = float(apart @ apart)
    if squares <= (1e-12 * scale) ** 2 * count:
        return 0.0
    alike = min(_MOST_ALIKE, max(0.0, float(apart[1:] @ apart[:-1]) / squares))
    deviation = math.sqrt(squares / (count - 1) / count * (1 + alike) / (1 - alike))
    return student_t(count - 1) * deviation / scale
