"""`LogWindow`: a recording, or a log of power, as a timeline: marks, clock events, and two spans side by side."""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QLineEdit,
    QMenu,
    QProgressBar,
    QRadioButton,
    QSplitter,
    QTextBrowser,
    QWidget,
)

from ...base.errors import WattridgeError
from ...base.formatting import number
from ...engine.metering.confidence import Interval
from ...engine.metering.recorded_energy import describe_energy, recorded_energy
from ...engine.metering.recorded_spans import SpanFigures, span_difference, span_figures
from ...engine.results.description import Description, Listing
from ...sensors.recorded.columns import SUFFIX, is_columns
from ...sensors.recorded.header import Mark
from ...sensors.timeline.converted import Timelines, add_mark, open_timelines
from ...sensors.timeline.stored import Stored, read_part
from ..plots.descriptions import rich_text
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.panel import Ending
from ..shared.tasks import LatestTask, TaskQueue
from ..shared.turns import timer
from ..shared.widgets import NumberBox, button, hbox, save_file, vbox
from ..watch.monitor_panel import LanesMenu
from ..watch.timeline import SPANS, Timeline

_LONGEST_S: Final = 1e7
_DESCRIBED: Final = 500_000  # readings, of which the sampling is described
_LOOK_MS: Final = 2000  # between two looks at whether the file has grown
_KINDS: Final = "Readings (*.csv);;Readings (*.json);;Recording (*.wrec)"


