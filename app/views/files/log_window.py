"""`LogWindow`: a log of power over time: its trace, the energy of any span, and what its sampling resolves."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QComboBox, QDialog, QSplitter, QTextBrowser, QWidget

from ...engine.metering.recorded_energy import RecordedEnergy, describe_energy, recorded_energy
from ...sensors.recorded.logs.read import Log
from ...sensors.recorded.open import read_any
from ...sensors.recorded.recording import Recording
from ..number_boxes import NumberBox
from ..plots import theme
from ..plots.descriptions import rich_text
from ..plots.label import PlainLabel
from ..threads.tasks import LatestTask
from ..widgets import button, hbox, vbox
from .log_plot import LogPlot

_LONGEST_S = 1e7


class LogWindow(QDialog):
    """Stays beside the main window; one log at a time, read and integrated off Qt's thread."""

    watch_asked = Signal(str)  # the selector of the board that is shown
    fit_asked = Signal(object)  # Path of the log, for the frequency model

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Log of power")
        self.setModal(False)
        self.resize(980, 640)
        self.log: Log | None = None
        self._path = Path()
        self._read, self._sum = LatestTask(self), LatestTask(self)
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
        for each in (self.whole, self.watch, self.fit):
            each.setAutoDefault(False)
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
        self._read.done.connect(self._show)
        self._read.failed.connect(self._failed)
        self._sum.done.connect(self._summed)
        self._sum.failed.connect(self._failed)
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
        at = self.boards.currentIndex()
        return self.log.boards[at] if self.log is not None and at >= 0 else None

    @property
    def span_s(self) -> tuple[float, float]:
        """The span that is looked at, s from the beginning."""
        return self.start.value(), self.end.value()

    def provenance(self) -> str:
        """What its plot is of, for exports."""
        return f"{self._path.name} (recorded)"

    def shutdown(self) -> None:
        """End what is being read."""
        self._read.shutdown()
        self._sum.shutdown()

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
    def _summed(self, found: tuple[Recording, RecordedEnergy]) -> None:
        board, energy = found
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
    number = board.title.rpartition("#")[2] if "#" in board.title else ""
    return f"{board.name} · GPU {number}" if number and number not in board.name else board.name


def _seconds(name: str) -> NumberBox:
    made = NumberBox()
    made.setRange(0.0, _LONGEST_S)
    made.setDecimals(3)
    made.setSuffix(" s")
    made.setKeyboardTracking(False)
    made.setAccessibleName(name)
    return made
