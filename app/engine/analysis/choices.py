"""Every way to choose at once: which configuration each picks, and what it costs and gains against the fastest."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .choosers import (
    at_most_power,
    at_most_slower,
    fastest,
    knee,
    least_edp,
    least_energy,
    weighted,
)
from .costs import Costs
from .tradeoff import Load, Tradeoff, Yearly, percent_words, tradeoff, yearly


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person sets: limits and the weight of time."""

    slower: float = 0.05  # 5 % more time at most
    power_w: float | None = None  # None: halfway between those of the fastest and of the least energy
    weight: float = 0.5  # a in M = a t + (1 - a) e


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to choose. `index` is into the columns; None where it finds nothing."""

    name: str
    label: str
    index: int | None
    against_fastest: Tradeoff | None
    yearly: Yearly | None


def choices(costs: Costs, wishes: Wishes | None = None, load: Load | None = None) -> list[Choice]:
    """All choosers on the same measurements, the fastest first."""
    wishes, load = wishes or Wishes(), load or Load()
    t, e, p = costs.time_s, costs.energy_j, costs.power_w
    first = fastest(t, e)
    frugal = least_energy(t, e)
    limit_w = wishes.power_w if wishes.power_w is not None else _between(costs, first, frugal)
    picked: list[tuple[str, str, int | None]] = [
        ("fastest", "Fastest", first),
        ("least_energy", "Least energy", frugal),
        ("least_edp", "Least energy-delay product E t", least_edp(t, e)),
        ("least_ed2p", "Least E t²", least_edp(t, e, 2)),
        (
            "at_most_slower",
            f"Least energy, at most {percent_words(wishes.slower)} slower",
            at_most_slower(t, e, wishes.slower),
        ),
        ("knee", "Knee of the front", knee(t, e)),
        ("weighted", f"Least a t + (1 - a) e, a = {wishes.weight:g}", weighted(t, e, wishes.weight)),
    ]
    if math.isfinite(limit_w):
        label = f"Fastest, at most {limit_w:.0f} W"
        picked.insert(5, ("at_most_power", label, at_most_power(t, e, p, limit_w)))
    return [Choice(name, label, index, *against(costs, first, index, load)) for name, label, index in picked]


def against(
    costs: Costs, reference: int | None, index: int | None, load: Load | None = None
) -> tuple[Tradeoff | None, Yearly | None]:
    """What choosing `index` costs and gains against `reference`, at once and over a year; None where one is missing.

    The year is None where the power of the reference is unknown.
    """
    if reference is None or index is None:
        return None, None
    change = tradeoff(
        float(costs.time_s[reference]),
        float(costs.energy_j[reference]),
        to_time_s=float(costs.time_s[index]),
        to_energy_j=float(costs.energy_j[index]),
    )
    power_w = float(costs.power_w[reference])
    if costs.energy_known:  # the energies that are compared, rather than the mean power that was told beside them
        power_w = float(costs.energy_j[reference] / costs.time_s[reference])
    if not math.isfinite(power_w * change.energy_change):
        return change, None
    return change, yearly(power_w, change, load or Load())


def _between(costs: Costs, first: int | None, frugal: int | None) -> float:
    """A power limit worth looking at where nobody states one: halfway between the two ends, in whole watts."""
    if first is None or frugal is None or first == frugal:
        return math.nan
    middle = float(costs.power_w[first] + costs.power_w[frugal]) / 2
    return float(math.ceil(middle)) if math.isfinite(middle) else math.nan
