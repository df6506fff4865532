"""`LanesMenu`: in the menu of the traces: hide, move and scale the lane there, show others; kept in the settings.

`LanesWindow`: choose, order and scale the lanes of the traces.

`TraceMenu`: the menu of the traces: which are shown, copy and export them, and what else can be done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QPoint, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QGroupBox,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QWidget,
)

from ..shared.file_dialogs import save_file
from ..shared.label import PlainLabel
from ..shared.settings import Settings
from ..shared.widgets import NumberBox, button, hbox, vbox
from .lane_view import LaneView
from .lanes import LaneChoice, Range, ShownLane

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


class LanesMenu(QObject):
    """Keeps the choice of a view's lanes."""

    def __init__(self, view: LaneView) -> None:
        super().__init__(view)
        self._view = view
        self._settings = Settings()
        self.window: LanesWindow | None = None
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """Show what is kept: the settings may be as at the first start again."""
        self._view.set_choice(LaneChoice.of(self._settings.lanes))

    @Slot(object)
    def choose(self, choice: LaneChoice) -> None:
        """Show these lanes, and keep that."""
        self._settings.lanes = choice.text()
        self._view.set_choice(choice)

    def _pick(self, choice: LaneChoice) -> None:
        """Chosen in the menu: the window, where it is open, shows it as well."""
        self.choose(choice)
        if self.window is not None:
            self.window.show_choice(choice, self._view.every_lane, self._view.ranges)

    def fill(self, menu: QMenu, title: str) -> None:
        """Append what can be done with the lane of that title, if it is one, and which lanes are shown."""
        choice, view = self._view.choice, self._view
        lanes = choice.in_order(view.every_lane)
        titles = [shown.lane.title for shown in lanes]
        if title:
            visible = [shown.lane.title for shown in view.lanes]
            row = visible.index(title)
            menu.addAction(f"&Hide {title}", partial(self._pick, choice.switch(title, False)))
            for words, step in (("Move &up", -1), ("Move &down", 1)):
                other = visible[row + step] if 0 <= row + step < len(visible) else ""
                moved = _swapped(titles, title, other)
                menu.addAction(words, partial(self._pick, choice.reorder(moved))).setEnabled(bool(other))
            menu.addAction("&Scale…", lambda: self.show_window(title))
            menu.addSeparator()
        for each in titles:
            tick = menu.addAction(each)
            tick.setCheckable(True)
            tick.setChecked(choice.shows(each))
            tick.triggered.connect(lambda shown, each=each: self._pick(choice.switch(each, shown)))
        menu.addSeparator()
        menu.addAction("&Traces shown…", self.show_window)

    @Slot()
    def show_window(self, title: str = "") -> None:
        """Choose, order and scale in a window."""
        view = self._view
        if self.window is None:
            self.window = LanesWindow(view.window())
            self.window.chosen.connect(self.choose)
        self.window.show_choice(view.choice, view.every_lane, view.ranges, title)
        self.window.show()
        self.window.raise_()
        self.window.activateWindow()


def _swapped(titles: list[str], one: str, other: str) -> list[str]:
    places = {one: other, other: one} if other else {}
    return [places.get(title, title) for title in titles]


class TraceMenu(QObject):
    """Opens at a right click on the traces, or at the menu key. Last in it are the actions of `panel`."""

    said = Signal(str)  # something was copied

    def __init__(
        self,
        panel: QWidget,
        view: LaneView,
        lanes: LanesMenu,
        picture: Callable[[], QImage],
        write_picture: Callable[[Path], None],
        write_readings: Callable[[Path], None],
    ) -> None:
        super().__init__(panel)
        self._panel, self._lanes = panel, lanes
        self._picture, self._write_picture, self._write_readings = picture, write_picture, write_readings
        self.opened: QMenu | None = None  # while it is open
        view.menu_asked.connect(self._open)

    @Slot()
    def copy_picture(self) -> None:
        """Put the traces on the clipboard as they are shown."""
        QGuiApplication.clipboard().setImage(self._picture())
        self.said.emit("Picture copied")

    @Slot()
    def ask_picture(self) -> None:
        """Choose where a picture of the traces goes."""
        save_file(self._panel, "Picture", "traces.png", "PNG (*.png);;SVG (*.svg)", self._write_picture)

    @Slot()
    def ask_readings(self) -> None:
        """Choose where the readings of the marked span go, else of what is shown."""
        save_file(self._panel, "Readings", "readings.csv", "CSV (*.csv);;JSON (*.json)", self._write_readings)

    def fill(self, menu: QMenu) -> None:
        """Append what can be done with the traces."""
        menu.addAction("&Copy picture", self.copy_picture)
        menu.addAction("Export &picture…", self.ask_picture)
        menu.addAction("Export &readings…", self.ask_readings)
        menu.addSeparator()
        menu.addActions(self._panel.actions())  # hold, zoom, the marked span: the window's own

    @Slot(QPoint, str)
    def _open(self, at: QPoint, lane: str) -> None:
        if self.opened is not None:
            self.opened.close()
        menu = self.opened = QMenu(self._panel)
        menu.setAccessibleName("Traces")
        self._lanes.fill(menu, lane)
        menu.addSeparator()
        self.fill(menu)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.destroyed.connect(self._closed)
        menu.popup(at)

    @Slot()
    def _closed(self) -> None:
        self.opened = None
