"""The cost and gain of a choice over another one, in words, and over a year of a stated load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...base.formatting import UNKNOWN, number

HOURS_PER_YEAR: Final = 8760.0


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Relative changes: 0.04 is 4 % more. NaN if a figure is unknown."""

    time_change: float
    energy_change: float
    power_change: float

    @property
    def words(self) -> str:
        """'18 % less energy for 4 % more time'; the gain first, 'and' between what goes the same way."""
        parts = [
            (change, change_words(change, what))
            for change, what in ((self.energy_change, "energy"), (self.time_change, "time"))
            if not math.isnan(change)
        ]
        if not parts:
            return "not known"
        changed = sorted((change, words) for change, words in parts if not _is_same(change))
        if not changed:
            return "the same time and energy" if len(parts) == 2 else parts[0][1]
        if len(changed) == 1 and len(parts) == 2:
            same = next(words for change, words in parts if _is_same(change))
            return f"{changed[0][1]} in {same}" if same.endswith("time") else f"{changed[0][1]} for {same}"
        joint = " for " if changed[0][0] < 0 < changed[-1][0] else " and "
        return joint.join(words for _, words in changed)


def tradeoff(
    time_s: float, energy_j: float, *, to_time_s: float, to_energy_j: float, power_change: float | None = None
) -> Tradeoff:
    """Compare one choice with another one, by their times and energies in any units.

    Parameters
    ----------
    time_s, energy_j : float
        Time and energy of the choice to compare with; NaN if unknown.
    to_time_s, to_energy_j : float
        Time and energy of the other choice, in the same units; NaN if unknown.
    power_change : float or None, optional
        Relative change of the power; where None it follows from those of energy and time.

    Returns
    -------
    Tradeoff
        Relative changes; NaN if a figure is unknown.
    """
    time_change, energy_change = relative_change(time_s, to_time_s), relative_change(energy_j, to_energy_j)
    if power_change is None:
        power_change = (1 + energy_change) / (1 + time_change) - 1
    return Tradeoff(time_change, energy_change, power_change)


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a year and the price of energy, as the user states them; None where not stated."""

    hours_per_year: float = HOURS_PER_YEAR / 2  # in which the fastest configuration would run
    boards: int = 1
    price_per_kwh: float | None = None
    currency: str = "EUR"
    carbon_g_per_kwh: float | None = None


@dataclass(frozen=True, slots=True)
class Yearly:
    """The same work over a year with the choice instead of the fastest; what is saved is positive.

    Only the energy of the boards while the kernel runs: idle time, host and cooling are not in it.
    """

    energy_kwh: float  # with the fastest
    saved_kwh: float
    saved_money: float | None
    saved_co2_kg: float | None
    currency: str
    extra_hours: float  # of each board
    fits: bool  # the work still fits into the year

    @property
    def words(self) -> str:
        """'312 kWh, 94 EUR and 109 kg CO2 less per year'."""
        parts = [f"{number(abs(self.saved_kwh), 3)} kWh"]
        if self.saved_money is not None:
            parts.append(f"{number(abs(self.saved_money), 3)} {self.currency}".rstrip())
        if self.saved_co2_kg is not None:
            parts.append(f"{number(abs(self.saved_co2_kg), 3)} kg CO2")
        listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
        late = "" if self.fits else "; the work no longer fits into the year on as many boards"
        return f"{listed} {'less' if self.saved_kwh >= 0 else 'more'} per year{late}"


def yearly(power_w: float, change: Tradeoff, load: Load) -> Yearly:
    """Compute what a choice saves in a year of a load.

    Parameters
    ----------
    power_w : float
        Power of one board with the fastest configuration in W; NaN if unknown.
    change : Tradeoff
        Changes of the choice against the fastest configuration.
    load : Load
        Hours of the year in which the fastest configuration would run, boards, price and carbon intensity.

    Returns
    -------
    Yearly
        Energies in kWh, NaN if the power or the change is unknown; money and CO2 None where the load states no price or
        carbon intensity.
    """
    energy_kwh = power_w * load.hours_per_year * load.boards / 1000
    saved_kwh = energy_kwh * (0.0 - change.energy_change)  # nothing saved is 0, not -0
    return Yearly(
        energy_kwh=energy_kwh,
        saved_kwh=saved_kwh,
        saved_money=None if load.price_per_kwh is None else saved_kwh * load.price_per_kwh,
        saved_co2_kg=None if load.carbon_g_per_kwh is None else saved_kwh * load.carbon_g_per_kwh / 1000,
        currency=load.currency,
        extra_hours=load.hours_per_year * change.time_change,
        fits=load.hours_per_year * (1 + change.time_change) <= HOURS_PER_YEAR * (1 + 1e-12) or change.time_change <= 0,
    )


def percent_words(share: float) -> str:
    """Format the size of a share: '18 %', '3.4 %', '0.4 %'.

    Parameters
    ----------
    share : float
        The share, 0.18 for 18 %; its sign is dropped.

    Returns
    -------
    str
        Whole per cent from 10 % on; a dash if the share is NaN.
    """
    if math.isnan(share):
        return UNKNOWN
    percent = abs(share) * 100
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %".replace(".0 %", " %")


def change_words(change: float, what: str) -> str:
    """Describe a relative change: '18 % less energy', 'the same time'.

    Parameters
    ----------
    change : float
        The change, -0.18 for 18 % less; below 0.05 % either way it is called the same.
    what : str
        What changes, 'energy'.

    Returns
    -------
    str
        The change and `what`; a dash in place of the number if the change is NaN.
    """
    if _is_same(change):
        return f"the same {what}"
    return f"{percent_words(change)} {'less' if change < 0 else 'more'} {what}"


def _is_same(change: float) -> bool:
    return abs(change) < 0.0005


def relative_change(before: float, after: float) -> float:
    """Compute a relative change: 0.04 is 4 % more.

    Parameters
    ----------
    before, after : float
        Two values of one figure, in the same unit.

    Returns
    -------
    float
        NaN if there was nothing before.
    """
    return after / before - 1 if before else math.nan
