"""The energy roofline: measure a board or open sweeps, see them overlaid with their fits, place a kernel on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QPushButton,
    QSplitter,
    QTableWidget,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ...engine.analysis.quantities import Quantity
from ...engine.models.roofline.describe_sweeps import describe_sweep, verdict
from ...engine.models.roofline.points import (
    PRECISIONS,
    TENSOR,
    Sweep,
    kernel_of,
    past_sweeps,
    precision_words,
    published_sweeps,
    recorded_sweeps,
    sweep_of_session,
    sweeps_of_file,
    sweeps_of_store,
    sweeps_on_file,
)
from ...engine.session.events import SessionStarted
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..plots.colour_key import ColourKey
from ..plots.descriptions import fill_columns, prepare_table
from ..plots.overlay_list import OverlayList, icon_of
from ..shared import theme
from ..shared.captions import source_words
from ..shared.context import Context
from ..shared.file_dialogs import open_file
from ..shared.label import PlainLabel, plain_tip
from ..shared.past_sessions import PastSession, PastSessions
from ..shared.tasks import LatestTask
from ..shared.turns import InParts
from ..shared.widgets import ProgressBar
from .kernel import KernelPlacer
from .measuring import RooflineMeasuring
from .plot import RooflinePlot

_WIDE = 760  # pixels from which the table fits beside the plots
_FILES = "Sweeps (*.csv *.csv.gz *.json *.json.gz);;All files (*)"
_EMPTY = (
    "No roofline yet.\n"
    "'Measure this board' runs microbenchmarks from copying to pure arithmetic and\n"
    "finds what a flop, a byte and a second cost;\n"
    "'Add' takes a sweep from a file, a past session, the session shown,\nor the lines that others have published."
)
_LEGEND = (
    "━ fitted at full occupancy \u2003 ╍ within the power limit \u2003 ● measured \u2003 "
    "○ at a limit or below the peak clock: not fitted \u2003 ╌·╌ published by others"
)
_LEGEND_TIP = (
    "Kernels with only traffic (copy) or only work (flop) have no place on the axis of intensity: they stand in the "
    "grey margins. The baseline has neither: its power is in the table. Error bars are 95 % intervals of power."
)
_HEADING_PX, _HEADING_SHARE = 120, 0.34  # of the table's width at most: the rest is for the values
_THREADS = Quantity("threads_per_multiprocessor", "Threads/SM", "")


class RooflinePanel(QWidget, InParts):
    """Overlays sweeps. Usable without a window: `RooflinePanel(context)`."""

    session_opened = Signal()  # a stored sweep was opened elsewhere, and is shown here

    def __init__(self, context: Context, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self._context = context
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """The three plots, the controls, what is drawn."""
        context = self._context
        self.plot, self.key = RooflinePlot(at_once=False), ColourKey()
        yield from self.plot.make_parts()
        self.measuring = RooflineMeasuring(context, self)
        self._reader, self._filed = LatestTask(self), LatestTask(self)
        self.precisions = QComboBox()
        self.measure, self.stop = QPushButton("&Measure this board"), QPushButton("Stop")
        self.add, self.remove = QToolButton(), QPushButton("&Remove")
        self.progress, self.message, self.reasons, self.legend = (
            ProgressBar(),
            PlainLabel(),
            PlainLabel(),
            PlainLabel(_LEGEND),
        )
        self.list: OverlayList[Sweep] = OverlayList(
            "Sweeps that are overlaid",
            "Tick what is shown. The points of the chosen one are coloured by occupancy, and its balances are marked",
        )
        self.table, self.placer = QTableWidget(), KernelPlacer()
        self.table.setTabKeyNavigation(False)
        self._fill_controls()
        yield
        self._lay_out()
        yield
        self.measure.clicked.connect(self.start_measuring)
        self.stop.clicked.connect(self.measuring.stop)
        self.remove.clicked.connect(self.list.remove_chosen)
        self.list.changed.connect(self._draw)
        self.placer.changed.connect(self._draw)
        self._reader.done.connect(self._read)
        self._filed.done.connect(self._read)
        self._filed.failed.connect(self._complain)
        self._reader.failed.connect(self._complain)
        self.measuring.measured.connect(self._measured)
        self.measuring.opened.connect(self._session_opened)
        self.measuring.changed.connect(self._show_measuring)
        self.measuring.failed.connect(self._complain)
        context.result.changed.connect(self._selected)
        context.boards.board_changed.connect(self._name_board)
        theme.notifier().changed.connect(self._recolour)
        self._selected()
        self._show_measuring()
        self._draw()
        self.open_on_file()

    def _fill_controls(self) -> None:
        self.precisions.addItem(" + ".join(map(precision_words, PRECISIONS)), PRECISIONS)
        for precision in PRECISIONS + TENSOR:
            self.precisions.addItem(precision_words(precision), (precision,))
        self.precisions.setToolTip("Each precision is a sweep of its own")
        self.precisions.setAccessibleName("Precisions to measure")
        self._name_board()
        self.stop.setToolTip("End the sweep; what was measured stays")
        self.remove.setToolTip("Take the chosen sweep out of the picture; sessions and files stay")
        self.add.setText("&Add")
        self.add.setToolTip("Overlay another sweep")
        self.add.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.add.setMenu(QMenu(self.add))
        self.past = PastSessions(self.add.menu(), self._past)
        self.past.failed.connect(self._complain)
        self.add.menu().aboutToShow.connect(self._fill_sources)
        self.add.menu().triggered.connect(self._source_chosen)
        self.progress.setFormat("%v of %m points")

    @Slot()
    def _name_board(self, *_: object) -> None:
        provenance = source_words(self._context.gpu.info.source)
        self.measure.setToolTip(
            "Run the baseline, copy, flop and roofline kernels over intensity and occupancy; the result of Tune stays"
            + (f"; {provenance}" if provenance else "")
        )

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        for widget in (self.measure, self.precisions, self.stop):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        buttons.addWidget(self.add)
        buttons.addWidget(self.remove)
        for label in (self.message, self.reasons):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.legend.setWordWrap(True)
        self.legend.setToolTip(_LEGEND_TIP)
        drawing = QWidget()
        row = QHBoxLayout(drawing)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.plot, 1)
        row.addWidget(self.key)
        self.key.setToolTip("Threads that reside on a multiprocessor: the lines are fitted at the most of them")
        prepare_table(self.table, "Fitted energies and balances")
        self.table.setAlternatingRowColors(True)
        rows = self.table.verticalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(self.fontMetrics().height() + 5)
        self.tabs = QTabWidget()
        self.tabs.setAccessibleName("Pages of the roofline")
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.table, "Fit")
        self.tabs.addTab(self.placer, "Place a kernel")
        self._side = QWidget()
        column = QVBoxLayout(self._side)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.list)
        column.addWidget(self.reasons)
        column.addWidget(self.tabs, 1)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(drawing)
        self._splitter.addWidget(self._side)
        self._splitter.setStretchFactor(0, 3)
        self._splitter.setStretchFactor(1, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.addLayout(buttons)
        layout.addWidget(self.progress)
        layout.addWidget(self.message)
        layout.addWidget(self.legend)
        layout.addWidget(self._splitter, 1)
        self.setMinimumHeight(260)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The table beside the plots where there is room, else below them."""
        super().resizeEvent(event)
        orientation = Qt.Orientation.Horizontal if self.width() >= _WIDE else Qt.Orientation.Vertical
        if orientation is not self._splitter.orientation():
            self._splitter.setOrientation(orientation)
            room = self.width() if orientation is Qt.Orientation.Horizontal else self.height()
            self._splitter.setSizes([room * 11 // 20, room * 9 // 20])
        beside = self.width() * 9 // 20 if orientation is Qt.Orientation.Horizontal else self.width()
        self.table.verticalHeader().setMaximumWidth(max(_HEADING_PX, int(_HEADING_SHARE * beside)))

    def shutdown(self) -> None:
        """End what runs in the background."""
        self._reader.shutdown()
        self._filed.shutdown()
        self.past.shutdown()
        self.measuring.shutdown()

    def provenance(self) -> str:
        """What the plots are of: sweeps of their own boards, whatever result is shown."""
        return ", ".join(sweep.label for _, sweep in self.list.shown)

    @property
    def reading(self) -> bool:
        """Whether sweeps are being read from a file or the store."""
        return self._reader.busy or self._filed.busy

    # --- sources -----------------------------------------------------------------------------------------------------

    @Slot()
    def start_measuring(self) -> None:
        """Sweep the board in the window in the chosen precisions."""
        self._complain("", "")
        self.measuring.start(self.precisions.currentData())

    @Slot()
    def _fill_sources(self) -> None:
        menu = self.add.menu()
        menu.clear()
        from_session = menu.addAction("From the &session shown")
        from_session.setData("session")
        table = self._context.result.table
        from_session.setEnabled(table is not None and len(table) > 0)
        menu.addAction("A &file …").setData("file")
        recorded = menu.addAction("&Recorded boards")
        recorded.setData("recorded")
        recorded.setToolTip("Real boards whose sweeps come with the program")
        published = menu.addMenu("&Published boards")
        published.setToolTipsVisible(True)
        for sweep in published_sweeps():
            line = published.addAction(f"{sweep.points.gpu} · {precision_words(sweep.points.precision)}")
            line.setData(sweep)
            line.setToolTip(plain_tip(sweep.origin))
        published.addAction("All of them").setData("published")
        menu.addSection("Past sweeps")
        self.past.add()

    def _past(self) -> list[PastSession]:
        return [PastSession(session, words) for session, words in past_sweeps(self._context.store)]

    @Slot(QAction)
    def _source_chosen(self, action: QAction) -> None:
        if action.data() == "session":
            self.add_session_shown()
        elif action.data() == "file":
            self.choose_file()
        elif action.data() == "recorded":
            self.add_recorded()
        elif action.data() == "published":
            self.list.put(published_sweeps())
        elif isinstance(action.data(), Sweep):
            self.list.put([action.data()])
        elif action.data() is not None:
            self.add_past(int(action.data()))

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a file."""
        open_file(self, "Open a roofline sweep", _FILES, self.open)

    def open(self, path: Path) -> None:
        """Add the sweeps of a cache or CSV."""
        self._complain("", "")
        self._reader.run(lambda _stop: sweeps_of_file(path))

    def open_on_file(self) -> None:
        """Add the newest sweep of each board that was measured here."""
        store, board = self._context.store, self._context.gpu.info
        self._filed.run(lambda _stop: sweeps_on_file(store, board))

    def add_recorded(self) -> None:
        """Add the real boards whose sweeps come with the program."""
        self._complain("", "")
        self._reader.run(lambda _stop: recorded_sweeps())

    def add_past(self, session: int) -> None:
        """Add a stored session."""
        self._complain("", "")
        store, board = self._context.store, self._context.gpu.info
        self._reader.run(lambda _stop: sweeps_of_store(store, session, board))

    @Slot()
    def add_session_shown(self) -> None:
        """Add the running or last session of the window."""
        result = self._context.result
        if result.table is not None and result.plan is not None:
            self._add_session(result.table, result.plan, result.session)

    @Slot(object)
    def _session_opened(self, event: SessionStarted) -> None:
        self._add_session(event.table, event.plan, event.session)
        self.session_opened.emit()

    def _add_session(self, table: ResultTable, plan: SessionPlan, session: int | None) -> None:
        board = self._context.gpu.info
        self._complain("", "")
        session_of = {"gpu": plan.gpu, "title": plan.title, "source": plan.source, "session": session}
        self._reader.run(lambda _stop: [sweep_of_session(table, board=board, **session_of)])  # type: ignore[arg-type]

    @Slot(object)
    def _read(self, sweeps: list[Sweep]) -> None:
        self.list.put(sweeps)

    @Slot(object)
    def _measured(self, sweep: Sweep) -> None:
        self.list.put([sweep])

    @Slot(str, str)
    def _complain(self, what: str, remedy: str) -> None:
        self.message.setText(f"{what}: {remedy}" if remedy else what)
        self.message.setVisible(bool(what))

    # --- what is shown -----------------------------------------------------------------------------------------------

    @Slot()
    def _show_measuring(self) -> None:
        measuring = self.measuring
        self.measure.setEnabled(measuring.possible)
        self.precisions.setEnabled(measuring.possible)
        self.stop.setVisible(measuring.busy)
        self.progress.setVisible(measuring.busy)
        if measuring.busy:
            progress = measuring.progress
            self.progress.setFormat(f"{precision_words(measuring.precision)}: %v of %m points")
            self.progress.setRange(0, progress.budget if progress is not None else 0)
            self.progress.setValue(progress.evaluated if progress is not None else 0)

    @Slot()
    def _selected(self, _index: int = -1) -> None:
        result = self._context.result
        chosen = result.table is not None and 0 <= result.index < len(result.table)
        kernel = None
        if chosen and result.table is not None and result.plan is not None:
            kernel = kernel_of(result.table.measurement(result.index), result.plan.title, result.plan.gpu)
        self.placer.offer(kernel)

    @Slot()
    def _draw(self) -> None:
        shown, focus = self.list.shown, self.list.focus
        empty = not self.list.entries
        for widget in (self._side, self.legend):
            widget.setVisible(not empty)
        self.remove.setEnabled(not empty)
        self.plot.say(_EMPTY if empty else "" if shown else "Nothing is ticked in the list.")
        self.plot.show_sweeps(shown, focus, self.placer.kernel)
        coding = self.plot.coding
        self.key.show_coding(coding, _THREADS if coding is not None else None)
        self._fill_table()
        self.placer.show_sweeps(shown)
        self._show_words()

    @Slot()
    def _recolour(self) -> None:
        self._fill_table()
        self._show_words()

    def _fill_table(self) -> None:
        shown = self.list.shown
        fill_columns(self.table, [describe_sweep(sweep) for _, sweep in shown], [icon_of(at) for at, _ in shown])

    def _show_words(self) -> None:
        focus, words = self.list.focus, ""
        if focus is not None and focus.reasons:
            unknown = f" — {verdict(focus)}" if verdict(focus) else ""
            words = f"{focus.label}{unknown}: {'; '.join(focus.reasons)}"
        if words and self.measuring.busy:
            words += " — so far: more points are being measured"
        self.reasons.setText(words)
        self.reasons.setVisible(bool(words))
        self.reasons.setStyleSheet(f"color: {theme.colours().muted};")
        self.message.setStyleSheet(f"color: {theme.colours().vermillion};")
