"""`Activity`: what the engine does now, how far it is, and how it is paused and stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from ...engine.session import events
from ...engine.session_state import Progress, Purpose, SessionState
from ...numbers import duration

if TYPE_CHECKING:
    from ...engine.session.plan import SessionPlan


class Activity(QObject):
    """A session, a sweep, a fit or profiling; nothing most of the time. Hears of every event, whatever it is for."""

    changed = Signal()

    def __init__(self, submit: Callable[[events.Command], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._submit = submit
        self.plan: SessionPlan | None = None  # of the session that runs or is paused
        self.purpose = Purpose.TUNING  # of the session that started last, or was opened
        self.progress: Progress | None = None  # of the session, once it is known
        self.fit: events.FitProgress | None = None  # of a sweep or fit, for which a session waits
        self.profiling: events.ProfilingProgress | None = None
        self.preparing: events.Preparing | None = None  # until the session's first measurement
        self.pausing = False  # asked for, and not yet answered
        self.stopping = False

    @property
    def busy(self) -> bool:
        """Whether anything runs, or is paused."""
        return self.plan is not None or self.fit is not None or self.profiling is not None

    @property
    def paused(self) -> bool:
        """A session is, and nothing else runs meanwhile."""
        return self.fit is None and self.progress is not None and self.progress.state is SessionState.PAUSED

    @property
    def can_pause(self) -> bool:
        """A session runs, or is paused and can continue. Sweeps and fits have no pause."""
        return self.plan is not None and self.fit is None and not self.pausing and not self.stopping

    @property
    def title(self) -> str:
        """What runs, in words; empty while nothing does."""
        if self.fit is not None:
            return f"Sweep of {self.fit.what}" if self.fit.total else "Fit of the frequency model"
        if self.profiling is not None:
            return f"Hardware counters of session {self.profiling.session}"
        if self.plan is None:
            return ""
        if self.plan.purpose is Purpose.ROOFLINE:
            from ...engine.tuning_methods.roofline_points import precision_words  # imported late: few sessions need it

            return f"Roofline {precision_words(self.plan.origin.get('precision', ''))}"
        if self.plan.purpose is Purpose.REPLAY:
            return f"{'Following' if self.plan.follow is not None else 'Replay of'} {self.plan.title}"
        return f"Tuning {self.plan.title}"

    @property
    def share(self) -> tuple[int, int]:
        """(done, of how many); of 0 while that is not known."""
        if self.fit is not None:
            return self.fit.done, self.fit.total
        if self.profiling is not None:
            return self.profiling.done, self.profiling.total
        if self.preparing is not None:
            return round(self.preparing.done_s), max(1, round(self.preparing.total_s))
        return (self.progress.evaluated, self.progress.budget) if self.progress is not None else (0, 0)

    @property
    def left(self) -> str:
        """The time that is left, or why there is none, in words; empty while it is not known."""
        if self.stopping or self.pausing:
            return "stopping …" if self.stopping else "pausing …"
        if self.fit is not None:
            return ""
        if self.preparing is not None:
            return "preparing"
        if self.paused:
            return "paused"
        eta_s = self.progress.eta_s if self.progress is not None else None
        return "" if eta_s is None else f"{duration(eta_s)} left"

    @Slot()
    def pause_or_resume(self) -> None:
        """Pause the session, or continue it."""
        if self.can_pause:
            self.pausing = not self.paused
            self._submit(events.Pause() if self.pausing else events.Resume())
            self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """End what runs; what was measured stays, and a session can be resumed later."""
        if self.busy and not self.stopping:
            self.stopping = True
            self._submit(events.Stop())
            self.changed.emit()

    def note(self, event: events.Event) -> None:
        """Take in what the engine reports. For Qt's thread, before anything else hears of it."""
        match event:
            case events.SessionStarted():
                self.plan, self.purpose = (event.plan if event.running else None), event.plan.purpose
                self.progress = self.preparing = None
                self.pausing = self.stopping = False
            case events.Preparing():
                self.preparing = event
            case events.MeasurementsAdded():
                self.progress, self.preparing = event.progress, None
            case events.SessionChanged():
                self._session_changed(event.progress)
            case events.FitProgress():
                self.fit = event
            case events.FitFinished() | events.FitFailed():
                self.fit = None
                self.stopping = False
            case events.ProfilingProgress():
                self.profiling = event
            case events.ProfilingFinished():
                self.profiling = None
                self.stopping = False
            case _:
                return
        self.changed.emit()

    def _session_changed(self, progress: Progress) -> None:
        self.progress, self.preparing, self.pausing = progress, None, False
        if not progress.state.alive:
            self.plan = self.progress = None
            self.stopping = False
