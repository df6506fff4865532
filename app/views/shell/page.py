"""`Page`: what holds a panel, in a dock or in the centre: scrolled where it needs more room, and entered by key."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from ..focus import first_to_focus, takes_focus
from ..plots.label import PlainLabel

_LEAST = QSize(200, 120)
_LOADING = "Loading…"


class Page(QScrollArea):
    """Never wider because of what it holds."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setMinimumSize(_LEAST)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.say(_LOADING)

    def say(self, text: str) -> None:
        """Words in place of a panel."""
        label = PlainLabel(text)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.hold(label)

    def hold(self, widget: QWidget) -> None:
        """Show this one. The one before is taken out first: PySide invalidates the new one's children otherwise."""
        old = self.takeWidget()
        self.setWidget(widget)
        if old is not None:
            old.deleteLater()

    @property
    def needed_width(self) -> int:
        """In pixels, so that nothing is scrolled from side to side."""
        panel = self.widget()
        return 0 if panel is None else max(panel.minimumSizeHint().width(), panel.minimumWidth())

    def focus_inside(self) -> None:
        """Give the focus to where it was in here, else to the first widget that takes it."""
        last = self.focusWidget()
        inside = last if last is not None and takes_focus(last) else first_to_focus(self)
        (inside or self).setFocus(Qt.FocusReason.ShortcutFocusReason)
        if inside is not None:
            self.ensureWidgetVisible(inside)
