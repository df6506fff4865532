"""Where the keyboard's focus goes when a part of the window is gone to.

Nothing here, or elsewhere, asks Qt for `nextInFocusChain` or `previousInFocusChain`: PySide takes the widget that these
return for the Python child of the one they were asked of. When that one goes, the other's menus and actions, and those
of everything in it, are taken for deleted too, although Qt has deleted none of them.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QDockWidget, QWidget

_LINE_PX = 12  # widgets whose upper edges are as near to each other stand in one line


def takes_focus(widget: QWidget) -> bool:
    """Whether the Tab key reaches a widget now."""
    return widget.isVisible() and widget.isEnabled() and bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def lies_behind(widget: QWidget) -> bool:
    """Whether it is in a dock that another one hides: Qt keeps such a dock visible, beside the window."""
    around: QWidget | None = widget
    while around is not None and not around.isWindow():
        if isinstance(around, QDockWidget):
            return around.visibleRegion().isEmpty()
        around = around.parentWidget()
    return False


def first_to_focus(inside: QWidget) -> QWidget | None:
    """The first widget in reading order that the Tab key reaches; None where there is none."""
    reached = [each for each in inside.findChildren(QWidget) if takes_focus(each) and inside.isAncestorOf(each)]
    places = {widget: widget.mapTo(inside, QPoint()) for widget in reached}
    top = min((place.y() for place in places.values()), default=0)
    first_line = [widget for widget, place in places.items() if place.y() < top + _LINE_PX]
    return min(first_line, key=lambda widget: places[widget].x(), default=None)
