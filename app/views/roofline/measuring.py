"""`RooflineMeasuring`: the sweeps of a board's roofline as ordinary sessions, one precision after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from ...engine.models.roofline.points import sweep_of_session
from ...engine.results.state import Progress, SessionState
from ...engine.runner.boards import ReadyPlan
from ...engine.session import events
from ...engine.session.planning import plan_resume, plan_roofline
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..shared.context import Context
from ..shared.tasks import LatestTask

_PARTIAL_MS = 500  # between two fits of a sweep that is still running


class RooflineMeasuring(QObject):
    """Plans and fits off Qt's thread; the engine runs the sessions. `measured` is emitted during a session too.

    These sessions are stored as any other, and never become the window's current result.
    """

    measured = Signal(object)  # Sweep
    opened = Signal(object)  # events.SessionStarted: a stored sweep, opened to look at
    changed = Signal()  # what is going on, or how far it is
    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, context: Context, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._gpu = context.gpu  # the board of the sweep that runs, or of the last one
        self._waiting: list[str] = []  # precisions still to be measured, the present one first
        self._own: tuple[SessionPlan, ResultTable, int] | None = None  # the session that runs, or the last one
        self._asked: ReadyPlan | None = None  # given to the engine, which has not answered yet
        self.progress: Progress | None = None
        self._planner, self._fitter = LatestTask(self), LatestTask(self)
        self._planner.done.connect(self._planned)
        self._planner.failed.connect(self._not_planned)
        self._fitter.done.connect(self.measured)
        self._fitter.failed.connect(self._not_fitted)
        self._partial = QTimer(self, singleShot=True, interval=_PARTIAL_MS)
        self._partial.timeout.connect(self._fit)
        bridge = context.bridge
        bridge.roofline.started.connect(self._session_started)
        bridge.roofline.measurements_added.connect(self._measurements_added)
        bridge.roofline.restated.connect(self._figures_restated)
        bridge.roofline.changed.connect(self._session_changed)
        bridge.activity.changed.connect(self.changed)
        self.changed.connect(self._hold_queue)
        bridge.fault.connect(self._fault)

    @property
    def busy(self) -> bool:
        """A sweep of ours is being made."""
        return bool(self._waiting)

    @property
    def fitting(self) -> bool:
        """Whether a fit is still to come."""
        return self._fitter.busy or self._partial.isActive()

    @property
    def possible(self) -> bool:
        """The engine is free for a sweep."""
        bridge = self._context.bridge
        return not self.busy and bridge.activity.plan is None and bridge.queue.current is None

    @property
    def precision(self) -> str:
        """What is being measured; empty while nothing is."""
        return self._waiting[0] if self._waiting else ""

    def start(self, precisions: Sequence[str]) -> None:
        """Measure these, one after the other."""
        if self.possible and precisions:
            self._waiting = list(precisions)
            self._gpu = self._context.gpu  # whichever board is shown meanwhile
            self._plan()

    @Slot(int, str)
    def resume(self, session: int, precision: str) -> None:
        """Continue a stored sweep."""
        store, board = self._context.store, self._context.boards.current
        if self.possible:
            self._waiting, self._gpu = [precision], board.gpu
            self._plan_with(lambda: plan_resume(store, session, gpu=board.gpu, guard=board.guard))

    @Slot()
    def stop(self) -> None:
        """End what runs; what was measured stays."""
        started = self._asked is not None or self._own is not None
        self._waiting = self._waiting[:1] if started else []
        self._planner.shutdown()
        if started:
            self._context.bridge.submit(events.Stop())
        self.changed.emit()

    def shutdown(self) -> None:
        """End what runs in the background; the session belongs to the engine."""
        self._partial.stop()
        self._planner.shutdown()
        self._fitter.shutdown()

    # --- one precision after the other --------------------------------------------------------------------------------

    def _plan(self) -> None:
        gpu, precision = self._gpu, self._waiting[0]
        self._plan_with(lambda: plan_roofline(gpu, precision))

    def _plan_with(self, plan: Callable[[], ReadyPlan]) -> None:
        self.progress, self._own = None, None
        self._planner.run(lambda _stop: plan())
        self.changed.emit()

    @Slot(object)
    def _planned(self, plan: ReadyPlan) -> None:
        self._asked = plan
        self._context.bridge.submit(events.Start(plan))

    @Slot(str, str)
    def _not_planned(self, what: str, remedy: str) -> None:
        self._give_up()
        self.failed.emit(what, remedy)

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        if event.plan is self._asked:
            self._asked, self._own = None, (event.plan, event.table, event.session)
        elif not event.running:
            self.opened.emit(event)
        self.changed.emit()

    @Slot(object)
    def _figures_restated(self, event: events.FiguresRestated) -> None:
        if self._own is not None and event.session == self._own[2]:
            self._own = (event.plan, event.table, event.session)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        if self.busy and self._own is not None and event.session == self._own[2]:
            self.progress = event.progress
            if not self._partial.isActive() and not self._fitter.busy:
                self._partial.start()
            self.changed.emit()

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        state = event.progress.state
        if self.busy and self._own is not None and event.progress.session == self._own[2] and not state.alive:
            self._partial.stop()
            self._fit()
            self._waiting = self._waiting[1:] if state is SessionState.DONE else []
            if self._waiting:
                self._plan()
        self.changed.emit()

    @Slot()
    def _hold_queue(self) -> None:
        """Nothing that waits to run comes between two precisions."""
        self._context.bridge.queue.hold(self.busy)

    @Slot(object)
    def _fault(self, _event: events.EngineFault) -> None:
        """A session that could not even start; the window's banner shows why."""
        if self._asked is not None:
            self._give_up()

    def _give_up(self) -> None:
        self._waiting, self._asked = [], None
        self.changed.emit()

    # --- fitting what was measured ------------------------------------------------------------------------------------

    @Slot()
    def _fit(self) -> None:
        if self._own is None:
            return
        (plan, table, session), board = self._own, self._gpu.info
        session_of = {"gpu": plan.gpu, "title": plan.title, "source": plan.source, "session": session}
        self._fitter.run(lambda _stop: sweep_of_session(table, board=board, **session_of))  # type: ignore[arg-type]

    @Slot(str, str)
    def _not_fitted(self, what: str, remedy: str) -> None:
        if not self.busy:  # while it runs the first points may be too few
            self.failed.emit(what, remedy)
