"""`AboutWindow`: versions, the board's facts, where the log lies, and all of it to be copied."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QTextBrowser, QVBoxLayout, QWidget

from ...sensors.gpu import Gpu
from .diagnostics import board_facts, copy_diagnostics, versions
from .log import open_log_folder


class AboutWindow(QDialog):
    """Stays beside the main window."""

    def __init__(self, gpu: Gpu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gpu = gpu
        self.setWindowTitle("About")
        self.setModal(False)
        self.text = QTextBrowser()
        self.text.setAccessibleName("About this program and this board")
        self.text.setHtml(
            "<h3>Wattridge</h3><p>Shows what a GPU draws while it works, and finds where it does the most work per "
            "joule. Apache-2.0.</p>" + _table(board_facts(gpu)) + "<hr>" + _table(versions())
        )
        self.copy, self.folder, self.close_it = (
            QPushButton("&Copy diagnostics"),
            QPushButton("&Log folder"),
            QPushButton("Close"),
        )
        self.copy.setToolTip("All of this, the sensors' channels and the end of the log; no UUID and no serial number")
        self.folder.setToolTip("Open the folder in which the log lies")
        self.copy.clicked.connect(self.copy_diagnostics)
        self.folder.clicked.connect(open_log_folder)
        self.close_it.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addWidget(self.folder)
        buttons.addStretch(1)
        buttons.addWidget(self.close_it)
        layout = QVBoxLayout(self)
        layout.addWidget(self.text)
        layout.addLayout(buttons)
        self.resize(520, 520)

    @Slot()
    def copy_diagnostics(self) -> None:
        """Put the diagnostics on the clipboard."""
        copy_diagnostics(self._gpu)
        self.copy.setText("Copied")


def _table(facts: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><td style='padding-right:14px'>{escape(what)}</td><td>{escape(value)}</td></tr>" for what, value in facts
    )
    return f"<table>{rows}</table>"
