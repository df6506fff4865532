"""`Readout`: every channel in one table: its value now, at the mouse, and its mean over the marked span."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSize, Qt, Slot
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from ...numbers import UNKNOWN
from ...sensors.channel import POWER_SAMPLES, Channel
from ..plots import theme
from ..plots.figures import value_text

NOW, CURSOR, SPAN = 1, 2, 3
_TITLES = ("Channel", "Now", "At mouse", "Span mean")
# of which a mean says nothing, or is not known
_NO_MEAN = ("event_reasons", "performance_state", "energy_j", "core_voltage_estimated")
AnyIndex = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()


class ReadoutModel(QAbstractTableModel):
    """Rows in the channels' order, the unavailable ones last, with the reason."""

    def __init__(self, channels: Sequence[Channel], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.channels: list[Channel] = []
        self.available = 0
        self._sources: dict[str, str] = {}  # of estimates, by channel name
        self._values: dict[int, Mapping[str, float]] = {}
        self.set_channels(channels)

    def set_channels(self, channels: Sequence[Channel]) -> None:
        """Another board's; nothing is known of them yet."""
        self.beginResetModel()
        available = [channel for channel in channels if channel.available]
        self.channels = [*available, *(channel for channel in channels if not channel.available)]
        self.available = len(available)
        self._sources = {}
        self._values = {NOW: {}, CURSOR: {}, SPAN: {}}
        self.endResetModel()

    def add_power_samples(self) -> None:
        """The driver's buffer has answered: it becomes the first row."""
        if POWER_SAMPLES not in self.channels:
            self.beginInsertRows(QModelIndex(), 0, 0)
            self.channels.insert(0, POWER_SAMPLES)
            self.available += 1
            self.endInsertRows()

    def add_estimate(self, estimate: Channel, source: str) -> None:
        """A figure of a model, below what the board itself reports; `source` says what it is from."""
        self._sources[estimate.name] = source
        if estimate not in self.channels:
            self.beginInsertRows(QModelIndex(), self.available, self.available)
            self.channels.insert(self.available, estimate)
            self.available += 1
            self.endInsertRows()

    def set_values(self, column: int, values: Mapping[str, float]) -> None:
        """Values by channel name for NOW, CURSOR or SPAN; missing ones are shown as unknown, none at all as nothing."""
        if values != self._values[column]:
            self._values[column] = values
            self.dataChanged.emit(self.index(0, column), self.index(self.available - 1, column))

    def text(self, row: int, column: int) -> str:
        """What a cell says."""
        channel = self.channels[row]
        if column == 0:
            return channel.label
        if not channel.available:
            return f"not available: {channel.unavailable}" if column == NOW else ""
        values = self._values[column]
        if not values or (column == SPAN and channel.name in _NO_MEAN):
            return ""
        return value_text(channel.name, channel.unit, values.get(channel.name, math.nan))

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.channels)

    def columnCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(_TITLES)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _TITLES[section]
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole and section:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = index.row(), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, column)
        available = self.channels[row].available
        if role == Qt.ItemDataRole.TextAlignmentRole and column and available:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.ForegroundRole and (not available or column == 0):
            return QBrush(QColor(theme.colours().muted))
        if role == Qt.ItemDataRole.ToolTipRole:
            channel = self.channels[row]
            return channel.unavailable or self._sources.get(channel.name) or channel.name
        return None


class Readout(QTableView):
    """Copying takes the selected rows as text with tabs."""

    def __init__(self, channels: Sequence[Channel], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.readings = ReadoutModel(channels, self)
        self.setModel(self.readings)
        self.setAccessibleName("Every channel")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setFont(theme.number_font())
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 5)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self._value_px = self.fontMetrics().horizontalAdvance("88888.8 MHz") + 14
        for column in (NOW, CURSOR, SPAN):
            self.setColumnWidth(column, self._value_px)
        self.setColumnHidden(SPAN, True)
        self._span_reasons()
        theme.notifier().changed.connect(self._recolour)

    def sizeHint(self) -> QSize:
        return QSize(400, 480)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Names take what they need, the rest is for values, and for reasons why there are none."""
        super().resizeEvent(event)
        self._share_out()

    def _share_out(self) -> None:
        others = sum(self.columnWidth(column) for column in (CURSOR, SPAN) if not self.isColumnHidden(column))
        room = self.viewport().width() - others
        name = min(self.sizeHintForColumn(0) + 8, room - self._value_px)
        self.setColumnWidth(0, name)
        self.setColumnWidth(NOW, room - name)

    def show_channels(self, channels: Sequence[Channel]) -> None:
        """Show another board's channels."""
        self.clearSpans()
        self.readings.set_channels(channels)
        self.show_span({})
        self._span_reasons()
        self._share_out()

    def show_now(self, values: Mapping[str, float]) -> None:
        """The newest values."""
        if POWER_SAMPLES.name in values and POWER_SAMPLES not in self.readings.channels:
            self.clearSpans()
            self.readings.add_power_samples()
            self._span_reasons()
        self.readings.set_values(NOW, values)

    def add_estimate(self, estimate: Channel, source: str) -> None:
        """Show a figure of a model as well, where it is from in its tool tip."""
        self.clearSpans()
        self.readings.add_estimate(estimate, source)
        self._span_reasons()
        self._share_out()

    def show_cursor(self, values: Mapping[str, float]) -> None:
        """Values at the mouse; empty when it is elsewhere."""
        self.readings.set_values(CURSOR, values)

    def show_span(self, means: Mapping[str, float]) -> None:
        """Means over the marked span; empty hides the column."""
        if self.isColumnHidden(SPAN) == bool(means):
            self.setColumnHidden(SPAN, not means)
            self._share_out()
        self.readings.set_values(SPAN, means)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            rows = sorted({index.row() for index in self.selectedIndexes()})
            lines = ("\t".join(self.readings.text(row, column) or UNKNOWN for column in range(4)) for row in rows)
            QGuiApplication.clipboard().setText("\n".join(lines))
            return
        super().keyPressEvent(event)

    def _span_reasons(self) -> None:
        for row in range(self.readings.available, len(self.readings.channels)):
            self.setSpan(row, NOW, 1, 3)

    @Slot()
    def _recolour(self) -> None:
        self.viewport().update()
