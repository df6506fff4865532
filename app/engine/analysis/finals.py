"""`Finals`: what the turns at a session's end say of the configurations that contended for the best.

Configurations that one window each cannot tell apart are measured again in turns: rounds in which chance decides who
comes first. Each is compared with the winner by `compare_in_turns`, whose intervals may be looked at after every round.
They are of ratios: what all of a session is off by is no part of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base.records import as_json, from_json
from ..results.measurement import Measurement
from .difference import Difference
from .in_turns import Block, InTurns, Side, compare_in_turns
from .iso_lines import Role, role_of

ERROR: Final = 0.05  # of each interval, at any time
SAME: Final = 0.006  # what lies within it either way needs no telling apart
ENERGY_ROLES: Final = (Role.ENERGY, Role.EFFICIENCY, Role.EDP)  # of goals that turns decide
KEY: Final = "finals"  # of a session's origin
_NS: Final = 1e9

Round = Mapping[int, Measurement]  # by row


@dataclass(frozen=True, slots=True)
class Beaten:
    """A configuration against the winner: 0.01 is 1 % more than that takes."""

    row: int
    energy: float
    energy_half: float  # of the 95 % interval; NaN where the turns were too few for one
    time: float
    time_half: float
    turns: int

    def of(self, role: Role) -> Difference:
        """Return its energy, or its time, relative to the winner's.

        Parameters
        ----------
        role : Role
            `TIME`, else the energy is meant.

        Returns
        -------
        Difference
            Without an interval where the turns were too few for one.
        """
        if role is Role.TIME:
            return Difference(self.time, self.time_half)
        return Difference(self.energy, self.energy_half)

    @property
    def settled(self) -> bool:
        """True if its energy differs from the winner's by more than the interval, or is known to be the same."""
        energy = self.of(Role.ENERGY)
        within = energy.interval is not None and max(map(abs, energy.interval)) <= SAME
        return bool(energy.distinguishable) or within


@dataclass(frozen=True, slots=True)
class Finals:
    """The winner, and the others against it, the nearest first."""

    winner: int  # row
    others: tuple[Beaten, ...]
    seconds: float  # on the board

    @property
    def rows(self) -> tuple[int, ...]:
        """Who took part, the winner first."""
        return self.winner, *(beaten.row for beaten in self.others)

    def to_origin(self) -> dict[str, str]:
        """As a session keeps it."""
        return {KEY: json.dumps(as_json(self))}

    @classmethod
    def of_origin(cls, origin: Mapping[str, str]) -> Finals | None:
        """Read what a session keeps.

        Parameters
        ----------
        origin : mapping of str to str
            The origin of the session.

        Returns
        -------
        Finals or None
            None where there were none, or what is kept is damaged.
        """
        try:
            return from_json(cls, json.loads(origin[KEY]))
        except (ValueError, LookupError, TypeError, RecursionError):
            return None

    def ratio(self, before: int, after: int, role: Role | None) -> Difference | None:
        """Return a figure of a row relative to that of another.

        Parameters
        ----------
        before, after : int
            The rows, of which the second is compared with the first.
        role : Role or None
            What kind of figure it is.

        Returns
        -------
        Difference or None
            None unless one row is the winner and the other was measured beside it, and for figures that are neither
            time nor energy nor the inverse of one.
        """
        if role in (Role.SPEED, Role.EFFICIENCY):
            return self.ratio(after, before, Role.TIME if role is Role.SPEED else Role.ENERGY)
        if role not in (Role.TIME, Role.ENERGY):
            return None
        for beaten in self.others:
            if (before, after) == (self.winner, beaten.row):
                return beaten.of(role)
            if (after, before) == (self.winner, beaten.row):
                return _inverse(beaten.of(role))
        return None


def finals_of(rounds: Sequence[Round], goal: str) -> Finals:
    """Compare what was measured in turns.

    Parameters
    ----------
    rounds : sequence of mapping
        The measurements of each round by their rows, at least one; who is settled may be missing in later ones.
    goal : str
        The figure that decides who wins: one of energy, of an efficiency, or of their product with the time.

    Returns
    -------
    Finals
        The winner is who needs no more than each of the others by the middles of their intervals.
    """
    rows, delay = list(rounds[0]), role_of(goal) is Role.EDP
    winner = rows[0]
    for _ in rows:
        compared = {row: _compare(rounds, winner, row, delay=delay) for row in rows if row != winner}
        best = min(compared, key=lambda row: compared[row].energy.change, default=winner)
        if not compared or not compared[best].energy.change < 0:  # NaN of a first round
            break
        winner = best
    others = []
    for row in (row for row in rows if row != winner):
        against = _compare(rounds, winner, row, delay=False)
        energy, time = against.energy, against.time
        others.append(Beaten(row, energy.change, energy.half_width, time.change, time.half_width, against.blocks // 2))
    spans = [each.window_ns for turn in rounds for each in turn.values() if each.window_ns is not None]
    seconds = (max(end for _, end in spans) - min(start for start, _ in spans)) / _NS
    return Finals(winner, tuple(sorted(others, key=lambda beaten: beaten.energy)), seconds)


def in_proportion(finals: Finals, energies_j: Mapping[int, float]) -> dict[int, float]:
    """Return the factors that give energies the ratios of the turns, and keep their mean.

    Parameters
    ----------
    finals : Finals
        What the turns say.
    energies_j : mapping of int to float
        The energy of each row that took part, J.

    Returns
    -------
    dict of int to float
        A factor for each row. The mean that stays is the geometric one.
    """
    logs = dict(zip(finals.rows, [0.0, *(math.log1p(beaten.energy) for beaten in finals.others)], strict=True))
    level = sum(math.log(energies_j[row]) - log for row, log in logs.items()) / len(logs)
    return {row: math.exp(level + log) / energies_j[row] for row, log in logs.items()}


# --- inside -----------------------------------------------------------------------------------------------------------


def _compare(rounds: Sequence[Round], a: int, b: int, *, delay: bool) -> InTurns:
    """Row b against row a, the energy times the delay in place of the energy if that decides."""
    blocks: list[Block] = []
    for turn in (turn for turn in rounds if a in turn and b in turn):
        pair = [_block("A", turn[a], delay=delay), _block("B", turn[b], delay=delay)]
        blocks += sorted(pair, key=lambda block: block.start_s)
    return compare_in_turns(blocks, error=ERROR)


def _block(side: Side, measured: Measurement, *, delay: bool) -> Block:
    start_ns, end_ns = measured.window_ns or (0, 0)
    time_s, energy_j = measured.values["time_s"], measured.values["energy_j"]
    return Block(side, start_ns / _NS, end_ns / _NS, time_s, energy_j * time_s if delay else energy_j)


def _inverse(known: Difference) -> Difference:
    """Of the same two the other way round."""
    if known.interval is None:
        return Difference(1 / (1 + known.change) - 1, math.nan)
    low, high = (1 / (1 + end) - 1 for end in known.interval[::-1])
    return Difference((low + high) / 2, (high - low) / 2)
