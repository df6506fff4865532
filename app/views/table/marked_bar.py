"""`MarkedBar`: how many measurements are marked, above the table; there only while some are."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QToolButton, QWidget

from ...numbers import count_text
from ..current_result import CurrentResult
from ..plots.label import PlainLabel


class MarkedBar(QWidget):
    """`only` asks for a table of just these."""

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result = result
        self.count = PlainLabel()
        self.only = QCheckBox("O&nly these")
        self.only.setToolTip("Show no other rows in the table")
        self.unmark = QToolButton()
        self.unmark.setText("Unmark")
        self.unmark.setAutoRaise(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.count)
        row.addWidget(self.only)
        row.addStretch(1)
        row.addWidget(self.unmark)
        self.unmark.clicked.connect(self._unmark)
        result.brushed.connect(self._follow)
        self._follow()

    @Slot()
    def _follow(self) -> None:
        marked = len(self._result.rows)
        self.count.setText(f"{count_text(marked)} marked")
        self.setVisible(bool(marked))

    @Slot()
    def _unmark(self) -> None:
        self._result.brush(np.empty(0, dtype=np.int64))
