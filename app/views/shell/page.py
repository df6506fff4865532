"""`Page`: what holds a panel, in a dock or in the centre: scrolled where it needs more room, and entered by key."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from ..focus import first_to_focus, takes_focus
from ..plots.label import PlainLabel

_LEAST = QSize(200, 120)
_LOADING = "Loading…"


class Page(QScrollArea):
    """Never wider because of what it holds, which gets the page's size, and is scrolled only below its least one.

    Qt's own `widgetResizable` scrolls a panel with wrapped labels as soon as it has less than its usual height.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMinimumSize(_LEAST)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._words = _LOADING
        self._label: PlainLabel | None = None  # that shows them

    def say(self, text: str) -> None:
        """Words in place of a panel."""
        self._words = text
        if self._label is not None:
            self._label.setText(text)
        elif self.isVisible():
            self._show_words()

    def _show_words(self) -> None:
        label = PlainLabel(self._words)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.hold(label)
        self._label = label

    def hold(self, widget: QWidget) -> None:
        """Show this one; the one before goes."""
        self._label = None
        self.setWidget(widget)
        widget.show()
        self._fit()

    def _fit(self) -> None:
        panel = self.widget()
        if panel is None:
            return
        room = self.maximumViewportSize()
        needed = _least(panel, room.width())
        if needed.width() > room.width():
            room.setHeight(room.height() - self.horizontalScrollBar().sizeHint().height())
        if needed.height() > room.height():
            room.setWidth(room.width() - self.verticalScrollBar().sizeHint().width())
            needed = _least(panel, room.width())
        panel.resize(room.expandedTo(needed))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.widget() is None:
            self._show_words()
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What the panel needs may have changed, and what in it takes the focus that it has."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self.widget():
            self._fit()
            if self.window().focusWidget() is self:  # a panel shows what is in it once that is known
                self.focus_inside()
        return super().eventFilter(watched, event)

    @property
    def needed_width(self) -> int:
        """In pixels, so that nothing is scrolled from side to side, also once it is scrolled up and down."""
        panel = self.widget()
        return 0 if panel is None else _least(panel, 0).width() + self.verticalScrollBar().sizeHint().width()

    def focus_inside(self) -> None:
        """Give the focus to where it was in here, else to the first widget that takes it, in reading order."""
        last = self.focusWidget()
        inside = last if last is not None and takes_focus(last) else first_to_focus(self)
        (inside or self).setFocus(Qt.FocusReason.ShortcutFocusReason)
        if inside is not None:
            self.ensureWidgetVisible(inside)


def _least(panel: QWidget, width: int) -> QSize:
    """The least size of a panel that has so much width, or more where it needs more."""
    least, layout = panel.minimumSizeHint().expandedTo(panel.minimumSize()), panel.layout()
    if layout is not None and layout.hasHeightForWidth():
        high = layout.minimumHeightForWidth(max(width, least.width()))
        least.setHeight(max(high, panel.minimumHeight()))
    return least
