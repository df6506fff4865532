"""`MonitorPanel`: the live monitor: traces, the summary of a marked span, at every beat.

`RecordButton`: begins and ends a recording, and shows how long and how large it is.

`LanesMenu`: in the menu of the traces: hide, move and scale the lane there, show others; kept in the settings.

`LanesWindow`: choose, order and scale the lanes of the traces.

`TraceMenu`: the menu of the traces: which are shown, copy and export them, and what else can be done with them.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtCore import QLocale, QObject, QPoint, QRect, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QGroupBox,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from ...base.errors import WattridgeError
from ...base.formatting import duration
from ...engine.models.fit.voltage import VoltageEstimate
from ...engine.session.events import FitFinished
from ...sensors.channel import CHANNELS, POWER_SAMPLES
from ...sensors.gpu import GpuInfo
from ..plots.figures import energy_text, value_text
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Part
from ..shared.recorder import KINDS, SUFFIX, Recorder, usual_name
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.watched_boards import ShownReading, beat, shown_reading
from ..shared.widgets import NumberBox, button, hbox, save_file, vbox
from .lane_view import LaneView, Span
from .lanes import ESTIMATED_VOLTAGE, LaneChoice, Range, ShownLane
from .readout import NO_STATISTICS, Readout

if TYPE_CHECKING:
    from ...sensors.gpu import Gpu
    from ...sensors.trace.trace import Statistics, Trace

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
        for widget in (self.up, self.down, self.reset, close):
            widget.setAutoDefault(False)  # Return in a field must not press one
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
        for named in titles:
            tick = menu.addAction(named)
            tick.setCheckable(True)
            tick.setChecked(choice.shows(named))
            tick.triggered.connect(lambda shown, named=named: self._pick(choice.switch(named, shown)))
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
    def _open(self, position: QPoint, lane: str) -> None:
        if self.opened is not None:
            self.opened.close()
        menu = self.opened = QMenu(self._panel)
        menu.setAccessibleName("Traces")
        self._lanes.fill(menu, lane)
        menu.addSeparator()
        self.fill(menu)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.destroyed.connect(self._closed)
        menu.popup(position)

    @Slot()
    def _closed(self) -> None:
        self.opened = None


class RecordButton(QToolButton):
    """A button whose menu selects a file. `recorder` records the board of `info`."""

    def __init__(self, recorder: Recorder, info: GpuInfo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recorder, self._info = recorder, info
        recorder.changed.connect(self._show)
        self.setFont(theme.number_font())
        self.setAutoRaise(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        self.setMenu(QMenu(self))
        self.to_file = self.menu().addAction("Record &to…", self.ask_file)
        longest = self.fontMetrics().horizontalAdvance(_text(24 * 3600.0, 888_800_000))
        self.setFixedWidth(longest + 40)  # its neighbours stay where they are while it counts
        self.clicked.connect(self._toggle)
        theme.notifier().changed.connect(self._show)
        self._show()

    def show_board(self, recorder: Recorder, info: GpuInfo) -> None:
        """Record another board from now on; a recording of the one before continues."""
        self._recorder.changed.disconnect(self._show)
        self._recorder, self._info = recorder, info
        recorder.changed.connect(self._show)
        self._show()

    @Slot()
    def _toggle(self) -> None:
        self._recorder.toggle()

    @Slot()
    def ask_file(self) -> None:
        """Let the user choose a file, and record to it."""
        save_file(self, "Record", usual_name(self._info, datetime.now()), KINDS, self._start)

    def _start(self, path: Path) -> None:
        named = path if path.name.endswith((SUFFIX, ".csv.gz")) else path.with_name(path.name + SUFFIX)
        self._recorder.start(named)

    @Slot()
    def _show(self) -> None:
        recorder = self._recorder
        recording = recorder.recording
        self.setText(_text(recorder.seconds, recorder.size) if recording else "●  Record")
        self.setAccessibleName("Stop recording" if recording else "Record")
        where = f"Stop recording to {recorder.path}" if recording else "Record every reading to a file that replays"
        self.setToolTip(plain_tip(where))
        self.setStyleSheet(f"color: {theme.colours().vermillion};" if recording else "")
        self.setEnabled(not recorder.busy)
        self.to_file.setEnabled(not recording)


def _text(seconds: float, size: int) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    clock = f"{hours}:{minutes:02d}:{int(seconds) % 60:02d}"
    written = QLocale.c().formattedDataSize(size, 1, QLocale.DataSizeFormat.DataSizeSIFormat)
    return f"■  {clock} · {written}"


_SUMMARY_S = 1.0  # between two looks at the statistics
_MARKED = "Marked span"
_OTHER_FOLDER = "choose another folder"
_HINT = "Drag: mean power and energy · wheel: zoom · right drag: move · right click: menu"
_FULLY_READ = 0.98  # of a span; below this the summary says how much of it was read


@dataclass(frozen=True, slots=True)
class SpanSummary:
    """What a stretch of time says. `statistics` by channel name."""

    span: Span
    of: str  # "Marked span", "Since the start", ...
    power_name: str
    power: Statistics
    energy_j: float
    statistics: dict[str, Statistics]


def summarise(trace: Trace, span: Span, of: str) -> SpanSummary:
    """Statistics of every series over a span; over hours this takes longer than a frame."""
    name = trace.power_name
    statistics = {value: trace.statistics(value, *span) for value in trace.names if value not in NO_STATISTICS}
    return SpanSummary(span, of, name, statistics[name], trace.energy_j(*span), statistics)


def summary_text(summary: SpanSummary) -> str:
    """One line: length, mean power with its extremes and where it comes from, energy."""
    label = {**CHANNELS, POWER_SAMPLES.name: POWER_SAMPLES}[summary.power_name].label
    length = duration((summary.span[1] - summary.span[0]) / 1e9)
    if math.isnan(summary.energy_j):
        return f"Span {length} · no power known in it"
    power = summary.power
    read_s = summary.energy_j / power.mean if power.mean else 0.0
    if read_s < _FULLY_READ * (summary.span[1] - summary.span[0]) / 1e9:
        length += f", {duration(read_s)} of it read"
    extremes = f"{power.minimum:.1f} to {power.maximum:.1f}"
    mean = value_text(summary.power_name, "W", power.mean)
    return f"Span {length} · mean {mean} ({extremes}) · energy {energy_text(summary.energy_j)} · {label}"


def caption_text(summary: SpanSummary) -> str:
    """Which time the minimum, mean and maximum of the channels are of."""
    energy = "" if math.isnan(summary.energy_j) else f" · {energy_text(summary.energy_j)}"
    return f"{summary.of}: {duration((summary.span[1] - summary.span[0]) / 1e9)}{energy}"


class MonitorPanel(Part):
    """Give it `readout` to keep the table of channels up to date as well, `recorder` for a button that records."""

    saved = Signal(str)  # the file that was written
    failed = Signal(str, str)  # what, and the remedy
    estimated = Signal(object)  # the VoltageEstimate that is shown from now on

    def __init__(
        self,
        gpu: Gpu,
        trace: Trace,
        readout: Readout | None = None,
        recorder: Recorder | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._gpu = gpu
        self._trace = trace
        self._readout: Readout | None = None
        self._estimate: VoltageEstimate | None = None  # the last that was shown
        self.view = LaneView(gpu, trace)
        self.lanes_menu = LanesMenu(self.view)
        self.menu = TraceMenu(self, self.view, self.lanes_menu, self.picture, self.write_picture, self.write_readings)
        self._summary = PlainLabel(_HINT, selectable=True)
        self._summary.setToolTip(_HINT)
        self._summary.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._summary.setContentsMargins(8, 1, 8, 3)
        self._summary.setFont(theme.number_font())
        self.record = RecordButton(recorder, gpu.info) if recorder is not None else None
        below = hbox((self._summary, 1), *([self.record] if self.record is not None else []), spacing=0)
        vbox((self.view, 1), below, of=self, margins=0, spacing=0)
        self._seen: ShownReading | None = None
        self._span_waits = False
        # since when minimum, mean and maximum are taken, where no span is marked
        self._reset_ns: WeakKeyDictionary[Trace, int] = WeakKeyDictionary()
        self._summary_due_s = 0.0  # of the wall's clock
        if readout is not None:
            self.fill(readout)
        self._statistics = LatestTask(self, self._show_summary, self.failed)
        self._writer = LatestTask(self, self._written, self.failed)
        self.view.cursor_moved.connect(self._cursor_moved)
        self.view.span_changed.connect(self._span_changed)
        beat().struck.connect(self.tick)

    def fill(self, readout: Readout) -> None:
        """Keep this table of the shown board's channels up to date from now on."""
        self._readout = readout
        readout.reset_asked.connect(self.reset_statistics)
        self._fill_estimate()

    def _fill_estimate(self) -> None:
        if self._readout is not None and self._estimate is not None and self.view.estimates:
            self._readout.add_estimate(ESTIMATED_VOLTAGE, f"estimated from a {self._estimate.source}")

    def show_board(self, gpu: Gpu, trace: Trace) -> None:
        """Show another board's traces, as they were left: its marked span, and where they were held."""
        self._gpu, self._trace = gpu, trace
        self._seen = None
        if self._readout is not None:
            self._readout.show_channels(gpu.channels)
        self.view.show_board(gpu, trace)
        self.tick()

    @property
    def summary(self) -> str:
        """The line under the traces."""
        return self._summary.text()

    def shutdown(self) -> None:
        """Follow no longer, and wait for work under way."""
        beat().struck.disconnect(self.tick)
        super().shutdown()

    @Slot(object)
    def show_fit(self, event: FitFinished) -> None:
        """Take over the estimate of the voltage from a new fit of this board's clocks; other boards' say nothing."""
        self.show_estimate(VoltageEstimate.of(event.fit, event.source, self._gpu.info))

    def show_estimate(self, estimate: VoltageEstimate | None) -> None:
        """Show the estimated voltage where the board reports none; with None what is shown stays."""
        if estimate is None:
            return
        self._estimate = estimate
        self.view.set_estimate(estimate)
        self.estimated.emit(estimate)
        self._fill_estimate()

    @Slot()
    def tick(self) -> None:
        """Show new readings; does nothing if there are none or the panel is out of sight."""
        self._summarise_again()
        if not self.isVisible() or self.window().isMinimized():
            return
        shown = shown_reading(self._trace)
        if shown is self._seen:
            return
        self._seen = shown
        values = self.view.present_values()
        self.view.refresh(values)
        if self._readout is not None and self._readout.isVisible():
            self._readout.show_now(values)

    @Slot()
    def reset_statistics(self) -> None:
        """Minimum, mean and maximum of the channels begin now."""
        self._reset_ns[self._trace] = self._trace.last_ns
        self._span_waits = True

    def _summarise_again(self) -> None:
        """The statistics of a span once it is marked, else those since the reset, once a second while they are seen."""
        if self._statistics.busy:
            return
        span, newest = self.view.span, self._trace.last_ns
        if span is None and self._readout is not None and self._readout.isVisible():
            self._span_waits |= time.monotonic() >= self._summary_due_s
        if not self._span_waits or not newest:
            return
        self._span_waits = False
        self._summary_due_s = time.monotonic() + _SUMMARY_S
        trace = self._trace
        reset, oldest = self._reset_ns.get(trace, 0), trace.first_ns  # the trace forgets what is older
        of = _MARKED if span else "Since the reset" if reset >= oldest else "All that is kept"
        chosen = span or (max(reset, oldest), newest)
        self._statistics.run(lambda _: (trace, summarise(trace, chosen, of)))

    # --- files --------------------------------------------------------------------------------------------------------

    def shown_span(self) -> Span:
        """The marked span, else the stretch that is shown."""
        if self.view.span is not None:
            return self.view.span
        snapshot = self.view.snapshot
        return (snapshot.start_ns, snapshot.end_ns) if snapshot is not None else (0, 0)

    def write_readings(self, path: Path) -> None:
        """Write the marked span's readings, else what is shown: JSON where the name ends so, else CSV.

        Reports by `saved` or `failed`.
        """
        start, end = self.shown_span()
        info, trace = self._gpu.info, self._trace

        def work(_: threading.Event) -> Path:
            from ...sensors.trace.files import write_trace  # imported late: few ask for it

            part = path.with_name(path.name + ".part")
            try:
                write_trace(trace, part, start, end, info, as_json=path.suffix.lower() == ".json")
                os.replace(part, path)
            except OSError as error:
                raise WattridgeError(error.strerror or str(error), str(path), _OTHER_FOLDER) from error
            finally:
                part.unlink(missing_ok=True)
            return path

        if self._writer.busy:
            self.failed.emit("another file is being written", "try again when it is done")
        else:
            self._writer.run(work)

    def write_picture(self, path: Path) -> None:
        """Write what is seen as PNG, or as SVG where the name ends so; reports by `saved` or `failed`."""
        written = self._write_svg(path) if path.suffix.lower() == ".svg" else self.picture().save(str(path))
        if written:
            self.saved.emit(str(path))
        else:
            self.failed.emit(f"{path}: cannot be written", f"{_OTHER_FOLDER}, and a name ending in .png or .svg")

    def picture(self) -> QImage:
        """What is seen, at twice its size on the screen."""
        size = self._picture_size()
        image = QImage(size * 2, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(2.0)
        self._paint(lambda: QPainter(image), size)
        return image

    def _write_svg(self, path: Path) -> bool:
        size = self._picture_size()
        generator = QSvgGenerator()
        generator.setFileName(str(path))
        generator.setSize(size)
        generator.setViewBox(QRect(0, 0, size.width(), size.height()))
        generator.setTitle(self._title())
        return self._paint(lambda: QPainter(generator), size)

    def _picture_size(self) -> QSize:
        return QSize(self.view.width(), self.view.height() + self.view.fontMetrics().height() + 8)

    def _paint(self, begin: Callable[[], QPainter], size: QSize) -> bool:
        painter = begin()
        if not painter.isActive():
            return False
        self.view.render_to(painter, QRect(0, 0, size.width(), size.height()), self._title())
        return painter.end()

    def _title(self) -> str:
        info = self._gpu.info
        span = f" · {self.summary}" if self.view.span is not None else ""
        driver = f" · driver {info.driver}" if info.driver and info.live else ""
        return f"{info.label}{driver} · {duration(self.view.window_of_time.length_s)} shown{span}"

    # --- slots --------------------------------------------------------------------------------------------------------

    @Slot(object)
    def _cursor_moved(self, instant: int | None) -> None:
        if self._readout is not None and self._readout.isVisible():
            self._readout.show_cursor({} if instant is None else self.view.values_at(instant))

    @Slot(object)
    def _span_changed(self, span: Span | None) -> None:
        self._span_waits = True
        if span is None:
            self._summary.setText(_HINT)
            self._summary.setToolTip(_HINT)

    @Slot(object)
    def _show_summary(self, of: tuple[Trace, SpanSummary]) -> None:
        trace, summary = of
        marked = summary.of == _MARKED
        if trace is not self._trace or marked != (self.view.span is not None):
            return
        if marked:
            self._summary.setText(summary_text(summary))
            self._summary.setToolTip(plain_tip(summary_text(summary)))  # if there is no room for all of it
        if self._readout is not None:
            self._readout.show_statistics(summary.statistics, caption_text(summary))

    @Slot(object)
    def _written(self, path: Path) -> None:
        self.saved.emit(str(path))
