"""`Banner`: the notice in sight, with its remedy, at the bottom of the window. Never a box that has to be answered.

`NoticesWindow`: all of them, with the time of each.

`QuitBar`: asks, in the window, whether what runs is to be ended with it, and what waits to be forgotten.
"""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QSizePolicy,
    QStatusBar,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.label import PlainLabel, plain_tip
from ..shared.widgets import button, hbox, vbox
from ..tune.queue_panel import named
from .notices import Notice, Notices, Severity


class QuitBar(QFrame):
    """Shown when the window is closed while something runs or waits.

    `confirmed` follows once nothing runs, if it is to be closed. The queue is not kept: what waits in it is named.
    """

    confirmed = Signal()

    def __init__(self, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._activity, self._queue = bridge.activity, bridge.queue
        self._quitting = False
        self.setObjectName("quit")
        self.text = PlainLabel(wrap=True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.keep = button("&Keep running", "The window stays open", self._keep)
        self.end = button("&Stop and quit", "What was measured stays, and a session can be resumed later", self._end)
        row = hbox((self.text, 1), self.keep, self.end, of=self)
        row.setContentsMargins(10, 4, 6, 4)
        self._activity.changed.connect(self._follow)
        bridge.queue_changed.connect(self._follow)
        theme.style(
            self,
            "#quit {{ background: {c.warning}; border-bottom: 1px solid {c.border}; }}",
            "#quit QLabel {{ color: {c.warning_text}; background: transparent; }}",
        )
        self.hide()

    def ask(self) -> bool:
        """Ask, where something runs or waits; whether there is an answer to wait for.

        Asked again while what runs is being stopped, the window need not wait any longer.
        """
        if self._quitting or not (self._activity.busy or self._queue.waiting):
            return False
        self._say()
        for widget in (self.keep, self.end):
            widget.setEnabled(True)
        self.show()
        self.keep.setFocus()
        return True

    def _say(self) -> None:
        waiting = named(self._queue) if self._queue.waiting else ""
        if self._activity.busy:
            forgotten = f", and forget {waiting}" if waiting else ""
            self.text.setText(f"{self._activity.title} is still running. Stop it{forgotten} and quit?")
        else:
            self.text.setText(f"The queue is not kept. Forget {waiting} and quit?")
        self.keep.setText("&Keep running" if self._activity.busy else "&Keep open")
        self.end.setText("&Stop and quit" if self._activity.busy else "&Forget and quit")

    @Slot()
    def _keep(self) -> None:
        self.hide()

    @Slot()
    def _end(self) -> None:
        self._quitting = True
        self._queue.pause()  # nothing follows what is stopped
        self.text.setText(f"{self._activity.title} is being stopped. Close the window again to quit without waiting.")
        for widget in (self.keep, self.end):
            widget.setEnabled(False)
        self._activity.stop()
        self._follow()

    @Slot()
    def _follow(self) -> None:
        if self.isHidden():
            return
        if self._quitting:
            if not self._activity.busy:
                self.hide()
                self.confirmed.emit()
        elif self._activity.busy or self._queue.waiting:
            self._say()
        else:
            self.hide()


class Banner(QFrame):
    """It lies over the line below the window, left of what stays there: nothing moves when it comes and goes.

    One that needs several lines reaches up from there. While that line says what an entry of a menu does, that is seen.
    """

    def __init__(self, notices: Notices, line: QStatusBar, stays: QWidget) -> None:
        super().__init__(line.window())
        self._notices, self._line, self._stays = notices, line, stays
        self._shown: Notice | None = None
        self.setAccessibleName("Message")
        self.setObjectName("banner")
        self._text = PlainLabel(wrap=True, selectable=True)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.offered = button("", clicked=self._accept)
        self.offered.hide()
        self.close_button = QToolButton()
        self.close_button.setText("Dismiss")
        self.close_button.setAutoRaise(True)
        self.close_button.clicked.connect(notices.dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 1, 6, 1)
        layout.addWidget(self._text, 1)
        layout.addWidget(self.offered, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        theme.style(
            self,
            "#banner {{ background: {c.warning}; border: 1px solid {c.border}; }}",
            "#banner QLabel, #banner QToolButton {{ color: {c.warning_text}; background: transparent; }}",
            "#banner[news=true] {{ background: {c.raised}; }}",
            "#banner[news=true] QLabel, #banner[news=true] QToolButton {{ color: {c.text}; }}",
        )
        line.setMinimumHeight(max(self.close_button.sizeHint().height(), self.offered.sizeHint().height()) + 4)
        for item in (line, stays, line.window()):
            item.installEventFilter(self)
        line.messageChanged.connect(self._line_says)
        notices.changed.connect(self._show)
        self.hide()

    @property
    def text(self) -> str:
        """What is shown; empty when nothing is."""
        return "" if self._shown is None else self._text.text()

    @Slot()
    def _accept(self) -> None:
        if self._shown is not None:
            self._notices.accept(self._shown)

    @Slot()
    def _show(self) -> None:
        notice, before = self._notices.current, self._shown
        self._shown = notice
        if notice is not None:
            others = len(self._notices.open) - 1
            self._text.setText(notice.words + (f"  (+{others} more)" if others else ""))
            self.offered.setText(notice.button)
            self.setProperty("news", notice.severity is Severity.NEWS)
            self.style().polish(self)
        self.offered.setVisible(notice is not None and bool(notice.button))
        self._line.clearMessage()
        self._line_says("")
        if notice is not None and notice is not before:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._text, self._text.text()))

    @Slot(str)
    def _line_says(self, words: str) -> None:
        self.setVisible(self._shown is not None and not words)
        self._place()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Follow the line that it lies over."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._place()
        return False

    def _place(self) -> None:
        width = self._stays.x() - 6
        height = max(self._line.height(), self.heightForWidth(width))
        self.setGeometry(self._line.x(), self._line.y() + self._line.height() - height, width, height)
        self.raise_()


class NoticesWindow(QDialog):
    """Newest first: when, what and the remedy, and whether it is over. Stays beside the main window."""

    def __init__(self, notices: Notices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._notices = notices
        self.setWindowTitle("Notices")
        self.resize(820, 360)
        self.list = QTreeWidget()
        self.list.setAccessibleName("Notices, the newest first")
        self.list.setHeaderLabels(("Since", "Notice", "Until"))
        self.list.setRootIsDecorated(False)
        self.list.setWordWrap(True)
        self.list.header().setStretchLastSection(False)
        for column, mode in enumerate(("ResizeToContents", "Stretch", "ResizeToContents")):
            self.list.header().setSectionResizeMode(column, QHeaderView.ResizeMode[mode])
        vbox(self.list, of=self)
        notices.changed.connect(self._fill)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill()

    @Slot()
    def _fill(self) -> None:
        if not self.isVisible():
            return
        self.list.clear()
        for notice in reversed(self._notices.all):
            until = "" if notice.ended_s is None else _time(notice.ended_s)
            item = QTreeWidgetItem([_time(notice.since_s), notice.words, until or "now"])
            item.setToolTip(1, plain_tip(notice.words))
            item.setDisabled(bool(until))
            self.list.addTopLevelItem(item)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S}"
