"""`RunQueue`: sessions that wait until the engine is free, and the outcome of those that have run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ...base.errors import InputError
from ..results.state import Progress, SessionState
from .events import (
    BoardReleased,
    Event,
    FitFailed,
    FitFinished,
    FitProgress,
    MeasurementsAdded,
    SessionChanged,
    SessionStarted,
    StartFailed,
)

if TYPE_CHECKING:
    from ..runner.boards import ReadyPlan
    from ..specification.plan import SessionPlan

MOST_WAITING: Final = 200
_MOST_FINISHED: Final = 200  # that are remembered; their sessions are stored anyway


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A session of the queue. `number` is its name there, whatever its place."""

    number: int
    plan: ReadyPlan
    state: SessionState | None = None  # None while it waits
    session: int | None = None  # once it has begun
    reason: str = ""  # why it ended, where that is known
    took_s: float | None = None

    @property
    def waits(self) -> bool:
        return self.state is None

    @property
    def words(self) -> str:
        """What it searches, where and how, in one line."""
        return f"{self.plan.title} on {self.plan.board}, {self.plan.strategy.replace('_', ' ')}, seed {self.plan.seed}"


class RunQueue:
    """Hands plans to the engine one after another, in order, whatever boards they are for.

    `start(plan)` hands one over, and `on_change()` follows every change. `note` has to be called with every event of
    the engine, and `expect` with every session that is started by other means, all from one thread. While a session or
    a sweep runs, or something holds the queue, the runs wait. A session that fails is followed by the next one. One
    that the user stops pauses the queue, and `paused_because` gives the reason. Nothing of it is kept on disk.
    """

    def __init__(self, start: Callable[[ReadyPlan], None], on_change: Callable[[], None] = lambda: None) -> None:
        self._start, self._on_change = start, on_change
        self._waiting: list[QueuedRun] = []
        self._finished: list[QueuedRun] = []
        self.current: QueuedRun | None = None  # the run of the queue that was handed over and has not ended
        self.paused = False
        self.paused_because = ""  # empty if the user paused it
        self.asked: ReadyPlan | None = None  # handed to the engine, which has not answered yet
        self._running: SessionPlan | None = None  # of the session that runs, the queue's or not
        self._sweeps = False
        self._held = False
        self._pace_s: dict[tuple[str, str], float] = {}  # of one configuration, by kernel and board
        self._made = 0

    # --- contents ----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> tuple[QueuedRun, ...]:
        """In the order in which they will run."""
        return tuple(self._waiting)

    @property
    def finished(self) -> tuple[QueuedRun, ...]:
        """The runs that have ended, the oldest first."""
        return tuple(self._finished)

    @property
    def runs(self) -> tuple[QueuedRun, ...]:
        """All of them: finished, current, waiting."""
        current = (self.current,) if self.current is not None else ()
        return (*self._finished, *current, *self._waiting)

    def estimate_s(self, run: QueuedRun) -> float | None:
        """How long a run may take, as the same kernel took on the same board, within its limit of time.

        None if neither is known.
        """
        pace_s, limit_s = self._pace_s.get(_measured(run.plan)), run.plan.max_seconds
        by_pace_s = None if pace_s is None else pace_s * run.plan.budget
        return min((bound_s for bound_s in (by_pace_s, limit_s) if bound_s is not None), default=None)

    # --- changes ------------------------------------------------------------------------------------------------------

    def add(self, plans: Sequence[ReadyPlan]) -> None:
        """Put runs at the end; the first begins at once where the engine is free. Raises InputError for too many."""
        room = MOST_WAITING - len(self._waiting)
        if len(plans) > room:
            what = f"{len(plans)} more runs are too many for the queue"
            raise InputError(what, "queue", f"{MOST_WAITING} may wait at most, and {len(self._waiting)} do")
        for plan in plans:
            self._made += 1
            self._waiting.append(QueuedRun(self._made, plan))
        self._changed()

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget runs that wait or are finished; their sessions stay. The current one is left alone."""
        gone = set(numbers)
        self._waiting = [run for run in self._waiting if run.number not in gone]
        self._finished = [run for run in self._finished if run.number not in gone]
        self._changed()

    def clear(self) -> None:
        """Forget every run that waits."""
        self.remove([run.number for run in self._waiting])

    def move(self, number: int, place: int) -> None:
        """Put a waiting run at that place among those that wait, 0 for the next one. Others are left alone."""
        run = next((run for run in self._waiting if run.number == number), None)
        if run is not None:
            self._waiting.remove(run)
            self._waiting.insert(max(0, place), run)
            self._changed()

    def pause(self, because: str = "") -> None:
        """Start nothing more; what runs continues."""
        self.paused, self.paused_because = True, because
        self._changed()

    def resume(self) -> None:
        """Go on with the next run as soon as the engine is free."""
        self.paused, self.paused_because = False, ""
        self._changed()

    def hold(self, held: bool) -> None:
        """Hold the queue while something else uses the engine several times in a row."""
        if held != self._held:
            self._held = held
            self._changed()

    # --- events -------------------------------------------------------------------------------------------------------

    def expect(self, plan: ReadyPlan) -> None:
        """Note that a session was handed to the engine, by the queue or by other means."""
        self.asked = plan

    def note(self, event: Event) -> None:
        """Follow an event of the engine."""
        match event:
            case SessionStarted(running=True):
                self._began(event)
            case MeasurementsAdded():
                self._note_pace(event.progress)
                return
            case SessionChanged() if self._running is not None and not event.progress.state.alive:
                self._note_pace(event.progress)
                self._running = None
                self._ended(event.progress, event.reason)
            case StartFailed():
                self.asked = None if event.plan is self.asked else self.asked
                if self.current is not None and event.plan is self.current.plan:
                    self._end_current(SessionState.FAILED, event.reason)
            case FitProgress():
                self._sweeps = self._sweeps or event.total > 0
                return
            case FitFinished() | FitFailed() if self._sweeps:
                self._sweeps = False
                if isinstance(event, FitFailed) and self._running is None and self._waiting:
                    self.paused, self.paused_because = True, "the sweep before it ended without a result"
            case BoardReleased():
                self._drop(event.board)
            case _:
                return
        self._changed()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _began(self, event: SessionStarted) -> None:
        self.asked = None if event.plan is self.asked else self.asked
        self._running = event.plan
        current = self.current
        if current is not None and (event.plan is current.plan or current.session is not None):
            self.current = replace(current, session=event.session)  # which changes where a file is followed

    def _ended(self, progress: Progress, reason: str) -> None:
        """The session that ran has ended. If the user stopped it, the next one does not start by itself."""
        if self.current is not None and self.current.session is not None:
            self._end_current(progress.state, reason, progress.session, progress.elapsed_s)
        if progress.state is SessionState.STOPPED and self._waiting:
            self.paused, self.paused_because = True, f"session {progress.session} was stopped"

    def _end_current(
        self, state: SessionState, reason: str, session: int | None = None, took_s: float | None = None
    ) -> None:
        assert self.current is not None
        self._finish([replace(self.current, state=state, reason=reason, session=session, took_s=took_s)])
        self.current = None

    def _finish(self, runs: Iterable[QueuedRun]) -> None:
        self._finished = [*self._finished, *runs][-_MOST_FINISHED:]

    def _drop(self, board: str) -> None:
        """End the runs that wait for a board that was released: they cannot run."""
        gone = [run for run in self._waiting if run.plan.origin.get("gpu") == board]
        self._waiting = [run for run in self._waiting if run not in gone]
        why = "its board is no longer watched"
        self._finish(replace(run, state=SessionState.FAILED, reason=why) for run in gone)

    def _note_pace(self, progress: Progress) -> None:
        plan = self._running
        if plan is not None and progress.evaluated and progress.elapsed_s > 0:
            self._pace_s[_measured(plan)] = progress.elapsed_s / progress.evaluated

    def _changed(self) -> None:
        """Start the next run if nothing is in its way."""
        free = not (self._held or self._sweeps) and self.asked is None and self._running is None
        if free and not self.paused and self._waiting:
            self.current = replace(self._waiting.pop(0), state=SessionState.RUNNING)
            self.expect(self.current.plan)
            self._start(self.current.plan)
        self._on_change()


def variants(plan: ReadyPlan, strategies: Sequence[str], seeds: Sequence[int]) -> list[ReadyPlan]:
    """The plan with each strategy and each seed. A strategy other than the plan's own has its default options."""
    return [
        replace(plan, strategy=name, seed=seed, strategy_options=plan.strategy_options if name == plan.strategy else {})
        for name in strategies
        for seed in seeds
    ]


def chosen_as(chosen: ReadyPlan, plan: ReadyPlan) -> ReadyPlan:
    """A plan of the same specification, for another board, searched as `chosen` is."""
    names = ("objective", "strategy", "strategy_options", "max_evaluations", "max_seconds", "patience", "seed")
    return replace(plan, **{name: getattr(chosen, name) for name in names})


def _measured(plan: SessionPlan) -> tuple[str, str]:
    return plan.title, plan.board
