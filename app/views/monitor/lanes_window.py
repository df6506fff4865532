"""`LanesWindow`: choose, order and scale the lanes of the traces."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QGroupBox,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from ..number_boxes import NumberBox
from ..plots.label import PlainLabel
from ..widgets import button, hbox, vbox
from .lane_choice import LaneChoice, Range
from .lanes import ShownLane

_MOST = 1e6


class LanesWindow(QDialog):
    """Everything takes effect at once. Stays beside the main window."""

    chosen = Signal(object)  # LaneChoice

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choice = LaneChoice()
        self._lanes: dict[str, ShownLane] = {}
        self._ranges: dict[str, Range] = {}
        self.setWindowTitle("Traces shown")
        self.setModal(False)
        self.resize(420, 440)
        self.list = QListWidget()
        self.list.setAccessibleName("Traces")
        self.list.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.up = button("Move &up", clicked=lambda: self._move(-1))
        self.down = button("Move &down", clicked=lambda: self._move(1))
        self.reset = button("&Reset", "Traces, order and scales as at the first start", self._reset)
        self.fixed = QCheckBox("&Fixed scale")
        self.low, self.high = (self._end(name) for name in ("Lower end", "Upper end"))
        scale = QGroupBox("Scale of the selected traces")
        vbox(self.fixed, hbox(PlainLabel("from"), (self.low, 1), PlainLabel("to"), (self.high, 1)), of=scale)
        close = button("Close", clicked=self.close)
        for each in (self.up, self.down, self.reset, close):
            each.setAutoDefault(False)  # Return in a field must not press one
        note = PlainLabel("Drag, or use the buttons, to change the order.", muted=True)
        vbox(note, (self.list, 1), hbox(self.up, self.down, 1), scale, hbox(self.reset, 1, close), of=self)
        self.list.itemChanged.connect(self._switched)
        self.list.currentRowChanged.connect(self._show_scale)
        self.list.model().rowsMoved.connect(self._reordered)
        self.fixed.toggled.connect(self._scaled)

    def _end(self, name: str) -> NumberBox:
        field = NumberBox()
        field.setAccessibleName(name)
        field.setDecimals(1)
        field.setRange(-_MOST, _MOST)
        field.valueChanged.connect(self._typed)
        return field

    def show_choice(
        self, choice: LaneChoice, lanes: Sequence[ShownLane], ranges: dict[str, Range], select: str = ""
    ) -> None:
        """Show what is chosen among all lanes; `ranges` are the axes as they are now, by title."""
        self._choice, self._ranges = choice, ranges
        self._lanes = {shown.lane.title: shown for shown in choice.in_order(lanes)}
        blocked = QSignalBlocker(self.list)
        current = select or self._current()
        self.list.clear()
        for title, shown in self._lanes.items():
            item = QListWidgetItem(title if shown.lines else f"{title} ({shown.note})")
            item.setData(Qt.ItemDataRole.UserRole, title)
            item.setFlags(
                Qt.ItemFlag.ItemIsEnabled
                | Qt.ItemFlag.ItemIsSelectable
                | Qt.ItemFlag.ItemIsUserCheckable
                | Qt.ItemFlag.ItemIsDragEnabled
            )
            item.setCheckState(Qt.CheckState.Checked if choice.shows(title) else Qt.CheckState.Unchecked)
            self.list.addItem(item)
        self.list.setCurrentRow(list(self._lanes).index(current) if current in self._lanes else 0)
        blocked.unblock()
        self._show_scale()

    def _current(self) -> str:
        item = self.list.currentItem()
        return str(item.data(Qt.ItemDataRole.UserRole)) if item is not None else ""

    def _titles(self) -> list[str]:
        return [str(self.list.item(row).data(Qt.ItemDataRole.UserRole)) for row in range(self.list.count())]

    def _choose(self, choice: LaneChoice) -> None:
        self._choice = choice
        self.chosen.emit(choice)

    @Slot(QListWidgetItem)
    def _switched(self, item: QListWidgetItem) -> None:
        title = str(item.data(Qt.ItemDataRole.UserRole))
        self._choose(self._choice.switch(title, item.checkState() == Qt.CheckState.Checked))

    def _move(self, step: int) -> None:
        row = self.list.currentRow()
        if 0 <= row + step < self.list.count():
            self.list.insertItem(row + step, self.list.takeItem(row))
            self.list.setCurrentRow(row + step)
            self._reordered()

    @Slot()
    def _reordered(self) -> None:
        self._choose(self._choice.reorder(self._titles()))

    @Slot()
    def _show_scale(self) -> None:
        shown = self._lanes.get(self._current())
        fixed = self._choice.scale(shown.lane) if shown is not None else None
        blocked = [QSignalBlocker(widget) for widget in (self.fixed, self.low, self.high)]
        self.fixed.setChecked(fixed is not None)
        ends = fixed or self._ranges.get(self._current(), (0.0, 100.0))
        for field, end in zip((self.low, self.high), ends, strict=True):
            field.setValue(end)
            field.setSuffix(f" {shown.lane.unit}" if shown is not None and shown.lane.unit else "")
        for blocker in blocked:
            blocker.unblock()

    @Slot()
    def _typed(self) -> None:
        """Typing an end fixes the scale."""
        blocked = QSignalBlocker(self.fixed)
        self.fixed.setChecked(True)
        blocked.unblock()
        self._scaled()

    @Slot()
    def _scaled(self) -> None:
        shown = self._lanes.get(self._current())
        if shown is not None:
            ends = (self.low.value(), self.high.value()) if self.fixed.isChecked() else None
            self._choose(self._choice.fix(shown.lane, ends))

    @Slot()
    def _reset(self) -> None:
        self._choose(LaneChoice())
        self.show_choice(self._choice, list(self._lanes.values()), self._ranges)
