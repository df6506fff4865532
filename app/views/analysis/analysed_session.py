"""`Analysed`: a session with its analysis, and how its figures are called."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.analysis.session import Analysis
from ...engine.session.plan import SessionPlan
from ..plots.quantities import Quantity, quantities_of, quantity

NOTHING = "Nothing has succeeded so far, so there is nothing to compare."
COLOURS = ("blue", "orange", "green", "purple", "vermillion", "sky")  # of the theme, for one series after the other
SYMBOLS = ("o", "s", "t1", "d", "t", "o")


@dataclass(frozen=True, slots=True)
class Analysed:
    """What figures are made of."""

    analysis: Analysis
    plan: SessionPlan

    def described(self, name: str) -> Quantity:
        """How a figure or parameter is shown."""
        return quantities_of(self.plan).get(name) or quantity(name, units=self.plan.units)
