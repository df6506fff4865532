"""The manual controls: the switch, clocks and power limit by hand, profiles, export as files, the log of changes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QComboBox,
    QGridLayout,
    QHeaderView,
    QPushButton,
    QTabBar,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from ...base.errors import WattridgeError
from ...base.formatting import UNKNOWN
from ...engine.control import installing
from ...engine.control.client import Asking, read_only
from ...engine.control.device_log import BY_HAND, Change, changes_of
from ...engine.control.profiles import delete_profile, profiles_of, save_profile
from ...engine.metering.limit_effect import effect_now
from ...engine.results.settings import PROFILE, Setting, in_words, requested_profiles, unit
from ...engine.results.state import Purpose, SessionState
from ...engine.session import events
from ...sensors.channel import CHANNELS
from ...sensors.gpu import Gpu
from ..shared import theme
from ..shared.context import Context
from ..shared.countdown import Countdown, apply_command
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.record_model import NO_PARENT, AnyIndex, RecordModel
from ..shared.tasks import LatestTask
from ..shared.watched_boards import WatchedBoard, beat, shown_reading
from ..shared.widgets import hbox, save_file, vbox
from .arming import ACTIONS, SIMULATED, Arming
from .confirm_bar import answer_buttons
from .setting_rows import Choices, SettingRows, choices_of

KEPT = 200  # changes of each kind

# title, a text as wide as most, what a cell says
_COLUMNS: tuple[tuple[str, str, Callable[[Change], str]], ...] = (
    ("Time", "2026-01-01 00:00:00", lambda c: c.when),
    ("What", "power limit, graphics clock", lambda c: c.what),
    ("Asked", "900–1200 MHz", lambda c: c.asked or UNKNOWN),
    ("Observed", "1200 MHz", lambda c: c.observed or UNKNOWN),
    ("By", "session, anyone", lambda c: c.by.removeprefix(f"{BY_HAND}, ")),  # the tab says it
    ("Result", "not obeyed: the clock", lambda c: c.outcome),
)
COLUMNS = tuple(title for title, _, _ in _COLUMNS)


class ChangesModel(RecordModel):
    """The newest last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self._records: list[Change] = []

    def add(self, change: Change) -> None:
        """One more; or what was observed of the last one."""
        last = len(self._records) - 1
        if self._records and self._records[last].same_as(change):
            self._records[last] = change
            self._rows_changed(last, last)
            return
        if len(self._records) == KEPT:
            self.beginRemoveRows(NO_PARENT, 0, 0)
            del self._records[0]
            self.endRemoveRows()
        self.beginInsertRows(NO_PARENT, len(self._records), len(self._records))
        self._records.append(change)
        self.endInsertRows()

    def put_before(self, changes: Sequence[Change]) -> None:
        """Those of before, which were read while newer ones came."""
        here = {change.time_s for change in self._records}
        self._replace([*(change for change in changes if change.time_s not in here), *self._records][-KEPT:])

    def clear(self) -> None:
        """Of another board from now on."""
        self._replace([])

    def rows(self) -> list[tuple[str, ...]]:
        """The texts of every cell."""
        return [tuple(text(change) for _, _, text in _COLUMNS) for change in self._records]

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        text = _COLUMNS[index.column()][2]
        if role == Qt.ItemDataRole.DisplayRole:
            return text(self._records[index.row()])
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(text(self._records[index.row()]))
        return None


