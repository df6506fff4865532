"""A measurement of one board, given as the reference board of its session would report it; and back.

Time, power and energy are divided by the board's ratios, metrics follow, and intervals hold what the ratios are
uncertain by, and by how much a single configuration may differ from them. What the board itself reported stays beside
it, `OWN_FIGURES`. Where a limit acted the power is the limit's on every board and the clock gives way: nothing is
corrected there, and the intervals reach as far as a correction would.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from ...sensors.event_reasons import LIMITING
from ..measurement import OWN_FIGURES, Measurement, State
from ..metering.board_offsets import BoardOffset, Ratio
from ..specification.model import Specification
from .rescaling import rescaled

BOARD_CORRECTION: Final = "board_correction"  # of energy, or of time where only that is known: as given over its own
_BY_TIME: Final = "board_uncertainty_time"  # what the correction adds to the interval; 95 %, relative
_BY_POWER: Final = "board_uncertainty_power"
BOARD_UNCERTAINTIES: Final = (_BY_TIME, _BY_POWER)
BOARD_NUMBER: Final = "board_number"  # among the boards of the session, the reference 1: something to colour points by
_KEPT: Final = frozenset({*OWN_FIGURES.values(), BOARD_CORRECTION, BOARD_NUMBER, _BY_TIME, _BY_POWER})


def corrected(own: Measurement, offset: BoardOffset, spec: Specification, number: int = 1) -> Measurement:
    """What a board reported, as the reference board would; failures, and what has no time, as they are.

    `number` is the board's in its session.
    """
    if own.state is not State.OK or "time_s" not in own.values:
        return own
    limited = bool(own.event_reasons & LIMITING)
    factors, uncertainties = {}, {}
    for name in OWN_FIGURES:
        ratio = offset.ratios.get(name)
        if ratio is not None and name in own.values:
            factors[name] = 1.0 if limited else 1.0 / ratio.value
            uncertainties[name] = _reach(ratio) if limited else ratio.uncertainty
    by_time, by_power = uncertainties.get("time_s", 0.0), uncertainties.get("power_w", 0.0)
    moved = rescaled(own, spec, factors, _errors(by_time, by_power))
    known = {ours: own.values[name] for name, ours in OWN_FIGURES.items() if name in own.values}
    ends = {ours: own.intervals[name] for name, ours in OWN_FIGURES.items() if name in own.intervals}
    kept = {**known, BOARD_CORRECTION: factors.get("energy_j", factors.get("time_s", 1.0))}
    kept |= {_BY_TIME: by_time, _BY_POWER: by_power, BOARD_NUMBER: float(number)}
    return replace(moved, values={**moved.values, **kept}, intervals={**moved.intervals, **ends})


def uncorrected(given: Measurement, spec: Specification) -> Measurement:
    """What the board itself reported of a measurement that was corrected; others as they are."""
    if BOARD_CORRECTION not in given.values:
        return given
    values = {name: value for name, value in given.values.items() if name not in _KEPT}
    intervals = {name: both for name, both in given.intervals.items() if name not in _KEPT}
    factors = {name: given.values[ours] / values[name] for name, ours in OWN_FIGURES.items() if values.get(name)}
    errors = _errors(given.values[_BY_TIME], given.values[_BY_POWER])
    own = rescaled(replace(given, values=values, intervals=intervals), spec, factors, errors, narrower=True)
    exact = {name: given.values[ours] for name, ours in OWN_FIGURES.items() if ours in given.values}
    ends = {name: given.intervals[ours] for name, ours in OWN_FIGURES.items() if ours in given.intervals}
    return replace(own, values={**own.values, **exact}, intervals={**own.intervals, **ends})


def _errors(by_time: float, by_power: float) -> list[dict[str, float]]:
    """Two errors that do not depend on each other; energy follows both."""
    return [{"time_s": by_time, "energy_j": by_time}, {"power_w": by_power, "energy_j": by_power}]


def _reach(ratio: Ratio) -> float:
    """How far a figure may be off that is not corrected."""
    return abs(math.log(ratio.value)) + ratio.uncertainty
