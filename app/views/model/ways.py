"""`FirstWays`: where there is no model yet, the ways to one, each a button with what it does beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QPushButton, QWidget

from ..plots.label import PlainLabel
from ..widgets import button, hbox, vbox

_WIDEST_PX = 560


@dataclass(frozen=True, slots=True)
class Way:
    """`text` is on the button, `sentence` beside it."""

    text: str
    sentence: str
    go: Callable[[], object]


class FirstWays(QWidget):
    """In the middle of an empty plot."""

    def __init__(self, ways: Sequence[Way], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: list[QPushButton] = []
        grid = QGridLayout()
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(12)
        for row, way in enumerate(ways):
            made = button(way.text, way.sentence, way.go)
            self.buttons.append(made)
            grid.addWidget(made, row, 0)
            grid.addWidget(PlainLabel(way.sentence, wrap=True, muted=True), row, 1)
        inside = QWidget()
        inside.setMaximumWidth(_WIDEST_PX)
        title = PlainLabel("No model yet")
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        vbox(title, grid, of=inside, margins=0, spacing=10)
        vbox(1, hbox(1, (inside, 50), 1), 2, of=self, margins=16)
