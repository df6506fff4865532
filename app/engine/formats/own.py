"""What this program adds to files of other formats, under a key of its own, so that they read back whole.

The field's other tools ignore it: names and directions of the objective, confidence intervals, windows, event reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ...base.formatting import finite_or_none
from ..results.measurement import Depth, Measurement, Value
from ..results.objectives import Objective, likely_goal
from ..space.result_table import ResultTable
from ..space.values import is_value
from .entries import OWN, mapping_of, text_of
from .names import DEVICE_SETTINGS
from .recording import Facts


@dataclass(frozen=True, slots=True)
class About:
    """The session that a file holds, besides its measurements."""

    device: str
    kernel: str
    objective: Objective
    source: str = ""  # nvml, simulated or recorded
    problem_size: str = ""
    units: Mapping[str, str] = field(default_factory=dict)  # where they do not follow from the names
    known_as: str | None = None  # the device to Kernel Tuner, where it has another name for it
    receipt: Mapping[str, Any] | None = None  # of the export that the file belongs to


def goal_names(about: About) -> list[str]:
    """The objectives by name, of which other formats know no more."""
    return [goal.name for goal in about.objective.front] or [about.objective.goal.name]


def own_header(table: ResultTable, about: About, **more: object) -> dict[str, Any]:
    """The session, for the file's header."""
    return {
        "version": __version__,
        "source": about.source,
        "values": list(table.value_names),
        "parameters": list(table.space.names),
        "objective": about.objective.to_list(),
        "units": dict(about.units),
        **({} if about.receipt is None else {"receipt": about.receipt}),
        **more,
    }


def own_entry(m: Measurement) -> dict[str, Any]:
    """All of a measurement but its values; what says nothing is left out."""
    entry = {name: getattr(m, name) for name in Facts._fields if name != "values"}
    entry = {name: finite_or_none(v) if isinstance(v, float) else v or None for name, v in entry.items()}
    depth = m.depth if m.depth is Depth.TIME else None
    return {name: value for name, value in (entry | {"depth": depth}).items() if value is not None}


class OwnHeader:
    """The same, read back; of a foreign file everything is empty."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._given = mapping_of(document.get(OWN))
        kept = self._given.get("values")
        # the values of the session; None: every number of the file is one
        self.kept = frozenset(n for n in kept if isinstance(n, str)) if isinstance(kept, list) else None
        units = mapping_of(self._given.get("units"))
        self.units = {n: u for n, u in units.items() if isinstance(u, str) and len(u) < 100}

    def names(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The parameters as the session had them, where only names of device settings were changed for the file."""
        names = self._given.get("parameters")
        if not isinstance(names, list) or len(names) != len(keys):
            return tuple(keys)
        same = all(name in (key, DEVICE_SETTINGS.get(key, key)) for key, name in zip(keys, names, strict=True))
        return tuple(names) if same and len(set(names)) == len(names) else tuple(keys)

    def objective(self, named: object) -> Objective:
        """The objective of the session, else that of the name or names that the file has for it."""
        goals = self._given.get("objective")
        with suppress(ValueError, TypeError, LookupError, OverflowError):  # of no list that `to_list` gives
            objective = Objective.of_list(goals)  # type: ignore[arg-type]
            if objective.to_list() == goals and all(math.isfinite(limit.bound) for limit in objective.limits):
                return objective
        names = named if isinstance(named, list) else [named]
        likely = [likely_goal(name) for name in dict.fromkeys(n for n in names if isinstance(n, str) and n)]
        return Objective((likely or [likely_goal("time")])[0], tuple(likely) if len(likely) > 1 else ())

    def text(self, key: str) -> str:
        """A short text; empty if there is none."""
        return text_of(self._given.get(key))

    def lists(self, key: str, names: Sequence[str]) -> dict[str, list[Value]]:
        """Lists of plain values by name."""
        return plain_lists(names, names, self._given.get(key))


def plain_lists(keys: Sequence[str], names: Sequence[str], lists: object) -> dict[str, list[Value]]:
    """The plain values that a file lists under each key, under the session's names."""
    listed = {name: mapping_of(lists).get(key) for key, name in zip(keys, names, strict=True)}
    return {n: list(filter(is_value, values)) if isinstance(values, list) else [] for n, values in listed.items()}
