"""`SearchOptions`, the user's requests for a search, and `SessionPlan`, the resolved description of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...sensors.gpu import LIVE
from ..metering.condition import Condition
from ..metering.external_meters import NO_METERS, MeterChoice
from ..results.measurement import Measurement, Value
from ..results.objectives import Goal, Limit, Objective
from ..results.state import Purpose
from ..space.search_space import MIXED_KERNELS, SearchSpace
from .model import Search, Specification


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What the user asks of a search. None leaves the choice to the specification, the recording or the session."""

    strategy: str | None = None
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    objective: Goal | None = None
    front: tuple[Goal, ...] | None = None
    limits: tuple[Limit, ...] | None = None
    max_evaluations: int | None = None
    max_seconds: float | None = None
    patience: int | None = None  # evaluations without an improvement after which the session ends
    seed: int | None = None
    repeats: int | None = None  # measurements of each configuration
    condition: Condition | None = None  # thermal, that figures are stated for; None: the board's own
    device_settings: Mapping[str, Sequence[Value]] = field(default_factory=dict)  # in place of the specification's
    meters: MeterChoice | None = None  # beside the board; None: the specification's

    def given(self, *names: str) -> dict[str, Any]:
        """What was given of these, or of the strategy, the seed and the limits, by their names in a plan."""
        asked = names or ("strategy", "seed", "max_evaluations", "max_seconds", "patience")
        return {name: value for name in asked if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts(Search):
    """What a session searches, on which board and how: all that is known before the first measurement."""

    title: str  # the kernel's or the recording's name
    gpu: str  # the board's name
    driver: str
    source: str  # nvml, simulated or recorded
    objective: Objective
    units: Mapping[str, str] = field(default_factory=dict)  # of values whose names do not say it
    origin: Mapping[str, str] = field(default_factory=dict)  # file and GPU selector: what a resume needs

    @property
    def board(self) -> str:
        """The board's name, and that its figures are simulated or recorded where they are."""
        return self.gpu if self.source in LIVE else f"{self.gpu} ({self.source})"

    @property
    def purpose(self) -> Purpose:
        """What the session is for."""
        if self.origin.get("purpose") == Purpose.ROOFLINE or self._measured_a_roofline:
            return Purpose.ROOFLINE
        return Purpose.REPLAY if self.origin.get("kind") == "replay" else Purpose.TUNING

    @property
    def _measured_a_roofline(self) -> bool:
        """It was stored before purposes were: it measured a microbenchmark that comes with the program."""
        file = Path(self.origin.get("file", ""))
        return file.parent.name == "rooflines" and self.title == f"roofline_{file.stem}"

    def facts(self) -> dict[str, Any]:
        """These fields by name, without those of subclasses."""
        return {member.name: getattr(self, member.name) for member in fields(SessionFacts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan(SessionFacts):
    """What is to be done in a session: all of it data, without an open device."""

    space: SearchSpace
    specification: Specification | None = None  # None: a recording, or functions of a script, are searched
    condition: Condition | None = None  # thermal, that figures are stated for; None: the board's own
    meters: MeterChoice = NO_METERS  # beside the board
    starts: tuple[int, ...] = ()  # rows that are measured first, the best guess first
    suggestions: tuple[int, ...] = ()  # rows that a strategy may begin with
    known: tuple[Measurement, ...] = ()  # from a file: they count as evaluated from the start
    looks_again: bool = True  # at the first configurations, at the end
    resume: int | None = None  # id of a stored session that is continued
    follow: Path | None = None  # a growing cache that is shown instead of a search
    pool: tuple[str, ...] | None = None  # options of a command for the same boards, where they are several

    @property
    def budget(self) -> int:
        """Evaluations at most."""
        return min(self.max_evaluations or self.space.size, self.space.size)

    @property
    def open_ended(self) -> bool:
        """True if nothing but what is found ends it, so that nobody knows how much is left."""
        return self.patience is not None and self.max_evaluations is None and self.max_seconds is None

    @property
    def mixed_kernels(self) -> str:
        """The note on a table of several kernels; '' of others."""
        return next((note for note in self.space.notes if note.startswith(MIXED_KERNELS)), "")
