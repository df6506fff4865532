"""`ResultCaption`: whose figures a view shows."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from .current_result import CurrentResult
from .plots.label import PlainLabel


class ResultCaption(PlainLabel):
    """Names the current result, over its figures; hidden before there is one."""

    def __init__(self, result: CurrentResult, what: str = "Result", parent: QWidget | None = None) -> None:
        super().__init__("", parent, wrap=True, selectable=True)
        self._result, self._what = result, what
        bold = self.font()
        bold.setBold(True)
        self.setFont(bold)
        result.replaced.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        caption = self._result.caption
        self.setText(f"{self._what}: {caption}" if caption else "")
        self.setVisible(bool(caption))
