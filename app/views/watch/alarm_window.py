"""`AlarmWindow`: which alarms there are, and what was raised."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QCheckBox, QDialog, QFormLayout, QListWidget, QWidget

from ...sensors.gpu import Gpu
from ...sensors.trace.alarms import Alarm, AlarmRules
from ..shared.label import PlainLabel, plain_tip
from ..shared.watched_boards import Alarms
from ..shared.widgets import NumberBox, button, hbox, vbox

_TEMPERATURE_C = 85.0
_POWER_W = 250.0


class AlarmWindow(QDialog):
    """Everything takes effect at once. Typing a figure switches its alarm on. Stays beside the main window."""

    def __init__(self, alarms: Alarms, gpu: Gpu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._alarms = alarms
        self.resize(460, 420)
        self.power, self.power_w = QCheckBox("&Power above"), _figure(" W", 5000.0, _POWER_W)
        self.temperature, self.temperature_c = QCheckBox("&Temperature above"), _figure(" °C", 200.0, _TEMPERATURE_C)
        self.cap = QCheckBox("Power &cap reached")
        self.lost = QCheckBox("&Board lost: it does not answer")
        self.power_w.setAccessibleName("Power above")
        self.temperature_c.setAccessibleName("Temperature above")
        form = QFormLayout()
        form.addRow(self.power, self.power_w)
        form.addRow(self.temperature, self.temperature_c)
        form.addRow(self.cap)
        form.addRow(self.lost)
        self.raised = QListWidget()
        self.raised.setAccessibleName("Alarms that were raised, the newest first")
        note = PlainLabel(
            "An alarm is a line at the bottom of the window and a mark on the traces, once per crossing: it is raised "
            "again when the figure was below for 5 s. For every board alike; checked while the window is open.",
            wrap=True,
            muted=True,
        )
        close = button("Close", clicked=self.close)
        close.setAutoDefault(False)  # Return in a field must not press it
        vbox(form, note, (self.raised, 1), hbox(1, close), of=self)
        self.show_board(alarms, gpu)
        for field, tick in ((self.power_w, self.power), (self.temperature_c, self.temperature)):
            field.valueChanged.connect(lambda _, tick=tick: tick.setChecked(True))
            field.valueChanged.connect(self._keep)
        for tick in (self.power, self.temperature, self.cap, self.lost):
            tick.toggled.connect(self._keep)

    def show_board(self, alarms: Alarms, gpu: Gpu) -> None:
        """Show what was raised for another board, and which alarms it cannot raise."""
        if self.windowTitle():
            self._alarms.raised.disconnect(self._add)
        self._alarms = alarms
        alarms.raised.connect(self._add)
        self.setWindowTitle(f"Alarms of {gpu.info.label}")
        reports = {channel.name: channel for channel in gpu.channels}
        for widgets, name in (
            ((self.temperature, self.temperature_c), "temperature_c"),
            ((self.cap,), "event_reasons"),
        ):
            channel = reports.get(name)
            why = channel.unavailable if channel is not None else "this GPU does not report it"
            for widget in widgets:
                widget.setEnabled(why is None)
                widget.setToolTip(plain_tip(f"not available: {why}") if why is not None else "")
        if not alarms.rules.power_above_w:
            with QSignalBlocker(self.power_w):
                self.power_w.setValue(gpu.info.power_limit.current_w or _POWER_W)
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """Show the rules as they are kept, and what was raised."""
        rules = self._alarms.rules
        ticks = (self.power, self.temperature, self.cap, self.lost)
        blocked = [QSignalBlocker(widget) for widget in (*ticks, self.power_w, self.temperature_c)]
        kept = (rules.power_above_w, rules.temperature_above_c, rules.cap_reached, rules.board_lost)
        for tick, value in zip(ticks, kept, strict=True):
            tick.setChecked(bool(value))
        for field, threshold in zip((self.power_w, self.temperature_c), kept, strict=False):
            if threshold:
                field.setValue(threshold)
        for blocker in blocked:
            blocker.unblock()
        self.raised.clear()
        for when, alarm in self._alarms.raised_so_far:
            self.raised.insertItem(0, f"{when:%Y-%m-%d %H:%M:%S}   {_words(alarm)}")

    @Slot()
    def _keep(self) -> None:
        self._alarms.rules = AlarmRules(
            self.power_w.value() if self.power.isChecked() else None,
            self.temperature_c.value() if self.temperature.isChecked() else None,
            self.cap.isChecked(),
            self.lost.isChecked(),
        )

    @Slot(str)
    def _add(self, _: str) -> None:
        self.look_again()


def _words(alarm: Alarm) -> str:
    return f"{alarm.text}: {alarm.value}" if alarm.value else alarm.text


def _figure(unit: str, most: float, usual: float) -> NumberBox:
    field = NumberBox()
    field.setDecimals(0)
    field.setRange(1.0, most)
    field.setValue(usual)
    field.setSuffix(unit)
    field.setAlignment(Qt.AlignmentFlag.AlignRight)
    return field
