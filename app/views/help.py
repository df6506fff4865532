"""`HelpWindow`: every shortcut and what the mouse does, made from the list of actions."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from PySide6.QtWidgets import QDialog, QTextBrowser, QVBoxLayout, QWidget

from app.views.actions import shortcut_table
from app.views.window_actions import ACTIONS, MOUSE_HELP


class HelpWindow(QDialog):
    """Stays beside the main window; nothing waits for it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys and mouse")
        self.setModal(False)
        groups = {**shortcut_table(ACTIONS), "On the traces": MOUSE_HELP, "Front": _FRONT, "Plots": _PLOTS}
        self.text = QTextBrowser()
        self.text.setAccessibleName("Every shortcut")
        self.text.setHtml("".join(_section(title, lines) for title, lines in groups.items()))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text)
        self.resize(620, 640)


_FRONT = (
    ("Drag", "Mark the measurements in a rectangle; with Ctrl besides those marked already"),
    ("Right or Shift drag", "Move the picture"),
    ("Left, Right, Home, End", "Walk along the Pareto front"),
    ("Esc", "Unmark"),
    ("Click on a value", "Hide its measurements or show them again, in the histograms; by key: arrows and Space"),
    ("Right click on a value", "Mark its measurements; by key: Return"),
    ("Shift with Up or Down in the table", "Mark several rows"),
)
_PLOTS = (
    ("Drag, wheel", "Move and zoom"),
    ("Double click", "Show everything again"),
    ("Right click", "Copy or save what is shown: PNG, SVG, CSV"),
)


def _section(title: str, lines: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><td style='padding:1px 18px 1px 8px'><b>{escape(keys)}</b></td><td>{escape(does)}</td></tr>"
        for keys, does in lines
    )
    return f"<h4 style='margin-bottom:2px'>{escape(title)}</h4><table>{rows}</table>"
