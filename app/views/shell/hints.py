"""`Hints`: one line over the lower end of a view the first time it has something to show, until it is closed; once."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtWidgets import QFrame, QToolButton, QWidget

from ...engine.session import events
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import hbox
from .host import Host

_HINTS: Final = {  # panel: which widget of it has the data, words
    "front": ("plot", "Click a point to choose it; Enter chooses the point at the cursor."),
    "sessions": ("table", "A double click opens a session; mark two or more to compare them."),
}
_ABOVE_PX: Final = 56  # the lower end of the view, where a plot has its axis


class Hint(QFrame):
    """The line, and a button that closes it. It takes no room: a plot does not move under the mouse."""

    def __init__(self, words: str, over: QWidget) -> None:
        super().__init__(over)
        self._over = over
        self.setObjectName("hint")
        self.setAccessibleName(words)
        self.close_button = QToolButton()
        self.close_button.setText("✕")
        self.close_button.setAutoRaise(True)
        self.close_button.setAccessibleName("Close this hint")
        self.close_button.setToolTip("It does not come again")
        self.close_button.clicked.connect(self.deleteLater)
        hbox(PlainLabel(words), self.close_button, of=self, margins=4)
        theme.style(self, "#hint {{ background: {c.raised}; border-left: 3px solid {c.accent}; }}")
        over.installEventFilter(self)
        self._place()
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        self.adjustSize()
        over = self._over.rect()
        self.move(max(0, (over.width() - self.width()) // 2), max(0, over.height() - self.height() - _ABOVE_PX))


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
        for name, (over, words) in _HINTS.items():
            if name in self.shown or not host.panels.has(name) or not host.panels[name].isVisible():
                continue
            if self._has_data(name) and not host.settings.said(f"hint_{name}"):
                host.settings.note_said(f"hint_{name}")
                self.shown[name] = Hint(words, getattr(host.panels[name], over))

    def _has_data(self, name: str) -> bool:
        if name == "sessions":
            return bool(self._host.panels[name].model.total)
        return bool(self._host.result.table)
