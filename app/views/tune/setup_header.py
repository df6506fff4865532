"""`SetupHeader`: what is set up to run, in one line, and a button that folds the form below it away."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QToolButton, QWidget

from ..plots.label import PlainLabel, plain_tip
from ..widgets import hbox


class SetupHeader(QWidget):
    """The line is cut off where it does not fit; its tool tip is whole."""

    folded = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self.fold = QToolButton()
        self.fold.setCheckable(True)
        self.fold.setAutoRaise(True)
        self.fold.setAccessibleName("Fold the set-up away")
        self.fold.toggled.connect(self._folded)
        self.line = PlainLabel(selectable=True)
        self.line.setMinimumWidth(1)
        bold = self.line.font()
        bold.setBold(True)
        self.line.setFont(bold)
        hbox(self.fold, (self.line, 1), of=self, margins=0, spacing=4)
        self._folded(False)

    @property
    def text(self) -> str:
        """The whole line."""
        return self._text

    def show_text(self, text: str) -> None:
        """Say what is set up."""
        self._text = text
        self.line.setToolTip(plain_tip(text))
        self.line.setAccessibleName(text)
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def minimumSizeHint(self) -> QSize:
        return QSize(120, super().minimumSizeHint().height())

    def _elide(self) -> None:
        room = self.width() - self.fold.sizeHint().width() - 4
        self.line.setText(self.line.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, max(room, 1)))

    @Slot(bool)
    def _folded(self, folded: bool) -> None:
        self.fold.setArrowType(Qt.ArrowType.RightArrow if folded else Qt.ArrowType.DownArrow)
        self.fold.setToolTip("Show the form" if folded else "Fold the form away: the line and Start stay")
        self.folded.emit(folded)
