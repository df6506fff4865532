"""How an energy-aware search went: k over its rounds, and each energy as it was predicted before it was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

ORIGIN_KEY: Final = "energy_search"  # of a session's origin
_MOST_ROUNDS: Final = 100_000
_MOST_PAIRS: Final = 5000


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the search."""

    k: float  # of the round: the share of the candidates that were measured
    offered: int  # candidates: what measuring everything would have measured
    measured: int
    off: float | None  # error of the predictions, relative root mean square; None in the first round, without any


@dataclass(slots=True)
class EnergyLog:
    """The rounds, and pairs of energies in J. The predictions are older than the measurements: they are held out."""

    rounds: list[Round] = field(default_factory=list)
    predicted_j: list[float] = field(default_factory=list)
    measured_j: list[float] = field(default_factory=list)
    prior: str = ""  # what became of a model of another problem or board, in words

    @property
    def offered(self) -> int:
        return sum(item.offered for item in self.rounds)

    @property
    def measured(self) -> int:
        return sum(item.measured for item in self.rounds)

    @property
    def saved(self) -> int:
        """Energy measurements that were not needed."""
        return self.offered - self.measured

    def to_origin(self) -> dict[str, str]:
        """As a session keeps it."""
        kept = {**asdict(self), "predicted_j": self.predicted_j[-_MOST_PAIRS:]}
        kept["measured_j"] = self.measured_j[-_MOST_PAIRS:]
        return {ORIGIN_KEY: json.dumps(kept, allow_nan=False)}

    @classmethod
    def of_origin(cls, origin: Mapping[str, str]) -> EnergyLog | None:
        """The log that a session keeps.

        Parameters
        ----------
        origin : mapping of str to str
            The session's, to which `to_origin` was added.

        Returns
        -------
        EnergyLog or None
            None if the session was searched otherwise, or where the log is damaged.
        """
        if ORIGIN_KEY not in origin:
            return None
        try:
            document = json.loads(origin[ORIGIN_KEY])
            rounds = [_round(value) for value in document["rounds"][:_MOST_ROUNDS]]
            predicted, measured = (
                [_figure(item) for item in document[name][:_MOST_PAIRS]] for name in ("predicted_j", "measured_j")
            )
            if len(predicted) != len(measured):
                return None
            return cls(rounds, predicted, measured, str(document.get("prior", ""))[:500])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None


def _round(given: Mapping[str, Any]) -> Round:
    numbers = {member.name: given[member.name] for member in fields(Round)}
    off = numbers.pop("off")
    k, offered, measured = (_figure(numbers[name]) for name in ("k", "offered", "measured"))
    return Round(k, int(offered), int(measured), None if off is None else _figure(off))


def _figure(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < math.inf:
        raise ValueError(f"{given!r} is no figure")
    return given
