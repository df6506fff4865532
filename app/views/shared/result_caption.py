"""`ResultCaption`: whose figures a view shows."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from .current_result import CurrentResult
from .label import ElidedLabel


class ResultCaption(ElidedLabel):
    """Names the current result, in one line over its figures; hidden before there is one."""

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__("", parent, muted=True)
        self._result = result
        self.setAccessibleName("The result that is shown here")
        result.replaced.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        caption = self._result.caption
        self.setText(caption, self._result.caveats)
        self.setAccessibleDescription(f"{caption}. {self._result.caveats}".rstrip(". "))
        self.setVisible(bool(caption))
