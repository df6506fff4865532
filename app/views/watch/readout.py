"""`Readout`: every channel in one table: its value now and at the mouse; minimum, mean and maximum since a reset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QSizePolicy, QTableView, QWidget

from ...base.formatting import UNKNOWN
from ...sensors.channel import POWER_SAMPLES, Channel
from ...sensors.trace.trace import Statistics
from ..plots.figures import value_text
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.record_model import NO_PARENT, AnyIndex, RecordModel
from ..shared.widgets import button, hbox, vbox

NOW, MINIMUM, MEAN, MAXIMUM, CURSOR = 1, 2, 3, 4, 5
_TITLES = ("Channel", "Now", "Min", "Mean", "Max", "At mouse")
_OF_STATISTICS = {MINIMUM: "minimum", MEAN: "mean", MAXIMUM: "maximum"}
# of which minimum, mean and maximum say nothing, or are not known
NO_STATISTICS = frozenset({"event_reasons", "performance_state", "energy_j", "core_voltage_estimated"})
_MOST_MORE_PX = 60  # that a column of values may be wider than it needs


class ReadoutModel(RecordModel):
    """Rows in the channels' order, the unavailable ones last, with the reason."""

    def __init__(self, channels: Sequence[Channel], parent: QWidget | None = None) -> None:
        super().__init__(_TITLES, parent)
        self.channels: list[Channel] = []
        self.available = 0
        self._sources: dict[str, str] = {}  # of estimates, by channel name
        self._values: dict[int, Mapping[str, float]] = {}
        self._statistics: Mapping[str, Statistics] = {}
        self.set_channels(channels)

    def set_channels(self, channels: Sequence[Channel]) -> None:
        """Switch to another board's channels, without values until the next reading."""
        self.beginResetModel()
        available = [channel for channel in channels if channel.available]
        self.channels = [*available, *(channel for channel in channels if not channel.available)]
        self.available = len(available)
        self._sources = {}
        self._values = {NOW: {}, CURSOR: {}}
        self._statistics = {}
        self.endResetModel()

    def add_power_samples(self) -> None:
        """The driver's buffer has answered: it becomes the first row."""
        if POWER_SAMPLES not in self.channels:
            self.beginInsertRows(NO_PARENT, 0, 0)
            self.channels.insert(0, POWER_SAMPLES)
            self.available += 1
            self.endInsertRows()

    def add_estimate(self, estimate: Channel, source: str) -> None:
        """A figure of a model, below what the board itself reports; `source` says what it is from."""
        self._sources[estimate.name] = source
        if estimate not in self.channels:
            self.beginInsertRows(NO_PARENT, self.available, self.available)
            self.channels.insert(self.available, estimate)
            self.available += 1
            self.endInsertRows()

    def set_values(self, column: int, values: Mapping[str, float]) -> None:
        """Values by channel name for NOW or CURSOR; missing ones are shown as unknown, none at all as nothing."""
        before, self._values[column] = self._values[column], values
        if bool(before) != bool(values):
            self._changed(column, column)
            return
        for row, channel in enumerate(self.channels[: self.available]):  # painted again are those that differ
            if before.get(channel.name) != values.get(channel.name):
                self.dataChanged.emit(self.index(row, column), self.index(row, column))

    def set_statistics(self, statistics: Mapping[str, Statistics]) -> None:
        """Minimum, mean and maximum by channel name."""
        self._statistics = statistics
        self._changed(MINIMUM, MAXIMUM)

    def _changed(self, first: int, last: int) -> None:
        if self.available:  # a device without sensors has no rows
            self.dataChanged.emit(self.index(0, first), self.index(self.available - 1, last))

    def text(self, row: int, column: int) -> str:
        """What a cell says."""
        channel = self.channels[row]
        if column == 0:
            return channel.label
        if not channel.available:
            return f"not available: {channel.unavailable}" if column == NOW else ""
        if column in _OF_STATISTICS:
            statistics = self._statistics.get(channel.name)
            if statistics is None or channel.name in NO_STATISTICS:
                return ""
            value = getattr(statistics, _OF_STATISTICS[column])
            return value_text(channel.name, channel.unit, value).removesuffix(f" {channel.unit}")  # it stands under Now
        values = self._values[column]
        return value_text(channel.name, channel.unit, values.get(channel.name, math.nan)) if values else ""

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.channels)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole and section:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return super().headerData(section, orientation, role)

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
            return plain_tip(channel.unavailable or self._sources.get(channel.name) or channel.name)
        return None


