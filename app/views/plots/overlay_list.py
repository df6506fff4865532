"""`OverlayList`: results drawn over each other, each in its colour. A tick shows one, the current line is in focus."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from ..shared import theme

_COLOURS = ("blue", "orange", "green", "purple", "vermillion", "sky", "grey")


def colour_of(place: int) -> QColor:
    """The line colour of what is in that place of the list."""
    return QColor(getattr(theme.colours(), _COLOURS[place % len(_COLOURS)]))


def pen_of(place: int, width: float) -> object:
    """... and its pen: dotted where the colours are used up."""
    dotted = place // len(_COLOURS) % 2
    style = Qt.PenStyle.DotLine if dotted else Qt.PenStyle.SolidLine
    return pg.mkPen(colour_of(place), width=width, style=style)


def icon_of(place: int) -> QIcon:
    """A field of that colour."""
    pixmap = QPixmap(12, 12)
    pixmap.fill(QColor(theme.colours().base))  # an edge, so that it stands out from a selected line
    painter = QPainter(pixmap)
    painter.fillRect(1, 1, 10, 10, colour_of(place))
    painter.end()
    icon = QIcon(pixmap)
    icon.addPixmap(pixmap, QIcon.Mode.Selected)  # else a selected line would tint it
    return icon


_LINES = (1, 6)  # of the list that are in sight, at least and at most


class Overlaid(Protocol):
    """What has a line in the list."""

    @property
    def key(self) -> Hashable:
        """What makes two the same: a later one takes the place of an earlier one."""

    @property
    def label(self) -> str: ...

    @property
    def origin(self) -> str:
        """Where it is from, in words."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Remarks that the user should read."""


_T = TypeVar("_T", bound=Overlaid)


class OverlayList(QListWidget, Generic[_T]):
    """`changed` after entries were added, removed, shown or hidden, or another one came into focus."""

    changed = Signal()

    def __init__(self, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: list[_T] = []
        self.setAccessibleName(name)
        self.setToolTip(tip)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._fit_height()
        self.itemChanged.connect(self._emit_changed)
        self.currentRowChanged.connect(self._emit_changed)
        theme.notifier().changed.connect(self._recolour)

    @property
    def entries(self) -> tuple[_T, ...]:
        """All of them."""
        return tuple(self._entries)

    @property
    def shown(self) -> list[tuple[int, _T]]:
        """The ticked ones, each with its place."""
        return [
            (index, entry)
            for index, entry in enumerate(self._entries)
            if self.item(index).checkState() == Qt.CheckState.Checked
        ]

    @property
    def focus(self) -> _T | None:
        """The current entry where it is shown, else the last one that is."""
        shown = self.shown
        chosen = [entry for at, entry in shown if at == self.currentRow()]
        return chosen[0] if chosen else shown[-1][1] if shown else None

    def put(self, entries: Sequence[_T]) -> None:
        """Add some, the first in focus; one that was there before is put in its place."""
        first = len(self._entries)
        with QSignalBlocker(self):
            for entry in entries:
                keys = [element.key for element in self._entries]
                row = keys.index(entry.key) if entry.key in keys else len(keys)
                self._entries[row : row + 1] = [entry]
                if row == len(keys):
                    item = QListWidgetItem()
                    item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
                    item.setCheckState(Qt.CheckState.Checked)
                    self.addItem(item)
                self._dress(row)
            if len(self._entries) > first:
                self.setCurrentRow(first)
        self._fit_height()
        self.changed.emit()

    def choose(self, entry: _T) -> None:
        """Bring one into focus."""
        keys = [item.key for item in self._entries]
        if entry.key in keys:
            self.setCurrentRow(keys.index(entry.key))

    @Slot()
    def remove_chosen(self) -> None:
        """Remove the current entry."""
        row = self.currentRow()
        if not 0 <= row < len(self._entries):
            return
        with QSignalBlocker(self):
            del self._entries[row]
            self.takeItem(row)
            for place in range(len(self._entries)):
                self._dress(place)
        self._fit_height()
        self.changed.emit()

    def _fit_height(self) -> None:
        """As high as its lines need, within bounds."""
        line = self.fontMetrics().height() + 5
        self.setFixedHeight(min(max(len(self._entries), _LINES[0]), _LINES[1]) * line + 4)

    def _dress(self, index: int) -> None:
        entry, item = self._entries[index], self.item(index)
        item.setIcon(icon_of(index))
        item.setText(f"{entry.label}, {entry.origin}")
        item.setToolTip("\n".join((item.text(), *entry.reasons)))

    @Slot()
    def _emit_changed(self, *_: object) -> None:
        self.changed.emit()

    @Slot()
    def _recolour(self) -> None:
        with QSignalBlocker(self):
            for index in range(len(self._entries)):
                self.item(index).setIcon(icon_of(index))
