"""`LogWindow`: a log of power over time: its trace, the energy of any span, and what its sampling resolves.

`LogPlot`: the powers of a recording over time, with the span that is looked at.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QColor
from PySide6.QtWidgets import QComboBox, QDialog, QSplitter, QTextBrowser, QWidget

from ...engine.analysis.recorded_energy import RecordedEnergy, describe_energy, recorded_energy
from ...sensors.channel import CHANNELS, POWER_SAMPLES
from ...sensors.recorded.gpu import read_any
from ...sensors.recorded.logs.read import Log
from ...sensors.recorded.recording import Recording
from ..plots.descriptions import rich_text
from ..plots.plot import Box
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.panel import Ending
from ..shared.tasks import LatestTask
from ..shared.widgets import NumberBox, button, hbox, vbox

Floats = npt.NDArray[np.float64]

_POWERS = ("power_instant_w", "power_average_w", "memory_power_w")
_BLOCKS = 1500  # of which the least and the largest value are drawn
_GAP_STEPS = 5.0


class LogPlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Draws at most a few thousand points, whatever the recording holds and however far the user zooms."""

    span_changed = Signal(float, float)  # s, by the user's hand

    def __init__(self) -> None:
        super().__init__(viewBox=Box(enableMenu=True))
        self._series: dict[str, tuple[Floats, Floats]] = {}
        self._curves: dict[str, pg.PlotDataItem] = {}
        self.setMinimumHeight(120)
        self.setLabel("left", "Power (W)")
        self.setLabel("bottom", "Time (s)")
        self.getAxis("left").enableAutoSIPrefix(False)
        self.getAxis("bottom").enableAutoSIPrefix(False)
        self.setAccessibleName("Power over time")
        self.region = pg.LinearRegionItem()
        self.region.setZValue(10)
        self.region.sigRegionChangeFinished.connect(self._moved)
        self.plotItem.sigXRangeChanged.connect(self._draw)
        theme.follow(self._recolour)

    def show_recording(self, recording: Recording) -> None:
        """Draw a recording; the span is the whole of it."""
        for curve in self._curves.values():
            self.removeItem(curve)
        self._series, self._curves = _powers_of(recording), {}
        for name in self._series:
            self._curves[name] = self.plot([], [], connect="finite")
        self._recolour()
        end_s = float(recording.time_ns[-1] - recording.time_ns[0]) / 1e9
        self.show_span(0.0, end_s)
        if self.region.scene() is None:
            self.addItem(self.region, ignoreBounds=True)
        self.region.setBounds((0.0, end_s))
        self.setXRange(0.0, end_s, padding=0.01)
        self._draw()
        self.enableAutoRange(axis="y")

    def show_span(self, start_s: float, end_s: float) -> None:
        """Move the span, which is not reported."""
        self.region.blockSignals(True)
        self.region.setRegion((start_s, end_s))
        self.region.blockSignals(False)

    @property
    def legend(self) -> str:
        """What its lines are, as rich text."""
        labels = (POWER_SAMPLES.label if n == POWER_SAMPLES.name else CHANNELS[n].label for n in self._series)
        named = zip(_lines(), labels, strict=False)
        return " &nbsp; ".join(f"<span style='color:{colour}'>━━</span>&nbsp;{label}" for colour, label in named)

    @Slot()
    def _moved(self) -> None:
        self.span_changed.emit(*self.region.getRegion())

    @Slot()
    def _draw(self, *_: object) -> None:
        low, high = self.plotItem.viewRange()[0]
        for name, (times_s, values) in self._series.items():
            self._curves[name].setData(*thinned(times_s, values, low, high))

    @Slot()
    def _recolour(self) -> None:
        colours = theme.colours()
        self.setBackground(colours.base)
        for curve, colour in zip(self._curves.values(), _lines(), strict=False):
            curve.setPen(pg.mkPen(colour, width=1))
        for side in ("left", "bottom"):
            self.getAxis(side).setPen(colours.border)
            self.getAxis(side).setTextPen(colours.text)
        ground = QColor(colours.accent)
        ground.setAlpha(40)
        self.region.setBrush(ground)
        for line in self.region.lines:
            line.setPen(pg.mkPen(colours.accent, width=1, style=Qt.PenStyle.DashLine))