class LogWindow(QDialog, Ending):
    """Stays beside the main window; one file at a time, read, converted and computed off Qt's thread."""

    watch_asked = Signal(str)  # the selector of the board that is shown: it is played
    fit_asked = Signal(object)  # Path of the log, for the frequency model

    _progressed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Recording")
        self.resize(1100, 760)
        self.log: Timelines | None = None
        self.timeline: Timeline | None = None
        self._path = Path()
        self._read = LatestTask(self, self._show, self._failed)
        self._sum = LatestTask(self, self._summed, self._failed)
        self._follow = LatestTask(self, self._grown)
        self._work = TaskQueue(self, self._failed)
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
        self.watch = button("&Play", "Replay it once, as a board", self._ask_watch)
        self.fit = button("&Frequency model", "Fit the plateaus of locked clocks in it", self._ask_fit)
        self.save = button("&Save as…", "The readings of the span, or the recording", self._ask_save)
        self.progress = QProgressBar()
        self.progress.setAccessibleName("Conversion of the recording")
        self.cancel = button("&Cancel", "Stop reading the file", self._cancel)
        self.axis = QComboBox()
        self.axis.setAccessibleName("Time axis")
        self.axis.addItems(["From the beginning", "Time of day"])
        self.axis.currentIndexChanged.connect(self._axis_chosen)
        self.mark_field = QLineEdit(placeholderText="Name of a mark", maxLength=200)
        self.mark_field.setAccessibleName("Name of a mark")
        self.mark_field.returnPressed.connect(self._set_mark)
        self.set_mark = button("Set &mark", "Mark the place that is looked at (M)", self._set_mark)
        self.steps = [
            button("◀ Mark", "Previous mark", lambda: self._go("go_to_mark", before=True)),
            button("Mark ▶", "Next mark", lambda: self._go("go_to_mark", before=False)),
            button("◀ Event", "Previous change of the clock events", lambda: self._go("go_to_event", before=True)),
            button("Event ▶", "Next change of the clock events", lambda: self._go("go_to_event", before=False)),
        ]
        for step in self.steps:
            step.setAccessibleName(step.toolTip())
        self.whole = button("&All", "Show the whole recording", self.show_whole)
        self.zoom = button("&Zoom to span", "Show the span only", self._zoom)
        self.place = PlainLabel(muted=True)
        self.active = {name: QRadioButton(f"Span &{name}") for name in SPANS}
        for name, radio in self.active.items():
            radio.setToolTip(f"Drag in the traces to mark span {name}")
            radio.toggled.connect(self._activated)
        self.words = QTextBrowser()
        self.words.setAccessibleName("Energy and sampling of the spans")
        self._lay_out()
        self.boards.currentIndexChanged.connect(self._show_board)
        self.start.editingFinished.connect(self._span_written)
        self.end.editingFinished.connect(self._span_written)
        self.step.editingFinished.connect(self._step_written)
        self._progressed.connect(self._show_progress)
        theme.notifier().changed.connect(self._sum_again)
        self._apart_ms = _LOOK_MS
        self._timer = timer(self, self._look, _LOOK_MS)

    def _lay_out(self) -> None:
        for widget in (self.whole, self.watch, self.fit, self.save, self.cancel, self.set_mark, self.zoom, *self.steps):
            widget.setAutoDefault(False)
        above = hbox(self.boards, (self.named, 1), self.step_words, self.step, self.watch, self.fit, self.save)
        reading = hbox((self.message, 1), self.progress, self.cancel)
        moves = hbox(*self.steps, self.mark_field, self.set_mark, 1, self.place, self.axis)
        spans = hbox(*self.active.values(), self.start, PlainLabel("to"), self.end, self.zoom, self.whole, 1)
        self._ground = QWidget()
        self._inside = vbox(of=self._ground, margins=0)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._ground)
        split.addWidget(self.words)
        split.setSizes([520, 160])
        split.setStretchFactor(0, 1)
        vbox(above, reading, (split, 1), moves, spans, of=self)
        self._show_reading(False)
        self._enable()

    # --- the file -----------------------------------------------------------------------------------------------------

    def open(self, path: Path, step_s: float | None = None) -> None:  # type: ignore[override]
        """Read a recording or a log. `step_s` is the time between readings of one that does not hold it."""
        self._path = path
        self._clear()
        self.named.setText(path.name)
        self._say(f"Reading {path.name} …")
        self._show_reading(True)
        self._read.run(lambda stop: open_timelines(path, step_s, self._progressed.emit, stop))

    @property
    def board(self) -> Stored | None:
        """The board that is shown."""
        index = self.boards.currentIndex()
        return self.log.boards[index] if self.log is not None and index >= 0 else None

    @property
    def span_s(self) -> tuple[float, float]:
        """The span in the fields, s from the beginning."""
        return self.start.value(), self.end.value()

    def provenance(self) -> str:
        """What its plot is of, for exports."""
        return f"{self._path.name} (recorded)"

    def closeEvent(self, event: QCloseEvent) -> None:
        """What is not looked at is not kept in memory."""
        super().closeEvent(event)
        self._read.cancel()
        self._clear()

    def _clear(self) -> None:
        self._timer.stop()
        self.log = None
        if self.timeline is not None:
            self.timeline.hide()
            self.timeline.deleteLater()
            self.timeline = None
        self._enable()

    def _enable(self) -> None:
        buttons = (self.watch, self.fit, self.save, self.set_mark, self.whole, self.zoom, *self.steps)
        fields = (self.mark_field, self.axis, self.start, self.end, *self.active.values())
        every: tuple[QWidget, ...] = (*buttons, *fields)
        for widget in every:
            widget.setEnabled(self.timeline is not None)

    def _show_reading(self, reading: bool) -> None:
        self.progress.setRange(0, 0)
        self.progress.setVisible(reading)
        self.cancel.setVisible(reading)
        self.message.setVisible(bool(self.message.text()))

    def _say(self, words: str) -> None:
        self.message.setText(words)
        self.message.setVisible(bool(words))

    @Slot(float)
    def _show_progress(self, share: float) -> None:
        if self._read.busy and not math.isnan(share):
            self._say(f"Converting {self._path.name}, once …")
            self.progress.setRange(0, 1000)
            self.progress.setValue(int(1000 * share))

    @Slot()
    def _cancel(self) -> None:
        self._read.cancel()
        self._say("Reading was cancelled: open the file again to continue.")
        self._show_reading(False)

    @Slot(object)
    def _show(self, log: Timelines) -> None:
        self.log = log
        self._say("")
        self._show_reading(False)
        self.setWindowTitle(f"Recording – {log.path.name}")
        self.named.setText(f"{log.path.name}{f', {log.tool}' if log.tool else ''}")
        for widget in (self.step, self.step_words):
            widget.setVisible(log.assumed_step_s is not None)
        if log.assumed_step_s is not None:
            self.step.setValue(log.assumed_step_s)
        with QSignalBlocker(self.boards):
            self.boards.clear()
            self.boards.addItems([_label(board) for board in log.boards])
        self.boards.setVisible(len(log.boards) > 1)
        self._show_board()
        self._timer.start()

    @Slot()
    def _show_board(self, *_: object) -> None:
        board = self.board
        if board is None:
            return
        if self.timeline is not None:
            self.timeline.deleteLater()
        self.timeline = Timeline(board)
        self._inside.addWidget(self.timeline)
        lanes = self.timeline.lanes
        self._lanes_menu = LanesMenu(lanes)
        lanes.span_changed.connect(self._span_moved)
        lanes.place_moved.connect(self._place_moved)
        lanes.mark_asked.connect(self.mark_field.setFocus)
        lanes.menu_asked.connect(self._open_menu)
        self._enable()
        self.axis.setEnabled(lanes.dated)
        self.axis.setToolTip("" if lanes.dated else "The file does not state when it was recorded")
        self.axis.setCurrentIndex(0)
        self.active[SPANS[0]].setChecked(True)
        lanes.activate(SPANS[0])
        self._place_moved(lanes.place_ns)
        self._span_moved(None)
        lanes.setFocus()

    @Slot()
    def _look(self) -> None:
        """Follow a file that is being written; of one that has to be converted it is only said."""
        log = self.log
        if log is None or self._follow.busy or self._work.busy or not self.isVisible():
            return

        def job(stop: threading.Event) -> Timelines | str | None:
            if not log.grown:
                return None
            finished = log.path.suffix == ".part" and not log.path.exists()
            path = log.path.with_suffix("") if finished else log.path
            if not is_columns(path):
                return f"{log.path.name} has changed since it was read: open it again to see the rest."
            begun = time.monotonic()
            found = open_timelines(path, None, lambda _: None, stop)
            self._apart_ms = max(_LOOK_MS, round(10_000 * (time.monotonic() - begun)))  # a tenth of the time at most
            return found

        self._follow.run(job)

    @Slot(object)
    def _grown(self, found: Timelines | str | None) -> None:
        if isinstance(found, str):
            self._say(found)
            self._timer.stop()
        elif found is not None and self.log is not None and self.timeline is not None:
            self.log, self._path = found, found.path
            self.named.setText(found.path.name)
            self.timeline.show_recording(found.boards[0])
            self._timer.setInterval(self._apart_ms)

    # --- spans --------------------------------------------------------------------------------------------------------

    @Slot()
    def show_whole(self) -> None:
        """Show the whole recording."""
        if self.timeline is not None:
            self.timeline.lanes.show_whole()

    @Slot()
    def _zoom(self) -> None:
        if self.timeline is not None:
            self.timeline.lanes.show_span()

    @Slot(bool)
    def _activated(self, *_: object) -> None:
        if self.timeline is not None:
            self.timeline.lanes.activate(next(name for name, radio in self.active.items() if radio.isChecked()))
            self._span_moved(self.timeline.lanes.span)

    @Slot(object)
    def _span_moved(self, span: tuple[int, int] | None) -> None:
        if self.timeline is None:
            return
        start, end = span or (0, self.timeline.lanes.end_ns)
        for field, value in ((self.start, start), (self.end, end)):
            with QSignalBlocker(field):
                field.setValue(value / 1e9)
        self.zoom.setEnabled(span is not None)
        self.timeline.overview.update()
        self._sum_again()

    @Slot()
    def _span_written(self) -> None:
        if self.timeline is not None:
            lanes = self.timeline.lanes
            start, end = (min(round(1e9 * value), lanes.end_ns) for value in sorted(self.span_s))
            if start < end:
                lanes.set_span((start, end))

    @Slot()
    def _sum_again(self) -> None:
        if self.timeline is None or (board := self.board) is None or self.log is None:
            return
        lanes, notes = self.timeline.lanes, self.log.notes
        spans = {name: span for name, span in lanes.spans.items() if span is not None}
        shown = lanes.span or (0, lanes.end_ns)

        def job(_: threading.Event) -> list[Description]:
            figures = {name: span_figures(board, span) for name, span in spans.items()}
            if not spans:  # a day's interval takes a second
                figures = {"all": span_figures(board, shown, interval=len(board.trace) <= _DESCRIBED)}
            described = [_side_by_side(board, figures)]
            readings = board.trace.statistics(board.trace.power_name, *shown).samples
            if len(board.trace) <= _DESCRIBED:
                whole = read_part(board, 0, 1 << 62)
                described.append(describe_energy(recorded_energy(whole, _in_s(shown)), whole, notes))
            elif readings <= _DESCRIBED:
                part = read_part(board, *shown)
                described.append(describe_energy(recorded_energy(part), part, notes))
            return described

        self._sum.run(job)

    @Slot(object)
    def _summed(self, described: list[Description]) -> None:
        if self.log is not None:
            self.words.setHtml(rich_text(described))

    # --- places and marks ---------------------------------------------------------------------------------------------

    @Slot(object)
    def _place_moved(self, instant: int) -> None:
        if self.timeline is not None:
            self.place.setText(self.timeline.lanes.instant_text(instant))

    def _go(self, what: str, *, before: bool) -> None:
        if self.timeline is not None and not getattr(self.timeline.lanes, what)(before=before):
            kind = "mark" if what == "go_to_mark" else "clock event"
            self._say(f"There is no {kind} {'before' if before else 'after'} this place.")
        else:
            self._say("")

    @Slot(int)
    def _axis_chosen(self, index: int) -> None:
        if self.timeline is not None:
            self.timeline.lanes.show_absolute(index == 1)
            self._place_moved(self.timeline.lanes.place_ns)

    @Slot()
    def _set_mark(self) -> None:
        text, log = self.mark_field.text().strip(), self.log
        if self.timeline is None or log is None:
            return
        if not text:
            self.mark_field.setFocus()
            return
        mark, index = Mark(self.timeline.lanes.place_ns, text), self.boards.currentIndex()
        self._work.run(lambda: add_mark(log, index, mark), self._marked)
        self.mark_field.clear()

    def _marked(self, log: Timelines) -> None:
        if self.log is not None and self.log.path == log.path and self.timeline is not None:
            self.log = log
            board = self.board
            self.timeline.lanes.show_marks(board.marks if board is not None else ())
            self.timeline.overview.update()
            of_log = log.boards[0].facts.log and not is_columns(log.path)
            kept = "This is another tool's log: the mark is kept in the data folder, and in what Save as writes."
            self._say(kept if of_log else "")

    # --- ways from here -----------------------------------------------------------------------------------------------

    @Slot(QPoint, str)
    def _open_menu(self, place: QPoint, lane: str) -> None:
        menu = QMenu(self)
        menu.setAccessibleName("Traces")
        self._lanes_menu.fill(menu, lane)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(place)

    @Slot()
    def _ask_save(self) -> None:
        save_file(self, "Save", f"{self._path.name.split('.')[0]}.csv", _KINDS, self.save_as, suffix="csv")

    def save_as(self, path: Path) -> None:
        """Write the readings of the span, else all: as CSV, or JSON where the name ends so; or copy the recording."""
        board, lanes = self.board, self.timeline.lanes if self.timeline is not None else None
        if board is None or lanes is None:
            return
        start, end = lanes.span or (0, lanes.end_ns)

        def job() -> Path:
            from ...sensors.trace.files import write_trace  # imported late: few ask for it

            part = path.with_name(path.name + ".part")
            try:
                if path.suffix == SUFFIX:
                    shutil.copyfile(board.path, part)
                else:
                    as_json = path.suffix.lower() == ".json"
                    write_trace(board.trace, part, start, end, board.facts.info, as_json=as_json)
                os.replace(part, path)
            except OSError as error:
                what = f"cannot be written: {error.strerror or error}"
                raise WattridgeError(what, str(path), "choose another folder") from error
            finally:
                part.unlink(missing_ok=True)
            return path

        self._say(f"Writing {path.name} …")
        self._work.run(job, lambda written: self._say(f"Written: {written}"))

    @Slot()
    def _step_written(self) -> None:
        if self.log is not None and self.step.value() != self.log.assumed_step_s:
            self.open(self._path, self.step.value())

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self._say(f"{what} ({remedy})" if remedy else what)
        self._show_reading(False)

    @Slot()
    def _ask_watch(self) -> None:
        board = self.board
        if board is None or self.log is None:
            return
        title = board.facts.title
        index = title.rpartition("#")[2] if "#" in title and len(self.log.boards) > 1 else ""
        step = "" if self.log.assumed_step_s is None else f"@{self.log.assumed_step_s:g}"
        self.watch_asked.emit(f"recorded:{self._path}{'#' if index or step else ''}{index}{step}")

    @Slot()
    def _ask_fit(self) -> None:
        if self.log is not None:
            self.fit_asked.emit(self._path)


