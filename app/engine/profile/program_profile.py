"""`ProgramProfile`: where the joules of a program went, by families, ranges and gaps, as it is shown and kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from ...base.records import Count, Source, figure
from .aligned_power import Alignment

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a program drew. NaN, and None, where only the energy of its group is known."""

    IN_JSON: ClassVar = ("each_j",)

    count: Count  # of launches, of ranges, of gaps
    time_s: float  # on the board; divided where several ran at once
    energy_j: float
    energy_j_interval: Interval | None
    power_w: float
    share: float  # of the energy of the span

    @property
    def each_j(self) -> float:
        """The energy of one."""
        return self.energy_j / self.count if self.count else math.nan

    @property
    def label(self) -> str:
        """As tables name it."""
        return ""


@dataclass(frozen=True, slots=True)
class FamilyEnergy(Part):
    """The launches of one family."""

    name: str
    kind: str  # kernel, copy or set
    full_name: str
    group: int | None  # its number, where the data do not separate it from others

    @property
    def label(self) -> str:
        """Its name."""
        return self.name


@dataclass(frozen=True, slots=True)
class GroupEnergy(Part):
    """Families that the data do not separate: what they took together."""

    number: int
    families: tuple[str, ...]  # those that took most time first
    gaps: bool  # whether it has the energy of the gaps, too

    @property
    def label(self) -> str:
        """'group 1: gemm and 2 more'."""
        more = f" and {len(self.families) - 1} more" if len(self.families) > 1 else ""
        return f"group {self.number}: {self.families[0]}{more}{' and the gaps' if self.gaps else ''}"


@dataclass(frozen=True, slots=True)
class RangeEnergy(Part):
    """All ranges of one name within the same others: what was launched in them, inner ranges included."""

    path: tuple[str, ...]  # from the outermost range inward; empty: launched outside of every range
    host_s: float  # that the host spent in them
    waits_s: float  # that the board waited while the host was in them
    waits_j: float

    @property
    def label(self) -> str:
        """'forward / attention'."""
        return " / ".join(self.path) or "outside of every range"


@dataclass(frozen=True, slots=True)
class GapEnergy(Part):
    """What the board drew while nothing ran on it."""

    short_count: Count  # gaps of less than 0.1 ms
    short_s: float
    short_j: float
    group: int | None

    @property
    def label(self) -> str:
        """The same for all."""
        return "gaps: nothing runs"


@dataclass(frozen=True, slots=True)
class NextStep:
    """What can be done about a large item."""

    about: str
    share: float  # of the energy of the span
    step: str
    why: str
    command: str = field(metadata=figure(nullable=True))


@dataclass(frozen=True, slots=True)
class ProgramProfile(Part):
    """Where the joules of a program went; its own figures are those of the whole span in which there is power."""

    title: str
    gpu: str
    source: Source
    power_source: str
    clocks: Alignment
    busy_s: float  # in which anything ran
    families: tuple[FamilyEnergy, ...]  # by their joules, the most first
    groups: tuple[GroupEnergy, ...]
    ranges: tuple[RangeEnergy, ...]  # each before those within it
    gaps: GapEnergy
    remainder: Part  # of the span's energy, neither in families nor in gaps
    next_steps: tuple[NextStep, ...]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        """The same for all."""
        return "all"
