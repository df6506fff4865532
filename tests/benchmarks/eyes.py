"""The program, and what a screen reader sees of it: python tests/benchmarks/eyes.py [its arguments]

Each line on standard input is answered by one line of JSON: everything in sight, from Qt's accessibility tree, with its
name and value, role, place on the screen in the screen's pixels, and whether it is enabled and has the focus.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QApplication

from app.cli import main

_WITHOUT_PARTS = {QAccessible.Role.Table, QAccessible.Role.List, QAccessible.Role.Tree}  # thousands of cells


class Eyes(QObject):
    """Answers on Qt's thread."""

    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(self._answer)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for _ in sys.stdin:
            self.asked.emit()

    @Slot()
    def _answer(self) -> None:
        seen: list[dict[str, Any]] = []
        for window in QApplication.topLevelWidgets():
            if window.isVisible():
                _look(QAccessible.queryAccessibleInterface(window), window.devicePixelRatio(), seen)
        print(json.dumps(seen), flush=True)


def _look(shown: QAccessibleInterface, scale: float, seen: list[dict[str, Any]]) -> None:
    state = shown.state()
    if state.invisible:
        return
    place = shown.rect()
    seen.append(
        {
            "name": " ".join((shown.text(QAccessible.Text.Name), shown.text(QAccessible.Text.Value))).strip(),
            "role": shown.role().name,
            "place": [round(scale * each) for each in place.getRect()],
            "enabled": not state.disabled,
            "focused": shown.object() is not None
            and shown.object() is QApplication.focusWidget(),  # a tab bar always says so
        }
    )
    if shown.role() in _WITHOUT_PARTS:
        return
    for number in range(shown.childCount()):
        part = shown.child(number)
        if part is not None and part.isValid():
            _look(part, scale, seen)


if __name__ == "__main__":
    eyes = Eyes()
    raise SystemExit(main(sys.argv[1:]))