def _side_by_side(board: Stored, figures: dict[str, SpanFigures]) -> Description:
    """Mean power and energy of the spans, and of two what the second has more."""
    heading = ("span", "from s", "to s", "mean W", "95 % W", "energy J", "95 % J", "power by")
    rows: list[tuple[str | float | None, ...]] = [
        (
            *(name, *_in_s(each.span), each.mean_power_w, _ends(each.power_interval_w)),
            *(each.energy_j, _ends(each.energy_interval_j), each.source),
        )
        for name, each in figures.items()
    ]
    remarks = [f"{name}: the interval is not known: {each.unknown}" for name, each in figures.items() if each.unknown]
    if len(figures) == len(SPANS):
        more = span_difference(*figures.values())
        ends = _ends(more.power_interval_w), _ends(more.energy_interval_j)
        rows.append((f"{SPANS[1]} − {SPANS[0]}", None, None, more.power_w, ends[0], more.energy_j, ends[1], ""))
        if more.distinguishable is not None:
            differ = "differ" if more.distinguishable else "are not distinguishable: their difference may be zero"
            remarks.append(f"the mean powers of {SPANS[0]} and {SPANS[1]} {differ}")
        elif more.unknown:
            remarks.append(f"the interval of the difference is not known: {more.unknown}")
    info = board.facts.info
    origin = f"{info.name}, {'simulated, ' if board.facts.recorded_from == 'simulated' else ''}recorded"
    clean = [tuple(None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row) for row in rows]
    return Description("Spans", origin, listings=[Listing("", heading, clean)], remarks=remarks)


def _ends(interval: Interval | None) -> str:
    return "not known" if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def _in_s(span: tuple[int, int]) -> tuple[float, float]:
    return span[0] / 1e9, span[1] / 1e9


def _label(board: Stored) -> str:
    title, name = board.facts.title, board.facts.info.name
    index = title.rpartition("#")[2] if "#" in title else ""
    return f"{name} · GPU {index}" if index and index not in name else name


def _seconds(name: str) -> NumberBox:
    made = NumberBox()
    made.setRange(0.0, _LONGEST_S)
    made.setDecimals(3)
    made.setSuffix(" s")
    made.setKeyboardTracking(False)
    made.setAccessibleName(name)
    return made
