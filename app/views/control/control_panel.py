"""The manual controls: the switch, clocks and power limit by hand, profiles, export as files, the log of changes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QComboBox, QGridLayout, QPushButton, QVBoxLayout, QWidget

from ...base.errors import WattridgeError
from ...base.formatting import UNKNOWN
from ...engine.control import installing
from ...engine.control.client import Asking, read_only
from ...engine.control.device_log import changes_of
from ...engine.control.profiles import delete_profile, profiles_of, save_profile
from ...engine.metering.limit_effect import effect_now
from ...engine.results.settings import PROFILE, Setting, in_words, requested_profiles, unit, upper
from ...engine.results.state import Purpose, SessionState
from ...engine.session import events
from ...sensors.channel import CHANNELS
from ...sensors.gpu import Gpu
from ..shared import theme
from ..shared.countdown import Countdown, apply_command
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import PanelInParts
from ..shared.tasks import LatestTask
from ..shared.watched_boards import WatchedBoard, beat, shown_reading
from ..shared.widgets import hbox, save_file, vbox
from .arming import ACTIONS, SIMULATED, Arming
from .change_log import KEPT, ChangeLog
from .clock_model import ClockModel, Now, PredictionBox
from .clock_plot import ClockPlot, clock_legend
from .confirm_bar import answer_buttons
from .setting_rows import Choices, SettingRows, choices_of


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
_BESIDE_PX = 760  # from this width of the panel on, the plot stands beside the form
_PLOT_PX = 300  # of height, at least
_LIVE_S = 1.0  # over which the board's point is averaged
_COMPARED_BEATS = 5  # from one comparison with what runs to the next
_OFF = "Nothing can be applied until control is switched on."
_ON = "What is applied returns after a countdown unless you keep it."
_EXPORT = "Export the settings"
_SESSION = "A session is running on {board}: nothing else is set until it ends."


class ControlPanel(PanelInParts):
    """Sends requests to the engine and shows its reports; sets nothing itself.

    Nothing moves while it is used: messages and the countdown have their places from the beginning.
    """

    def make(self) -> Iterator[None]:
        """Fields, the plot in its parts, their places, and what connects them."""
        context = self._context
        self._gpu = context.gpu
        self._session = ""  # the name of the board on which a session runs
        self._ticked: dict[str, dict[str, Setting]] = {}  # by the UUIDs of boards that were left
        self._said = ""  # of the last change, while nothing waits
        self._locked: Setting | None = None  # the clock that the engine has set last
        self._now = Now()
        self._beats = 0
        self._arming = Arming(context.boards.current, context.bridge, self)
        self.rows: SettingRows | None = None
        self.armed, self.switch = PlainLabel(), QPushButton()
        self.state, self.outcome = PlainLabel(wrap=True, muted=True), PlainLabel(wrap=True)
        self.keep, self.back = answer_buttons()
        self._fields = QVBoxLayout()
        self._place: QWidget | None = None  # of the rows
        self._notes: QWidget | None = None  # of what is shown only
        self._shown_only = QVBoxLayout()
        self._below = QWidget()  # what the rows stand in, and everything under them
        self.apply, self.restore = QPushButton("&Apply"), QPushButton("Put &everything back")
        self.profiles, self.save, self.delete = QComboBox(), QPushButton("Sa&ve"), QPushButton("&Delete")
        self.script, self.unit = QPushButton("Scri&pt …"), QPushButton("systemd &unit …")
        self.log = ChangeLog()
        self.model = ClockModel(context, self)
        self.legend, self.source = PlainLabel(wrap=True), PlainLabel(wrap=True, muted=True)
        self.plot = ClockPlot(at_once=False)
        self.prediction = PredictionBox(context, self.model, self.plot)
        self.helper = HelperRow()
        yield
        yield from self.plot.make_parts()
        yield
        self._lay_out()
        yield
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
            hbox(self.apply, self.keep, self.back, self.restore, 1),
            self.prediction,
            self.outcome,
            hbox((self.profiles, 1), self.save, self.delete),
            hbox(PlainLabel("Export as"), self.script, self.unit, 1),
            self.helper,
            self._shown_only,
            of=self._below,
            margins=0,
        )
        self.plot.setMinimumHeight(_PLOT_PX)
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self._pictures = QWidget()
        vbox(self.source, (self.plot, 2), self.legend, (self.log, 1), of=self._pictures, margins=0)
        for widget in (self._below, self._pictures):
            widget.hide()  # until it is known what the board can be set to
        self._form = form = QWidget()
        form.setMaximumWidth(_FORM_PX)
        vbox(hbox(self.armed, 1, self.switch), self.state, self._below, 1, of=form, margins=0)
        self._halves = vbox(form, (self._pictures, 1), of=self, margins=6)
        self.setMinimumWidth(360)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = self.width() >= _BESIDE_PX
        self._halves.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)
        self._halves.setStretch(0, 1 if beside else 0)
        self._halves.setSpacing(18 if beside else 6)
        self._keep_height()

    def _keep_height(self) -> None:
        """Lines that wrap take room that a layout does not count: fields were cut where the form is narrow."""
        width = min(_FORM_PX, self.width() // 2 - 15 if self.width() >= _BESIDE_PX else self.width() - 12)
        self._form.setMinimumHeight(self._form.heightForWidth(width))

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
        self.subscribe(events.FitProgress | events.FitFinished | events.FitFailed, self._predict)
        self.model.changed.connect(self._model_changed)
        self.plot.dragged.connect(self._drag)
        self.plot.stepped.connect(self._step)
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
        self._gpu, self.rows, self._locked, self._now = board.gpu, None, None, Now()
        self.model.drop()
        board.countdown.changed.connect(self._show_outcome, Qt.ConnectionType.UniqueConnection)
        self._look_at_board()

    @Slot(object)
    def _show_rows(self, choices: Choices) -> None:
        for before in (self._place, self._notes):
            if before is not None:
                before.hide()
                before.deleteLater()
        place, notes = self._place, self._notes = QWidget(), QWidget()
        self._fields.addWidget(place)
        self._shown_only.addWidget(notes)
        grids = QGridLayout(place), QGridLayout(notes)
        for grid in grids:
            grid.setContentsMargins(0, 4, 0, 4)
            grid.setColumnStretch(1, 1)
        self.rows = SettingRows(self._gpu, choices, *grids)
        self.rows.setParent(place)
        self.rows.choose(self._ticked.get(self._gpu.info.uuid, {}))
        self.rows.changed.connect(self._set_buttons)
        self.rows.changed.connect(self._show_setting)
        _reserve(self.rows.facts["power_limit_w"], _FACT_LINES)
        buttons = (self.apply, self.keep, self.back, self.restore, self.prediction.button)
        more = (self.profiles, self.save, self.delete, self.script, self.unit, self.helper.button)
        last: tuple[QWidget, ...] = (*more, self.plot, self.log.tabs, self.log.table)
        for above, below in pairwise((self.switch, *self.rows.in_order, *buttons, *last)):
            self.setTabOrder(above, below)
        self._below.show()
        self._pictures.show()
        self._keep_height()
        self.plot.show_board(self.rows.clocks_mhz, self.rows.limits_w)
        self._model_changed()
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
        self._predict()

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
        self._locked = event.applied.get("graphics_clock_mhz")
        self._set_buttons()
        self._predict()
        if self.rows is not None and self.rows.boxes[PROFILE].isEnabled():
            gpu = self._gpu
            self._profiles_asker.run(lambda _stop: requested_profiles(gpu))

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
        if settings and not self._wrong:
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
        self._show_point(now)

    # --- the plot and the prediction ----------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._model_changed()

    def recolour(self) -> None:
        self._model_changed()

    @Slot(str, float)
    def _drag(self, name: str, value: float) -> None:
        if self.rows is not None:
            self.rows.drag(name, value)
            self._show_setting()

    @Slot(str, int)
    def _step(self, name: str, steps: int) -> None:
        if self.rows is not None:
            self.rows.step(name, steps)

    @Slot()
    def _model_changed(self) -> None:
        if self.isVisible():
            self.model.look()
        known = self.model.known
        fit = known.fit if known is not None else None
        self.plot.show_model(fit)
        self.legend.setText(clock_legend(fit))
        none = "Looking for a model of this board …" if self.model.looking else "No model of this board yet"
        self.source.setText(f"Model: {known.source}" if known is not None else none)
        self._show_setting()

    @Slot()
    def _show_setting(self) -> None:
        """Where the lines stand, and what that would change."""
        if self.rows is not None:
            ticked = self.rows.settings()
            clock, limit = "graphics_clock_mhz" in ticked, "power_limit_w" in ticked
            self.plot.show_setting(self.rows.high.value(), self.rows.limit.value(), clock=clock, limit=limit)
        self._predict()

    @Slot()
    def _predict(self, *_: object) -> None:
        if self.rows is not None:
            free = self.rows.clocks_mhz[1] if self._locked is None else upper(self._locked)
            now = replace(self._now, free_mhz=free)
            allowed = self._arming.allowed
            self.prediction.show_prediction(self._chosen(), now, allowed=allowed, wrong=self._wrong)

    def _show_point(self, values: dict[str, float]) -> None:
        """The board's point of the last second, ten times a second; what runs is compared with the model less often."""
        trace = self._context.boards.current.trace
        end_ns, names = trace.last_ns, ("graphics_clock_mhz", trace.power_name, "utilisation_percent")
        start_ns = end_ns - round(_LIVE_S * 1e9)
        clock, power, busy = (
            trace.statistics(name, start_ns, end_ns).mean if name in trace.names else math.nan for name in names
        )
        self._now = Now(clock, power, values.get("power_limit_w", math.nan), busy)
        self.plot.show_now(clock, power, self._now.limit_w)
        self._beats += 1
        if self._beats % _COMPARED_BEATS == 0:
            self._predict()

    @property
    def _wrong(self) -> str:
        return self.rows.wrong if self.rows is not None else ""

    @Slot()
    def _set_buttons(self) -> None:
        chosen = self._chosen()
        recorded = self._gpu.info.source == "recorded"
        allowed, forbidden = self._arming.allowed, self._arming.why_forbidden
        wrong = self._wrong
        chosen = {} if wrong else chosen
        self.apply.setEnabled(bool(chosen) and allowed and not self._session)
        self.apply.setToolTip(plain_tip(f"{wrong}." if wrong else ""))
        self.restore.setEnabled(not self._session and not recorded and not (forbidden and read_only()))
        is_kept = self.profiles.findText(" ".join(self.profiles.currentText().split())) >= 0
        self.save.setText("Replace" if is_kept else "Sa&ve")
        self.save.setEnabled(bool(chosen) and bool(self.profiles.currentText().strip()))
        self.delete.setEnabled(self.profiles.findText(self.profiles.currentText()) >= 0)
        for button in (self.script, self.unit):
            button.setEnabled(bool(chosen))
        session = _SESSION.format(board=self._session) if self._session else ""
        why_not = f"{forbidden}." if forbidden else session or (_ON if allowed else _OFF)
        why_not = f"Nothing can be applied: {wrong}." if wrong else why_not
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