class ChangeLog(QWidget):
    """The changes of a board as a table, those made by hand apart from those of sessions.

    There are two tabs over the table, which follows the newest change unless the user has scrolled back.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.by_hand, self.by_sessions = ChangesModel(self), ChangesModel(self)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName("Changes by hand, or by sessions")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.addTab("")
        self.tabs.addTab("")
        self.table = QTableView()
        self.table.setModel(self.by_hand)
        self.table.setAccessibleName("Log of changes")
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setAlternatingRowColors(True)
        self.table.setWordWrap(False)
        self.table.setCornerWidget(QWidget())  # as in `set_up_table`
        self.table.setTabKeyNavigation(False)
        self.table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.verticalHeader().setDefaultSectionSize(self.table.fontMetrics().height() + 6)
        self.table.horizontalHeader().setStretchLastSection(True)
        for place, (_, widest, _) in enumerate(_COLUMNS):
            self.table.setColumnWidth(place, self.fontMetrics().horizontalAdvance(widest) + 14)
        self.table.setMinimumHeight(5 * self.table.verticalHeader().defaultSectionSize())
        vbox(self.tabs, (self.table, 1), of=self, margins=0, spacing=0)
        self._follows = True
        bar = self.table.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._range_changed)
        self.tabs.currentChanged.connect(self._tab_chosen)
        self._count()

    def put_before(self, changes: Sequence[Change]) -> None:
        """Show the changes of other days too."""
        self.by_hand.put_before([change for change in changes if change.by_hand])
        self.by_sessions.put_before([change for change in changes if not change.by_hand])
        self._count()
        self._follow()

    def clear(self) -> None:
        """Show the changes of another board from now on."""
        self.by_hand.clear()
        self.by_sessions.clear()
        self._count()

    def add(self, change: Change) -> None:
        """Show one more change, or what was observed of the last one."""
        (self.by_hand if change.by_hand else self.by_sessions).add(change)
        self._count()

    def _count(self) -> None:
        for place, (title, model) in enumerate((("By hand", self.by_hand), ("By sessions", self.by_sessions))):
            self.tabs.setTabText(place, f"{title}: {model.rowCount()}")

    @Slot(int)
    def _tab_chosen(self, place: int) -> None:
        self.table.setModel((self.by_hand, self.by_sessions)[place])
        self._follow()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._follow()

    def _follow(self) -> None:
        self._follows = True
        self.table.scrollToBottom()

    @Slot(int)
    def _scrolled(self, value: int) -> None:
        self._follows = value == self.table.verticalScrollBar().maximum()

    @Slot(int, int)
    def _range_changed(self, _least: int, most: int) -> None:
        """There are more changes, or the table has another size."""
        if self._follows:
            self.table.verticalScrollBar().setValue(most)


class HelperRow(QWidget):
    """Offers to install the helper with root's rights if it is missing, changed or of another version; else hidden.

    Polkit asks for the password, after a click only.
    """

    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = PlainLabel(wrap=True)
        self.button = QPushButton("&Install the helper …")
        self.button.setToolTip("Asks for an administrator's password, once; only root can change the copy")
        self.button.clicked.connect(self.install)
        hbox((self.text, 1), self.button, of=self, margins=0)
        self._work = LatestTask(self, self._done, self._failed)
        self.hide()

    def look(self) -> None:
        """Find out, off Qt's thread, whether there is something to offer."""
        self._work.run(lambda _stop: ("", installing.why_install()))

    @Slot()
    def install(self) -> None:
        self.button.setEnabled(False)
        self.text.setText("Waiting for the password …")
        self._work.run(_install)

    @Slot(object)
    def _done(self, result: tuple[str, str]) -> None:
        outcome, why = result
        self.text.setText(outcome or why)
        self.button.setEnabled(True)
        self.button.setVisible(bool(why))
        self.setVisible(bool(outcome or why))

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.failed.emit(what, remedy)
        self.look()


def _install(stop: threading.Event) -> tuple[str, Any]:
    report = installing.install(Asking.WINDOW, stop)
    return f"The helper is installed: {report['done'][0]}. Control can be switched on now.", installing.why_install()


_STATE_LINES, _MESSAGE_LINES, _FACT_LINES = 3, 3, 3  # room for words, whether there are any or not
_FORM_PX = 560  # at most: fields as wide as the window could not be read along
_BESIDE_PX = 1000  # from this width of the panel on, the log stands beside the form
_OFF = "Nothing can be applied until control is switched on."
_ON = "What is applied returns after a countdown unless you keep it."
_EXPORT = "Export the settings"
_SESSION = "A session is running on {board}: nothing else is set until it ends."


