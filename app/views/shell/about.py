"""`AboutWindow`: versions, the board's facts, where the log lies, and all of it to be copied."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtWidgets import QDialog, QTextBrowser, QWidget

from ...sensors.gpu import Gpu
from ..widgets import button, hbox, vbox
from .diagnostics import board_facts, copy_diagnostics, versions
from .log import open_log_folder

LICENCES = "installing.md#licences"  # of the user guide


class AboutWindow(QDialog):
    """Stays beside the main window."""

    page_asked = Signal(str)  # a page of the user guide

    def __init__(self, gpu: Gpu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About")
        self.setModal(False)
        self.text = QTextBrowser()
        self.text.setAccessibleName("About this program and this board")
        self.text.setOpenLinks(False)
        self.text.anchorClicked.connect(self._ask_for_page)
        tip = "All of this, the sensors' channels and the end of the log; no UUID and no serial number"
        self.copy = button("&Copy diagnostics", tip, self.copy_diagnostics)
        folder = button("&Log folder", "Open the folder in which the log lies", open_log_folder)
        vbox(self.text, hbox(self.copy, folder, 1, button("Close", clicked=self.close)), of=self)
        self.resize(520, 520)
        self.show_board(gpu)

    def show_board(self, gpu: Gpu) -> None:
        """Another board is shown."""
        self._gpu = gpu
        self.text.setHtml(
            "<h3>Wattridge</h3><p>Shows what a GPU draws while it works, and finds where it does the most work per "
            "joule. Apache-2.0. Qt and PySide6 are used under the LGPL, version 3, as shared libraries that you may "
            f"replace. <a href='{LICENCES}'>All licences</a></p>"
            + (_table(board_facts(gpu)) + "<hr>" + _table(versions()))
        )

    @Slot()
    def copy_diagnostics(self) -> None:
        """Put the diagnostics on the clipboard."""
        copy_diagnostics(self._gpu)
        self.copy.setText("Copied")

    @Slot(QUrl)
    def _ask_for_page(self, link: QUrl) -> None:
        self.page_asked.emit(link.toString())


def _table(facts: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><td style='padding-right:14px'>{escape(what)}</td><td>{escape(value)}</td></tr>" for what, value in facts
    )
    return f"<table>{rows}</table>"
