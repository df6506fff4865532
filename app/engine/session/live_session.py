"""`LiveSession`: a session under way: its clock, its state, its best so far and its progress; and how it ended."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...base.errors import WattridgeError
from ..results.state import Progress, SessionState
from ..space.result_table import ResultTable
from ..specification.plan import SessionPlan
from .events import EngineFault, Event, SessionChanged

_MARKS: Final = 100  # over which the rate is taken


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

    def halt(self) -> None:
        """Stop the stopwatch."""
        self._before_s, self._since = self.elapsed_s, None

    def go(self) -> None:
        """Restart the stopwatch."""
        self._since = time.monotonic()

    def mark(self, count: int) -> None:
        """Note how many measurements there are now."""
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
    """What every session under way has; `SessionRun` measures one, `FollowRun` reads one from a growing file."""

    def __init__(self, plan: SessionPlan, on_event: Callable[[Event], None], session: int, table: ResultTable) -> None:
        self.plan = plan
        self.session = session
        self.table = table
        self._on_event = on_event
        self._state = SessionState.RUNNING
        self._clock = SessionClock()
        self._best_cost, self._best_index = math.inf, -1
        self._strategy_s = 0.0

    def pause(self, reason: str = "") -> None:
        """Stop the session's clock and report it."""
        self._clock.halt()
        self._set_state(SessionState.PAUSED, reason)

    def resume(self) -> None:
        """Continue after a pause."""
        self._clock.go()
        self._set_state(SessionState.RUNNING)

    def end(self, state: SessionState, reason: str) -> SessionResult:
        """Write the session's end, and report it. A store that fails is an event."""
        self._clock.halt()
        self._state = state
        try:
            self._write_end(reason)
        except WattridgeError as error:  # a full disk: the session will be found interrupted, with what was reported
            if error.what not in reason:  # that is what ended it
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
        length, rate = len(self.table), self._clock.rate_per_s
        timed = int(self.table.timed().sum())
        best = self._best_index if 0 <= self._best_index < length else None
        return Progress(
            session=self.session,
            state=self._state,
            evaluated=length - timed,
            failed=sum(self.table.failures().values()),
            budget=self._budget(),
            elapsed_s=self._clock.elapsed_s,
            rate_per_s=rate,
            eta_s=self._eta_s(rate),
            best_index=best,
            best_value=None if best is None else float(self.table.values(self.plan.objective.goal.name)[best]),
            timed=timed,
            strategy_s=self._strategy_s,
        )


# Called between two measurements when the stop event is set: True continues the session, False ends it.
Attend = Callable[[LiveSession], bool]
