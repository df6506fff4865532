"""`Banner`: what went wrong, with the remedy, at the bottom of the window. Never a box that has to be answered.

What a program that ended badly left behind, offered once at the start: a cut-off session, settings of a board.

`QuitBar`: asks, in the window, whether what runs is to be ended with it, and what waits to be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal, SignalInstance, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QStatusBar, QToolButton, QWidget

from ...engine.results.state import Purpose, SessionState
from ...engine.session.events import Apply, EngineFault, SessionStarted, SettingApplied
from ...sensors.gpu import Gpu
from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.captions import measured_words
from ..shared.label import PlainLabel
from ..shared.settings import Settings
from ..shared.turns import timer
from ..shared.widgets import button, hbox
from ..tune.queue_panel import named
from .log import LOG

if TYPE_CHECKING:
    from ...engine.control.left_over import LeftOver
    from ...engine.store.record import SessionRecord
    from ..shared.bridge import EngineBridge


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


_RECOVERY = "recovery"


def offer_left_over(banner: Banner, left_over: LeftOver | None, gpu: Gpu, bridge: EngineBridge) -> None:
    """Offer to restore, in one click, what a crash left set, until that is done wherever."""
    if left_over is None or not left_over.unfinished:
        return
    uuid, unknown = gpu.info.uuid, bool(left_over.unreadable)
    if unknown:
        what = f"{gpu.info.label} may still be set, and its settings before are not known: {left_over.unreadable}."
    else:
        differences = "; ".join(left_over.differences(gpu)) or "it looks as before"
        what = f"A session that ended badly left {gpu.info.label} set ({differences})."
    label = "Unlock, default limit" if unknown else "Put back"
    banner.offer(what, label, lambda: bridge.submit(Apply(uuid, reset=True, defaults=unknown)))
    banner.withdraw_on(bridge.signal(SettingApplied), lambda event: event.board == uuid and not event.prior, what)


def offer_recovery(
    banner: Banner,
    records: Sequence[SessionRecord],
    board: str,
    settings: Settings,
    open_session: Callable[[int], None],
    resume_session: Callable[[int], None],
    bridge: EngineBridge,
) -> None:
    """Offer, once, the newest session that was running when its program ended; `board` is the label of the window's.

    What is shown or continued otherwise is offered no more.
    """
    cut_off = next((record for record in records if record.state is SessionState.INTERRUPTED), None)
    if cut_off is None:
        return
    mark = f"{cut_off.id} {cut_off.evaluated}"
    if settings.said(_RECOVERY) == mark:
        return
    settings.note_said(_RECOVERY, mark)
    what = (
        f"Session {cut_off.id}, {cut_off.shown_name}, was running when the program ended: "
        f"{measured_words(cut_off.evaluated, cut_off.budget, cut_off.timed)}, nothing of it is lost."
    )
    here = cut_off.purpose is Purpose.REPLAY or cut_off.board == board
    resumed = here and cut_off.purpose is not Purpose.ROOFLINE
    if not here and cut_off.purpose is not Purpose.ROOFLINE:
        what += f" It was measured on {cut_off.board}."
    label, do = ("Resume", resume_session) if resumed else ("Open", open_session)
    banner.offer(what, label, lambda: do(cut_off.id))
    for roofline in (False, True):
        started = bridge.signal(SessionStarted, roofline=roofline)
        banner.withdraw_on(started, lambda event: event.session == cut_off.id, what)


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
        self._seen = timer(self, self._let_go, _SEEN_MS, once=True)
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
        for item in (line, stays, line.window()):
            item.installEventFilter(self)
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
        """Remove a message whose cause no longer exists."""
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
