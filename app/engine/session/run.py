"""Runs a session from its first row to its last: strategy x runner x store. Blocking; the caller owns the thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from ...base.errors import InputError, WattridgeError
from ..analysis.failures import missing_figure
from ..metering.limit_effect import in_words
from ..models.clock_fits import fit_of_table
from ..models.energy_cost import keep_model, kept_model
from ..models.fit.points import CLOCK_SETTINGS
from ..models.fit_documents import save_fit
from ..models.series import limit_effects
from ..results.measurement import FEWEST, Depth, Measurement, State, same, stated_otherwise
from ..results.settings import UNTOUCHED
from ..results.state import Purpose, SessionState
from ..runner.base import PreparationFailed, Runner, setting_names
from ..runner.boards import ReadyPlan, open_runner
from ..runner.kernels.reference import Baseline
from ..space.result_table import ResultTable
from ..specification.operator_shapes import CUBLASLT, MAKER
from ..specification.plan import SessionPlan
from ..store.database import Store
from ..strategies import base as strategies
from .events import (
    EngineFault,
    Event,
    FiguresRestated,
    MeasurementsAdded,
    PoolReported,
    Preparing,
    SessionRemark,
    SessionStarted,
)
from .finals import as_in_turns, kept_for_turns_s, play
from .gains import gain_of_session
from .live_session import Attend, LiveSession, SessionClock, SessionResult
from .references import with_floor
from .summary import front_indices

FLUSH_S = 0.05  # measurements are written and reported together, at most this often
FLUSH_COUNT = 4096  # ... or this many at once
_KEEPS_ONE: Final = 4  # evaluations from which one is kept for the best on the untouched board
AGAIN: Final = 8  # of the first configurations are measured again at the end, on a board as warm as it became,
AGAIN_SHARE: Final = 3  # one of so many at most
MOST_MADE: Final = 256  # rows of a library's that are timed first
FIRST: Final = 64  # evaluations, by which power limits without effect are remarked on


def run_session(
    plan: ReadyPlan,
    store: Store,
    on_event: Callable[[Event], None],
    stop: threading.Event,
    attend: Attend | None = None,
) -> SessionResult:
    """Run a session to its end: the strategy's, the budget's, or `stop`. Every event is sent from this thread.

    When `stop` is set, `attend` decides: True continues (it has cleared the event), False ends; without it the session
    ends. A runner or store that fails ends the session as FAILED, with an EngineFault; what was reported is on disk.
    Raises InputError, with nothing written, where the strategy or its options are wrong.
    """
    if plan.follow is not None:
        from .follow import follow_session

        return follow_session(plan, store, on_event, stop, attend)
    plan = with_floor(plan, store)
    chosen = strategies.get(plan.strategy)
    options = strategies.make_options(chosen, dict(plan.strategy_options))
    with open_runner(plan, plan.boards, lambda *reported: on_event(PoolReported(*reported))) as runner:
        chosen = chosen.informed(background_of(runner, plan, stop))
        run = SessionRun(plan, store, on_event, runner, stop, attend)
        search = chosen.search(plan.space, np.random.default_rng(plan.seed), runner.batch, options)
        return run.to_the_end(search, chosen.report)


def run_side_by_side(
    boards: Sequence[Sequence[ReadyPlan]],
    store: Store,
    on_event: Callable[[Event], None],
    stop: threading.Event,
) -> list[SessionResult]:
    """Run the plans of each board on a thread of its own; the results, board by board, of sessions that could begin.

    Events come from all threads, one at a time. A session that fails ends neither the others of its board nor those of
    other boards. Setting `stop` ends all of them, with what was measured.
    """
    mutex = threading.Lock()

    def report(event: Event) -> None:
        with mutex:
            on_event(event)

    def run_all(plans: Sequence[ReadyPlan]) -> list[SessionResult]:
        results = []
        for plan in plans:
            if stop.is_set():
                break
            try:
                results.append(run_session(plan, store, report, stop))
            except WattridgeError as error:
                report(EngineFault.of(error))
            except BaseException:
                stop.set()
                raise
        return results

    with ThreadPoolExecutor(len(boards), "board") as threads:
        return [result for of_board in threads.map(run_all, boards) for result in of_board]


def background_of(runner: Runner, plan: SessionPlan, stop: threading.Event | None = None) -> strategies.Background:
    """What a strategy may know of the runner's rows and, unless it is resumed, of earlier sessions of the kernel."""
    prior = None if plan.resume is not None else lambda: kept_model(plan.board, plan.space.names)
    features = partial(runner.features, stop=stop) if runner.feature_names else None
    starts, space = (*plan.starts, *plan.suggestions), plan.space
    made = space.rows_with({MAKER: CUBLASLT})[:MOST_MADE].tolist() if MAKER in space.names else ()
    return strategies.Background(runner.feature_names, features, prior, lambda: runner.board_count, starts, tuple(made))


