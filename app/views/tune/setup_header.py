"""`SetupHeader`: what is set up to run, in one line, and a button that folds the form below it away."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QToolButton, QWidget

from ..plots.label import ElidedLabel
from ..plots.toggle import look_pressed
from ..widgets import hbox


class SetupHeader(QWidget):
    """The line is cut off where it does not fit; its tool tip is whole."""

    folded = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wanted_open = False  # the user unfolded it
        self.fold = QToolButton()
        self.fold.setCheckable(True)
        self.fold.setAutoRaise(True)
        self.fold.setAccessibleName("Fold the set-up away")
        look_pressed(self.fold)
        self.fold.toggled.connect(self._folded)
        self.fold.clicked.connect(self._chosen)
        self.line = ElidedLabel(cut=Qt.TextElideMode.ElideRight)
        bold = self.line.font()
        bold.setBold(True)
        self.line.setFont(bold)
        hbox(self.fold, (self.line, 1), of=self, margins=0, spacing=4)
        self._folded(False)

    @property
    def text(self) -> str:
        """The whole line."""
        return self.line.text()

    def show_text(self, text: str) -> None:
        """Say what is set up."""
        self.line.setText(text)

    def give_way(self) -> None:
        """A session starts: its results need the room, unless the user wants the form."""
        if not self._wanted_open:
            self.fold.setChecked(True)

    def unfold(self) -> None:
        """Something else is opened."""
        self.fold.setChecked(False)

    @Slot(bool)
    def _chosen(self, folded: bool) -> None:
        self._wanted_open = not folded

    @Slot(bool)
    def _folded(self, folded: bool) -> None:
        self.fold.setArrowType(Qt.ArrowType.RightArrow if folded else Qt.ArrowType.DownArrow)
        self.fold.setToolTip("Show the form" if folded else "Fold the form away: the line and Start stay")
        self.folded.emit(folded)