class ControlPanel(Panel):
    """Sends requests to the engine and shows its reports; sets nothing itself.

    Nothing moves while it is used: messages and the countdown have their places from the beginning.
    """

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._gpu = context.gpu
        self._session = ""  # the name of the board on which a session runs
        self._ticked: dict[str, dict[str, Setting]] = {}  # by the UUIDs of boards that were left
        self._said = ""  # of the last change, while nothing waits
        self._refused = ""  # what was typed last and cannot be, in words
        self._arming = Arming(context.boards.current, context.bridge, self)
        self.rows: SettingRows | None = None
        self.armed, self.switch = PlainLabel(), QPushButton()
        self.state, self.outcome = PlainLabel(wrap=True, muted=True), PlainLabel(wrap=True)
        self.keep, self.back = answer_buttons()
        self._fields = QVBoxLayout()
        self._place: QWidget | None = None  # of the rows
        self._below = QWidget()  # what the rows stand in, and everything under them
        self.apply, self.restore = QPushButton("&Apply"), QPushButton("Put &everything back")
        self.profiles, self.save, self.delete = QComboBox(), QPushButton("Sa&ve"), QPushButton("&Delete")
        self.script, self.unit = QPushButton("Scri&pt …"), QPushButton("systemd &unit …")
        self.log = ChangeLog()
        self.helper = HelperRow()
        self._lay_out()
        self._connect()
        self._asker = LatestTask(self, self._show_rows, context.bridge.report)
        self._profiles_asker = LatestTask(self, self._show_requested, context.bridge.report)
        self._reader = LatestTask(self, self.log.put_before, context.bridge.report)
        self.helper.failed.connect(context.bridge.report)
        beat().struck.connect(self._show_present)
        theme.style(self, "#muted {{ color: {c.muted}; }} #armed {{ font-weight: 600; }}")
        self._look_at_board()

    # --- building -----------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        self.profiles.setEditable(True)
        self.profiles.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        named_by = self.profiles.lineEdit()
        assert named_by is not None, "it is editable"
        named_by.setPlaceholderText("Profile: a name for what is ticked")
        self.profiles.setAccessibleName("Profile")
        self.armed.setObjectName("armed")
        _reserve_width(self.switch, ACTIONS)
        _reserve(self.state, _STATE_LINES)
        _reserve(self.outcome, _MESSAGE_LINES)
        vbox(
            self._fields,
            hbox(self.apply, self.keep, self.back, 1),
            self.outcome,
            hbox(self.restore, 1),
            hbox((self.profiles, 1), self.save, self.delete),
            hbox(PlainLabel("Export as"), self.script, self.unit, 1),
            self.helper,
            of=self._below,
            margins=0,
        )
        for widget in (self._below, self.log):
            widget.hide()  # until it is known what the board can be set to
        form = QWidget()
        form.setMaximumWidth(_FORM_PX)
        vbox(hbox(self.armed, 1, self.switch), self.state, self._below, 1, of=form, margins=0)
        self._halves = vbox(form, (self.log, 1), of=self, margins=6)
        self.setMinimumWidth(360)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = self.width() >= _BESIDE_PX
        self._halves.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        self._halves.setStretch(0, 1 if beside else 0)
        self._halves.setSpacing(18 if beside else 6)

    def _connect(self) -> None:
        self.apply.clicked.connect(self._apply)
        self.restore.clicked.connect(self._restore)
        self.save.clicked.connect(self._save)
        self.delete.clicked.connect(self._delete)
        self.profiles.activated.connect(self._profile_chosen)
        self.profiles.editTextChanged.connect(self._set_buttons)
        self.script.clicked.connect(self._export_script)
        self.unit.clicked.connect(self._export_unit)
        self.subscribe(events.ControlChanged, self._control_changed)
        self.switch.clicked.connect(self._arming.switch)
        self._arming.changed.connect(self._show_arming)
        self.keep.clicked.connect(self._keep)
        self.back.clicked.connect(self._put_back)
        self._countdown.changed.connect(self._show_outcome)
        self.subscribe(events.SettingApplied, self._setting_applied)
        self.subscribe(events.DeviceChanged, self._device_changed)
        self.subscribe(events.SessionStarted, self._session_started)
        self.subscribe(events.SessionChanged, self._session_changed)
        self.subscribe(events.EngineFault, self._set_buttons)
        self._context.boards.board_changed.connect(self._board_changed)

    def _look_at_board(self) -> None:
        """Query the settings that the shown board supports, and show its profiles and its log."""
        gpu = self._gpu
        self._asker.run(lambda _stop: choices_of(gpu))
        if gpu.info.live:
            self.helper.look()
        else:
            self.helper.hide()
        self.log.clear()
        self._reader.run(lambda _stop: changes_of(gpu.info.uuid, 2 * KEPT))
        self._say("")
        self._fill_profiles()
        self._arming.show_board(self._context.boards.current)
        self._show_arming()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        """What was ticked for the board before is there again when it is."""
        if self.rows is not None:
            self._ticked[self._gpu.info.uuid] = self._chosen()
        self._profiles_asker.cancel()
        self._gpu, self.rows = board.gpu, None
        board.countdown.changed.connect(self._show_outcome, Qt.ConnectionType.UniqueConnection)
        self._look_at_board()

    @Slot(object)
    def _show_rows(self, choices: Choices) -> None:
        place = QWidget()
        grid = QGridLayout(place)
        grid.setContentsMargins(0, 4, 0, 4)
        grid.setColumnStretch(1, 1)
        if self._place is not None:
            self._place.hide()
            self._place.deleteLater()
        self._place = place
        self._fields.addWidget(place)
        self.rows = SettingRows(self._gpu, choices, grid)
        self.rows.setParent(place)
        self.rows.choose(self._ticked.get(self._gpu.info.uuid, {}))
        self.rows.changed.connect(self._set_buttons)
        self.rows.changed.connect(self._refusal_over)
        self.rows.refused.connect(self._refuse)
        _reserve(self.rows.facts["power_limit_w"], _FACT_LINES)
        buttons = (self.apply, self.keep, self.back, self.restore, self.profiles, self.save, self.delete)
        last = (self.script, self.unit, self.helper.button, self.log.tabs, self.log.table)
        for above, below in pairwise((self.switch, *self.rows.in_order, *buttons, *last)):
            self.setTabOrder(above, below)
        self._below.show()
        self.log.show()
        self._show_present()
        self._set_buttons()

    # --- what the engine says -----------------------------------------------------------------------------------------

    @Slot(object)
    def _control_changed(self, event: events.ControlChanged) -> None:
        if event.notes and event.board == self._gpu.info.uuid:
            self._say(" ".join(event.notes))

    @Slot()
    def _show_arming(self) -> None:
        self.armed.setText(self._arming.state)
        self.switch.setText(self._arming.action)
        self.switch.setToolTip(plain_tip(self._arming.explanation))
        self.switch.setEnabled(self._arming.can_switch)
        self._set_buttons()

    @Slot()
    def _show_outcome(self) -> None:
        countdown = self._countdown
        for button in (self.keep, self.back):
            button.setEnabled(countdown.can_answer)
        if not countdown.waits:
            self.outcome.setText(self._said)
        else:
            self.outcome.setText(f"{self._said} {countdown.left}" if self._said else countdown.text)

    def _say(self, words: str) -> None:
        self._said = words
        self._show_outcome()

    @Slot(object)
    def _setting_applied(self, event: events.SettingApplied) -> None:
        if event.board != self._gpu.info.uuid:
            return
        before = {name: value for name, value in event.prior.items() if value is not None}
        was = f" Before: {in_words(before)}." if before else ""
        self._say(f"{event.message[:1].upper()}{event.message[1:]}.{was}")
        self._set_buttons()
        if self.rows is not None and self.rows.boxes[PROFILE].isEnabled():
            gpu = self._gpu
            self._profiles_asker.run(lambda _stop: requested_profiles(gpu))

    @Slot(str)
    def _refuse(self, words: str) -> None:
        self._refused = words
        self._say(words)

    @Slot()
    def _refusal_over(self) -> None:
        """Another value is typed or ticked."""
        if self._said == self._refused:
            self._say("")

    @Slot(object)
    def _show_requested(self, names: str) -> None:
        if self.rows is not None:
            self.rows.show_requested(names)

    @Slot(object)
    def _device_changed(self, event: events.DeviceChanged) -> None:
        if event.change.uuid == self._gpu.info.uuid:
            self.log.add(event.change)

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        replayed = event.plan.source == "recorded" or event.plan.purpose is Purpose.REPLAY
        self._session = "" if replayed else event.plan.gpu
        self._set_buttons()

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        alive = event.progress.state in (SessionState.RUNNING, SessionState.PAUSED)
        self._session = self._session if alive else ""
        self._set_buttons()

    # --- what the user does -------------------------------------------------------------------------------------------

    @Slot()
    def _apply(self) -> None:
        if self.rows is not None:
            self.rows.take_typed()
        settings = self._chosen()
        if settings:
            self.apply.setEnabled(False)
            self._context.bridge.submit(apply_command(self._gpu, settings))

    @Slot()
    def _keep(self) -> None:
        self._countdown.keep()

    @Slot()
    def _put_back(self) -> None:
        self._countdown.put_back()

    @Slot()
    def _restore(self) -> None:
        self._context.bridge.submit(events.Apply(self._gpu.info.uuid, reset=True))

    @Slot()
    def _save(self) -> None:
        name = self.profiles.currentText()
        self._change_profiles(lambda: save_profile(self._gpu.info.name, name, self._chosen()), name)

    @Slot()
    def _delete(self) -> None:
        name = self.profiles.currentText()
        self._change_profiles(lambda: delete_profile(self._gpu.info.name, name), name)

    @Slot()
    def _profile_chosen(self) -> None:
        settings = self.profiles.currentData()
        if settings and self.rows is not None:
            self.rows.choose(settings)

    @Slot()
    def _export_script(self) -> None:
        save_file(self, _EXPORT, "clocks.sh", "Shell script (*.sh)", self.write_script)

    @Slot()
    def _export_unit(self) -> None:
        save_file(self, _EXPORT, "wattridge-clocks.service", "systemd unit (*.service)", self.write_unit)

    def write_script(self, path: Path) -> None:
        """Write what is ticked as a shell script of nvidia-smi commands."""
        from ...engine.formats.nvidia_smi import board_script

        self._write(path, board_script, executable=True)

    def write_unit(self, path: Path) -> None:
        """Write what is ticked as a systemd unit for the start of the machine."""
        from ...engine.formats.nvidia_smi import clock_unit

        self._write(path, clock_unit)

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _countdown(self) -> Countdown:
        """Of the board that is shown; those of others are across the window."""
        return self._context.boards.current.countdown

    def _chosen(self) -> dict[str, Setting]:
        return {} if self.rows is None else self.rows.settings()

    def _change_profiles(self, change: Callable[[], None], name: str) -> None:
        """Change the profiles and show them, with `name` chosen if it is still there."""
        try:
            change()
        except WattridgeError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        self._fill_profiles()
        self.profiles.setCurrentText(name if self.profiles.findText(name) >= 0 else "")

    def _fill_profiles(self) -> None:
        self.profiles.clear()
        try:
            for name, settings in profiles_of(self._gpu.info.name).items():
                self.profiles.addItem(name, settings)
        except WattridgeError as error:
            self._context.bridge.report(f"{error.where}: {error.what}", error.remedy)
        self.profiles.setCurrentIndex(-1)

    def _write(
        self, path: Path, text_of: Callable[[Gpu, dict[str, Setting]], str], *, executable: bool = False
    ) -> None:
        from ...base.files import write_text

        try:
            text = text_of(self._gpu, self._chosen())
            write_text(path, text, overwrite=True, executable=executable)  # the dialog has asked
        except WattridgeError as error:
            self._context.bridge.report(f"{error.where}: {error.what}", error.remedy)
            return
        self._say(f"Written: {path}")

    @Slot()
    def _show_present(self) -> None:
        """What the board does now, from the traces."""
        if self.rows is None or not self.isVisible():
            return
        now = shown_reading(self._context.boards.current.trace).values
        for name, label in self.rows.present.items():
            value = now.get(name, math.nan)
            label.setText(UNKNOWN if math.isnan(value) else f"now {value:.0f} {unit(name)}")
            label.setToolTip(f"{CHANNELS[name].label}, as the board reports it now")
        self.rows.show_effect(effect_now(self._context.boards.current.trace, self.rows.limit.value()))

    @Slot()
    def _set_buttons(self) -> None:
        chosen = self._chosen()
        recorded = self._gpu.info.source == "recorded"
        allowed, forbidden = self._arming.allowed, self._arming.why_forbidden
        self.apply.setEnabled(bool(chosen) and allowed and not self._session)
        self.restore.setEnabled(not self._session and not recorded and not (forbidden and read_only()))
        is_kept = self.profiles.findText(" ".join(self.profiles.currentText().split())) >= 0
        self.save.setText("Replace" if is_kept else "Sa&ve")
        self.save.setEnabled(bool(chosen) and bool(self.profiles.currentText().strip()))
        self.delete.setEnabled(self.profiles.findText(self.profiles.currentText()) >= 0)
        for button in (self.script, self.unit):
            button.setEnabled(bool(chosen))
        session = _SESSION.format(board=self._session) if self._session else ""
        why_not = f"{forbidden}." if forbidden else session or (_ON if allowed else _OFF)
        simulated = SIMULATED if self._gpu.info.source == "simulated" else ""
        self.state.setText(f"{why_not} {simulated}".strip())


def _reserve(label: PlainLabel, lines: int) -> None:
    """Keep room for that many lines of text, whether there is any or not."""
    label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    label.setMinimumHeight(lines * label.fontMetrics().lineSpacing())


def _reserve_width(button: QPushButton, texts: Sequence[str]) -> None:
    """As wide as the widest of its texts, whichever it shows."""
    for text in texts:
        button.setText(text)
        button.setMinimumWidth(max(button.minimumWidth(), button.sizeHint().width()))
