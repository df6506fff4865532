"""How a session ended, and what whoever attends to one sees of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..session_state import Progress, SessionState
from ..space.result_table import ResultTable
from .plan import SessionPlan


class Attended(Protocol):
    """A session under way, as whoever attends to it sees it."""

    @property
    def plan(self) -> SessionPlan: ...

    @property
    def table(self) -> ResultTable: ...

    @property
    def session(self) -> int: ...

    def pause(self, reason: str = "") -> None: ...

    def resume(self) -> None: ...


Attend = Callable[[Attended], bool]


@dataclass(frozen=True, slots=True)
class SessionResult:
    """How a session ended. `progress` holds the counts, the best and the seconds."""

    session: int
    plan: SessionPlan
    table: ResultTable
    state: SessionState
    reason: str
    progress: Progress
