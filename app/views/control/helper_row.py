"""`HelperRow`: offers to install the helper with root's rights where it is missing, changed or of another version."""

from __future__ import annotations

import threading
from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from ...engine.control import installing
from ...engine.control.rights import Asking
from ..plots.label import PlainLabel
from ..threads.tasks import LatestTask


class HelperRow(QWidget):
    """Hidden while nothing needs to be installed. The password is asked for by polkit, after a click only."""

    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = PlainLabel()
        self.text.setWordWrap(True)
        self.button = QPushButton("&Install the helper …")
        self.button.setToolTip("Asks for an administrator's password, once; only root can change the copy")
        self.button.clicked.connect(self.install)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self.text, 1)
        line.addWidget(self.button)
        self._work = LatestTask(self)
        self._work.done.connect(self._done)
        self._work.failed.connect(self._failed)
        self.hide()

    def look(self) -> None:
        """Find out, off Qt's thread, whether there is something to offer."""
        self._work.run(lambda _stop: ("", installing.why_install()))

    def shutdown(self) -> None:
        self._work.shutdown()

    @Slot()
    def install(self) -> None:
        self.button.setEnabled(False)
        self.text.setText("Waiting for the password …")
        self._work.run(_install)

    @Slot(object)
    def _done(self, result: tuple[str, str]) -> None:
        said, why = result
        self.text.setText(said or why)
        self.button.setEnabled(True)
        self.button.setVisible(bool(why))
        self.setVisible(bool(said or why))

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.failed.emit(what, remedy)
        self.look()


def _install(stop: threading.Event) -> tuple[str, Any]:
    report = installing.install(Asking.WINDOW, stop)
    return f"The helper is installed: {report['done'][0]}. Control can be switched on now.", installing.why_install()
