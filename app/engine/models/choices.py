"""Clocks for different aims: least energy, energy-delay products, least energy at almost full speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Floats
from .posterior import Posterior

SLOWER = (0.05, 0.1)  # shares of the full speed that may be given up


@dataclass(frozen=True, slots=True)
class Choice:
    """The best clock for an aim, and what it costs and gains against the fastest clock."""

    wish: str
    clock_mhz: float
    energy: float  # expected, over that of the fastest clock
    time: float  # over that of the fastest clock


def choices(posterior: Posterior, clocks_mhz: Floats) -> tuple[Choice, ...]:
    """The best of the clocks, shape (n,), for each aim, by the expected energy E and time t."""
    time = np.interp(clocks_mhz, posterior.clock_mhz, posterior.time)
    drawn = posterior.energy / posterior.energy.min(axis=1)[:, None]
    energy = np.interp(clocks_mhz, posterior.clock_mhz, drawn.mean(axis=0))
    fastest = int(time.argmin())

    def choice(wish: str, cost: Floats) -> Choice:
        at = int(cost.argmin())
        return Choice(wish, float(clocks_mhz[at]), float(energy[at] / energy[fastest]), float(time[at] / time[fastest]))

    found = [choice("least energy x time", energy * time), choice("least energy x time^2", energy * time**2)]
    for share in SLOWER:
        allowed = time <= time.min() / (1.0 - share)
        found.append(
            choice(f"least energy within {100 * share:.0f} % of full speed", np.where(allowed, energy, np.inf))
        )
    return tuple(found)
