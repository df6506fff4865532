"""Objectives: which named figures to make small or large, one of them or a front of several."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InputError


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure and its direction."""

    name: str
    maximise: bool

    def cost(self, values: Mapping[str, float]) -> float:
        """The figure with its sign turned so that smaller is better; inf where it is missing or NaN."""
        value = values.get(self.name, math.nan)
        if math.isnan(value):
            return math.inf
        return -value if self.maximise else value

    def __str__(self) -> str:
        return f"{'max' if self.maximise else 'min'}:{self.name}"


@dataclass(frozen=True, slots=True)
class Objective:
    """What the search works for (`goal`) and what the front is drawn over (two or more goals)."""

    goal: Goal
    front: tuple[Goal, ...] = ()

    def __str__(self) -> str:
        return str(self.goal)


_LESS_IS_BETTER = frozenset(
    ("time", "duration", "latency", "energy", "power", "watt", "edp", "temperature", "cost", "loss", "error")
)


def likely_goal(name: str) -> Goal:
    """The likely direction of a figure: less time, energy, power, heat and cost, more of all else."""
    lower = name.lower()
    rate = "/" in lower or lower.endswith("ops")  # work per second, per joule or per watt
    return Goal(name, maximise=rate or not any(word in lower for word in _LESS_IS_BETTER))


def parse_goal(text: str) -> Goal:
    """Read 'max:GFLOPS/W' or 'min:time_s'. Raises InputError naming the text."""
    direction, _, name = text.partition(":")
    if direction not in ("max", "min") or not name.strip():
        raise InputError(f"'{text}' is not a goal", "--front", "write max:NAME or min:NAME, several with commas")
    return Goal(name.strip(), direction == "max")


def parse_front(text: str) -> tuple[Goal, ...]:
    """Read 'max:A,min:B'. At least two goals. Raises InputError."""
    goals = tuple(parse_goal(part.strip()) for part in text.split(","))
    if len(goals) < 2:
        raise InputError(f"'{text}' names one goal", "--front", "a front needs two, as max:A,min:B")
    return goals
