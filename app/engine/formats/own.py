"""What this program adds to files of other formats, under a key of its own, so that they read back whole.

The field's other tools ignore it: names and directions of the objective, confidence intervals, windows, event reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ..measurement import Measurement, Value
from ..objectives import Goal, Objective, likely_goal
from ..space.result_table import ResultTable
from .entries import OWN
from .names import DEVICE_SETTINGS


@dataclass(frozen=True, slots=True)
class About:
    """The session that a file holds, besides its measurements."""

    device: str
    kernel: str
    objective: Objective
    source: str = ""  # nvml, simulated or recorded
    problem_size: str = ""
    units: Mapping[str, str] = field(default_factory=dict)  # of values whose names do not tell them


def own_header(table: ResultTable, about: About, **more: object) -> dict[str, Any]:
    """What the session is, for the file's header."""
    goals = [[goal.name, goal.maximise] for goal in (about.objective.goal, *about.objective.front)]
    return {
        "version": __version__,
        "source": about.source,
        "values": list(table.value_names),
        "parameters": list(table.space.names),
        "objective": goals,
        "units": dict(about.units),
        **more,
    }


def own_entry(m: Measurement) -> dict[str, Any]:
    """What the measurement is besides its values."""
    told = {
        "state": m.state.value,
        "error": m.error or None,
        "message": m.message or None,
        "intervals": {n: list(pair) for n, pair in m.intervals.items()} or None,
        "window_ns": list(m.window_ns) if m.window_ns else None,
        "observed_clock_mhz": _known(m.observed_clock_mhz),
        "event_reasons": m.event_reasons or None,
        "power_source": m.power_source or None,
        "source": m.source or None,
        "timestamp_s": _known(m.timestamp_s),
        "cost_s": _known(m.cost_s),
    }
    return {name: value for name, value in told.items() if value is not None}


class OwnHeader:
    """The same, read back; a foreign file tells nothing here."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        told = document.get(OWN)
        self._told: Mapping[str, Any] = told if isinstance(told, dict) else {}
        kept = self._told.get("values")
        # the values of the session; None: every number of the file is one
        self.kept = frozenset(n for n in kept if isinstance(n, str)) if isinstance(kept, list) else None
        units = self._told.get("units")
        self.units = (
            {n: u for n, u in units.items() if isinstance(u, str) and len(u) < 100} if isinstance(units, dict) else {}
        )

    def names(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The parameters as the session had them, where only names of device settings were changed for the file."""
        told = self._told.get("parameters")
        if not isinstance(told, list) or len(told) != len(keys):
            return tuple(keys)
        same = all(
            name == key or (key in DEVICE_SETTINGS and name == DEVICE_SETTINGS[key])
            for key, name in zip(keys, told, strict=True)
        )
        return tuple(told) if same and len(set(told)) == len(told) else tuple(keys)

    def objective(self, named: object) -> Objective:
        """What the session worked for: as it tells itself, else the name or names that the file has for it."""
        told = self._told.get("objective")
        if isinstance(told, list) and told and all(_is_goal(goal) for goal in told):
            goal, *front = (Goal(name, larger) for name, larger in told)
            return Objective(goal, tuple(front))
        names = named if isinstance(named, list) else [named]
        goals = [likely_goal(name) for name in dict.fromkeys(n for n in names if isinstance(n, str) and n)]
        if not goals:
            return Objective(likely_goal("time"))
        return Objective(goals[0], tuple(goals) if len(goals) > 1 else ())

    def text(self, key: str) -> str:
        """A short text; empty where there is none."""
        return text_of(self._told.get(key))

    def lists(self, key: str, names: Sequence[str]) -> dict[str, list[Value]]:
        """Lists of plain values by name."""
        return plain_lists(names, names, self._told.get(key))


def plain_lists(keys: Sequence[str], names: Sequence[str], told: object) -> dict[str, list[Value]]:
    """The plain values that a file lists under each key, under the session's names."""
    listed: dict[str, list[Value]] = {}
    for key, name in zip(keys, names, strict=True):
        values = told.get(key) if isinstance(told, dict) else None
        plain = values if isinstance(values, list) else []
        listed[name] = [value for value in plain if isinstance(value, int | float | str)]
    return listed


def text_of(value: object) -> str:
    """A short text; empty for anything else."""
    return value[:2000] if isinstance(value, str) else ""


def _is_goal(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], bool)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
