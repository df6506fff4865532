"""`Hints`: one line below a view the first time it has something to show, until it is closed; never a second time."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QToolButton, QWidget

from ...engine.session import events
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import hbox
from .host import Host

_HINTS: Final = {
    "front": "Click a point to choose it; Enter chooses the point at the cursor.",
    "sessions": "A double click opens a session; mark two or more to compare them.",
}


class Hint(QFrame):
    """The line, and a button that closes it."""

    def __init__(self, words: str, panel: QWidget) -> None:
        super().__init__(panel)
        self.setObjectName("hint")
        self.setAccessibleName(words)
        self.close_button = QToolButton()
        self.close_button.setText("✕")
        self.close_button.setAutoRaise(True)
        self.close_button.setAccessibleName("Close this hint")
        self.close_button.setToolTip("It does not come again")
        self.close_button.clicked.connect(self.deleteLater)
        hbox((PlainLabel(words, wrap=True), 1), self.close_button, of=self, margins=6)
        theme.style(self, "#hint {{ background: {c.raised}; border-left: 3px solid {c.accent}; }}")


class Hints(QObject):
    """Gives each view its line when it is in sight and has data."""

    def __init__(self, host: Host, window: QWidget) -> None:
        super().__init__(window)
        self._host = host
        self.shown: dict[str, Hint] = {}
        host.workspaces.changed.connect(self.look)
        host.bridge.subscribe(events.MeasurementsAdded | events.SessionStarted, self.look)

    @Slot()
    def look(self, *_: object) -> None:
        """Show what is due."""
        host = self._host
        for name, words in _HINTS.items():
            if name in self.shown or not host.panels.has(name) or not host.panels[name].isVisible():
                continue
            if self._has_data(name) and not host.settings.said(f"hint_{name}"):
                host.settings.note_said(f"hint_{name}")
                self._give(host.panels[name], name, words)

    def _has_data(self, name: str) -> bool:
        if name == "sessions":
            return bool(self._host.panels[name].model.total)
        return bool(self._host.result.table)

    def _give(self, panel: QWidget, name: str, words: str) -> None:
        layout = panel.layout()
        assert layout is not None
        self.shown[name] = hint = Hint(words, panel)
        if isinstance(layout, QGridLayout):
            layout.addWidget(hint, layout.rowCount(), 0, 1, -1)
        else:
            layout.addWidget(hint)
