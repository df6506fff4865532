"""`SearchOptions`, what the user asks of a search, and `SessionPlan`, all that a session needs, resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..formats.names import MIXED_KERNELS
from ..metering.condition import Condition
from ..metering.external_meters import MeterChoice
from ..results.measurement import Measurement, Value
from ..results.objectives import Goal, Limit
from ..runner.base import Runner
from ..runner.pool.pool import BoardReports
from ..store.record import NewSession


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

    def budget(self) -> dict[str, Any]:
        """The limits that were given, by their names in a plan."""
        return self._given("max_evaluations", "max_seconds", "patience")

    def search(self) -> dict[str, Any]:
        """The strategy, seed and limits that were given, by their names in a plan."""
        return self._given("strategy", "seed", "max_evaluations", "max_seconds", "patience")

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def as_measured(measurement: Measurement) -> Measurement:
    """Nothing is added."""
    return measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan(NewSession):
    """A session ready to run. `make_runner` is called on the engine thread."""

    make_runner: Callable[[], Runner]
    starts: tuple[int, ...] = ()  # rows that are measured first, the best guess first
    suggestions: tuple[int, ...] = ()  # rows that a strategy may begin with
    resume: int | None = None  # id of a stored session that is continued
    follow: Path | None = None  # a growing cache that is shown instead of a search
    known: tuple[Measurement, ...] = ()  # from a file: they count as evaluated from the start
    looks_again: bool = True  # at the first configurations, at the end
    complete: Callable[[Measurement], Measurement] = as_measured  # what a script's functions add to each of them
    reports: BoardReports | None = None  # of the boards of a pool, where it is measured on several
    beside: Callable[[], AbstractContextManager[Any]] = nullcontext  # puts its meters beside the board while it runs

    @property
    def mixed_kernels(self) -> str:
        """The note on a table of several kernels; '' of others."""
        return next((note for note in self.space.notes if note.startswith(MIXED_KERNELS)), "")
