"""`Header`: over everything: which board is shown and what it does now, whether it may be set, and every action.

`Badge`: which board is shown, chosen among those that are watched, and that it is simulated or recorded.

`BoardMenu`: every board that can be shown, the one that is with a tick; and how fast those run that are not real.

`HeldLabel`: how often the sensors of the shown board are read, and how much its trace holds.

`ResultBar`: whose results the window shows, which of them is chosen and, beside it, how far whatever runs is; over
every view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QSize, Qt, Slot
from PySide6.QtGui import QAction, QActionGroup, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QMenu,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolBar,
    QToolButton,
    QWidget,
)

from ...base.formatting import duration
from ...sensors.channel import CHANNELS
from ...sensors.simulated.twin import not_shown
from ..control.arming import ControlSwitch
from ..plots.figures import value_text
from ..shared import theme
from ..shared.bridge import Activity, EngineBridge
from ..shared.current_result import CurrentResult
from ..shared.label import ElidedLabel, PlainLabel, plain_tip
from ..shared.turns import timer
from ..shared.watched_boards import SPEEDS, WatchedBoard, WatchedBoards, beat, shown_reading, speed_words
from ..shared.widgets import ProgressBar, button, hbox, look_pressed
from ..tune.queue_panel import waiting_in_words
from ..watch.board_row import Spark
from .choice_chip import ChoiceChip

_NONE = "No result yet: start a session in Tune, or open one in Library"
_BAR_PX, _TITLE_PX, _CAPTION_PX = 180, 240, 160
_STOP_TIP = "End it; what was measured stays, and a session can be resumed later"


class ResultBar(QToolBar):
    """The left names the current result, which a roofline or a clock sweep leaves as it is; the right what runs now."""

    def __init__(
        self,
        result: CurrentResult,
        bridge: EngineBridge,
        show_queue: Callable[[], object],
        show_choice: Callable[[], object],
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
        self.caption.setMinimumWidth(_CAPTION_PX)
        # both are cut by the same length where there is no room for all; the chip has half of the bar at most
        self.caption.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.chip = ChoiceChip(result, bridge, show_choice)
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
        row = hbox(self.caption, self.chip, self.chip.undo, 1, *self._running, self.waiting, of=shown)
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.chip.setMaximumWidth(max(self.chip.minimumSizeHint().width(), self.width() // 2))

    @Slot()
    def _show_result(self) -> None:
        caption = self._result.caption
        self.caption.setText(f"Result: {caption}" if caption else _NONE, self._result.caveats)
        self.caption.setAccessibleDescription(f"{caption or _NONE}. {self._result.caveats}".rstrip(". "))

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
        for item in self._running:
            item.setVisible(activity.busy)
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


_STATES = {"nvml": "LIVE", "amd": "LIVE", "simulated": "SIMULATED", "recorded": "RECORDED", "unmetered": "TIME ONLY"}
_TIPS = {
    "simulated": "No board answers these readings: a model of one does, with its sensor's refresh, averaging and noise",
    "unmetered": "Kernels run and are timed on this device; it reports neither power nor energy",
    "recorded": "These readings were taken from a real board at another time, and are replayed in a loop",
}


_LEAST_BOARD = "NVIDIA A100"  # of a name, where there is no more room


class Chooser(QComboBox):
    """A turn of the wheel over the toolbar chooses nothing. The name is cut where it does not fit: the tip has it."""

    def minimumSizeHint(self) -> QSize:
        usual, least = super().minimumSizeHint(), self.fontMetrics().horizontalAdvance(_LEAST_BOARD)
        return usual.boundedTo(QSize(least + 2 * usual.height(), usual.height()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        option, complex_control = QStyleOptionComboBox(), QStyle.ComplexControl.CC_ComboBox
        self.initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(complex_control, option, field, self).width() - 2
        option.currentText = self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideRight, room)
        painter = QStylePainter(self)
        painter.drawComplexControl(complex_control, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Badge(QWidget):
    """Always visible; what is not live is in a coloured field."""

    def __init__(self, boards: WatchedBoards, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._boards = boards
        self.field, self.chooser = PlainLabel(), Chooser()
        self.field.setObjectName("badge")
        self.chooser.setAccessibleName("Board that is shown")
        self.chooser.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.chooser.activated.connect(self._chosen)
        hbox(self.field, self.chooser, of=self).setContentsMargins(6, 0, 10, 0)
        for signal in (boards.added, boards.removed, boards.board_changed, boards.speed_changed):
            signal.connect(self._fill)
        self._fill()
        theme.style(
            self,
            "#badge {{ background: {c.badge}; color: {c.badge_text}; border-radius: 3px; padding: 1px 6px;",
            " font-weight: 600; }}",
        )

    @Slot(int)
    def _chosen(self, index: int) -> None:
        self._boards.show(self.chooser.itemData(index))

    @Slot()
    def _fill(self, *_: object) -> None:
        info, speed = self._boards.current.gpu.info, speed_words(self._boards.current.gpu.clock.speed)
        self.field.setText(f"{_STATES[info.source]} {speed}".rstrip())
        self.field.setToolTip(plain_tip(f"{_TIPS.get(info.source, '')}\n{not_shown(info.uuid)}".strip()))
        self.field.setVisible(not info.live)
        self.chooser.clear()
        for board in self._boards.all:
            each = board.gpu.info
            number = self._boards.name_of(board).removeprefix(each.label)
            state = "" if board is self._boards.current else f" · {_STATES[each.source]}"  # the field says it
            self.chooser.addItem(f"{each.name}{number}{state}", board.uuid)
            tip = f"{each.name}, {_STATES[each.source]}\n{each.power_source}\nDriver: {each.driver or 'none'}"
            self.chooser.setItemData(self.chooser.count() - 1, plain_tip(tip), Qt.ItemDataRole.ToolTipRole)
        index = self._boards.all.index(self._boards.current)
        self.chooser.setCurrentIndex(index)
        self.chooser.setToolTip(self.chooser.itemData(index, Qt.ItemDataRole.ToolTipRole))


_FIGURES = {"": "8888.8 W", "graphics_clock_mhz": "8888 MHz", "temperature_c": "888.8 °C"}  # '': the finest power
_SPARK = (60, 220, 26)  # least and most width, height


class _Readings(QWidget):
    """Side by side, as many as fit, and none in part; there is always room for the first."""

    def __init__(self, *wanted: QWidget) -> None:
        super().__init__()
        self._wanted = wanted
        self._row = hbox(*wanted[:-1], (wanted[-1], 1), 1, of=self, spacing=10, margins=0)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._wanted[0].minimumWidth(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width()
        for each in self._wanted:
            room -= each.minimumWidth()
            each.setVisible(room >= 0)
            room -= self._row.spacing()


class Header(QToolBar):
    """Badge, live figures and a small trace at the left; control, the palette and the Inspector at the right."""

    def __init__(self, boards: WatchedBoards, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__("Board", parent)
        self._boards = boards
        self.setObjectName("header")
        self.setMovable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.toggleViewAction().setVisible(False)  # it is always there
        self.badge = Badge(boards)
        self.figures: dict[str, PlainLabel] = {}
        for name, widest in _FIGURES.items():
            label = self.figures[name] = PlainLabel()
            label.setFont(theme.number_font())
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setMinimumWidth(label.fontMetrics().horizontalAdvance(widest))  # figures that change move nothing
            label.setToolTip(CHANNELS[name].label if name else "Power")
        self.spark = Spark(boards.current)
        self.spark.setMinimumWidth(_SPARK[0])
        self.spark.setMaximumWidth(_SPARK[1])
        self.spark.setFixedHeight(_SPARK[2])
        self.spark.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.control_switch = ControlSwitch(boards.current, bridge)
        self._buttons = hbox(spacing=4)
        shown = QWidget()
        row = hbox(
            self.badge,
            (_Readings(*self.figures.values(), self.spark), 1),
            self.control_switch,
            self._buttons,
            of=shown,
            spacing=10,
        )
        row.setContentsMargins(0, 2, 6, 2)
        self.addWidget(shown)
        beat().struck.connect(self.refresh)
        boards.board_changed.connect(self._board_changed)
        self._show_switch()

    def offer(self, *actions: QAction) -> None:
        """Buttons for these actions, at the right."""
        for action in actions:
            button = QToolButton()
            button.setDefaultAction(action)
            button.setAutoRaise(True)
            if action.isCheckable():
                look_pressed(button)
            self._buttons.addWidget(button)

    @Slot()
    def refresh(self) -> None:
        """Show the values of the present beat."""
        if not self.isVisible() or self.window().isMinimized():
            return
        now = shown_reading(self._boards.current.trace)
        for name, label in self.figures.items():
            unit, value = (CHANNELS[name].unit, now.values.get(name, math.nan)) if name else ("W", now.power_w)
            label.setText(value_text(name or now.power_name, unit, value))
        self.spark.refresh()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        self.spark.show_board(board)
        self.control_switch.show_board(board)
        self._show_switch()
        self.refresh()

    def _show_switch(self) -> None:
        self.control_switch.setVisible(self._boards.current.gpu.info.source != "recorded")


class BoardMenu(QObject):
    """Fills a menu, from which the board that the window shows is chosen."""

    def __init__(self, menu: QMenu, boards: WatchedBoards, offered: Sequence[tuple[str, str]]) -> None:
        """`offered`: selector and label of each."""
        super().__init__(menu)
        self._boards = boards
        self._group = QActionGroup(self)
        for selector, label in offered:
            action = menu.addAction(label)
            action.setData(selector)
            action.setCheckable(True)
            self._group.addAction(action)
        self._group.triggered.connect(self._chosen)
        self.speeds = QMenu("&Speed of simulated boards and recordings", menu)
        beside = menu.parentWidget()
        (beside if isinstance(beside, QMenu) else menu).addMenu(self.speeds)
        self._speeds = QActionGroup(self)
        for speed, text in SPEEDS.items():
            action = self.speeds.addAction(text)
            action.setData(speed)
            action.setCheckable(True)
            self._speeds.addAction(action)
        self._speeds.triggered.connect(self._speed_chosen)
        boards.speed_changed.connect(self._tick)
        boards.board_changed.connect(self._tick)
        boards.failed.connect(self._tick)
        self._tick()

    @Slot(QAction)
    def _chosen(self, action: QAction) -> None:
        self._boards.show(str(action.data()))

    @Slot(QAction)
    def _speed_chosen(self, action: QAction) -> None:
        self._boards.set_speed(action.data())

    @Slot()
    def _tick(self, *_: object) -> None:
        shown = self._boards.current
        for action in self._group.actions():
            action.setChecked(action.data() in (shown.uuid, shown.selector))
        self._speeds.setExclusive(False)  # none is ticked where the command line chose another one
        for action in self._speeds.actions():
            action.setChecked(action.data() == self._boards.speed)
        self._speeds.setExclusive(True)


_TICK_MS = 1000


class HeldLabel(PlainLabel):
    """At the right of the line below the window."""

    def __init__(self, boards: WatchedBoards, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._boards = boards
        boards.board_changed.connect(self._show)
        self._timer = timer(self, self._show, _TICK_MS)
        self._timer.start()
        self._show()

    @Slot()
    def _show(self, *_: object) -> None:
        board = self._boards.current
        held = duration(max(0, board.trace.last_ns - board.trace.first_ns) / 1e9)
        speed = board.gpu.clock.speed
        pace = "" if speed == 1.0 else f"{speed:g} times as fast as real time · "
        self.setText(f"{pace}{1 / board.sampler.interval_s:.0f} readings/s · {held} kept, 24 h at most ")
