"""`Banner`: what went wrong, with the remedy, at the bottom of the window. Never a box that has to be answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, SignalInstance, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QStatusBar, QToolButton, QWidget

from ...engine.session.events import EngineFault
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import button
from .log import LOG

_KEPT = 20
_SEEN_MS = 15_000  # what needs no action goes once the window has been in use for so long


class Banner(QFrame):
    """Shows the newest message; closing it shows the one before. A message that is there already only moves up.

    One stays until it is closed or its cause is gone (`withdraw`); one that only informs goes by itself (`inform`).

    It lies over the line below the window, left of what stays there: nothing moves when it comes and goes. One that
    needs several lines reaches up from there. What that line says meanwhile is seen for as long as it says so.
    """

    def __init__(self, line: QStatusBar, stays: QWidget) -> None:
        super().__init__(line.window())
        self._messages: list[tuple[str, str]] = []
        self._line, self._stays = line, stays
        self._informing: set[tuple[str, str]] = set()
        self._seen = QTimer(self, interval=_SEEN_MS, singleShot=True)
        self._seen.timeout.connect(self._let_go)
        self.setAccessibleName("Message")
        self.setObjectName("banner")
        self._text = PlainLabel(wrap=True, selectable=True)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._offers: dict[tuple[str, str], tuple[str, Callable[[], None]]] = {}
        self.offered = button("", clicked=self._accept_offer)
        self.offered.hide()
        self.close_button = QToolButton()
        self.close_button.setText("Dismiss")
        self.close_button.setAutoRaise(True)
        self.close_button.clicked.connect(self.dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 1, 6, 1)
        layout.addWidget(self._text, 1)
        layout.addWidget(self.offered, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        theme.style(
            self,
            "#banner {{ background: {c.warning}; border: 1px solid {c.border}; }}",
            "#banner QLabel, #banner QToolButton {{ color: {c.warning_text}; background: transparent; }}",
        )
        line.setMinimumHeight(max(self.close_button.sizeHint().height(), self.offered.sizeHint().height()) + 4)
        for each in (line, stays, line.window()):
            each.installEventFilter(self)
        line.messageChanged.connect(self._line_says)
        self.hide()

    @property
    def text(self) -> str:
        """What is shown; empty when nothing is."""
        return self._text.text() if self._messages else ""

    @Slot(object)
    def show_fault(self, fault: EngineFault) -> None:
        """Show a fault of the engine or of a view."""
        self.show_message(fault.what, fault.remedy)

    def show_message(self, what: str, remedy: str = "") -> None:
        """Show one line: what happened, and the remedy. It is written to the log too."""
        LOG.warning("%s%s", what, f" · {remedy}" if remedy else "")
        if (what, remedy) in self._messages:
            self._messages.remove((what, remedy))
        self._messages = [*self._messages, (what, remedy)][-_KEPT:]
        self._show()

    def offer(self, what: str, label: str, do: Callable[[], None]) -> None:
        """Show one line with a button that does something about it, once."""
        self._offers[what, ""] = (label, do)
        self.show_message(what)

    @Slot(str)
    def inform(self, what: str) -> None:
        """Show one line that needs no action: it goes once the user has had the time to read it."""
        self.show_message(what)
        self._informing.add((what, ""))
        self._wait_until_seen()

    def withdraw(self, what: str, remedy: str = "") -> None:
        """The cause of a message is gone, wherever it is among them."""
        if (what, remedy) in self._messages:
            self._messages.remove((what, remedy))
            self._show()
        self._offers.pop((what, remedy), None)

    def withdraw_on(self, signal: SignalInstance, is_over: Callable[[Any], bool], what: str) -> None:
        """Withdraw a message with the first signal of which that is true."""
        _Withdrawal(self, signal, is_over, what)

    def _wait_until_seen(self) -> None:
        if self._informing and self.window().isActiveWindow():
            self._seen.start()

    @Slot()
    def _let_go(self) -> None:
        for what, remedy in self._informing:
            self.withdraw(what, remedy)
        self._informing.clear()

    @Slot()
    def _accept_offer(self) -> None:
        _, do = self._offers[self._messages[-1]]
        self.dismiss()
        do()

    @Slot()
    def dismiss(self) -> None:
        """Close the newest message."""
        if self._messages:
            self.withdraw(*self._messages[-1])

    def _show(self) -> None:
        if self._messages:
            what, remedy = self._messages[-1]
            more = f"  (+{len(self._messages) - 1} more)" if len(self._messages) > 1 else ""
            self._text.setText((f"{what} · {remedy}" if remedy else what) + more)
        offer = self._offers.get(self._messages[-1]) if self._messages else None
        self.offered.setText("" if offer is None else offer[0])
        self.offered.setVisible(offer is not None)
        self._line.clearMessage()
        self._line_says("")
        if self._messages:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._text, self._text.text()))

    @Slot(str)
    def _line_says(self, words: str) -> None:
        self.setVisible(bool(self._messages) and not words)
        self._place()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Follow the line that it lies over."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._place()
        elif event.type() == QEvent.Type.WindowActivate:
            self._wait_until_seen()
        return False

    def _place(self) -> None:
        width = self._stays.x() - 6
        height = max(self._line.height(), self.heightForWidth(width))
        self.setGeometry(self._line.x(), self._line.y() + self._line.height() - height, width, height)
        self.raise_()


class _Withdrawal(QObject):
    """Withdraws a message once. A function that a signal holds would keep the banner, and its window, for ever."""

    def __init__(self, banner: Banner, signal: SignalInstance, is_over: Callable[[Any], bool], what: str) -> None:
        super().__init__(banner)
        self._banner, self._is_over, self._what = banner, is_over, what
        signal.connect(self._hear)

    @Slot(object)
    def _hear(self, sent: object) -> None:
        if self._is_over(sent):
            self._banner.withdraw(self._what)
            self.deleteLater()
