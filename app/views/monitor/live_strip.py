"""`LiveStrip`: power, clock and voltage on one time axis, low enough to stand below what is worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from ..shown_reading import ShownReading, beat, shown_reading
from ..widgets import vbox
from .lane_choice import LaneChoice
from .lane_view import LaneView
from .lanes import LANES, MORE_LANES

if TYPE_CHECKING:
    from ...engine.models.voltage_estimate import VoltageEstimate
    from ...sensors.gpu import Gpu
    from ...sensors.trace import Trace

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
        self._seen: ShownReading | None = None
        beat().struck.connect(self.tick)

    def sizeHint(self) -> QSize:
        return QSize(820, 150)

    def show_board(self, gpu: Gpu, trace: Trace) -> None:
        """Show another board's traces."""
        self._trace, self._seen = trace, None
        self.view.show_board(gpu, trace)
        self.tick()

    @Slot(object)
    def show_estimate(self, estimate: VoltageEstimate) -> None:
        """Draw this estimate where the board reports no voltage."""
        self.view.set_estimate(estimate)

    @Slot()
    def tick(self) -> None:
        """Show new readings, where there are any and it is in sight."""
        if not self.isVisible() or self.window().isMinimized():
            return
        shown = shown_reading(self._trace)
        if shown is not self._seen:
            self._seen = shown
            self.view.refresh(self.view.present_values())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.tick()
