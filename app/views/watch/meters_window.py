"""`MeterWindow`: finds power meters, shows what one of them reports as it comes, and assigns it to the shown board."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QLineEdit, QListWidget, QListWidgetItem, QWidget

from ...base.errors import WattridgeError
from ...engine.metering.external_meters import BOARD, MeterChoice
from ...engine.metering.gain import known_gain
from ..plots.plot import Box, set_up_axes
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Ending
from ..shared.tasks import LatestTask, TaskQueue
from ..shared.widgets import button, hbox, vbox

if TYPE_CHECKING:
    from ...sensors.meters.sampled import SampledMeter
    from ...sensors.meters.select import FoundMeter
    from ..shared.watched_boards import WatchedBoard
    from .board_meters import BoardMeters

_TICK_MS = 100
_SHOWN_S = 10.0
_POINTS = 800
_COLOURS = ("orange", "blue", "green", "purple", "sky", "vermillion")
_HINT = "Choose a meter, or type what names it: powersensor3:/dev/ttyACM0, rapl, command:PROGRAM, file:PATH."


class MeterWindow(QDialog, Ending):
    """Stays beside the main window. A meter that is looked at is closed with the window unless it was assigned."""

    def __init__(self, board: WatchedBoard, meters: BoardMeters, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._board, self._meters = board, meters
        self.looked_at: tuple[str, SampledMeter] | None = None  # its selector, and the meter
        self._open: ExitStack | None = None
        self.resize(720, 620)
        self.found = QListWidget()
        self.found.setAccessibleName("Meters that seem to be here")
        self.found.setMaximumHeight(120)
        self.selector = QLineEdit()
        self.selector.setAccessibleName("Meter")
        self.selector.setPlaceholderText("powersensor3:/dev/ttyACM0")
        self.look = button("&Look at it", "Open the meter and show what it reports", self.look_at)
        self.again = button("&Find again", "Look for meters again", self.look_for_meters)
        self.said = PlainLabel(_HINT, wrap=True, muted=True)
        self.plot = pg.PlotWidget(viewBox=Box(), enableMenu=False)
        set_up_axes(self.plot, "Seconds ago", "Power (W)")
        self.plot.setXRange(-_SHOWN_S, 0.0)
        self._legend = self.plot.addLegend(offset=(12, 12))
        self._curves: list[pg.PlotCurveItem] = []
        self.assign = button("&Assign to this board", "Keep it beside this board, also after a restart", self.assign_it)
        self.assigned = QListWidget()
        self.assigned.setAccessibleName("Meters of this board")
        self.assigned.setMaximumHeight(80)
        self.remove = button("&Remove", "Take the chosen meter away from this board", self.remove_it)
        self.source = QComboBox()
        self.source.setAccessibleName("Energy comes from")
        self.corrected = QCheckBox("Take the sensor's &gain out")
        self.gain = PlainLabel(wrap=True, muted=True)
        close = button("Close", clicked=self.close)
        for widget in (self.look, self.again, self.assign, self.remove, close):
            widget.setAutoDefault(False)
        vbox(
            PlainLabel("Meters that seem to be here"),
            self.found,
            hbox((self.selector, 1), self.look, self.again),
            self.said,
            (self.plot, 1),
            hbox(self.assign, 1),
            PlainLabel("Meters of this board"),
            hbox((self.assigned, 1), self.remove),
            hbox(PlainLabel("Energy comes from"), self.source, 1, self.corrected),
            self.gain,
            hbox(1, close),
            of=self,
        )
        self._finding = LatestTask(self, self._show_found, self._say_failed)
        self._opening = TaskQueue(self, self._say_failed)
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self.tick)
        self.found.currentItemChanged.connect(self._chosen)
        self.source.activated.connect(self._keep)
        self.corrected.toggled.connect(self._keep)
        self.selector.returnPressed.connect(self.look_at)
        meters.changed.connect(self._show_assigned)
        theme.notifier().changed.connect(self._colour)
        self._colour()
        self.show_board(board)

    def show_board(self, board: WatchedBoard) -> None:
        """Another board is shown."""
        self._board = board
        self.setWindowTitle(f"Power meters of {board.gpu.info.label}")
        self._show_assigned(board)
        self.look_for_meters()

    def shutdown(self) -> None:
        """End the timer and the threads, and close the meter that is looked at."""
        super().shutdown()
        self._let_go()

    def closeEvent(self, event: object) -> None:
        """The meter that is looked at is free again."""
        self._timer.stop()
        stack, self._open, self.looked_at = self._open, None, None
        if stack is not None:
            self._opening.run(stack.close)
        super().closeEvent(event)  # type: ignore[arg-type]

    # --- finding and looking ------------------------------------------------------------------------------------------

    @Slot()
    def look_for_meters(self) -> None:
        """List the meters that seem to be here."""
        gpu = self._board.gpu

        def look(_: threading.Event) -> list[FoundMeter]:
            from ...sensors.meters.select import find_meters

            return find_meters(gpu)

        self._finding.run(look)

    @Slot()
    def look_at(self) -> None:
        """Open the named meter and show its trace."""
        selector, gpu, before = self.selector.text().strip(), self._board.gpu, self._open
        self._open, self.looked_at = None, None
        self.said.setText(f"Opening {selector}…")

        def open_it() -> tuple[str, SampledMeter, ExitStack] | WattridgeError:
            from ...engine.metering.external_meters import shared_meter

            if before is not None:
                before.close()
            stack = ExitStack()
            try:
                return selector, stack.enter_context(shared_meter(selector, gpu)), stack
            except WattridgeError as error:
                return error

        self._opening.run(open_it, self._opened)

    @Slot()
    def tick(self) -> None:
        """Draw what has come."""
        if self.looked_at is None:
            return
        _, meter = self.looked_at
        trace = meter.record.trace
        end_ns = trace.last_ns
        names = [channel.name for channel in meter.channels]
        series = trace.view(end_ns - round(_SHOWN_S * 1e9), end_ns, _POINTS, names)
        for curve, name in zip(self._curves, names, strict=True):
            curve.setData(series[name].time_s - _SHOWN_S, series[name].value.astype(np.float64), connect="finite")
        now = trace.at(end_ns) if end_ns else {}
        shown = [f"{channel.label} {now.get(channel.name, math.nan):.1f} W" for channel in meter.channels]
        missed = f"{meter.meter.missed} samples missed" if meter.meter.missed else "no sample missed"
        state = "it does not answer; plug it in again" if meter.lost else missed
        self.said.setText(f"{meter.info.label}: {', '.join(shown)}. {meter.record.count} samples, {state}.")

    # --- assigning ----------------------------------------------------------------------------------------------------

    @Slot()
    def assign_it(self) -> None:
        """Put the meter that is looked at beside the shown board."""
        if self.looked_at is None:
            self.said.setText("Look at a meter first.")
            return
        choice = self._meters.choice(self._board)
        selector = self.looked_at[0]
        if selector not in choice.selectors:
            self._put((*choice.selectors, selector), choice)

    @Slot()
    def remove_it(self) -> None:
        """Take the chosen one away from the shown board."""
        choice, row = self._meters.choice(self._board), self.assigned.currentRow()
        if 0 <= row < len(choice.selectors):
            left = (*choice.selectors[:row], *choice.selectors[row + 1 :])
            self._put(left, MeterChoice(corrected=choice.corrected))

    def _put(self, selectors: tuple[str, ...], choice: MeterChoice) -> None:
        self._meters.assign(self._board, MeterChoice(selectors, choice.energy_from, choice.corrected))

    @Slot()
    def _keep(self) -> None:
        """The source that counts, or the correction, was chosen."""
        choice = self._meters.choice(self._board)
        source = self.source.currentText() or BOARD
        corrected = self.corrected.isChecked() and source == BOARD
        self._meters.assign(self._board, MeterChoice(choice.selectors, source, corrected))

    # --- slots --------------------------------------------------------------------------------------------------------

    @Slot(object)
    def _show_found(self, found_meters: Sequence[FoundMeter]) -> None:
        blocked = QSignalBlocker(self.found)  # what is typed stays until one is chosen
        self.found.clear()
        for meter in found_meters:
            item = QListWidgetItem(meter.label)
            item.setData(Qt.ItemDataRole.UserRole, meter.selector)
            item.setToolTip(plain_tip(meter.selector))
            self.found.addItem(item)
        self.found.setCurrentRow(-1)
        blocked.unblock()
        if not found_meters and self.looked_at is None:
            self.said.setText(f"No meter was found. {_HINT}")

    @Slot()
    def _chosen(self) -> None:
        item = self.found.currentItem()
        if item is not None:
            self.selector.setText(str(item.data(Qt.ItemDataRole.UserRole)))

    def _opened(self, opened: tuple[str, SampledMeter, ExitStack] | WattridgeError) -> None:
        if isinstance(opened, WattridgeError):
            self.said.setText(str(opened))
            return
        selector, meter, self._open = opened
        self.looked_at = selector, meter
        self._draw_anew(meter)
        self._timer.start()

    @Slot(str, str)
    def _say_failed(self, what: str, remedy: str) -> None:
        self.said.setText(f"{what} {remedy}".strip())

    @Slot(object)
    def _show_assigned(self, board: WatchedBoard) -> None:
        if board is not self._board:
            return
        choice, meters = self._meters.choice(board), self._meters.meters(board)
        self.assigned.clear()
        self.assigned.addItems([f"{s}  ({m.info.label})" for s, m in zip(choice.selectors, meters, strict=False)])
        self.remove.setEnabled(bool(choice.selectors))
        blocked = QSignalBlocker(self.source), QSignalBlocker(self.corrected)
        self.source.clear()
        self.source.addItems([BOARD, *source_names(meters)])
        self.source.setCurrentText(choice.energy_from)
        gain = known_gain(board.gpu.info)
        self.corrected.setEnabled(gain is not None)
        self.corrected.setChecked(choice.corrected)
        for blocker in blocked:
            blocker.unblock()
        words = f"{gain.words}, 95 %, against {gain.meter}" if gain is not None else "not known yet"
        self.gain.setText(f"Gain of this board's sensor: {words}. A session with a meter beside the board fits it.")

    def _let_go(self) -> None:
        stack, self._open, self.looked_at = self._open, None, None
        if stack is not None:
            stack.close()

    def _draw_anew(self, meter: SampledMeter) -> None:
        self.plot.clear()
        self._legend.clear()
        colours = theme.colours()
        self._curves = []
        for place, channel in enumerate(meter.channels):
            pen = pg.mkPen(QColor(getattr(colours, _COLOURS[place % len(_COLOURS)])), width=1)
            curve = pg.PlotCurveItem(pen=pen, name=channel.label)
            self.plot.addItem(curve)
            self._curves.append(curve)

    @Slot()
    def _colour(self) -> None:
        colours = theme.colours()
        self.plot.setBackground(QColor(colours.base))
        for axis in ("bottom", "left"):
            self.plot.getAxis(axis).setPen(QColor(colours.border))
            self.plot.getAxis(axis).setTextPen(QColor(colours.text))
        self._legend.setLabelTextColor(QColor(colours.text))
        if self.looked_at is not None:
            self._draw_anew(self.looked_at[1])


def source_names(meters: Sequence[SampledMeter]) -> list[str]:
    """The meters' names as sources, in their order."""
    from ...engine.metering.external_meters import named

    return list(named(meters))
