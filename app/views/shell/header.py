"""`Header`: over everything: which board is shown and what it does now, whether it may be set, and every action."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSizePolicy, QToolBar, QToolButton, QWidget

from ...sensors.channel import CHANNELS
from ..boards.board_row import Spark
from ..control.switch import ControlSwitch
from ..plots import theme
from ..plots.figures import value_text
from ..plots.label import PlainLabel
from ..plots.toggle import look_pressed
from ..shown_reading import beat, shown_reading
from ..threads.bridge import EngineBridge
from ..watched_board import WatchedBoard
from ..watched_boards import WatchedBoards
from ..widgets import hbox
from .badge import Badge

_FIGURES = {"": "8888.8 W", "graphics_clock_mhz": "8888 MHz", "temperature_c": "888 °C"}  # '': the finest power
_SPARK = (60, 220, 26)  # least and most width, height


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
            *self.figures.values(),
            (self.spark, 1),
            1,
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
        trace = self._boards.current.trace
        now = shown_reading(trace).values
        if not now:
            return
        for name, label in self.figures.items():
            unit = CHANNELS[name].unit if name else "W"
            label.setText(value_text(name or trace.power_name, unit, now.get(name or trace.power_name, math.nan)))
        self.spark.refresh()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        self.spark.show_board(board)
        self.control_switch.show_board(board)
        self._show_switch()
        self.refresh()

    def _show_switch(self) -> None:
        self.control_switch.setVisible(self._boards.current.gpu.info.source != "recorded")
