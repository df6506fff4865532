"""Setting up a session: open what to tune, see its space, choose how, run it, see how far it is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QWidget

from ...base.errors import InputError, WattridgeError
from ...engine.results.state import Purpose, SessionState
from ...engine.session import events
from ...engine.session.expected_time import Pace, expected_time, pace_of
from ...engine.specification.examples import examples
from ...sensors.gpu import LIVE
from ..shared.captions import measured_words, provenance
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.past_sessions import PAST_SHOWN, PastSession, PastSessions
from ..shared.tasks import LatestTask
from ..shared.watched_boards import speed_words
from ..shared.widgets import button, local_time, menu_button, open_file, vbox
from .add_to_queue import AddToQueue
from .draft import Draft, RunsElsewhere, Target, draft_of_session, prepared_file
from .runs_on import RunsOn
from .session_form import SessionForm
from .setup_header import DraftSummary, SessionProgress, SetupHeader, SpeedChoice

if TYPE_CHECKING:
    from ...engine.runner.boards import ReadyPlan
    from .space_window import SpaceWindow

_NO_ROOFLINE = frozenset({Purpose.ROOFLINE})
_NOTHING = "Nothing is set up yet"
_START_TIP = "Start the session as it is set up; what is shown is then its result"
_REPLAY, _FOLLOW, _CONTINUE = "Replay with a strategy", "Follow the file", "Continue session"
_START_TIPS = {
    _CONTINUE: "Measure more configurations of the stored session, within its limits",
    _REPLAY: "Search the recording with the strategy that is chosen: what it measures is looked up in the file",
    _FOLLOW: "Show what is in the file and whatever its tuner adds",
}
_WAITS = "A session is running on {board}: add this to the queue, or start it when that has ended"
_SUFFIXES = "*.json *.json.gz *.csv *.csv.gz"
_RECORDINGS = f"Recordings: Kernel Tuner caches, T4 (tuning results), sessions as CSV ({_SUFFIXES})"
_FILES = ";;".join(
    (
        f"Specifications and recordings (*.toml {_SUFFIXES})",
        "Specifications: TOML, T1 (tuning problems) (*.toml *.json *.json.gz)",
        _RECORDINGS,
        "All files (*)",
    )
)


class TunePanel(Panel):
    """`open(path)` prepares a session; the buttons run it. Everything that may take time happens off Qt's thread."""

    file_opened = Signal(object)  # the Path of what was read
    asked = Signal()  # the user opened something here
    edit_asked = Signal()  # the specification that is open, or a new one

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._draft: Draft | None = None
        self._opened: tuple[Path, Path | None] | int | None = None  # a file, and what was taken over; or a session
        self._prepared_for = ""  # UUID of the board
        self._kept: dict[str, Any] | None = None  # what was chosen in the form, while it is prepared for another board
        self._amiss = ("", "")  # what was reported last, and its remedy
        self._asked = True  # whether the user asked for what is being prepared
        self.space_window: SpaceWindow | None = None  # once it was asked for
        self.state: SessionState | None = None  # of the running or last session
        self._starting = False  # Start was pressed, the engine has not answered yet
        self._start_when_ready = False
        self._elsewhere = ("", False)  # the device that runs what the shown board does not; whether to start it there
        self._reader = LatestTask(self, self._read, self._not_prepared)
        self._pace: Pace | None = None  # of what is set up
        self._pacer = LatestTask(self, self._paced, self._not_paced)
        self.expected = PlainLabel(" ", muted=True)
        self.expected.setAccessibleName("How long it is expected to take")
        self.expected.setToolTip("On the wall, as far as it is known before the start; then the time left says more")
        self.summary, self.form, self.progress = DraftSummary(), SessionForm(), SessionProgress()
        self.header = SetupHeader()
        self.start = button("Start", _START_TIP, self.start_session)
        self.queue = AddToQueue(context, lambda: self._draft, self.plan_as_set_up)
        self.runs_on = RunsOn(context)
        self.pause = button("Pause", clicked=self.pause_or_resume)
        ends = "End the session; what was measured stays, and it can be resumed later"
        self.stop = button("Stop", ends, self.stop_session)
        self._lay_out()
        self.header.setText(_NOTHING)
        self.form.history.changed.connect(self._lock_form)
        self.summary.unsteer.clicked.connect(self._unsteer)
        self.summary.look.clicked.connect(self.show_space)
        self.summary.show_all.clicked.connect(self.show_recorded)
        self.summary.elsewhere.clicked.connect(self._go_elsewhere)
        for choice in (self.summary.follow, self.summary.as_new):
            choice.toggled.connect(self._lock_form)
        context.result.steered.connect(self._steered)
        context.boards.board_changed.connect(self._follow_board)
        context.boards.speed_changed.connect(self._show_line)
        context.boards.failed.connect(self._board_failed)
        context.pool.changed.connect(self._pool_changed)
        context.pool.failed.connect(self._board_failed)
        bridge = context.bridge
        self.subscribe(events.ControlChanged, self._control_changed)
        self.subscribe(events.SessionStarted, self._session_started)
        self.subscribe(events.Preparing, self._preparing)
        self.subscribe(events.MeasurementsAdded, self._measurements_added)
        self.subscribe(events.SessionRemark, self._session_remark)
        self.subscribe(events.SessionChanged, self._session_changed)
        bridge.activity.changed.connect(self._activity_changed)
        bridge.queue_changed.connect(self._set_buttons)
        self.subscribe(events.EngineFault, self._fault)
        self._set_buttons()

    def _lay_out(self) -> None:
        tip = (
            "A specification: TOML, or T1, the field's format of tuning problems. A recording: a Kernel Tuner cache, "
            "T4, the field's format of tuning results, or a session as CSV"
        )
        choose = button("&Open …", tip, self.choose_file)
        self.speed = SpeedChoice(self._context.boards)
        edit = button("E&dit …", "Edit the specification that is open, or begin one", self.edit_asked.emit)
        self.examples = menu_button("Examples", "", self._fill_examples)
        self.stored = menu_button("Past sessions", "", self._fill_stored, self._look_at)
        self.past = PastSessions(self.stored.menu(), self._past)
        self.past.failed.connect(self._context.bridge.report)
        files = QGridLayout()  # in two rows, as below: the results beside the panel need the width
        for place, item in enumerate((choose, edit, self.examples, self.stored)):
            item.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            files.addWidget(item, place // 2, place % 2)
        runs = QGridLayout()
        for place, element in enumerate((self.start, self.pause, self.queue, self.stop)):
            element.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            runs.addWidget(element, place // 2, place % 2)
        runs.setColumnStretch(0, 1)
        for grid in (files, runs):
            grid.setSpacing(4)
        setup = (files, self.runs_on, self.speed, self.form, self.summary)
        vbox(self.header, runs, self.expected, *setup, self.progress, 1, of=self, margins=6)
        _keep_width(self.start, _REPLAY)
        _keep_width(self.pause, "Pausing …")
        self.progress.hide()  # until there is a session

    @property
    def draft(self) -> Draft | None:
        """What is open and could be started; None while nothing is, or while it is read."""
        return self._draft

    @property
    def cache(self) -> Path | None:
        """The recorded cache that is open, if it is one."""
        return self._draft.path if self._draft is not None and self._draft.replay else None

    @property
    def specification(self) -> Path | None:
        """The specification that is open, also one in TOML that cannot be tuned as it is."""
        path = self._opened[0] if isinstance(self._opened, tuple) else None
        is_t1 = self._draft is not None and not self._draft.replay and self._draft.stored is None
        return path if path is not None and (path.suffix == ".toml" or is_t1) else None

    # --- what to tune ------------------------------------------------------------------------------------------------

    def open(self, path: Path, *, start: bool = False, taken_over: Path | None = None) -> None:
        """Read a specification or a recording and show its space; `start` also runs it as soon as it is ready.

        All that a complete recording holds becomes the result at once; replaying it is another step.
        The measurements of `taken_over`, a recording, count as evaluated in a specification's session.
        """
        self.asked.emit()
        if start:
            self._context.boards.speed_up_example()
        self._prepare((path, taken_over), start)

    def open_session(self, session: int, *, start: bool = True) -> None:
        """Set up a stored session, to be continued or started again; `start` continues it as soon as it is ready."""
        self.asked.emit()
        self._prepare(session, start)

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a file."""
        open_file(self, "Open a specification or a cache", _FILES, self.open)

    @Slot()
    def choose_taken_over(self) -> None:
        """Let the user choose a recording whose measurements count in the specification's session."""
        open_file(self, "Continue from the measurements of a file", f"{_RECORDINGS};;All files (*)", self.take_over)

    def take_over(self, path: Path) -> None:
        """Count the measurements of a recording as evaluated in the specification that is open."""
        if self._draft is not None:
            self.open(self._draft.path, taken_over=path)

    def _fill_examples(self) -> None:
        for path in examples():
            self.examples.menu().addAction(path.stem.replace("_", " "), lambda *_, path=path: self.open(path))

    def _fill_stored(self) -> None:
        menu = self.stored.menu()
        self.past.add()
        menu.addSeparator()
        draft = self._draft
        from_file = menu.addAction("Measurements of a file …", self.choose_taken_over)
        from_file.setToolTip("Let the measurements of a recording count in the specification that is open")
        from_file.setEnabled(draft is not None and not draft.replay and draft.plan.resume is None)

    def _past(self) -> list[PastSession]:
        """All but rooflines, which no form can set up."""
        past = []
        for record in self._context.store.sessions(PAST_SHOWN, without=_NO_ROOFLINE):
            count, when = measured_words(record.evaluated, record.budget, record.timed), local_time(record.created_s)
            words = f"Session {record.id} · {record.shown_name} · {record.board} · {count} · {record.state} · {when}"
            past.append(PastSession(record.id, words, not record.state.alive))
        return past

    @Slot(QAction)
    def _look_at(self, action: QAction) -> None:
        """Show a stored session, which is then set up too."""
        if action.data() is not None:
            self.asked.emit()
            self._context.bridge.submit(events.Open(int(action.data())))

    @Slot()
    def _show_line(self) -> None:
        """What is set up, in one line, as it stands in the form."""
        draft = self._draft
        if draft is None:
            return
        plan = draft.plan
        source = [] if plan.source in LIVE else [provenance(plan)]
        pool = self._context.pool
        several = plan.pool is not None
        if plan.source == "simulated" and (speed := speed_words(pool.speed if several else self._context.boards.speed)):
            source[0] += f", {speed}"
        what = "Set up to replay" if draft.replay else "Set up to run"
        if draft.stored is not None and not self.summary.as_new.isChecked():
            what = f"Set up to continue session {draft.stored.id}"
        if draft.refused is not None:
            what = "Only to look at"
        on = f"{pool.words}, {plan.gpu}" if several else plan.gpu
        parts = (f"{what}: {plan.title} on {on}", *source, self.form.words())
        self.header.setText(" · ".join(parts))
        self._show_expected()

    def _show_expected(self) -> None:
        """The range of time before the start; nothing where nothing tells."""
        words = ""
        if self._pace is not None and self._draft is not None and self._draft.refused is None:
            with suppress(WattridgeError):  # Start reports it
                plan = self.plan_as_set_up()
                done = self._draft.stored.evaluated if plan.resume is not None and self._draft.stored else 0
                words = f"Takes {expected_time(self._pace, plan, done).words}"
        self.expected.setText(words or " ")  # it keeps its place

    @Slot(object)
    def _paced(self, pace: Pace | None) -> None:
        self._pace = pace
        self._show_expected()

    @Slot(str, str)
    def _not_paced(self, _what: str, _remedy: str) -> None:
        """What cannot be measured has no time; starting it gives the reason."""

    @Slot()
    def _lock_form(self) -> None:
        """What cannot be chosen now, and why."""
        draft, form = self._draft, self.form
        if draft is None:
            return
        if draft.refused is not None:
            form.lock((*form.searching, *form.goal, *form.limits), "It cannot be run: see below")
        elif draft.follow is not None and self.summary.follow.isChecked():
            form.lock((*form.searching, *form.limits), "The file is followed: nothing is searched")
        elif draft.stored is not None and not self.summary.as_new.isChecked():
            why = f"Session {draft.stored.id} is continued: only its limits can change"
            form.lock((*form.searching, *form.goal), why, self._why_used_up())
        else:
            form.lock(())
        self._show_line()
        self._set_buttons()

    def _prepare(
        self,
        opened: tuple[Path, Path | None] | int,
        start: bool,
        kept: dict[str, Any] | None = None,
        asked: bool = True,
    ) -> None:
        """Read a file or a stored session for the board that is shown; `kept` is what the form then holds."""
        store, target = self._context.store, self._target()
        self._opened, self._prepared_for = opened, target.name
        self._start_when_ready, self._kept, self._asked = start, kept, asked
        self._draft = None
        self.expected.setText(" ")
        self._context.bridge.resolved.emit(*self._amiss)
        if isinstance(opened, int):
            session = opened
            self._say(f"Reading session {session} …")
            self._reader.run(lambda _stop: draft_of_session(store, session, target))
        else:
            path, taken_over = opened
            growing = " (a growing cache is waited for until something in it succeeded)"
            waiting = growing if path.suffix == ".json" else ""
            self._say(f"Reading {path.name} and building its space …{waiting}")
            self._reader.run(lambda stop: prepared_file(path, target, stop, taken_over))
        self._set_buttons()

    def _target(self) -> Target:
        """What is opened now is set up to run on."""
        context, pool = self._context, self._context.pool
        if pool.open:
            return Target(f"{pool.where} {pool.model}", pool.gpu)
        board = context.boards.current
        return Target(board.uuid, lambda: board.gpu, lambda: board.guard, context.result.clocks_mhz)

    def _say(self, words: str) -> None:
        """What is under way."""
        self.header.setText(words)
        self.summary.say("")

    def _prepare_again(self, asked: bool) -> None:
        """What is open, with what the form holds; a replay is the same on every board and at any clocks."""
        if self._opened is not None and not (self._draft is not None and self._draft.replay):
            kept = self.form.state() if self._draft is not None else self._kept
            self._prepare(self._opened, self._start_when_ready, kept, asked or self._start_when_ready)

    @Slot(object)
    def _read(self, draft: Draft | RunsElsewhere) -> None:
        if isinstance(draft, RunsElsewhere):
            self.header.setText("It does not run on this board" if draft.selector else "A clock seems to be locked")
            self._elsewhere = (draft.selector, self._start_when_ready)
            self.summary.offer_elsewhere(draft, self._start_when_ready)
            self._start_when_ready = False  # a board that is only looked at later starts nothing
        else:
            self._prepared(draft)

    @Slot()
    def _go_elsewhere(self) -> None:
        """Show the device that runs the open file, or agree to lose a lock; the session is then set up, or started."""
        selector, self._start_when_ready = self._elsewhere
        if not selector:
            self._context.boards.current.guard.over_locks = True
            self._prepare_again(asked=True)
            return
        self._context.pool.leave()  # several boards do not run it either
        self._context.boards.show(selector)

    @Slot()
    def _board_failed(self, *_: object) -> None:
        """Nothing starts by itself once another board is shown."""
        self._start_when_ready = self._start_when_ready and self._reader.busy

    def _prepared(self, draft: Draft) -> None:
        self._draft, self._pace = draft, None
        self._pacer.run(lambda stop: pace_of(draft.plan, self._context.store, stop))
        self.summary.show_draft(draft)
        if draft.plan.resume is None:
            self.file_opened.emit(draft.path)
        if self.space_window is not None:
            self.space_window.show_plan(draft.plan)
        self.form.show_draft(draft)
        if self._kept is not None:
            self.form.set_state(self._kept)
            self._kept = None
        if self._start_when_ready and draft.stored is not None:
            self.summary.as_new.setChecked(False)
        self._lock_form()
        if self._start_when_ready:
            self._start_when_ready = False
            self._start_prepared(draft)
        else:
            self.show_recorded()

    def _start_prepared(self, draft: Draft) -> None:
        """Start what was asked to run as soon as it is ready, or report why it does not."""
        if draft.refused is not None:
            self._report(*draft.refused)
        else:
            self.start_session()

    @Slot()
    def show_recorded(self) -> None:
        """Show all that the complete recording which is open holds, unless a session runs."""
        draft = self._draft
        if draft is not None and draft.recorded is not None and not self._session_runs and not self._starting:
            self._context.bridge.submit(events.Show(draft.plan, draft.recorded))

    @Slot(str, str)
    def _not_prepared(self, what: str, remedy: str) -> None:
        self._start_when_ready = False
        self.header.setText("This cannot be tuned")
        self.summary.complain(what, remedy)
        if self._asked:
            self._report(what, remedy)

    def _report(self, what: str, remedy: str) -> None:
        """Show it in the banner until the next attempt."""
        self._amiss = (what, remedy)
        self._context.bridge.report(what, remedy)

    @Slot()
    def show_space(self) -> None:
        """Open the window of the space that was built."""
        from .space_window import SpaceWindow  # imported late: the panel does not need it

        if self.space_window is None:
            self.space_window = SpaceWindow(self)
        self.space_window.show_plan(self._draft.plan if self._draft is not None else None)
        self.space_window.show()
        self.space_window.raise_()

    @Slot(object)
    def _steered(self, _clocks: object) -> None:
        """Build the space again, of the clocks near the model's optimum, or of the specification's own again."""
        if isinstance(self._opened, tuple):
            self._prepare_again(asked=True)

    @Slot()
    def _follow_board(self, *_: object) -> None:
        """Prepare what is open for the board that is shown, once nothing runs: what is started then runs there."""
        elsewhere = self._target().name != self._prepared_for
        if elsewhere and not self._session_runs and not self._starting:
            self._prepare_again(asked=False)

    @Slot()
    def _pool_changed(self) -> None:
        self.speed.setDisabled(self._context.pool.open)  # that of several was chosen with them
        self._follow_board()

    @Slot(object)
    def _control_changed(self, event: events.ControlChanged) -> None:
        """A real board's clocks and caps are part of the space while they may be set, and else are not."""
        here = event.board == self._context.gpu.info.uuid and not self._context.pool.open
        under_way = self._draft is not None or self._reader.busy
        if here and under_way and not self._session_runs and not self._starting:
            self._steered(None)

    @Slot()
    def _unsteer(self) -> None:
        self._context.result.steer(None)

    # --- the session -------------------------------------------------------------------------------------------------

    @Slot()
    def start_session(self) -> None:
        """Start the session as it is set up."""
        if self._draft is None or self._draft.refused is not None or self._starting or self._session_runs:
            return
        try:
            plan = self.plan_as_set_up()
        except WattridgeError as error:
            self._report(error.what, error.remedy)
            return
        self._context.bridge.resolved.emit(*self._amiss)
        self._starting = True
        self._context.bridge.submit(events.Start(plan))
        self._set_buttons()

    def plan_as_set_up(self) -> ReadyPlan:
        """The draft's plan with what was chosen. Raises InputError if nothing is open or an option is wrong."""
        if self._draft is None:
            raise InputError("nothing is set up", "Tune", "open a specification or a recording")
        plan = self.form.plan()
        if self._draft.stored is not None and self.summary.as_new.isChecked():
            plan = replace(plan, resume=None)
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
        self.state = SessionState.RUNNING if event.running else None
        self.progress.set_session(event.table, event.plan)
        self.progress.show()
        self._set_buttons()
        if not event.running and event.session:
            self._prepare(event.session, start=False, asked=False)

    @Slot(object)
    def _preparing(self, event: events.Preparing) -> None:
        self.progress.show_preparing(event)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        self.progress.show_progress(event.progress)

    @Slot(object)
    def _session_remark(self, event: events.SessionRemark) -> None:
        self.progress.show_remark(event.text)

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        ran, self.state = self.state is not None and self.state.alive, event.progress.state
        self.progress.show_progress(event.progress, event.reason)
        self._set_buttons()
        self._follow_board()
        if ran and not self.state.alive and self._opened == event.progress.session:
            self._prepare(event.progress.session, start=False, asked=False)  # it has fewer evaluations left

    @Slot()
    def _activity_changed(self) -> None:
        """Whatever session it was, once it has ended the form is that of the shown board."""
        self._set_buttons()
        self._follow_board()

    @Slot(object)
    def _fault(self, _event: events.EngineFault) -> None:
        """A session that could not even start leaves the buttons as they were before."""
        self._starting = False
        self._set_buttons()
        self._follow_board()

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
        """The session that is shown ended early; where it is also the one that is set up, Start continues it."""
        stored = self._draft.stored if self._draft is not None else None
        if stored is not None and stored.id == self._context.result.session:
            return False
        return self.state in (SessionState.STOPPED, SessionState.FAILED, SessionState.INTERRUPTED)

    @Slot()
    def _set_buttons(self) -> None:
        activity, own_runs = self._context.bridge.activity, self._own_runs
        free = not self._session_runs and not self._starting
        ready = self._draft is not None and self._draft.refused is None
        self.queue.setEnabled(ready)
        waits = self._session_runs and not own_runs
        words, used_up = self._start_words(), self._why_used_up()
        self.start.setText(words)
        self.summary.show_all.setEnabled(free)
        runs = f"{activity.title or 'A queued session'} runs: add this to the queue, wait for it, or stop it above"
        tip = runs if waits else _START_TIPS.get(words, _START_TIP)
        self.start.setEnabled(ready and free and not used_up)
        if free and used_up:
            tip = used_up
        if own_runs and activity.plan is not None:
            tip = _WAITS.format(board=activity.plan.gpu)
        self.start.setToolTip(plain_tip(tip))
        self.stop.setEnabled((own_runs and not activity.stopping) or self._starting)
        self.pause.setEnabled((own_runs and activity.can_pause) or (free and self._can_continue()))
        if own_runs and activity.pausing:
            self.pause.setText("Pausing …")
        else:
            self.pause.setText("Resume" if self.state is SessionState.PAUSED or self._can_continue() else "Pause")
        self.start.setDefault(self.start.isEnabled())

    def _start_words(self) -> str:
        """What Start does with what is open."""
        draft = self._draft
        if draft is None:
            return "Start"
        if draft.stored is not None and not self.summary.as_new.isChecked():
            return _CONTINUE
        if not draft.replay:
            return "Start"
        return _FOLLOW if draft.follow is not None and self.summary.follow.isChecked() else _REPLAY

    def _why_used_up(self) -> str:
        """Why the stored session that is set up cannot be continued; '' if nothing is in its way."""
        draft = self._draft
        if draft is None or self.summary.as_new.isChecked():
            return ""
        return draft.why_used_up(self.form.evaluations.value(), self.form.seconds.value())


def _keep_width(of: QPushButton, widest: str) -> None:
    """The buttons beside it stay where they are, whatever it says."""
    of.setMinimumWidth(of.fontMetrics().horizontalAdvance(widest) + 36)
