"""`Beside`: the work and, at its right or below it, something that keeps its size in pixels and can be hidden."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget


class Beside(QSplitter):
    """The size that the user chose comes back after a passing size of the window that had no room for it."""

    def __init__(self, orientation: Qt.Orientation, work: QWidget, side: QWidget, usual_px: int) -> None:
        super().__init__(orientation)
        self._side = side
        self._usual_px = self.side_px = usual_px
        self.addWidget(work)
        self.addWidget(side)
        self.setChildrenCollapsible(False)
        self.setStretchFactor(0, 1)
        self.setStretchFactor(1, 0)
        self.splitterMoved.connect(self._moved)

    def set_side_px(self, pixels: int) -> None:
        """Give the side that many pixels, within its bounds."""
        self.side_px = pixels
        self._give()

    def reset(self) -> None:
        """The size of the first start."""
        self.set_side_px(self._usual_px)

    def set_shown(self, shown: bool) -> None:
        """Show the side, or hide it."""
        self._side.setVisible(shown)
        self.refresh()  # else the handle between them would get its place later, when all was painted once
        self._give()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give()

    def _give(self) -> None:
        along = self.width() if self.orientation() is Qt.Orientation.Horizontal else self.height()
        self.setSizes([max(0, along - self.side_px - self.handleWidth()), self.side_px])

    @Slot()
    def _moved(self, *_: object) -> None:
        self.side_px = self.sizes()[1]
