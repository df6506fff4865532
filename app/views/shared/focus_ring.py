"""`show_focus`: a frame in the accent's colour around what has the focus, once it was moved by a key.

The style's own mark is a line of the highlight's colour, mixed with what is below it: hardly seen, or none at all.
"""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QObject, QPoint, QRectF, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QFocusFrame, QWidget

from . import theme

_LINE_PX = 2.0


class FocusRing(QFocusFrame):
    """Lies in the window of its widget, follows that, and goes with the window."""

    def __init__(self) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Only around the part that is in sight: the rest is scrolled away."""
        widget, around = self.widget(), self.parentWidget()
        if widget is None or around is None:
            return
        seen = widget.visibleRegion().boundingRect()
        place = widget.mapTo(around, QPoint()) - self.pos()
        half = _LINE_PX / 2
        painter = QPainter(self)
        painter.setPen(QPen(QColor(theme.colours().accent), _LINE_PX))
        painter.drawRoundedRect(QRectF(seen.translated(place)).adjusted(-half, -half, half, half), 3, 3)


class _Follower(QObject):
    """The one ring is made again when it went with a window."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._ring: FocusRing | None = None
        application.focusChanged.connect(self._move)

    @Slot(QWidget, QWidget)
    def _move(self, _before: QWidget | None, now: QWidget | None) -> None:
        by_key = now is not None and now.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)
        if self._ring is None or not shiboken6.isValid(self._ring):
            if not by_key:
                return
            self._ring = FocusRing()
        self._ring.setWidget(now if by_key else None)  # type: ignore[arg-type]  # None hides it


def show_focus(application: QApplication) -> None:
    """Show it in all windows from now on."""
    if application.findChild(_Follower) is None:
        _Follower(application)
