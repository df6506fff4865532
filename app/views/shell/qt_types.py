"""`QtTypes`: all of PySide's types, made on Qt's thread before another thread imports what uses them.

PySide makes a type when it is first asked for, and keeps no lock meanwhile: the Python code that this runs lets another
thread in, and where that asks for the same type, both make it and both remove it from the list of those to be made. The
second removal writes into freed memory. Importing pyqtgraph asks for every type there is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QObject, QTimer, Signal, Slot

_MODULES = (QtCore, QtGui, QtWidgets)
_SLICE_S = 0.004  # of Qt's thread per turn; all of them take a tenth of a second


def types_to_make() -> Iterator[tuple[object, str]]:
    """Module and name of each type that was not asked for yet."""
    return ((module, name) for module in _MODULES for name in dir(module) if name not in vars(module))


class QtTypes(QObject):
    """Makes them, some in each turn of the event loop."""

    made = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: Iterator[tuple[object, str]] = iter(())
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._make_some)

    @Slot()
    def make(self) -> None:
        """Begin, unless it has begun; `made` follows in any case."""
        if not self._timer.isActive():
            self._waiting = iter(list(types_to_make()))
            self._timer.start()

    @Slot()
    def _make_some(self) -> None:
        end = time.perf_counter() + _SLICE_S
        for module, name in self._waiting:
            getattr(module, name)
            if time.perf_counter() > end:
                return
        self._timer.stop()
        self.made.emit()
