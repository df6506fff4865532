"""`ResultBar`: whose results the window shows and, beside it, how far whatever runs is; over every view."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QToolBar, QWidget

from ..queue.queue_model import waiting_in_words
from ..shared.bridge import Activity, EngineBridge
from ..shared.current_result import CurrentResult
from ..shared.label import ElidedLabel, PlainLabel, plain_tip
from ..shared.widgets import ProgressBar, button, hbox

_NONE = "No result yet: start a session in Tune, or open one in Library"
_BAR_PX, _TITLE_PX = 180, 240
_STOP_TIP = "End it; what was measured stays, and a session can be resumed later"


class ResultBar(QToolBar):
    """The left names the current result, which a roofline or a clock sweep leaves as it is; the right what runs now."""

    def __init__(
        self,
        result: CurrentResult,
        bridge: EngineBridge,
        show_queue: Callable[[], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Result and progress", parent)
        activity = bridge.activity
        self._result, self._activity, self._queue = result, activity, bridge.queue
        self.setObjectName("result_bar")
        self.setMovable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.toggleViewAction().setVisible(False)  # it is always there
        self.caption = ElidedLabel()
        bold = self.caption.font()
        bold.setBold(True)
        self.caption.setFont(bold)
        self.caption.setAccessibleName("The result that is shown")
        self.what, self.left = PlainLabel(), PlainLabel(muted=True)
        self.bar = ProgressBar()
        self.bar.setAccessibleName("How far what runs is")
        self.bar.setFixedWidth(_BAR_PX)
        self.pause = button("Pause", clicked=activity.pause_or_resume)
        self.stop = button("Stop", _STOP_TIP, activity.stop)
        self.pause.setMinimumWidth(self.pause.fontMetrics().horizontalAdvance("Resume") + 36)  # Stop keeps its place
        shown = QWidget()
        self._running = (self.what, self.bar, self.left, self.pause, self.stop)
        self.waiting = button("", "", show_queue)  # how many runs wait
        self.waiting.setFlat(True)
        row = hbox((self.caption, 1), *self._running, self.waiting, of=shown)
        row.setContentsMargins(8, 2, 6, 2)
        self.addWidget(shown)
        policy = self.stop.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the bar is as high while nothing runs
        self.stop.setSizePolicy(policy)
        result.replaced.connect(self._show_result)
        activity.changed.connect(self._show_activity)
        bridge.queue_changed.connect(self._show_queue)
        self._show_result()
        self._show_queue()
        self._show_activity()

    @Slot()
    def _show_result(self) -> None:
        caption = self._result.caption
        self.caption.setText(f"Result: {caption}" if caption else _NONE, self._result.caveats)

    @Slot()
    def _show_queue(self) -> None:
        """Only the count where it is as long as a sentence; the tip has all of it."""
        words = waiting_in_words(self._queue)
        self.waiting.setText(words.partition(": ")[0])
        self.waiting.setToolTip(plain_tip(f"{words}. Show the queue"))
        self.waiting.setVisible(bool(words))

    @Slot()
    def _show_activity(self) -> None:
        activity = self._activity
        for each in self._running:
            each.setVisible(activity.busy)
        done, total = activity.share
        title = activity.title
        self.what.setText(self.fontMetrics().elidedText(title, Qt.TextElideMode.ElideMiddle, _TITLE_PX))
        self.what.setToolTip(plain_tip(title))
        self.left.setText(activity.left)
        self.bar.setRange(0, total)
        self.bar.setValue(min(done, total))
        self.bar.setFormat("%p %")
        counted = f"{done} of {total}" if total else ""
        self.bar.setToolTip(counted if activity.preparing is None else plain_tip(activity.preparing.what))
        self.pause.setText("Resume" if activity.paused else "Pause")
        self.pause.setEnabled(activity.can_pause)
        self.pause.setToolTip(_pause_tip(activity))
        self.stop.setEnabled(activity.busy and not activity.stopping)


def _pause_tip(activity: Activity) -> str:
    if activity.fit is not None or activity.profiling is not None:
        return "Sweeps, fits and profiling cannot be paused; they can be stopped"
    return "Continue it" if activity.paused else "Pause it after the present measurement"
