"""One session from its first row to its last: strategy x runner x store. Blocking; the caller owns the thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from ...errors import InputError, WattridgeError
from ..measurement import Measurement, State
from ..runner.base import PreparationFailed, Prepares, Runner
from ..session_state import Progress, SessionState
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace
from ..store.database import Store
from ..strategies import base as strategies
from .clock import SessionClock
from .events import EngineFault, Event, MeasurementsAdded, Preparing, SessionChanged, SessionRemark, SessionStarted
from .plan import SessionPlan
from .result import Attend, SessionResult

FLUSH_S = 0.05  # measurements are written and reported together, at most this often
FLUSH_COUNT = 4096  # ... or this many at once


def run_session(
    plan: SessionPlan,
    store: Store,
    on_event: Callable[[Event], None],
    stop: threading.Event,
    attend: Attend | None = None,
) -> SessionResult:
    """Run a session to its end: the strategy's, the budget's, or `stop`. Every event is sent from this thread.

    When `stop` is set, `attend` decides: True goes on (it has cleared the event), False ends; without it the session
    ends. A runner or store that fails ends the session as FAILED, with an EngineFault; what was reported is on disk.
    Raises InputError, with nothing written, where the strategy or its options are wrong.
    """
    if plan.follow is not None:
        from .follow import follow_session

        return follow_session(plan, store, on_event, stop, attend)
    chosen = strategies.get(plan.strategy)
    options = strategies.make_options(chosen, dict(plan.strategy_options))
    runner = plan.make_runner()
    try:
        run = SessionRun(plan, store, on_event, runner, stop, attend)
        return run.to_the_end(chosen.search(plan.space, np.random.default_rng(plan.seed), runner.batch, options))
    finally:
        runner.close()


class _Ended(Exception):
    """Not an error: the way out of the loop, with the state and the reason."""

    def __init__(self, state: SessionState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class SessionRun:
    """A session under way. `pause`, `resume`, `table` and `plan` are for whoever attends to it."""

    def __init__(
        self,
        plan: SessionPlan,
        store: Store,
        on_event: Callable[[Event], None],
        runner: Runner,
        stop: threading.Event,
        attend: Attend | None,
    ) -> None:
        self.plan = plan
        self._store = store
        self._on_event = on_event
        self._runner = runner
        self._stop = stop
        self._attend = attend
        self._pending: list[Measurement] = []
        self._known: dict[int, strategies.Outcome] = {}
        self._best_cost = math.inf
        self._best_after = 0  # evaluations until the best was found
        self._best_index: int | None = None
        self._budget = plan.space.size if plan.max_evaluations is None else min(plan.max_evaluations, plan.space.size)
        self._state = SessionState.RUNNING
        self._elapsed_before_s = 0.0
        self.session, self.table = self._open()
        self._clock = SessionClock(self._elapsed_before_s, len(self._known))
        self._flushed_at = time.monotonic()
        on_event(SessionStarted(self.session, plan, self.table))

    # --- for whoever attends ----------------------------------------------------------------------------------------

    def pause(self, reason: str = "") -> None:
        """Stop the session's clock and say so. Everything measured is on disk first."""
        self._flush()
        self._clock.halt()
        self._state = SessionState.PAUSED
        self._store.set_state(self.session, self._state, self._clock.elapsed_s)
        self._on_event(SessionChanged(self._progress(), reason))

    def resume(self) -> None:
        """Go on after a pause."""
        self._clock.go()
        self._state = SessionState.RUNNING
        self._store.set_state(self.session, self._state)
        self._on_event(SessionChanged(self._progress()))

    # --- the loop ---------------------------------------------------------------------------------------------------

    def to_the_end(self, search: strategies.Search) -> SessionResult:
        """Drive the strategy until it, the budget, a person or a failure ends the session."""
        try:
            self._prepare()
            self._drive(search)
            ended = _Ended(SessionState.DONE, "the strategy is done")
        except _Ended as how:
            ended = how
        except WattridgeError as error:
            self._on_event(EngineFault(error.what if not error.where else f"{error.where}: {error.what}", error.remedy))
            ended = _Ended(SessionState.FAILED, str(error))
        except BaseException as error:
            with suppress(WattridgeError):
                self._store.finish(self.session, SessionState.FAILED, f"{type(error).__name__}: {error}")
            raise
        finally:
            search.close()
        return self._close(ended)

    def _prepare(self) -> None:
        """What the runner has to do once, before the session's clock starts. Raises _Ended."""
        if not isinstance(self._runner, Prepares):
            return
        while True:
            self._clock.halt()
            try:
                self._runner.prepare(self._stop, lambda *step: self._on_event(Preparing(*step)))
            except PreparationFailed as error:
                self._on_event(EngineFault(error.what, error.remedy))
            self._clock.go()
            if not self._stop.is_set():
                return
            self._heed_stop()

    def _drive(self, search: strategies.Search) -> None:
        try:
            rows = next(search)
            while True:
                if isinstance(rows, strategies.Remarked):
                    self._on_event(SessionRemark(self.session, rows.remark))
                rows = search.send(self._outcomes(rows))
        except StopIteration:
            return
        finally:
            self._flush()

    def _outcomes(self, rows: Sequence[int]) -> list[strategies.Outcome]:
        """What came of the rows: measured now, or known already. Raises _Ended."""
        asked = [int(row) for row in rows]
        missing = [row for row in dict.fromkeys(asked) if row not in self._known]
        while missing or self._stop.is_set():
            self._heed_stop()
            room = self._budget - len(self._known)
            if missing and room <= 0:
                whole = len(self._known) >= self.plan.space.size
                raise _Ended(SessionState.DONE, "the whole space is measured" if whole else "the budget is used up")
            if missing:
                self._check_patience()
            before = len(self._known)
            self._measure(missing[:room])
            if missing and len(self._known) == before and not self._stop.is_set():
                raise WattridgeError(f"the runner gave no result for row {missing[0]}", self.plan.title)
            missing = [row for row in missing if row not in self._known]
        return [self._known[row] for row in asked]

    def _measure(self, rows: Sequence[int]) -> None:
        measuring = self._runner.measure(rows, self._stop)
        try:
            for measurement in measuring:
                self._take(measurement)
                limit = self.plan.max_seconds
                if limit is not None and self._clock.elapsed_s >= limit:
                    raise _Ended(SessionState.DONE, "the time is used up")
                self._check_patience()
        finally:
            close = getattr(measuring, "close", None)  # a generator lets go of the GPU at once
            if close is not None:
                close()

    def _check_patience(self) -> None:
        patience = self.plan.patience
        if patience is not None and len(self._known) - self._best_after >= patience:
            raise _Ended(SessionState.DONE, f"no improvement in {patience} evaluations")

    def _heed_stop(self) -> None:
        if self._stop.is_set() and (self._attend is None or not self._attend(self)):
            raise _Ended(SessionState.STOPPED, "stopped")

    # --- keeping ----------------------------------------------------------------------------------------------------

    def _open(self) -> tuple[int, ResultTable]:
        if self.plan.resume is None:
            return self._begin()
        session = self.plan.resume
        if not _same_space(self._store.space(session), self.plan.space):
            raise InputError(
                f"session {session} was measured on another search space", self.plan.title, "start a new session"
            )
        self._store.reopen(session, self.plan.max_evaluations, self.plan.max_seconds, self.plan.patience)
        loaded = self._store.load(session)
        table = ResultTable(self.plan.space)
        for index in range(len(loaded.table)):
            measurement = loaded.table.measurement(index)
            table.append(measurement)
            self._learn(measurement, index)
        self._elapsed_before_s = loaded.record.elapsed_s
        return session, table

    def _begin(self) -> tuple[int, ResultTable]:
        """A new session, with what is known of its space already."""
        session, table = self._store.create_session(self.plan), ResultTable(self.plan.space)
        if self.plan.known:
            self._store.append(session, self.plan.known)
        for index, measurement in enumerate(self.plan.known):
            table.append(measurement)
            self._learn(measurement, index)
        return session, table

    def _take(self, measurement: Measurement) -> None:
        self._learn(measurement, len(self.table) + len(self._pending))
        self._pending.append(measurement)
        if time.monotonic() - self._flushed_at >= FLUSH_S or len(self._pending) >= FLUSH_COUNT:
            self._flush()

    def _learn(self, measurement: Measurement, index: int) -> None:
        ok = measurement.state is State.OK
        objective = self.plan.objective
        cost = objective.goal.cost(measurement.values) if ok else math.inf
        front = tuple(goal.cost(measurement.values) if ok else math.inf for goal in objective.front)
        values = measurement.values if ok else {}
        self._known[measurement.row] = strategies.Outcome(measurement.row, cost, measurement.state, front, values)
        if cost < self._best_cost:
            self._best_cost, self._best_index, self._best_after = cost, index, len(self._known)

    def _flush(self) -> None:
        """To disk, then into the table, then to whoever listens."""
        self._flushed_at = time.monotonic()
        if not self._pending:
            return
        fresh, self._pending = self._pending, []
        self._store.append(self.session, fresh, self._clock.elapsed_s)
        self.table.extend(fresh)
        self._clock.mark(len(self.table))
        self._on_event(MeasurementsAdded(self.session, len(self.table), self._progress()))

    def _close(self, ended: _Ended) -> SessionResult:
        self._clock.halt()
        self._state = ended.state
        try:
            self._store.finish(self.session, ended.state, ended.reason, self._clock.elapsed_s)
        except WattridgeError as error:  # a full disk: the session will be found interrupted, with what was reported
            self._on_event(EngineFault(error.what, error.remedy))
        progress = self._progress()
        self._on_event(SessionChanged(progress, ended.reason))
        return SessionResult(self.session, self.plan, self.table, ended.state, ended.reason, progress)

    # --- where it stands --------------------------------------------------------------------------------------------

    def _progress(self) -> Progress:
        length, elapsed_s, rate = len(self.table), self._clock.elapsed_s, self._clock.rate_per_s
        best = self._best_index if self._best_index is not None and self._best_index < length else None
        return Progress(
            session=self.session,
            state=self._state,
            evaluated=length,
            failed=sum(self.table.failures().values()),
            budget=self._budget,
            elapsed_s=elapsed_s,
            rate_per_s=rate,
            eta_s=self._eta_s(length, elapsed_s, rate),
            best_index=best,
            best_value=None if best is None else float(self.table.values(self.plan.objective.goal.name)[best]),
        )

    def _eta_s(self, length: int, elapsed_s: float, rate: float) -> float | None:
        by_count = (self._budget - length) / rate if rate > 0 else None
        if self.plan.max_seconds is None:
            return by_count
        by_time = max(0.0, self.plan.max_seconds - elapsed_s)
        return by_time if by_count is None else min(by_count, by_time)


def _same_space(one: SearchSpace, other: SearchSpace) -> bool:
    return one.parameters == other.parameters and np.array_equal(one.codes, other.codes)
