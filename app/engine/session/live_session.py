"""`LiveSession`: a session that runs, with its clock, its state, its best measurement so far and its progress."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ...base.errors import WattridgeError
from ..analysis.health import health_of
from ..results.health import Health
from ..results.state import Progress, SessionState
from ..space.result_table import ResultTable
from ..specification.operator_shapes import MAKER
from ..specification.plan import SessionPlan
from .events import EngineFault, Event, SessionChanged
from .summary import best_of

_MARKS: Final = 100  # over which the rate is taken
_HEALTH_S: Final = 2.0  # between two looks at the health of a session that runs


class SessionClock:
    """Seconds a session has run, without pauses, and its rate now. Runs from the start."""

    def __init__(self, elapsed_s: float = 0.0, count: int = 0) -> None:
        self._before_s = elapsed_s
        self._since: float | None = time.monotonic()
        # The last (seconds, count): the rate now, whatever the warm-up or another phase took before.
        self._marks = deque([(elapsed_s, count)], maxlen=_MARKS)

    @property
    def elapsed_s(self) -> float:
        """Seconds on the wall clock while it ran."""
        return self._before_s + (time.monotonic() - self._since if self._since is not None else 0.0)

    def stop(self) -> None:
        """Stop counting."""
        self._before_s, self._since = self.elapsed_s, None

    def start(self) -> None:
        """Count on after a stop."""
        self._since = time.monotonic()

    def mark(self, count: int) -> None:
        """Record the present number of measurements."""
        self._marks.append((self.elapsed_s, count))

    @property
    def rate_per_s(self) -> float:
        """Measurements per second over the last marks; 0 until that is known."""
        marks = list(self._marks)
        if 2 < len(marks) < _MARKS:
            del marks[0]  # the first measurements carry the warm-up
        (first_s, first), (last_s, last) = marks[0], marks[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0


@dataclass(frozen=True, slots=True)
class SessionResult:
    """How a session ended. `progress` holds the counts, the best and the seconds."""

    session: int
    plan: SessionPlan
    table: ResultTable
    state: SessionState
    reason: str
    progress: Progress


class LiveSession:
    """The base of sessions that run: `SessionRun` measures one, `FollowRun` reads one from a growing file."""

    def __init__(self, plan: SessionPlan, on_event: Callable[[Event], None], session: int, table: ResultTable) -> None:
        self.plan = plan
        self.session = session
        self.table = table
        self._on_event = on_event
        self._state = SessionState.RUNNING
        self._clock = SessionClock()
        self._best_cost, self._best_index = math.inf, -1
        self._strategy_s = 0.0
        self._health, self._looked_at_s = Health(), -math.inf

    def pause(self, reason: str = "") -> None:
        """Stop the session's clock and report it."""
        self._clock.stop()
        self._set_state(SessionState.PAUSED, reason)

    def resume(self) -> None:
        """Continue after a pause."""
        self._clock.start()
        self._set_state(SessionState.RUNNING)

    def end(self, state: SessionState, reason: str) -> SessionResult:
        """Write the session's end, and report it; a failure of the store is reported as an event."""
        self._clock.stop()
        self._state = state
        try:
            self._write_end(reason)
        except WattridgeError as error:  # a full disk: the session will be found interrupted, with what was reported
            if error.what not in reason:  # else the same error ended it, and was reported
                self._on_event(EngineFault(error.what, error.remedy))
        progress = self._progress()
        self._on_event(SessionChanged(progress, reason))
        return SessionResult(self.session, self.plan, self.table, state, reason, progress)

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def _write_end(self, reason: str) -> None:
        """Write the end. Raises WattridgeError."""
        raise NotImplementedError

    def _budget(self) -> int:
        """Evaluations at most; 0 while unknown."""
        raise NotImplementedError

    def _eta_s(self, rate_per_s: float) -> float | None:
        """Seconds left; None while unknown."""
        return None

    def _set_state(self, state: SessionState, reason: str = "") -> None:
        self._state = state
        self._on_event(SessionChanged(self._progress(), reason))

    def _note_cost(self, cost: float, index: int) -> None:
        """Remember the measurement of that index if it is the best so far."""
        if cost < self._best_cost:
            self._best_cost, self._best_index = cost, index

    def _progress(self) -> Progress:
        rate_per_s = self._clock.rate_per_s
        return progress_of(
            self.table,
            self.plan,
            self._best_index if 0 <= self._best_index < len(self.table) else None,
            session=self.session,
            state=self._state,
            budget=0 if self.plan.open_ended else self._budget(),
            elapsed_s=self._clock.elapsed_s,
            rate_per_s=rate_per_s,
            eta_s=None if self.plan.open_ended else self._eta_s(rate_per_s),
            strategy_s=self._strategy_s,
            health=self._health_now(),
        )

    def _health_now(self) -> Health:
        """Not with every event while it runs: it is of all measurements."""
        now_s = time.monotonic()
        if not self._state.alive or now_s - self._looked_at_s >= _HEALTH_S:
            self._looked_at_s = now_s
            self._health = health_of(self.table, self.plan.objective.goal.name, self.plan.origin)
        return self._health


def progress_of(table: ResultTable, plan: SessionPlan, least: int | None, **facts: Any) -> Progress:
    """The progress of a session by its measurements, the index of the least of them, and its other `facts`.

    The least is the best, unless the vendor's library by itself is one of them.
    """
    timed, best = int(table.timed().sum()), best_of(plan, table) if MAKER in table.space.names else least
    return Progress(
        evaluated=len(table) - timed,
        failed=sum(table.failures().values()),
        best_index=best,
        best_value=None if best is None else float(table.values(plan.objective.goal.name)[best]),
        timed=timed,
        **facts,
    )


# Called between two measurements when the stop event is set: True continues the session, False ends it.
Attend = Callable[[LiveSession], bool]
