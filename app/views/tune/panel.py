"""The tuning session: open what to tune, see its space, choose how, run it, watch it, export a configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from ...engine.session import events
from ...engine.session_state import Purpose, SessionState
from ...errors import InputError, WattridgeError
from ..context import Context
from ..file_dialogs import open_file
from ..front.marked_bar import MarkedBar
from ..result_caption import ResultCaption
from ..threads.tasks import LatestTask
from ..widgets import button, hbox, local_time, vbox
from .add_to_queue import AddToQueue
from .draft import Draft, draft_of_file, draft_of_session, examples
from .draft_summary import DraftSummary
from .export_panel import ExportPanel
from .results_table import ResultsView
from .session_form import SessionForm
from .session_progress import SessionProgress

if TYPE_CHECKING:
    from ...engine.session.plan import SessionPlan
    from ..space.window import SpaceWindow

_STORED_SHOWN = 15
_START_TIP = "Start the session as it is set up above; what is shown below is then its result"
_WAITS = "A session is running on {board}: add this to the queue, or start it when that has ended"
_ROOM_FOR_HISTORY = 680  # pixels
_FILES = "Specifications and recordings (*.toml *.json *.json.gz *.csv *.csv.gz);;All files (*)"
_RECORDINGS = "Recordings (*.json *.json.gz *.csv *.csv.gz);;All files (*)"


class TunePanel(QWidget):
    """`open(path)` prepares a session; the buttons run it. Everything that may take time happens off Qt's thread."""

    file_opened = Signal(object)  # the Path of what was read

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._draft: Draft | None = None
        self._opened: tuple[Path, Path | None] | None = None  # the file, and what was taken over; no stored session
        self._kept: dict[str, Any] | None = None  # what was chosen in the form, while it is prepared for another board
        self._asked = True  # whether the user asked for what is being prepared
        self.space_window: SpaceWindow | None = None  # once it was asked for
        self.state: SessionState | None = None  # of the running or last session
        self._starting = False  # Start was pressed, the engine has not answered yet
        self._start_when_ready = False
        self._reader = LatestTask(self)
        self._reader.done.connect(self._prepared)
        self._reader.failed.connect(self._not_prepared)
        self.summary, self.form, self.progress = DraftSummary(), SessionForm(), SessionProgress()
        self.caption = ResultCaption(context.result)
        self.results = ResultsView(context.result)
        self.marked = MarkedBar(context.result)
        self.marked.only.toggled.connect(self.results.show_only_marked)
        self.export = ExportPanel(context)
        self.start = button("Start", _START_TIP, self.start_session)
        self.queue = AddToQueue(context, lambda: self._draft, self.plan_as_set_up)
        self.pause = button("Pause", clicked=self.pause_or_resume)
        ends = "End the session; what was measured stays, and it can be resumed later"
        self.stop = button("Stop", ends, self.stop_session)
        self._lay_out()
        self.summary.unsteer.clicked.connect(self._unsteer)
        self.summary.look.clicked.connect(self.show_space)
        self.summary.follow.toggled.connect(self.form.set_following)
        context.result.steered.connect(self._steered)
        context.boards.board_changed.connect(self._follow_board)
        bridge = context.bridge
        bridge.control_changed.connect(self._control_changed)
        bridge.session_started.connect(self._session_started)
        bridge.preparing.connect(self._preparing)
        bridge.measurements_added.connect(self._measurements_added)
        bridge.session_remark.connect(self._session_remark)
        bridge.session_changed.connect(self._session_changed)
        bridge.activity.changed.connect(self._activity_changed)
        bridge.queue_changed.connect(self._set_buttons)
        bridge.fault.connect(self._fault)
        if context.result.table is not None:
            self.results.set_session(context.result.table, context.result.plan)
        self._set_buttons()

    def _lay_out(self) -> None:
        tip = "A specification (TOML or T1), or a recording to replay: a cache, T4 results, a session as CSV"
        choose = button("&Open …", tip, self.choose_file)
        self.examples = _menu_button("Examples", self._fill_examples)
        self.stored = _menu_button("Past sessions", self._fill_stored)
        vbox(
            hbox(choose, self.examples, self.stored, 1),
            self.summary,
            self.form,
            hbox(self.start, self.queue, self.pause, self.stop),
            self.caption,
            self.progress,
            self.marked,
            (self.results, 1),
            self.export,
            of=self,
            margins=6,
        )
        self.progress.hide()  # until there is a session
        self.results.setMinimumHeight(90)
        # the table gives way before Export does
        self.results.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The history gives way to the table where there is little room, and grows where there is much."""
        super().resizeEvent(event)
        self.progress.history.setVisible(self.height() >= _ROOM_FOR_HISTORY)
        self.progress.history.set_height(self.height() // 8)

    @property
    def draft(self) -> Draft | None:
        """What is open and could be started; None while nothing is, or while it is read."""
        return self._draft

    @property
    def cache(self) -> Path | None:
        """The recorded cache that is open, if it is one."""
        return self._draft.path if self._draft is not None and self._draft.replay else None

    # --- what to tune ------------------------------------------------------------------------------------------------

    def open(self, path: Path, *, start: bool = False, taken_over: Path | None = None) -> None:
        """Read a specification or a recording and show its space; `start` also runs it as soon as it is ready.

        The measurements of `taken_over`, a recording, count as evaluated in a specification's session.
        """
        gpu, clocks = self._context.gpu, self._context.result.clocks_mhz
        self._start_when_ready, self._kept, self._asked = start, None, True
        self._opened = (path, taken_over)
        waiting = " (a growing cache is waited for until something in it succeeded)" if path.suffix == ".json" else ""
        self._prepare(f"Reading {path.name} and building its space …{waiting}")
        board = self._context.boards.current
        self._reader.run(lambda stop: draft_of_file(path, gpu, clocks, stop, taken_over, board.guard))

    def open_session(self, session: int, *, start: bool = True) -> None:
        """Resume a stored session."""
        store, board = self._context.store, self._context.boards.current
        self._start_when_ready, self._kept, self._asked = start, None, True
        self._opened = None
        self._prepare(f"Reading session {session} …")
        self._reader.run(lambda _stop: draft_of_session(store, session, board.gpu, board.guard))

    def shutdown(self) -> None:
        """End what runs in the background. The session itself belongs to the engine."""
        self._reader.shutdown()
        self.queue.shutdown()
        self.export.shutdown()

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a file."""
        open_file(self, "Open a specification or a cache", _FILES, self.open)

    @Slot()
    def choose_taken_over(self) -> None:
        """Let the user choose a recording whose measurements count in the specification's session."""
        open_file(self, "Continue from the measurements of a file", _RECORDINGS, self.take_over)

    def take_over(self, path: Path) -> None:
        """Count the measurements of a recording as evaluated in the specification that is open."""
        if self._draft is not None:
            self.open(self._draft.path, taken_over=path)

    def _fill_examples(self, menu: QMenu) -> None:
        for path in examples():
            menu.addAction(path.stem.replace("_", " "), lambda *_, path=path: self.open(path))

    def _fill_stored(self, menu: QMenu) -> None:
        try:
            records = self._context.store.sessions()
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        records = [record for record in records if record.purpose is not Purpose.ROOFLINE][:_STORED_SHOWN]
        for record in records:
            count, when = f"{record.evaluated} of {record.budget} measured", local_time(record.created_s)
            text = f"Session {record.id} · {record.title} · {record.gpu} · {count} · {record.state} · {when}"
            action = menu.addAction(text, lambda *_, number=record.id: self.open_session(number))
            action.setEnabled(not record.state.alive)
        if not records:
            menu.addAction("none yet").setEnabled(False)
        menu.addSeparator()
        draft = self._draft
        from_file = menu.addAction("Measurements of a file …", self.choose_taken_over)
        from_file.setToolTip("Let a cache's, T4's or CSV's measurements count in the specification that is open")
        from_file.setEnabled(draft is not None and not draft.replay and draft.plan.resume is None)

    def _prepare(self, words: str) -> None:
        self._draft = None
        self.summary.say(words)
        self._set_buttons()

    @Slot(object)
    def _prepared(self, draft: Draft) -> None:
        self._draft = draft
        self.summary.show_draft(draft)
        if draft.plan.resume is None:
            self.file_opened.emit(draft.path)
        if self.space_window is not None:
            self.space_window.show_plan(draft.plan)
        self.form.show_draft(draft)
        if self._kept is not None:
            self.form.set_state(self._kept)
            self._kept = None
        self.form.set_following(self.summary.follow.isChecked())
        self._set_buttons()
        if self._start_when_ready:
            self._start_when_ready = False
            self.start_session()

    @Slot(str, str)
    def _not_prepared(self, what: str, remedy: str) -> None:
        self._start_when_ready = False
        self.summary.complain(what, remedy)
        if self._asked:
            self._context.bridge.report(what, remedy)

    @Slot()
    def show_space(self) -> None:
        """Open the window of the space that was built."""
        from ..space.window import SpaceWindow  # imported late: the panel does not need it

        if self.space_window is None:
            self.space_window = SpaceWindow(self)
        self.space_window.show_plan(self._draft.plan if self._draft is not None else None)
        self.space_window.show()
        self.space_window.raise_()

    @Slot(object)
    def _steered(self, _clocks: object) -> None:
        """Build the space again, of the clocks near the model's optimum, or of the specification's own again."""
        if self._draft is not None and not self._draft.replay and self._draft.plan.resume is None:
            self.open(self._draft.path, taken_over=self._draft.taken_over)

    @Slot()
    def _follow_board(self, *_: object) -> None:
        """Prepare what is open for the board that is shown, once nothing runs: what is started then runs there."""
        draft, here = self._draft, self._context.boards.current.uuid
        ready = draft is not None and (draft.replay or draft.plan.origin.get("gpu") == here)
        if self._opened is not None and not ready and not self._session_runs and not self._starting:
            kept = self.form.state() if draft is not None else self._kept
            (path, taken_over), start = self._opened, self._start_when_ready
            self.open(path, start=start, taken_over=taken_over)
            self._kept, self._asked = kept, start

    @Slot(object)
    def _control_changed(self, event: events.ControlChanged) -> None:
        """A real board's clocks and caps are part of the space while they may be set, and else are not."""
        if event.board == self._context.gpu.info.uuid and not self._session_runs and not self._starting:
            self._steered(None)

    @Slot()
    def _unsteer(self) -> None:
        self._context.result.steer(None)

    # --- the session -------------------------------------------------------------------------------------------------

    @Slot()
    def start_session(self) -> None:
        """Start the session as it is set up."""
        if self._draft is None or self._starting or self._session_runs:
            return
        try:
            plan = self.plan_as_set_up()
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        self._starting = True
        self._context.bridge.submit(events.Start(plan))
        self._set_buttons()

    def plan_as_set_up(self) -> SessionPlan:
        """The draft's plan with what was chosen. Raises InputError where nothing is open or an option is wrong."""
        if self._draft is None:
            raise InputError("nothing is set up", "Tune", "open a specification or a recording")
        plan = self.form.plan()
        if self._draft.follow is not None and self.summary.follow.isChecked():
            return replace(self._draft.follow, objective=plan.objective)
        return plan

    @Slot()
    def pause_or_resume(self) -> None:
        """Pause the running session, continue a paused one, or resume one that was stopped before its end."""
        if self._own_runs:
            self._context.bridge.activity.pause_or_resume()
        elif self._can_continue() and self._context.result.session is not None:
            self.open_session(self._context.result.session)
        self._set_buttons()

    @Slot()
    def stop_session(self) -> None:
        """End the session."""
        if self._own_runs:
            self._context.bridge.activity.stop()
        elif self._starting:
            self._context.bridge.submit(events.Stop())

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        self._starting = False
        self.state = SessionState.RUNNING
        self.results.set_session(event.table, event.plan)
        self.progress.set_session(event.table, event.plan)
        self.progress.show()
        self._set_buttons()

    @Slot(object)
    def _preparing(self, event: events.Preparing) -> None:
        self.progress.show_preparing(event)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        self.progress.show_progress(event.progress)
        if self.isVisible():
            self.results.refresh(event.progress.best_index)

    @Slot(object)
    def _session_remark(self, event: events.SessionRemark) -> None:
        self.progress.show_remark(event.text)

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        self.state = event.progress.state
        self.progress.show_progress(event.progress, event.reason)
        self.results.refresh(event.progress.best_index)
        self._set_buttons()
        self._follow_board()

    @Slot()
    def _activity_changed(self) -> None:
        """Whatever session it was, once it has ended the form is that of the shown board."""
        self._set_buttons()
        if self._draft is not None:
            self._follow_board()

    @Slot(object)
    def _fault(self, _event: events.EngineFault) -> None:
        """A session that could not even start leaves the buttons as they were before."""
        self._starting = False
        self._set_buttons()

    @property
    def _session_runs(self) -> bool:
        """Any session, a roofline's and one that the queue begins too: the engine runs one at a time."""
        bridge = self._context.bridge
        return bridge.activity.plan is not None or bridge.queue.current is not None

    @property
    def _own_runs(self) -> bool:
        """The session that is shown runs, or is paused."""
        return self._session_runs and self.state is not None and self.state.alive

    def _can_continue(self) -> bool:
        return self.state in (SessionState.STOPPED, SessionState.FAILED, SessionState.INTERRUPTED)

    @Slot()
    def _set_buttons(self) -> None:
        activity, own = self._context.bridge.activity, self._own_runs
        free = not self._session_runs and not self._starting
        self.start.setEnabled(self._draft is not None and free)
        self.queue.setEnabled(self._draft is not None)
        waits = self._session_runs and not own
        tip = (
            f"{activity.title or 'A queued session'} runs: add this to the queue, wait for it, or stop it above"
            if waits
            else _START_TIP
        )
        if own and activity.plan is not None:
            tip = _WAITS.format(board=activity.plan.gpu)
        self.start.setToolTip(tip)
        self.stop.setEnabled((own and not activity.stopping) or self._starting)
        self.pause.setEnabled((own and activity.can_pause) or (free and self._can_continue()))
        if own and activity.pausing:
            self.pause.setText("Pausing …")
        else:
            self.pause.setText("Resume" if self.state is SessionState.PAUSED or self._can_continue() else "Pause")
        self.start.setDefault(self.start.isEnabled())


def _menu_button(text: str, fill: Callable[[QMenu], None]) -> QToolButton:
    """A button with a menu that is filled whenever it is about to be shown."""
    made = QToolButton()
    made.setText(text)
    made.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    menu = QMenu(made)
    made.setMenu(menu)
    menu.aboutToShow.connect(menu.clear)
    menu.aboutToShow.connect(lambda: fill(menu))
    return made
