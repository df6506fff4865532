"""Objectives: which named figures to make small or large, one of them or a front of several, within which limits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.errors import InputError

_BOUND: Final = re.compile(r"\s*(<=|>=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
BY_HAND: Final = "by hand"  # the rule of a choice that no rule made
_SHOWN: Final = ["shown"]
_LIMIT: Final = re.compile(r"(.*?)\s*((?:<=|>=).*)")


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure and its direction."""

    name: str
    maximise: bool

    def cost(self, values: Mapping[str, float]) -> float:
        """The figure with its sign turned so that smaller is better; inf if it is missing or NaN."""
        value = values.get(self.name, math.nan)
        if math.isnan(value):
            return math.inf
        return -value if self.maximise else value

    def __str__(self) -> str:
        return f"{'max' if self.maximise else 'min'}:{self.name}"


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that a figure must keep for its configuration to be chosen: at most, or at least."""

    name: str
    most: bool
    bound: float

    def holds(self, value: float) -> bool:
        """Whether a value keeps the bound; NaN, what was not measured, does not."""
        return value <= self.bound if self.most else value >= self.bound

    def excess(self, value: float) -> float:
        """By how much a value breaks the bound, relative to it (to 1 where it is 0); negative where it keeps it."""
        beyond = value - self.bound if self.most else self.bound - value
        return beyond / abs(self.bound) if self.bound else beyond

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.most else '>='} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Objective:
    """What the search works for (`goal`), what the front is drawn over (two or more goals), and the limits of both."""

    goal: Goal
    front: tuple[Goal, ...] = ()
    limits: tuple[Limit, ...] = ()
    front_asked: bool = True  # else the front is only shown: a search for the goal does not depend on it

    @property
    def names(self) -> frozenset[str]:
        """The figures that it needs."""
        return frozenset((self.goal.name, *(goal.name for goal in self.front), *(limit.name for limit in self.limits)))

    def feasible(self, values: Mapping[str, float]) -> bool:
        """Whether every limit is kept."""
        return all(limit.holds(values.get(limit.name, math.nan)) for limit in self.limits)

    def excess(self, values: Mapping[str, float]) -> float:
        """How far beyond its limits a configuration is: the most that one is broken by, relative; inf if unknown.

        At most 0 where every limit is kept.
        """
        excesses = [limit.excess(values.get(limit.name, math.nan)) for limit in self.limits]
        return max((math.inf if math.isnan(match) else match for match in excesses), default=-math.inf)

    def to_list(self) -> list[list[Any]]:
        """As files keep it: [name, maximise] of the goal and each of the front, [name, '<=', bound] of each limit.

        Beside them ['shown'] where the front is only that.
        """
        goals = [[goal.name, goal.maximise] for goal in (self.goal, *self.front)]
        shown = [] if self.front_asked else [_SHOWN]
        return [*goals, *([limit.name, "<=" if limit.most else ">=", limit.bound] for limit in self.limits), *shown]

    @classmethod
    def of_list(cls, given: Sequence[Sequence[Any]]) -> Objective:
        """The inverse of `to_list`. Raises ValueError, TypeError or LookupError for anything else."""
        goal, *front = (
            Goal(str(name), bool(maximise)) for name, maximise in (value for value in given if len(value) == 2)
        )
        limits = (value for value in given if len(value) != 2 and value != _SHOWN)
        bounds = tuple(Limit(str(name), sign == "<=", float(at)) for name, sign, at in limits)
        return cls(goal, tuple(front), bounds, _SHOWN not in given)

    def __str__(self) -> str:
        return str(self.goal)


_LESS_IS_BETTER = frozenset(
    (
        *("time", "duration", "latency", "energy", "power", "watt", "edp", "temperature", "cost", "loss", "error"),
        *("ttft", "tpot", "e2e", "idle_share", "sent_late"),
    )
)


def likely_goal(name: str) -> Goal:
    """The likely direction of a figure: less time, energy, power, heat and cost, more of all else."""
    lower = name.lower()
    rate = "/" in lower or lower.endswith(("ops", "_per_s"))  # work per second, per joule or per watt
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
    if len(goals) < 2 or len({goal.name for goal in goals}) < len(goals):
        raise InputError(
            f"'{text}' names {'one goal' if len(goals) < 2 else 'a goal twice'}",
            "--front",
            "a front needs two different ones, as max:A,min:B",
        )
    return goals


def parse_bound(name: str, text: str, where: str) -> Limit:
    """The limit of a figure, read from '<= 0.5' or '>= 500'. Raises InputError naming the place."""
    match = _BOUND.fullmatch(text)
    if match is None or not math.isfinite(float(match[2])):
        raise InputError(f"'{text[:60]}' is not a limit", where, "write '<= NUMBER' or '>= NUMBER'")
    return Limit(name, match[1] == "<=", float(match[2]))


def parse_limit(text: str) -> Limit:
    """Read 'ttft_p95_s<=0.5'. Raises InputError naming the text."""
    match = _LIMIT.fullmatch(text)
    if match is None or not match[1].strip():
        raise InputError(f"'{text[:60]}' is not a limit", "--limit", "write NAME<=NUMBER or NAME>=NUMBER")
    return parse_bound(match[1].strip(), match[2], "--limit")
