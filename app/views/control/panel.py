"""The manual controls: clocks and power limit by hand, profiles, their export as files, and the log of changes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from ...engine.board_settings import WORDS, Setting, in_words, unit
from ...engine.control.device_log import Change, log_file
from ...engine.control.profiles import delete_profile, profiles_of, save_profile
from ...engine.control.rights import read_only, why_read_only
from ...engine.session import events
from ...engine.session_state import SessionState
from ...errors import WattridgeError
from ...numbers import UNKNOWN
from ..context import Context
from ..file_dialogs import save_file
from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.tasks import LatestTask
from ..watched_board import WatchedBoard
from .confirm_bar import apply_command
from .helper_row import HelperRow
from .setting_rows import Choices, SettingRows, choices_of

_PRESENT_MS = 500
_KEPT_LINES = 200
_OFF = "This window is read-only: switch control on in the toolbar to apply anything."
_EXPORT = "Export the settings"
_SESSION = "A session is running on {board}: nothing else is set until it ends."


class ControlPanel(QWidget):
    """Sets nothing itself: it asks the engine, and shows what the engine reports."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._gpu = context.gpu
        self._session = ""  # the name of the board on which a session runs
        self._ticked: dict[str, dict[str, Setting]] = {}  # by the UUIDs of boards that were left
        self.rows: SettingRows | None = None
        self.state, self.outcome = PlainLabel(), PlainLabel()
        self._fields = QVBoxLayout()
        self._place: QWidget | None = None  # of the rows
        self.apply, self.restore = QPushButton("&Apply"), QPushButton("Put everything &back")
        self.profiles, self.save, self.delete = QComboBox(), QPushButton("Sa&ve"), QPushButton("&Delete")
        self.script, self.unit = QPushButton("Scri&pt …"), QPushButton("systemd &unit …")
        self.log = QPlainTextEdit()
        self.helper = HelperRow()
        self._lay_out()
        self._connect()
        self._asker = LatestTask(self)
        self._asker.done.connect(self._show_rows)
        self._asker.failed.connect(context.bridge.report)
        self.helper.failed.connect(context.bridge.report)
        self._timer = QTimer(self, interval=_PRESENT_MS)
        self._timer.timeout.connect(self._show_present)
        self._timer.start()
        self._recolour()
        self._look_at_board()

    def shutdown(self) -> None:
        """End what runs in the background."""
        self._timer.stop()
        self._asker.shutdown()
        self.helper.shutdown()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self, self._show_newest)  # once the log has its size

    # --- building -----------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        for label in (self.state, self.outcome):
            label.setWordWrap(True)
        buttons, named, export = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        buttons.addWidget(self.apply)
        buttons.addWidget(self.restore)
        buttons.addStretch(1)
        self.profiles.setEditable(True)
        self.profiles.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        named_by = self.profiles.lineEdit()
        assert named_by is not None, "it is editable"
        named_by.setPlaceholderText("Profile: a name for what is ticked")
        self.profiles.setAccessibleName("Profile")
        named.addWidget(self.profiles, 1)
        named.addWidget(self.save)
        named.addWidget(self.delete)
        export.addWidget(PlainLabel("Export as"))
        export.addWidget(self.script)
        export.addWidget(self.unit)
        export.addStretch(1)
        self.log.setReadOnly(True)
        self.log.setMaximumBlockCount(_KEPT_LINES)
        self.log.setAccessibleName("Log of changes")
        self.log.setPlaceholderText("Every change of this board is a line here: when, what, by whom, what came back.")
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 6, 6, 6)
        column.addWidget(self.state)
        column.addWidget(self.helper)
        column.addLayout(self._fields)
        column.addLayout(buttons)
        column.addWidget(self.outcome)
        column.addLayout(named)
        column.addLayout(export)
        column.addWidget(self.log, 1)
        self.setMinimumWidth(360)

    def _connect(self) -> None:
        self.apply.clicked.connect(self._apply)
        self.restore.clicked.connect(self._restore)
        self.save.clicked.connect(self._save)
        self.delete.clicked.connect(self._delete)
        self.profiles.activated.connect(self._profile_chosen)
        self.profiles.editTextChanged.connect(self._set_buttons)
        self.script.clicked.connect(self._export_script)
        self.unit.clicked.connect(self._export_unit)
        bridge = self._context.bridge
        bridge.control_changed.connect(self._control_changed)
        bridge.setting_applied.connect(self._setting_applied)
        bridge.device_changed.connect(self._device_changed)
        bridge.session_started.connect(self._session_started)
        bridge.session_changed.connect(self._session_changed)
        bridge.fault.connect(self._set_buttons)
        self._context.boards.board_changed.connect(self._board_changed)
        theme.notifier().changed.connect(self._recolour)

    def _look_at_board(self) -> None:
        """Ask the shown board what can be set, and show its profiles and its log."""
        gpu = self._gpu
        self._asker.run(lambda _stop: choices_of(gpu))
        if gpu.info.source == "nvml":
            self.helper.look()
        else:
            self.helper.hide()
        self.outcome.setText("")
        self._fill_profiles()
        self._fill_log()
        self._set_buttons()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        """What was ticked for the board before is there again when it is."""
        if self.rows is not None:
            self._ticked[self._gpu.info.uuid] = self._chosen()
        self._gpu, self.rows = board.gpu, None
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
        self._recolour()
        self._show_present()
        self._set_buttons()

    # --- what the engine says -----------------------------------------------------------------------------------------

    @Slot(object)
    def _control_changed(self, event: events.ControlChanged) -> None:
        if event.notes and event.board == self._gpu.info.uuid:
            self.outcome.setText(" ".join(event.notes))
        self._set_buttons()

    @Slot(object)
    def _setting_applied(self, event: events.SettingApplied) -> None:
        if event.board != self._gpu.info.uuid:
            return
        before = {name: value for name, value in event.prior.items() if value is not None}
        was = f" Before: {in_words(before)}." if before else ""
        self.outcome.setText(f"{event.message[:1].upper()}{event.message[1:]}.{was}")
        self._set_buttons()

    @Slot(object)
    def _device_changed(self, event: events.DeviceChanged) -> None:
        if event.change.uuid != self._gpu.info.uuid:
            return
        bar = self.log.verticalScrollBar()
        at_the_newest = bar.value() == bar.maximum()
        self.log.appendPlainText(event.change.line)
        if at_the_newest:
            self._show_newest()

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        self._session = event.plan.gpu if event.plan.source != "recorded" else ""
        self._set_buttons()

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        alive = event.progress.state in (SessionState.RUNNING, SessionState.PAUSED)
        self._session = self._session if alive else ""
        self._set_buttons()

    # --- what the user does -------------------------------------------------------------------------------------------

    @Slot()
    def _apply(self) -> None:
        settings = self._chosen()
        if settings:
            self.apply.setEnabled(False)
            self._context.bridge.submit(apply_command(self._gpu, settings))

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
        from ...engine.formats.nvidia_smi import clock_script, settings_for_smi

        settings = settings_for_smi(self._gpu, self._chosen())
        text = clock_script(settings, [f"Written by Wattridge for {self._gpu.info.label}."])
        self._write(path, text, executable=True)

    def write_unit(self, path: Path) -> None:
        """Write what is ticked as a systemd unit for the start of the machine."""
        from ...engine.formats.nvidia_smi import clock_unit

        self._write(path, clock_unit(self._gpu, self._chosen()))

    # --- inside -------------------------------------------------------------------------------------------------------

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

    def _fill_log(self) -> None:
        """The last changes of this board, of other days too."""
        self.log.clear()
        try:
            lines = log_file().read_text("utf-8").splitlines()[-_KEPT_LINES:]
        except (OSError, ValueError):
            return
        for line in lines:
            try:
                change = Change(**json.loads(line))
            except (ValueError, TypeError):
                continue
            if change.uuid == self._gpu.info.uuid:
                self.log.appendPlainText(change.line)

    @Slot()
    def _show_newest(self) -> None:
        bar = self.log.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _write(self, path: Path, text: str, *, executable: bool = False) -> None:
        from ...files import write_text

        try:
            write_text(path, text, overwrite=True, executable=executable)  # the dialog has asked
        except WattridgeError as error:
            self._context.bridge.report(f"{error.where}: {error.what}", error.remedy)
            return
        self.outcome.setText(f"Written: {path}")

    @Slot()
    def _show_present(self) -> None:
        """What the board does now, from the traces."""
        trace = self._context.boards.current.trace
        if self.rows is None or not self.isVisible() or not trace.last_ns:
            return
        now = trace.at(trace.last_ns)
        for name, label in self.rows.present.items():
            value = now.get(name, math.nan)
            label.setText(UNKNOWN if math.isnan(value) else f"now {value:.0f} {unit(name)}")
            label.setToolTip(f"{WORDS[name]}, as the board reports it now")

    @Slot()
    def _set_buttons(self) -> None:
        chosen = self._chosen()
        recorded = self._gpu.info.source == "recorded"
        self.apply.setEnabled(bool(chosen) and self._context.boards.current.allowed and not self._session)
        forbidden = why_read_only(self._gpu.info.uuid) if self._gpu.info.source == "nvml" else ""
        self.restore.setEnabled(not self._session and not recorded and not (forbidden and read_only()))
        self.save.setEnabled(bool(chosen) and bool(self.profiles.currentText().strip()))
        self.delete.setEnabled(self.profiles.findText(self.profiles.currentText()) >= 0)
        for button in (self.script, self.unit):
            button.setEnabled(bool(chosen))
        if recorded:
            self.state.setText("A recording cannot be set.")
        else:
            off = "" if self._context.boards.current.allowed else f"{forbidden}." if forbidden else _OFF
            self.state.setText(_SESSION.format(board=self._session) if self._session else off)
        self.state.setVisible(bool(self.state.text()))

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(f"#muted {{ color: {c.muted}; }}")
        self.state.setStyleSheet(f"color: {c.muted};")
