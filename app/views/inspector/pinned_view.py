"""`PinnedView`: the pinned configurations side by side: only what they differ in."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import QTableWidget, QWidget

from ..current_result import CurrentResult
from ..plots import theme
from ..plots.descriptions import fill_columns, prepare_table
from ..plots.label import PlainLabel
from ..widgets import button, hbox, vbox
from .differences import describe_pinned, in_words


class PinnedView(QWidget):
    """Follows the pins of the result while in sight."""

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result = result
        self.words = PlainLabel(wrap=True, selectable=True)
        self.table = QTableWidget()
        self.table.setTabKeyNavigation(False)
        prepare_table(self.table, "What the pinned configurations differ in")
        self.table.verticalHeader().setTextElideMode(Qt.TextElideMode.ElideRight)
        self.table.verticalHeader().setDefaultSectionSize(self.table.fontMetrics().height() + 6)
        self.clear = button("&Unpin all", "Pin nothing any more", result.unpin_all)
        vbox(self.words, (self.table, 1), hbox(1, self.clear), of=self, margins=2, spacing=2)
        theme.notifier().changed.connect(self.refresh)
        self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The figures' names leave room for two columns; the whole name is their tool tip."""
        super().resizeEvent(event)
        self.table.verticalHeader().setMaximumWidth(self.width() // 3)

    @Slot()
    def refresh(self) -> None:
        """Show what is pinned now."""
        table, plan, pins = self._result.table, self._result.plan, self._result.pins
        if table is None or plan is None:
            return
        measurements = [table.measurement(index) for index in pins]
        self.words.setText(in_words(measurements, plan) if pins else "")
        descriptions = describe_pinned(measurements, pins, plan) if len(pins) > 1 else []
        self.table.setVisible(len(pins) > 1)
        fill_columns(self.table, descriptions, [QIcon()] * len(descriptions))