class ReadoutTable(QTableView):
    """Copying takes the selected rows as text with tabs, below the columns' names; with none selected, every row."""

    def __init__(self, readings: ReadoutModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.readings = readings
        self.setModel(readings)
        self.setAccessibleName("Every channel")
        self.setTabKeyNavigation(False)
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
        advance = self.fontMetrics().horizontalAdvance
        self._least_px = {column: advance("88888.8 MHz") + 14 for column in (NOW, CURSOR)}
        self._least_px |= {column: advance("88888.8") + 12 for column in _OF_STATISTICS}
        self.span_reasons()

    def sizeHint(self) -> QSize:
        return QSize(400, 480)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.share_out()

    def share_out(self) -> None:
        """Names take what they need, the values the rest, up to a width at which a row is still read as one.

        What is at the mouse stands over the traces too: its column goes first where the table is narrow.
        """
        wanted = self.sizeHintForColumn(0) + 8
        least = dict(self._least_px)
        self.setColumnHidden(CURSOR, self.viewport().width() < wanted + sum(least.values()))
        if self.isColumnHidden(CURSOR):
            del least[CURSOR]
        name = min(wanted, self.viewport().width() - sum(least.values()))
        more = min((self.viewport().width() - name - sum(least.values())) // len(least), _MOST_MORE_PX)
        self.setColumnWidth(0, name)
        for column, width in least.items():
            self.setColumnWidth(column, width + more)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)

    @Slot()
    def copy(self) -> None:
        """Put the rows on the clipboard."""
        columns = range(len(_TITLES))
        rows = sorted({index.row() for index in self.selectedIndexes()}) or range(len(self.readings.channels))
        lines = ["\t".join(_TITLES)]
        lines += ["\t".join(self.readings.text(row, column) or UNKNOWN for column in columns) for row in rows]
        QGuiApplication.clipboard().setText("\n".join(lines))

    def span_reasons(self) -> None:
        """The reason why a channel is not available has the room of all its values."""
        self.clearSpans()
        for row in range(self.readings.available, len(self.readings.channels)):
            self.setSpan(row, NOW, 1, len(_TITLES) - NOW)


class Readout(QWidget):
    """The table, and above it what its statistics are of. `reset_asked`: they are to begin now."""

    reset_asked = Signal()

    def __init__(self, channels: Sequence[Channel], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.readings = ReadoutModel(channels, self)
        self.table = ReadoutTable(self.readings)
        self._caption = PlainLabel(muted=True)
        self._caption.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.copy = button("&Copy", "Copy the selected channels, else all of them, as text with tabs", self.table.copy)
        self.reset = button("&Reset", "Minimum, mean and maximum begin now", self.reset_asked.emit)
        self.reset.setAccessibleName("Reset minimum, mean and maximum")
        top = hbox((self._caption, 1), self.copy, self.reset)
        top.setContentsMargins(6, 4, 6, 0)
        vbox(top, (self.table, 1), of=self, margins=0, spacing=4)

    def show_channels(self, channels: Sequence[Channel]) -> None:
        """Show another board's channels, without values until the next reading."""
        self.readings.set_channels(channels)
        self.table.span_reasons()
        self.table.share_out()
        self._caption.setText("")

    @property
    def caption(self) -> str:
        """What minimum, mean and maximum are of."""
        return self._caption.text()

    def show_now(self, values: Mapping[str, float]) -> None:
        """The newest values."""
        if POWER_SAMPLES.name in values and POWER_SAMPLES not in self.readings.channels:
            self.readings.add_power_samples()
            self.table.span_reasons()
        self.readings.set_values(NOW, values)

    def add_estimate(self, estimate: Channel, source: str) -> None:
        """Show a figure of a model as well, where it is from in its tool tip."""
        self.readings.add_estimate(estimate, source)
        self.table.span_reasons()
        self.table.share_out()

    def show_cursor(self, values: Mapping[str, float]) -> None:
        """Values at the mouse; empty when it is elsewhere."""
        self.readings.set_values(CURSOR, values)

    def show_statistics(self, statistics: Mapping[str, Statistics], caption: str) -> None:
        """Minimum, mean and maximum by channel name; the caption says over which time."""
        self.readings.set_statistics(statistics)
        self._caption.setText(caption)
        self._caption.setToolTip(caption)