def thinned(times_s: Floats, values: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """The part between two times as points to draw: blocks become their least and their largest value, NaN in gaps."""
    first = max(int(np.searchsorted(times_s, low, "left")) - 1, 0)
    last = min(int(np.searchsorted(times_s, high, "right")) + 1, len(times_s))
    times_s, values = times_s[first:last], values[first:last]
    if len(values) < 2:
        return times_s.copy(), values.copy()
    usual_s = float(np.median(np.diff(times_s[:: 1 + len(times_s) // 10_000]))) if len(times_s) > 2 else np.inf
    if len(values) > 4 * _BLOCKS:
        edges = np.linspace(0, len(values), _BLOCKS, endpoint=False).astype(np.int64)
        both = np.stack((np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)), axis=1)
        values, times_s = both.ravel(), np.repeat(times_s[edges], 2)
        usual_s = float(np.median(np.diff(times_s[::2])))
    gaps = np.flatnonzero(np.diff(times_s) > _GAP_STEPS * usual_s)
    middles = (times_s[gaps] + times_s[gaps + 1]) / 2
    return np.insert(times_s, gaps + 1, middles), np.insert(values, gaps + 1, np.nan)


def _lines() -> tuple[str, ...]:
    """The colours of the powers, in their order."""
    colours = theme.colours()
    return colours.orange, colours.blue, colours.green, colours.purple


def _powers_of(recording: Recording) -> dict[str, tuple[Floats, Floats]]:
    origin_ns = int(recording.time_ns[0])
    result: dict[str, tuple[Floats, Floats]] = {}
    if len(recording.sample_ns) > 1:
        result[POWER_SAMPLES.name] = ((recording.sample_ns - origin_ns) / 1e9, recording.sample_w)
    times_s = (recording.time_ns - origin_ns) / 1e9
    for index, described in enumerate(recording.channels):
        values = recording.values[:, index]
        finite = np.isfinite(values) if described.name in _POWERS else np.zeros(0, np.bool_)
        if finite.any():
            result[described.name] = (times_s[finite], values[finite])
    return result


_LONGEST_S = 1e7


class LogWindow(QDialog, Ending):
    """Stays beside the main window; one log at a time, read and integrated off Qt's thread."""

    watch_asked = Signal(str)  # the selector of the board that is shown
    fit_asked = Signal(object)  # Path of the log, for the frequency model

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Log of power")
        self.resize(980, 640)
        self.log: Log | None = None
        self._path = Path()
        self._read = LatestTask(self, self._show, self._failed)
        self._sum = LatestTask(self, self._summed, self._failed)
        self.named, self.message = PlainLabel(), PlainLabel(wrap=True)
        self.boards = QComboBox()
        self.boards.setAccessibleName("Board of the log")
        self.boards.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.start, self.end = _seconds("Start of the span"), _seconds("End of the span")
        self.step = _seconds("Time between readings")
        self.step.setRange(0.001, 3600.0)
        self.step_words = PlainLabel("Ste&p")
        self.step_words.setBuddy(self.step)
        self.step.setToolTip("The log does not hold its times: this much lies between two readings")
        self.whole = button("&All", "Look at the whole log", self.show_whole)
        self.watch = button("&Watch", "Replay it as a board", self._ask_watch)
        self.fit = button("&Frequency model", "Fit the plateaus of locked clocks in it", self._ask_fit)
        for widget in (self.whole, self.watch, self.fit):
            widget.setAutoDefault(False)
        self.legend = PlainLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.plot, self.words = LogPlot(), QTextBrowser()
        self.words.setAccessibleName("Energy and sampling of the span")
        self._lay_out()
        self.boards.currentIndexChanged.connect(self._show_board)
        self.plot.span_changed.connect(self._span_moved)
        self.start.editingFinished.connect(self._span_written)
        self.end.editingFinished.connect(self._span_written)
        self.step.editingFinished.connect(self._step_written)
        theme.notifier().changed.connect(self._write_again)

    def _lay_out(self) -> None:
        span = PlainLabel("&Span")
        span.setBuddy(self.start)
        above = hbox(self.boards, (self.named, 1), self.step_words, self.step, self.watch, self.fit)
        below = hbox(span, self.start, PlainLabel("to"), self.end, self.whole, 1, self.legend)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.plot)
        split.addWidget(self.words)
        split.setSizes([300, 300])
        vbox(above, self.message, below, (split, 1), of=self)

    def open(self, path: Path, step_s: float | None = None) -> None:  # type: ignore[override]
        """Read a log. `step_s` is the time between readings of one that does not hold it."""
        self._path = path
        self.named.setText(path.name)
        self.message.setText(f"Reading {path.name} …")
        self.message.show()
        self._read.run(lambda _stop: read_any(path, step_s))

    @property
    def board(self) -> Recording | None:
        """The board that is shown."""
        index = self.boards.currentIndex()
        return self.log.boards[index] if self.log is not None and index >= 0 else None

    @property
    def span_s(self) -> tuple[float, float]:
        """The span that is looked at, s from the beginning."""
        return self.start.value(), self.end.value()

    def provenance(self) -> str:
        """What its plot is of, for exports."""
        return f"{self._path.name} (recorded)"

    def closeEvent(self, event: QCloseEvent) -> None:
        """What is not looked at is not kept in memory."""
        super().closeEvent(event)
        self.log = None

    @Slot(object)
    def _show(self, log: Log) -> None:
        self.log = log
        self.setWindowTitle(f"Log of power – {log.path.name}")
        self.named.setText(f"{log.path.name}{f', {log.tool}' if log.tool else ''}")
        self.message.hide()
        for widget in (self.step, self.step_words):
            widget.setVisible(log.assumed_step_s is not None)
        if log.assumed_step_s is not None:
            self.step.setValue(log.assumed_step_s)
        with QSignalBlocker(self.boards):
            self.boards.clear()
            self.boards.addItems([_label(board) for board in log.boards])
        self.boards.setVisible(len(log.boards) > 1)
        self._show_board()

    @Slot()
    def _show_board(self, *_: object) -> None:
        board = self.board
        if board is not None:
            self.plot.show_recording(board)
            self.legend.setText(self.plot.legend)
            self.show_whole()

    @Slot()
    def show_whole(self) -> None:
        """Look at the whole log."""
        board = self.board
        if board is not None:
            self._set_span(0.0, float(board.time_ns[-1] - board.time_ns[0]) / 1e9)

    @Slot(float, float)
    def _span_moved(self, start_s: float, end_s: float) -> None:
        self._set_span(start_s, end_s)

    @Slot()
    def _span_written(self) -> None:
        self._set_span(*sorted(self.span_s))

    def _set_span(self, start_s: float, end_s: float) -> None:
        for field, value in ((self.start, start_s), (self.end, end_s)):
            with QSignalBlocker(field):
                field.setValue(value)
        self.plot.show_span(start_s, end_s)
        board = self.board
        if board is not None:
            self._sum.run(lambda _stop: (board, recorded_energy(board, (start_s, end_s))))

    @Slot()
    def _step_written(self) -> None:
        if self.log is not None and self.step.value() != self.log.assumed_step_s:
            self.open(self._path, self.step.value())

    @Slot(object)
    def _summed(self, summed: tuple[Recording, RecordedEnergy]) -> None:
        board, energy = summed
        if self.log is not None:
            self.words.setHtml(rich_text([describe_energy(energy, board, self.log.notes)]))

    @Slot()
    def _write_again(self) -> None:
        if self.log is not None:
            self.legend.setText(self.plot.legend)
            self._set_span(*self.span_s)

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.message.setText(f"{what} ({remedy})" if remedy else what)
        self.message.show()

    @Slot()
    def _ask_watch(self) -> None:
        board = self.board
        if board is None or self.log is None:
            return
        number = board.title.rpartition("#")[2] if "#" in board.title and len(self.log.boards) > 1 else ""
        step = "" if self.log.assumed_step_s is None else f"@{self.log.assumed_step_s:g}"
        self.watch_asked.emit(f"recorded:{self._path}{'#' if number or step else ''}{number}{step}")

    @Slot()
    def _ask_fit(self) -> None:
        if self.log is not None:
            self.fit_asked.emit(self._path)


def _label(board: Recording) -> str:
    number, name = board.title.rpartition("#")[2] if "#" in board.title else "", board.info.name
    return f"{name} · GPU {number}" if number and number not in name else name


def _seconds(name: str) -> NumberBox:
    made = NumberBox()
    made.setRange(0.0, _LONGEST_S)
    made.setDecimals(3)
    made.setSuffix(" s")
    made.setKeyboardTracking(False)
    made.setAccessibleName(name)
    return made
