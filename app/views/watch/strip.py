"""`PowerStrip`: power, clock and limit of a board in a small window above all others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QToolButton

from ...sensors.channel import CHANNELS
from ..plots.figures import value_text
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.settings import Settings
from ..shared.watched_boards import beat, shown_reading
from ..shared.widgets import hbox
from .lane_view import short_name

if TYPE_CHECKING:
    from ...sensors.gpu import Gpu
    from ...sensors.trace.trace import Trace

_KEPT = "strip"  # its place, in the settings


class PowerStrip(QFrame):
    """Dragged by the mouse; a double click opens the main window, Esc or × closes it. Its place is kept."""

    opened = Signal()  # the main window is asked for
    closed = Signal()

    def __init__(self, gpu: Gpu, trace: Trace, settings: Settings) -> None:
        flags = Qt.WindowType.Tool | Qt.WindowType.FramelessWindowHint | Qt.WindowType.WindowStaysOnTopHint
        super().__init__(None, flags)
        self._settings = settings
        self._drag: QPoint | None = None  # from the corner to the mouse
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.name = PlainLabel(muted=True)
        self.power, self.clock, self.limit = PlainLabel(), PlainLabel(), PlainLabel()
        self.power.setFont(theme.number_font(3.0))
        for label, widest in ((self.power, "8888.8 W"), (self.clock, "8888 MHz"), (self.limit, "limit 8888 W")):
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setMinimumWidth(label.fontMetrics().horizontalAdvance(widest))  # figures that change move nothing
        self.shut = QToolButton()
        self.shut.setText("×")
        self.shut.setAutoRaise(True)
        self.shut.setToolTip("Close this strip")
        self.shut.setAccessibleName("Close this strip")
        self.shut.clicked.connect(self.close)
        hbox(self.name, self.power, self.clock, self.limit, self.shut, of=self, margins=6, spacing=12)
        beat().struck.connect(self._follow)
        self.show_board(gpu, trace)
        kept = settings.kept(_KEPT)
        if kept is not None:
            self.restoreGeometry(kept)

    def show_board(self, gpu: Gpu, trace: Trace) -> None:
        """Show another board."""
        self._gpu, self._trace = gpu, trace
        self.setWindowTitle(f"{gpu.info.label}: power")
        self.setAccessibleName(self.windowTitle())
        self.setToolTip(plain_tip(f"{gpu.info.label}\nDrag to move, double click for the main window, Esc to close"))
        self.name.setText(short_name(gpu.info))
        self.refresh()
        self.adjustSize()

    @Slot()
    def refresh(self) -> None:
        """Show the values of the present beat."""
        now = shown_reading(self._trace)
        limit, clock = now.limit_w(self._gpu), now.values.get("graphics_clock_mhz", math.nan)
        self.power.setText(value_text(now.power_name, "W", now.power_w))
        self.clock.setText(value_text("graphics_clock_mhz", CHANNELS["graphics_clock_mhz"].unit, clock))
        self.limit.setText("no limit known" if math.isnan(limit) else f"limit {limit:.0f} W")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    @Slot()
    def _follow(self) -> None:
        if self.isVisible():
            self.refresh()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._settings.keep(_KEPT, self.saveGeometry())
        super().closeEvent(event)
        self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        handle = self.windowHandle()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if handle is None or not handle.startSystemMove():  # Wayland lets no window move itself
            self._drag = event.globalPosition().toPoint() - self.pos()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            self.move(event.globalPosition().toPoint() - self._drag)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.opened.emit()
