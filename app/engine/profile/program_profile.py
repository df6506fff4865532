"""`ProgramProfile`: where the joules of a program went, by families, ranges and gaps, as it is shown and kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...base.records import Count, Source, figure

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class FamilyEnergy:
    """The launches of one family. NaN, and None, where only the energy of its group is known."""

    name: str
    kind: str  # kernel, copy or set
    full_name: str
    count: Count
    time_s: float  # on the board; divided where several ran at once
    energy_j: float
    energy_j_interval: Interval | None
    power_w: float
    share: float  # of the energy of the span
    launch_j: float
    group: int | None  # its number, where the data do not separate it from others


@dataclass(frozen=True, slots=True)
class GroupEnergy:
    """Families that the data do not separate: what they took together."""

    number: int
    families: tuple[str, ...]  # those that took most time first
    gaps: bool  # whether it has the energy of the gaps, too
    count: Count
    time_s: float
    energy_j: float
    energy_j_interval: Interval | None
    power_w: float
    share: float

    @property
    def words(self) -> str:
        """As a table names it."""
        more = f" and {len(self.families) - 1} more" if len(self.families) > 1 else ""
        return f"group {self.number}: {self.families[0]}{more}{' and the gaps' if self.gaps else ''}"


@dataclass(frozen=True, slots=True)
class RangeEnergy:
    """All ranges of one name within the same others: what was launched in them, inner ranges included."""

    path: tuple[str, ...]  # from the outermost range inward; empty: launched outside of every range
    count: Count
    host_s: float  # that the host spent in them
    time_s: float  # that the board worked on what was launched in them
    energy_j: float
    energy_j_interval: Interval | None
    power_w: float
    share: float
    each_j: float  # of one range
    waits_s: float  # that the board waited while the host was in them
    waits_j: float


@dataclass(frozen=True, slots=True)
class GapEnergy:
    """What the board drew while nothing ran on it. NaN, and None, where only the energy of a group is known."""

    count: Count
    time_s: float
    energy_j: float
    energy_j_interval: Interval | None
    power_w: float
    share: float
    short_count: Count  # gaps of less than 0.1 ms
    short_s: float
    short_j: float
    group: int | None


@dataclass(frozen=True, slots=True)
class ClocksAligned:
    """How the times of the trace were put on the clock of the power samples."""

    how: str
    shift_s: float
    lag_s: float  # from the end of what a value averages to its stamp, as the data show it; NaN where they do not
    lag_margin_s: float
    window_s: float  # what a value averages, likewise
    correlation: float  # of power with what ran
    overlap: float  # share of the trace in which there is power
    words: str


@dataclass(frozen=True, slots=True)
class NextStep:
    """What can be done about a large item."""

    about: str
    share: float  # of the energy of the span
    step: str
    why: str
    command: str = field(metadata=figure(nullable=True))


@dataclass(frozen=True, slots=True)
class ProgramProfile:
    """Where the joules of a program went. Energies in J with 95 % intervals; shares are of the energy of the span."""

    title: str
    gpu: str
    source: Source
    power_source: str
    clocks: ClocksAligned
    duration_s: float  # of the span, from the first slice to the last of which there is power
    busy_s: float  # in which anything ran
    launches: Count
    energy_j: float
    energy_j_interval: Interval | None
    remainder_j: float  # of the span's energy, neither in families nor in gaps
    remainder_j_interval: Interval | None
    families: tuple[FamilyEnergy, ...]  # by their joules, the most first
    groups: tuple[GroupEnergy, ...]
    ranges: tuple[RangeEnergy, ...]  # each before those within it
    gaps: GapEnergy
    next_steps: tuple[NextStep, ...]
    notes: tuple[str, ...]
