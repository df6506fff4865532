"""`Badge`: which board is shown, chosen among those that are watched, and that it is simulated or recorded."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QWidget

from ...sensors.simulated.twin import not_shown
from ..plots import theme
from ..plots.label import PlainLabel, plain_tip
from ..watched_boards import WatchedBoards, speed_words
from ..widgets import hbox

_STATES = {"nvml": "LIVE", "amd": "LIVE", "simulated": "SIMULATED", "recorded": "RECORDED", "unmetered": "TIME ONLY"}
_TIPS = {
    "simulated": "No board answers these readings: a model of one does, with its sensor's refresh, averaging and noise",
    "unmetered": "Kernels run and are timed on this device; it reports neither power nor energy",
    "recorded": "These readings were taken from a real board at another time, and are replayed in a loop",
}


class Chooser(QComboBox):
    """A turn of the wheel over the toolbar chooses nothing."""

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
        self._recolour()
        theme.notifier().changed.connect(self._recolour)

    @Slot(int)
    def _chosen(self, at: int) -> None:
        self._boards.show(self.chooser.itemData(at))

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
        at = self._boards.all.index(self._boards.current)
        self.chooser.setCurrentIndex(at)
        self.chooser.setToolTip(self.chooser.itemData(at, Qt.ItemDataRole.ToolTipRole))

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#badge {{ background: {c.badge}; color: {c.badge_text}; border-radius: 3px; padding: 1px 6px;"
            " font-weight: 600; }"
        )
