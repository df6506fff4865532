"""`FigureTabs`: the front, parallel coordinates or a slice in one place; each is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStackedWidget, QTabBar, QWidget


class FigureTabs(QStackedWidget):
    """`bar` is the chooser, for wherever there is room. `made` announces a page when it is first shown."""

    made = Signal(QWidget)
    changed = Signal()

    def __init__(self, pages: Sequence[tuple[str, str, Callable[[], QWidget]]], parent: QWidget | None = None) -> None:
        """`pages`: title, tool tip, and what makes the page."""
        super().__init__(parent)
        self._makers = [maker for _, _, maker in pages]
        self._pages: dict[int, QWidget] = {}
        self.bar = QTabBar()
        self.bar.setShape(QTabBar.Shape.RoundedSouth)
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setAccessibleName("Figure of the measurements")
        for at, (title, tip, _) in enumerate(pages):
            self.bar.addTab(title)
            self.bar.setTabToolTip(at, tip)
        self.bar.currentChanged.connect(self._show)
        self._show(0)

    @Slot(int)
    def _show(self, at: int) -> None:
        page = self._pages.get(at)
        if page is None:
            page = self._pages[at] = self._makers[at]()
            self.addWidget(page)
            self.made.emit(page)
        self.setCurrentWidget(page)
        self.changed.emit()
