"""`LateTabs`: tabs whose pages are made when they are first shown or asked for, each in a turn of its own."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QTabWidget, QWidget


class LateTabs(QTabWidget):
    """Plots take long to make, and most windows are closed before most of them were looked at."""

    made = Signal(QWidget)  # a page, which is in its place already

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._makers: dict[int, Callable[[], QWidget]] = {}  # of the pages that are not there yet
        self._pages: list[QWidget] = []
        self.currentChanged.connect(self._shown)

    def add(self, title: str, make: Callable[[], QWidget]) -> None:
        """One more tab; the first one's page is made at once."""
        self._makers[self.count()] = make
        self._pages.append(QWidget())
        self.addTab(self._pages[-1], title)

    def is_made(self, at: int) -> bool:
        """Whether the page of a tab is there."""
        return at not in self._makers

    def page(self, at: int) -> QWidget:
        """The page of a tab, made now where it was not yet."""
        make = self._makers.pop(at, None)
        if make is not None:
            place, shown = self._pages[at], self.currentIndex()
            page = self._pages[at] = make()
            blocked = self.blockSignals(True)
            self.insertTab(at, page, self.tabText(at))
            self.removeTab(at + 1)
            self.setCurrentIndex(shown)
            self.blockSignals(blocked)
            place.deleteLater()
            self.made.emit(page)
        return self._pages[at]

    @Slot(int)
    def _shown(self, at: int) -> None:
        if at >= 0:
            self.page(at)
