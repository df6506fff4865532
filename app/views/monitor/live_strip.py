"""`LiveStrip`: power, clock and voltage on one time axis, low enough to stand below what is worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from ..widgets import vbox
from .lane_choice import LaneChoice
from .lane_view import LaneView
from .lanes import LANES, MORE_LANES

if TYPE_CHECKING:
    from ...engine.models.voltage_estimate import VoltageEstimate
    from ...sensors.gpu import Gpu
    from ...sensors.trace import Trace

_TICK_MS = 150
_SHOWN = ("Power", "Graphics clock", "Core voltage")
LOWEST_PX, HIGHEST_PX = 100, 300


class LiveStrip(QWidget):
    """Reads and paints nothing while it is out of sight."""

    def __init__(self, gpu: Gpu, trace: Trace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self.view = LaneView(gpu, trace, low=True)
        self.view.setAccessibleName("Live traces: power, graphics clock and core voltage")
        titles = [lane.title for lane in (*LANES, *MORE_LANES)]
        self.view.set_choice(LaneChoice(switched={title: title in _SHOWN for title in titles}))
        vbox((self.view, 1), of=self, margins=0)
        self.setMinimumHeight(LOWEST_PX)
        self.setMaximumHeight(HIGHEST_PX)
        self._seen = -1
        self._timer = QTimer(self, interval=_TICK_MS, timerType=Qt.TimerType.CoarseTimer)
        self._timer.timeout.connect(self.tick)

    def sizeHint(self) -> QSize:
        return QSize(820, 150)

    def show_board(self, gpu: Gpu, trace: Trace) -> None:
        """Show another board's traces."""
        self._trace, self._seen = trace, -1
        self.view.show_board(gpu, trace)
        self.tick()

    @Slot(object)
    def show_estimate(self, estimate: VoltageEstimate) -> None:
        """Draw this estimate where the board reports no voltage."""
        self.view.set_estimate(estimate)

    @Slot()
    def tick(self) -> None:
        """Show new readings, where there are any and it is in sight."""
        appended = self._trace.appended
        if appended != self._seen and self.isVisible() and not self.window().isMinimized():
            self._seen = appended
            self.view.refresh(self.view.values_at(self._trace.last_ns))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self.tick()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()
