"""Which clocks can be set: those between the sampled ones on the board's grid, as far as the board follows them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from .arrays import Floats
from .clock_following import where_held
from .points import Points

# Boards from Turing on, whose clocks go in steps of 15 MHz; on Volta in steps of 7.5 MHz, reported in whole ones.
_STEPS_OF_15 = re.compile(r"\b(RTX|T4|A\d{1,3}|A\d000|L\d{1,2}S?|H\d{3}|GH\d{3}|B\d{3}|GB\d{3})\b", re.IGNORECASE)
_STEPS_MHZ = (15.0, 7.5)
_ENOUGH_CLOCKS = 5  # hardly on a grid by chance
_HIGHEST_MHZ = 100_000.0  # beyond any board: a figure in another unit, of which no grid is made


def settable_clocks(gpu: str, clock_mhz: Floats) -> tuple[tuple[float, ...] | None, tuple[str, ...]]:
    """Settable clocks between the sampled ones, where they lie on a regular grid as NVIDIA's boards have it.

    Sampled ones may be means of readings, off the grid by a fraction of a MHz.
    """
    known = np.unique(np.round(clock_mhz[np.isfinite(clock_mhz)]))
    if not len(known) or known[0] <= 0 or known[-1] > _HIGHEST_MHZ:
        return None, ()
    named = bool(_STEPS_OF_15.search(gpu))
    for step in _STEPS_MHZ:
        grid = np.floor(np.arange(0.0, known[-1] + 1.0, step))
        if np.isin(known, grid).all() and (named or len(known) >= _ENOUGH_CLOCKS):
            between = tuple(grid[(grid >= known[0]) & (grid <= known[-1])].tolist())
            of = f" of {gpu}" if gpu else ""
            return between, (f"clocks{of} assumed to go in steps of {step:g} MHz, as the given ones do",)
    return None, ()


def how_settable(clock_mhz: float) -> str:
    """What is to be said of a clock that is recommended: boards are set to whole MHz, and the mean of readings that is
    none lies between clocks that can be set."""
    return "can be set" if clock_mhz == round(clock_mhz) else "a mean of readings, between clocks that can be set"


def only_followed(points: Points) -> Points:
    """The series with the clocks that the board follows as those that can be set; its notes name where it does not."""
    held = where_held(points)
    if held is None:
        return points
    supported = points.supported_mhz
    if supported is not None:
        supported = tuple(clock for clock in supported if clock <= held.followed_mhz)
    return replace(points, supported_mhz=supported, notes=(held.words, *points.notes))
