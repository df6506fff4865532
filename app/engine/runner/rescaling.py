"""A measurement at other factors of its time, power and energy: what follows from them, and its intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..measurement import SPREADS, Measurement
from ..metering.confidence import not_negative
from ..specification.model import Specification, evaluate_metrics

Factors = Mapping[str, float]  # of figures, by their names
_NOT_NEGATIVE: Final = ("time_s", "energy_j", "power_w", "energy_raw_j", "power_raw_w")


def rescaled(
    measurement: Measurement,
    spec: Specification,
    factors: Factors,
    uncertainties: Sequence[Factors] = (),
    *,
    narrower: bool = False,
) -> Measurement:
    """With `factors` times those figures, all that follows from them, and intervals wider by the uncertainties.

    Each of `uncertainties` is one error that moves several figures together, each by a share of it (95 %, relative);
    they are independent of one another. `narrower` takes away what they added before.
    """
    own = {name: value for name, value in measurement.values.items() if name not in spec.metrics}
    values = _at(measurement, spec, own, factors)
    errors = [_ends(measurement, spec, own, factors, each) for each in uncertainties]
    intervals = {}
    for name, ends in measurement.intervals.items():
        before, now = measurement.values.get(name, math.nan), values.get(name, math.nan)
        share = now / before if before else 1.0
        below, above = ((end - before) * share for end in sorted(ends))
        added = math.hypot(*(abs(high.get(name, now) - low.get(name, now)) / 2 for low, high in errors))
        widen = _without if narrower else math.hypot
        around = now - widen(below, added), now + widen(above, added)
        if name in _NOT_NEGATIVE:  # what was below 0 is not kept: an interval that reached down to it does so still
            around = not_negative((0.0 if min(ends) == 0 else around[0], around[1]))
        intervals[name] = around
    return replace(measurement, values=values, intervals=intervals)


def _ends(
    measurement: Measurement, spec: Specification, own: Factors, factors: Factors, uncertainty: Factors
) -> tuple[dict[str, float], dict[str, float]]:
    """The figures with one error at both of its ends."""
    low, high = (
        {name: factors.get(name, 1.0) * (1 + sign * uncertainty.get(name, 0.0)) for name in {*factors, *uncertainty}}
        for sign in (-1.0, 1.0)
    )
    return _at(measurement, spec, own, low), _at(measurement, spec, own, high)


def _at(measurement: Measurement, spec: Specification, own: Factors, factors: Factors) -> dict[str, float]:
    """The figures with these factors, the scatter of repeats as theirs."""
    scaled = {**own, **{name: own[name] * factor for name, factor in factors.items() if name in own}}
    found = {**scaled, **evaluate_metrics(spec, measurement.configuration, scaled)}
    for name, before in measurement.values.items():
        if f"std_{name}" not in own or not before:
            continue
        least, most, scatter = (own[f"{kind}_{name}"] * (found[name] / before) for kind in SPREADS)
        ends = {"min": min(least, found[name]), "max": max(most, found[name]), "std": scatter}
        found |= {f"{kind}_{name}": value for kind, value in ends.items()}
    return {name: found[name] for name in measurement.values if name in found}


def _without(both: float, added: float) -> float:
    """What together with `added` makes `both`, in squares."""
    return math.sqrt(max(0.0, both * both - added * added))