class _Ended(Exception):
    """Leaves the loop, with the state and the reason; not an error."""

    def __init__(self, state: SessionState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class SessionRun(LiveSession):
    """A session that is measured."""

    def __init__(
        self,
        plan: SessionPlan,
        store: Store,
        on_event: Callable[[Event], None],
        runner: Runner,
        stop: threading.Event,
        attend: Attend | None,
    ) -> None:
        session = store.create_session(plan) if plan.resume is None else plan.resume
        super().__init__(plan, on_event, session, ResultTable(plan.space))
        self._store = store
        self._runner = runner
        self._stop = stop
        self._attend = attend
        self._pending: list[Measurement] = []
        fronts = plan.objective.front_asked or strategies.get(plan.strategy).of_front
        self._goals = plan.objective if fronts else replace(plan.objective, front=())  # that the search is about
        self._known: dict[int, strategies.Outcome] = {}  # by row
        self._evaluated = 0  # of them, those that were measured in full
        self._timing = self._saves_by_timing()
        self._at_once: set[int] = set()  # rows measured in full though their time was asked for
        self._fresh: list[Measurement] = []  # the first that were measured now, not found stored
        self._best_after = 0  # evaluations until the best was found
        self._turns_s = 0.0  # kept of the limit for the turns at the end
        self._least_cost = math.inf
        self._best_row: int | None = None
        self._told_limits = False  # that some power limits are without effect
        self._prepared = False  # the runner has done what it does once
        elapsed_s = self._add_known() if plan.resume is None else self._reopen()
        self._clock = SessionClock(elapsed_s, self._evaluated)
        self._flushed_at = time.monotonic()
        on_event(SessionStarted(self.session, plan, self.table))

    def pause(self, reason: str = "") -> None:
        """Stop the session's clock and report it. Everything measured is on disk first."""
        self._flush()
        super().pause(reason)

    def _set_state(self, state: SessionState, reason: str = "") -> None:
        self._store.set_state(self.session, state, self._clock.elapsed_s)
        super()._set_state(state, reason)

    # --- the loop ---------------------------------------------------------------------------------------------------

    def to_the_end(self, search: strategies.Search, report: Callable[[], strategies.Report]) -> SessionResult:
        """Drive the strategy until it, the budget, the user or a failure ends the session.

        `report` returns what the strategy keeps of its search at the end.
        """
        try:
            try:
                state, reason = SessionState.DONE, self._drive(search) or "the strategy is done"
            except _Ended as how:
                state, reason = how.state, how.reason
            if state is SessionState.DONE:
                self._measure_own_state()
            self._clock.stop()
            self._keep_report(report())
            self._state_figures()
            self._keep_fit()
            if state is SessionState.DONE and (missing := missing_figure(self.table, self.plan.objective.goal.name)):
                state, reason = SessionState.FAILED, f"{missing} ({reason})"
        except WattridgeError as error:
            self._on_event(EngineFault.of(error))
            state, reason = SessionState.FAILED, str(error)
        except BaseException as error:
            self.end(SessionState.FAILED, f"{type(error).__name__}: {error}")
            raise
        finally:
            search.close()
        return self.end(state, reason)

    def _prepare(self, rows: Sequence[int]) -> None:
        """Prepare the runner once, before the first rows are measured; the session's clock does not run meanwhile.

        Raises _Ended.
        """
        if self._prepared:
            return
        self._prepared = True
        while True:
            self._clock.stop()
            try:
                self._runner.prepare(rows, self._stop, lambda *step: self._on_event(Preparing(*step)))
            except PreparationFailed as error:
                self._on_event(EngineFault(error.what, error.remedy))
            self._clock.start()
            if not self._stop.is_set():
                return
            self._attend_to_stop()

    def _begin(self) -> None:
        """Measure the user's starts before the strategy begins. Raises _Ended.

        The strategy gets them as it gets everything known already, once it yields these rows.
        """
        if self.plan.starts:
            self._outcomes(strategies.Batch(self.plan.starts))
            if self._evaluated >= self._budget():  # nothing else is timed, either
                raise _Ended(SessionState.DONE, "the budget is used up")

    def _drive(self, search: strategies.Search) -> str | None:
        """Ask the strategy until it ends; returns why, where it says. Raises _Ended."""
        try:
            self._begin()
            outcomes = None
            while True:
                began = time.perf_counter()
                try:
                    rows = search.send(outcomes)  # type: ignore[arg-type]  # None begins it
                finally:
                    self._strategy_s += time.perf_counter() - began
                batch = strategies.Batch.of(rows)
                if batch.remark:
                    self._on_event(SessionRemark(self.session, batch.remark))
                if batch.likely:
                    self._runner.expect(batch.likely)
                outcomes = self._outcomes(batch)
        except StopIteration as ended:
            return ended.value if isinstance(ended.value, str) else None
        finally:
            self._flush()

    def _measure_own_state(self) -> None:
        """Measure the best configuration on the untouched board, too: what it saves is stated against that."""
        row = self._own_state_row()
        try:
            if row is not None and self._evaluated < self._budget() and not self._stop.is_set():
                self._measure(self._runner.measure([row], self._stop, Depth.ENERGY))
        except _Ended:
            pass
        finally:
            self._flush()

    def _own_state_row(self) -> int | None:
        """The row that the best so far, else the first, has on the untouched board; None if that is measured."""
        space = self.plan.space
        untouched = dict.fromkeys(setting_names(space), UNTOUCHED)
        row = space.row_of({**space.configuration(self._best_row or 0), **untouched}) if untouched else None
        return None if row is None or (row in self._known and self._known[row].final) else row

    def _outcomes(self, batch: strategies.Batch) -> list[strategies.Outcome]:
        """The outcomes of the rows, measured now or known already. Raises _Ended."""
        rows = [int(row) for row in batch]
        if batch.depth is Depth.TIME and self._timing:
            self._find_out(rows, Depth.TIME)
            return [self._as_timed(row) for row in rows]
        self._find_out(rows)
        return [self._known[row] for row in rows]

    def _find_out(self, rows: Sequence[int], depth: Depth = Depth.ENERGY) -> None:
        """Measure the rows that are not known, or time them as long as there is room for that. Raises _Ended."""
        missing = self._missing(rows, depth)
        while missing or self._stop.is_set():
            self._attend_to_stop()
            if depth is Depth.TIME and self._room_to_time() <= 0:
                depth = Depth.ENERGY
                self._at_once.update(missing)
            room = self._room_to_time() if depth is Depth.TIME else self._room()
            if missing and room <= 0:
                whole = len(self._known) >= self.plan.space.size and all(known.final for known in self._known.values())
                raise _Ended(SessionState.DONE, "the whole space is measured" if whole else "the budget is used up")
            if missing:
                self._check_patience()
                self._prepare(missing[:room])
            before = len(missing)
            self._measure(self._runner.measure(missing[:room], self._stop, depth))
            missing = self._missing(missing, depth)
            if missing and len(missing) == before and not self._stop.is_set():
                raise WattridgeError(f"the runner gave no result for row {missing[0]}", self.plan.title)

    def _missing(self, rows: Iterable[int], depth: Depth) -> list[int]:
        """The rows that were not measured to this depth."""
        outcomes, timing = self._known, depth is Depth.TIME
        return [row for row in dict.fromkeys(rows) if row not in outcomes or not (timing or outcomes[row].final)]

    def _room(self) -> int:
        """How many rows more may be measured in full. Of several, one is kept for the best on the untouched board."""
        kept = _KEEPS_ONE <= self._budget() < self.plan.space.size and self._own_state_row() is not None
        return self._budget() - self._evaluated - kept

    def _room_to_time(self) -> int:
        """How many rows more may be timed. Without a budget of evaluations, the whole space."""
        for_one = strategies.get(self.plan.strategy).timed_for_one
        most = self.plan.space.size if self.plan.max_evaluations is None else for_one * self._budget()
        return most - (len(self._known) - self._evaluated)

    def _saves_by_timing(self) -> bool:
        """Whether rows can be timed and that leaves something of the goals open: else it saves nothing."""
        timed = self._runner.timed
        return "time_s" in timed and not self._goals.names <= timed

    def _as_timed(self, row: int) -> strategies.Outcome:
        """The outcome of timing a row, also where more is known: a resumed search gets the same as before.

        Everything known of a row that was measured at once, because the room to time was used up.
        """
        outcome = self._known[row]
        if outcome.depth is Depth.TIME or row in self._at_once:
            return outcome
        if outcome.state is not State.OK:
            return replace(outcome, depth=Depth.TIME)
        values = {name: value for name, value in outcome.values.items() if name in self._runner.timed}
        timed = Measurement(row, self.plan.space.configuration(row), State.OK, values, depth=Depth.TIME)
        return strategies.Outcome.of(timed, self._goals)

    def _measure(self, measuring: Iterator[Measurement]) -> None:
        try:
            for measurement in measuring:
                self._take(measurement)
                limit = self.plan.max_seconds
                if limit is not None and self._clock.elapsed_s >= limit - self._kept_s():
                    raise _Ended(SessionState.DONE, "the time is used up")
                self._check_patience()
        finally:
            close = getattr(measuring, "close", None)  # a generator releases the GPU at once
            if close is not None:
                close()

    def _kept_s(self) -> float:
        """What is kept of the limit for the turns; known once the library has been measured, which comes first."""
        self._turns_s = kept_for_turns_s(self.plan, self.table)
        return self._turns_s

    def _check_patience(self) -> None:
        patience = self.plan.patience
        if patience is not None and self._evaluated - self._best_after >= patience:
            raise _Ended(SessionState.DONE, f"no improvement in {patience} evaluations")

    def _attend_to_stop(self) -> None:
        if self._stop.is_set() and (self._attend is None or not self._attend(self)):
            raise _Ended(SessionState.STOPPED, "stopped")

    def _keep_report(self, report: strategies.Report) -> None:
        """Store the strategy's report of its search with the session, and announce it."""
        if report.model is not None and self._runner.source != "recorded":
            keep_model(self.plan.board, self.plan.space.names, report.model)
        if report.origin:
            self.plan = replace(self.plan, origin={**self.plan.origin, **report.origin})
            self._store.restate(self.session, (), self.plan.origin)
            self._on_event(FiguresRestated(self.session, self.plan, self.table, self._progress()))

    def _state_figures(self) -> None:
        """State all figures again with what the session has learnt of its board by its end, outside its budget.

        Measurements taken over from elsewhere stay as they were: they may be of another board, at another condition.
        """
        if not len(self.table):
            return
        measured = [self.table.measurement(index) for index in range(len(self.table))]
        gain = gain_of_session(self.plan.origin, self.plan.gpu, measured, self._runner.meters)
        taken_over = {measurement.row for measurement in self.plan.known}
        here = [before for before in measured if before.row not in taken_over]
        finished = iter(self._runner.finish(here, self._worth_a_second_look(), self.plan.objective, self._stop))
        stated = [before if before.row in taken_over else next(finished) for before in measured]
        origin = {**self.plan.origin, **self._runner.conclude(), **gain}
        stated, finals = self._in_turns(stated, origin, taken_over)
        stated = [self._completed(before, after) for before, after in zip(measured, stated, strict=True)]
        origin |= finals
        others = [new for old, new in zip(measured, stated, strict=True) if not same(old, new)]
        if not others and origin == self.plan.origin:
            return
        self.plan = replace(self.plan, origin=origin)
        self._store.restate(self.session, others, origin)
        self.table = self.table.restated(stated, origin)  # readers keep the old one until the event
        self._note_costs(range(len(stated)))
        self._on_event(FiguresRestated(self.session, self.plan, self.table, self._progress()))

    def _in_turns(
        self, stated: list[Measurement], origin: Mapping[str, str], taken_over: Collection[int]
    ) -> tuple[list[Measurement], Mapping[str, str]]:
        """The figures after the contenders for the best were measured in turns, and what that says for the origin."""
        plan = self.plan
        if not plan.looks_again or plan.specification is None or self._runner.source == "recorded":
            return stated, {}
        table = self.table.restated(stated, origin)
        tell = partial(SessionRemark, self.session)
        left_s = math.inf if plan.max_seconds is None else max(0.0, plan.max_seconds - self._clock.elapsed_s)
        finals = play(
            self._runner, table, plan, self._stop, taken_over, lambda words: self._on_event(tell(words)), left_s
        )
        if finals is None:
            return stated, {}
        stated = as_in_turns(finals, stated, plan.specification)
        return stated, {**finals.to_origin(), **Baseline.restated(origin, stated)}

    def _keep_fit(self) -> None:
        """Keep the frequency model that the measurements of a board give, if they give one, as the newest of it."""
        plan, clocks = self.plan, set(CLOCK_SETTINGS) & set(self.plan.space.names)
        if (
            not clocks
            or "gpu" not in plan.origin
            or self._runner.source == "recorded"
            or plan.purpose is Purpose.REPLAY
        ):
            return
        with suppress(WattridgeError):  # no model, or no place to keep one: the session is as good without
            fit, source = fit_of_table(self.table, plan.title, plan.gpu, plan.source)
            if fit.identifiable:
                save_fit(self._store, fit, source, self.session, uuid=plan.origin["gpu"])

    def _completed(self, measured: Measurement, stated: Measurement) -> Measurement:
        """A measurement as stated at the end, with the measured values where they differ."""
        if stated is measured:
            return measured
        before = {**measured.values, **measured.as_measured}
        return replace(stated, as_measured=stated_otherwise(before, stated.values))

    def _worth_a_second_look(self) -> list[int]:
        """The first rows that were measured in the setting in force: no clock is changed for them.

        None where the time that is left is kept for turns with the vendor's library.
        """
        if not self.plan.looks_again or self._stop.is_set() or self._turns_s:
            return []
        settings = setting_names(self.plan.space)
        in_force = self.table.measurement(len(self.table) - 1).configuration
        worked = [
            fresh.row
            for fresh in self._fresh
            if fresh.depth is Depth.ENERGY
            and fresh.state is State.OK
            and all(fresh.configuration[name] == in_force[name] for name in settings)
        ]
        return worked[: min(AGAIN, self._evaluated // AGAIN_SHARE)]

    # --- keeping ----------------------------------------------------------------------------------------------------

    def _add_known(self) -> float:
        """Take in what is known of a new session's space already; no time was spent on it."""
        if self.plan.known:
            self._store.append(self.session, self.plan.known)
        self._learn_all(self.plan.known)
        return 0.0

    def _reopen(self) -> float:
        """Take in what a stored session has measured; the seconds it took. Raises InputError for another space."""
        plan, session = self.plan, self.session
        stored = self._store.space(session)
        if stored.parameters != plan.space.parameters or not np.array_equal(stored.codes, plan.space.codes):
            raise InputError(
                f"session {session} was measured on another search space", plan.title, "start a new session"
            )
        self._store.reopen(session, plan.max_evaluations, plan.max_seconds, plan.patience)
        loaded = self._store.load(session)
        self._learn_all(loaded.table.measurement(index) for index in range(len(loaded.table)))
        return loaded.record.elapsed_s

    def _learn_all(self, measurements: Iterable[Measurement]) -> None:
        for measurement in measurements:
            self._learn(measurement)
            self.table.append(measurement)
        self._note_costs(range(len(self.table)))

    def _take(self, measured: Measurement) -> None:
        measurement = self._on_its_board(measured)
        if len(self._fresh) < AGAIN_SHARE * AGAIN:
            self._fresh.append(measurement)
        self._learn(measurement)
        self._pending.append(measurement)
        if time.monotonic() - self._flushed_at >= FLUSH_S or len(self._pending) >= FLUSH_COUNT:
            self._flush()

    def _on_its_board(self, measurement: Measurement) -> Measurement:
        """With the identity of the board that measured it: figures are compared within a board only."""
        if measurement.board or self._runner.source == "recorded":
            return measurement
        return replace(measurement, board=self.plan.origin.get("gpu", ""))

    def _learn(self, measurement: Measurement) -> None:
        """Keep the outcome for the search, before the measurement is written."""
        outcome = strategies.Outcome.of(measurement, self._goals)
        before = self._known.get(measurement.row)
        self._known[measurement.row] = outcome
        deepened = before is None or before.depth is Depth.TIME
        self._evaluated += outcome.depth is Depth.ENERGY and deepened
        if outcome.cost < self._least_cost:
            self._least_cost, self._best_after, self._best_row = outcome.cost, self._evaluated, outcome.row

    def _note_costs(self, indices: Sequence[int]) -> None:
        """Update the best measurement by these entries of the table; by all of them from scratch."""
        if len(indices) == len(self.table):
            self._best_cost, self._best_index = math.inf, -1
        comparable = self.table.comparable
        for index in (index for index in indices if comparable[index]):
            self._note_cost(strategies.Outcome.of(self.table.measurement(index), self.plan.objective).cost, index)

    def _flush(self) -> None:
        """Write what is pending to disk, then into the table, then report it."""
        self._flushed_at = time.monotonic()
        if not self._pending:
            return
        fresh, self._pending = self._pending, []
        self._store.append(self.session, fresh, self._clock.elapsed_s, self._needed)
        length = len(self.table)
        indices = self.table.extend(replace(m, evidence=b"") if m.evidence else m for m in fresh)
        deepened = tuple(dict.fromkeys(index for index in indices if index < length))
        self._note_costs(range(len(self.table)) if self._best_index in deepened else indices)
        self._clock.mark(self._evaluated)
        self._on_event(MeasurementsAdded(self.session, len(self.table), self._progress()))
        if not self._told_limits and min(FEWEST, self.plan.space.size) <= self._evaluated <= FIRST:
            effects = limit_effects(self.table)
            self._told_limits = any(effect.without_effect for effect in effects)
            if self._told_limits:
                self._on_event(SessionRemark(self.session, f"by the first {self._evaluated}: {in_words(effects)}"))

    def _needed(self) -> list[int]:
        """The rows whose samples stay in any case: those of the front, and the best."""
        objective, rows = self.plan.objective, self.table.rows()
        of_best = [] if self._best_index < 0 else [self._best_index]
        return [int(rows[index]) for index in (*of_best, *front_indices(self.table, objective.front, objective.limits))]

    def _write_end(self, reason: str) -> None:
        self._store.finish(self.session, self._state, reason, self._clock.elapsed_s)

    # --- progress -----------------------------------------------------------------------------------------------------

    def _budget(self) -> int:
        return self.plan.budget

    def _eta_s(self, rate_per_s: float) -> float | None:
        by_count = (self._budget() - self._evaluated) / rate_per_s if rate_per_s > 0 else None
        if self.plan.max_seconds is None:
            return by_count
        by_time = max(0.0, self.plan.max_seconds - self._clock.elapsed_s)
        return by_time if by_count is None else min(by_count, by_time)
