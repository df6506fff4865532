"""`show_focus`: a frame in the accent's colour around what has the focus, once it was moved by a key.

The style's own mark is a line of the highlight's colour, mixed with what is below it: hardly seen, or none at all.
"""

from __future__ import annotations

from typing import Any

import shiboken6
from PySide6.QtCore import QObject, QRectF, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QFocusFrame, QProxyStyle, QStyle, QWidget

from . import theme
from .pasting import limit_line

_LINE_PX = 2


class _Above(QProxyStyle):
    """Of the ring alone: Qt's hooks for where it lies."""

    def styleHint(self, hint: QStyle.StyleHint, option: Any = None, widget: Any = None, returned: Any = None) -> int:
        """Above its widget, and in what scrolls with that: under it, only what is beside it could be seen."""
        if hint == QStyle.StyleHint.SH_FocusFrame_AboveWidget:
            return 1
        if hint == QStyle.StyleHint.SH_FocusFrame_Mask:
            return 0  # the usual one leaves only what is beside the widget
        return super().styleHint(hint, option, widget, returned)

    def pixelMetric(self, metric: QStyle.PixelMetric, option: Any = None, widget: Any = None) -> int:
        """Half of the line is beside the widget: where that ends with its page, the other half is seen."""
        if metric in (QStyle.PixelMetric.PM_FocusFrameHMargin, QStyle.PixelMetric.PM_FocusFrameVMargin):
            return _LINE_PX // 2
        return super().pixelMetric(metric, option, widget)


class FocusRing(QFocusFrame):
    """Lies in the window of its widget, follows that, and goes with the window."""

    def __init__(self) -> None:
        super().__init__()
        self._above = _Above()  # else it goes: a widget does not own its style
        self.setStyle(self._above)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, _event: QPaintEvent) -> None:
        half = _LINE_PX / 2
        painter = QPainter(self)
        painter.setPen(QPen(QColor(theme.colours().accent), _LINE_PX))
        painter.drawRect(QRectF(self.rect()).adjusted(half, half, -half, -half))


class _Follower(QObject):
    """Of the focus. The one ring is made again when it went with a window."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._ring: FocusRing | None = None
        application.focusChanged.connect(self._move)

    @Slot(QWidget, QWidget)
    def _move(self, _before: QWidget | None, now: QWidget | None) -> None:
        limit_line(now)
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
