"""The energy roofline: measure a board or open sweeps, see them overlaid with their fits, place a kernel on them.

Placing a kernel on the rooflines by its work and traffic, and what each board is expected to take for it.

`RooflineMeasuring`: the sweeps of a board's roofline as ordinary sessions, one precision after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QSplitter,
    QTableWidget,
    QTabWidget,
    QWidget,
)

from ...base.formatting import number
from ...engine.analysis.quantities import Quantity
from ...engine.models.roofline.describe_sweeps import describe_held, describe_kernel, describe_sweep, verdict
from ...engine.models.roofline.operator_floor import known_sweeps
from ...engine.models.roofline.points import (
    PRECISIONS,
    TENSOR,
    PlacedKernel,
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
from ...engine.results.state import Progress, SessionState
from ...engine.runner.boards import ReadyPlan
from ...engine.session import events
from ...engine.session.events import SessionStarted
from ...engine.session.planning import plan_resume, plan_roofline
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..plots.colour_key import ColourKey
from ..plots.descriptions import ListingTable, fill_columns, prepare_table
from ..plots.overlay_list import OverlayList, icon_of
from ..shared import theme
from ..shared.captions import source_words
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.needs import Needs
from ..shared.panel import Ending, PanelInParts
from ..shared.past_sessions import PastSession, PastSessions
from ..shared.tasks import LatestTask
from ..shared.turns import timer
from ..shared.widgets import ProgressBar, hbox, menu_button, open_file, vbox
from .roofline_plot import RooflinePlot

_PARTIAL_MS = 500  # between two fits of a sweep that is still running


class RooflineMeasuring(QObject, Ending):
    """Plans and fits off Qt's thread; the engine runs the sessions. `measured` is emitted during a session too.

    These sessions are stored as any other, and never become the window's current result.
    """

    measured = Signal(object)  # Sweep
    opened = Signal(object)  # events.SessionStarted: a stored sweep, opened to look at
    changed = Signal()  # what is going on, or how far it is
    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, context: Context, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._gpu = context.gpu  # the board of the sweep that runs, or of the last one
        self._waiting: list[str] = []  # precisions still to be measured, the present one first
        self._own: tuple[SessionPlan, ResultTable, int] | None = None  # the session that runs, or the last one
        self._asked: ReadyPlan | None = None  # given to the engine, which has not answered yet
        self.progress: Progress | None = None
        self._planner = LatestTask(self, self._planned, self._not_planned)
        self._fitter = LatestTask(self, self.measured, self._not_fitted)
        self._partial = timer(self, self._fit, _PARTIAL_MS, once=True)
        bridge = context.bridge
        bridge.subscribe(events.SessionStarted, self._session_started, roofline=True)
        bridge.subscribe(events.MeasurementsAdded, self._measurements_added, roofline=True)
        bridge.subscribe(events.FiguresRestated, self._figures_restated, roofline=True)
        bridge.subscribe(events.SessionChanged, self._session_changed, roofline=True)
        bridge.activity.changed.connect(self.changed)
        self.changed.connect(self._hold_queue)
        bridge.subscribe(events.EngineFault, self._fault)

    @property
    def busy(self) -> bool:
        """Whether a sweep started here is running."""
        return bool(self._waiting)

    @property
    def fitting(self) -> bool:
        """Whether a fit is still to come."""
        return self._fitter.busy or self._partial.isActive()

    @property
    def possible(self) -> bool:
        """The engine is free for a sweep."""
        bridge = self._context.bridge
        return not self.busy and bridge.activity.plan is None and bridge.queue.current is None

    @property
    def precision(self) -> str:
        """What is being measured; empty while nothing is."""
        return self._waiting[0] if self._waiting else ""

    def start(self, precisions: Sequence[str]) -> None:
        """Measure these, one after the other."""
        if self.possible and precisions:
            self._waiting = list(precisions)
            self._gpu = self._context.gpu  # whichever board is shown meanwhile
            self._plan()

    @Slot(int, str)
    def resume(self, session: int, precision: str) -> None:
        """Continue a stored sweep."""
        store, board = self._context.store, self._context.boards.current
        if self.possible:
            self._waiting, self._gpu = [precision], board.gpu
            self._plan_with(lambda: plan_resume(store, session, gpu=board.gpu, guard=board.guard))

    @Slot()
    def stop(self) -> None:
        """End what runs; what was measured stays."""
        started = self._asked is not None or self._own is not None
        self._waiting = self._waiting[:1] if started else []
        self._planner.shutdown()
        if started:
            self._context.bridge.submit(events.Stop())
        self.changed.emit()

    # --- one precision after the other --------------------------------------------------------------------------------

    def _plan(self) -> None:
        gpu, precision = self._gpu, self._waiting[0]
        self._plan_with(lambda: plan_roofline(gpu, precision))

    def _plan_with(self, plan: Callable[[], ReadyPlan]) -> None:
        self.progress, self._own = None, None
        self._planner.run(lambda _stop: plan())
        self.changed.emit()

    @Slot(object)
    def _planned(self, plan: ReadyPlan) -> None:
        self._asked = plan
        self._context.bridge.submit(events.Start(plan))

    @Slot(str, str)
    def _not_planned(self, what: str, remedy: str) -> None:
        self._give_up()
        self.failed.emit(what, remedy)

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        if event.plan is self._asked:
            self._asked, self._own = None, (event.plan, event.table, event.session)
        elif not event.running:
            self.opened.emit(event)
        self.changed.emit()

    @Slot(object)
    def _figures_restated(self, event: events.FiguresRestated) -> None:
        if self._own is not None and event.session == self._own[2]:
            self._own = (event.plan, event.table, event.session)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        if self.busy and self._own is not None and event.session == self._own[2]:
            self.progress = event.progress
            if not self._partial.isActive() and not self._fitter.busy:
                self._partial.start()
            self.changed.emit()

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        state = event.progress.state
        if self.busy and self._own is not None and event.progress.session == self._own[2] and not state.alive:
            self._partial.stop()
            self._fit()
            self._waiting = self._waiting[1:] if state is SessionState.DONE else []
            if self._waiting:
                self._plan()
        self.changed.emit()

    @Slot()
    def _hold_queue(self) -> None:
        """Nothing that waits to run comes between two precisions."""
        self._context.bridge.queue.hold(self.busy)

    @Slot(object)
    def _fault(self, _event: events.EngineFault) -> None:
        """A session that could not even start; the window's banner shows why."""
        if self._asked is not None:
            self._give_up()

    def _give_up(self) -> None:
        self._waiting, self._asked = [], None
        self.changed.emit()

    # --- fitting what was measured ------------------------------------------------------------------------------------

    @Slot()
    def _fit(self) -> None:
        if self._own is None:
            return
        (plan, table, session), board = self._own, self._gpu.info
        session_of = {"gpu": plan.gpu, "title": plan.title, "source": plan.source, "session": session}
        self._fitter.run(lambda _stop: sweep_of_session(table, board=board, **session_of))  # type: ignore[arg-type]

    @Slot(str, str)
    def _not_fitted(self, what: str, remedy: str) -> None:
        if not self.busy:  # while it runs the first points may be too few
            self.failed.emit(what, remedy)


_TIPS = (
    "Work over peak or traffic over bandwidth, whichever takes longer, and longer at a power limit",
    "Energy over time",
    "W ε_flop + Q ε_mem + T π_0",
)
_HOW = "Enter what the kernel does, or take it from the configuration that is selected."


class KernelPlacer(QWidget):
    """Two fields, a button that fills them, and the table of expectations. `changed` after every change."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._offered: PlacedKernel | None = None
        self._kernel: PlacedKernel | None = None
        self.work, self.traffic = QLineEdit(), QLineEdit()
        self.take = QPushButton("From the &selection")
        self.message = PlainLabel(_HOW, wrap=True)
        self.table = ListingTable("Expected time, power and energy of the kernel")
        grid = QGridLayout(self)
        grid.setContentsMargins(4, 4, 4, 0)
        for column, (text, field, tip) in enumerate(
            (
                ("&Work (flop)", self.work, "Floating-point operations of one launch, such as 1.4e11"),
                ("Tra&ffic (B)", self.traffic, "Bytes to and from memory of one launch, such as 2e8"),
            )
        ):
            label = PlainLabel(text)
            label.setBuddy(field)
            field.setToolTip(tip)
            field.setPlaceholderText(tip.rpartition(" ")[2])
            field.setClearButtonEnabled(True)
            grid.addWidget(label, 0, column)
            grid.addWidget(field, 1, column)
            field.textEdited.connect(self._typed)
        grid.addWidget(self.take, 1, 2)
        grid.addWidget(self.message, 2, 0, 1, 3)
        grid.addWidget(self.table, 3, 0, 1, 3)
        grid.setRowStretch(3, 1)
        self.take.clicked.connect(self.take_offered)
        self.offer(None)

    @property
    def kernel(self) -> PlacedKernel | None:
        """What is placed; None if the fields hold no work and traffic."""
        return self._kernel

    def offer(self, kernel: PlacedKernel | None) -> None:
        """Offer the kernel of the selected configuration, where its work and traffic are known."""
        followed = self._kernel is self._offered  # else the user has entered another one
        self._offered = kernel
        if followed and kernel is not None and kernel != self._kernel:
            self.take_offered()
        self.take.setEnabled(kernel is not None)
        self.take.setToolTip(
            "Take work and traffic from the selected configuration's GFLOP/s, GB/s and time"
            if kernel is not None
            else "Select a configuration whose values hold GFLOP/s and GB/s, in Tune or Front"
        )

    @Slot()
    def take_offered(self) -> None:
        """Place the selected configuration."""
        if self._offered is None:
            return
        self.work.setText(f"{self._offered.work_flop:.4g}")
        self.traffic.setText(f"{self._offered.traffic_byte:.4g}")
        self._kernel = self._offered
        self._show_kernel()

    @Slot()
    def _typed(self) -> None:
        work, traffic = _positive(self.work.text()), _positive(self.traffic.text())
        self._kernel = PlacedKernel(work, traffic) if work is not None and traffic is not None else None
        both = bool(self.work.text() and self.traffic.text())
        self._show_kernel("Both must be numbers above zero." if both and self._kernel is None else "")

    def _show_kernel(self, complaint: str = "") -> None:
        kernel = self._kernel
        if kernel is None:
            self.message.setText(complaint or _HOW)
        else:
            name = f"{kernel.name}: " if kernel.name else ""
            self.message.setText(f"{name}{number(kernel.intensity)} flop/B; ★ expected, ✖ measured in the plots")
        self.changed.emit()

    def show_sweeps(self, shown: Sequence[tuple[int, Sweep]]) -> None:
        """What each board is expected to take, and what was measured."""
        if self._kernel is None:
            self.table.setRowCount(0)
            return
        sweeps = [sweep for _, sweep in shown]
        tips = ["\n".join(sweep.reasons) for sweep in sweeps] + ["As the selected configuration was measured"]
        expected = describe_kernel(self._kernel, sweeps)
        self.table.show_listing(expected, tips=tips, icons=[icon_of(place) for place, _ in shown])
        for column, tip in enumerate(_TIPS, start=1):
            self.table.model().setHeaderData(column, Qt.Orientation.Horizontal, tip, Qt.ItemDataRole.ToolTipRole)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


_WIDE = 760  # pixels from which the table fits beside the plots
_FILES = "Sweeps (*.csv *.csv.gz *.json *.json.gz);;All files (*)"
_EMPTY = "No roofline of this board is known: it takes microbenchmarks from copying to arithmetic, some minutes."
_LEGEND = (
    "━ fitted at full occupancy \u2003 ╍ within the power limit \u2003 ● measured \u2003 "
    "○ at a limit or below the peak clock \u2003 ╌·╌ published by others"
)
_LEGEND_TIP = (
    "Kernels with only traffic (copy) or only work (flop) have no place on the axis of intensity: they stand in the "
    "grey margins. The baseline has neither: its power is in the table. Error bars are 95 % intervals of power."
)
_HEADING_PX, _HEADING_SHARE = 120, 0.34  # of the table's width at most: the rest is for the values
_THREADS = Quantity("threads_per_multiprocessor", "Threads/SM", "")


class RooflinePanel(PanelInParts):
    """Overlays sweeps. Usable without a window: `RooflinePanel(context)`."""

    session_opened = Signal()  # a stored sweep was opened elsewhere, and is shown here

    def make(self) -> Iterator[None]:
        """The three plots, the controls, what is drawn."""
        self._drawn = True  # there is nothing to draw
        context = self._context
        self.plot, self.key = RooflinePlot(at_once=False), ColourKey()
        yield from self.plot.make_parts()
        self.measuring = RooflineMeasuring(context, self)
        self._reader = LatestTask(self, self._read, self._complain)
        self._filed = LatestTask(self, self._read, self._complain)
        self._known = LatestTask(self, self._read, self._complain)
        self.needs = Needs(_EMPTY, "Measure this board", self.start_measuring)
        self.precisions = QComboBox()
        self.measure, self.stop = QPushButton("&Measure this board"), QPushButton("Stop")
        self.add = menu_button("&Add", "Overlay another sweep", self._fill_sources, self._source_chosen)
        self.remove = QPushButton("&Remove")
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
        self.held = ListingTable("Points that a limit held")
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
        self.measuring.measured.connect(self._measured)
        self.measuring.opened.connect(self._session_opened)
        self.measuring.changed.connect(self._show_measuring)
        self.measuring.failed.connect(self._complain)
        context.result.changed.connect(self._selected)
        self.subscribe(events.SessionChanged, self._session_changed)
        context.boards.board_changed.connect(self._name_board)
        self._selected()
        self._show_measuring()
        self._draw()
        self.open_on_file()
        self.place_session()

    def _fill_controls(self) -> None:
        self.precisions.addItem(" + ".join(map(precision_words, PRECISIONS)), PRECISIONS)
        for precision in PRECISIONS + TENSOR:
            self.precisions.addItem(precision_words(precision), (precision,))
        self.precisions.setToolTip("Each precision is a sweep of its own")
        self.precisions.setAccessibleName("Precisions to measure")
        self._name_board()
        self.stop.setToolTip("End the sweep; what was measured stays")
        self.remove.setToolTip("Take the chosen sweep out of the picture; sessions and files stay")
        self.past = PastSessions(self.add.menu(), self._past)
        self.past.failed.connect(self._complain)
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
        hbox((self.plot, 1), self.key, of=drawing, margins=0, spacing=2)
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
        self.tabs.addTab(self.held, "At the limit")
        self.tabs.addTab(self.placer, "Place a kernel")
        self._side = QWidget()
        vbox(self.list, self.reasons, (self.tabs, 1), of=self._side, margins=0)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(drawing)
        self._splitter.addWidget(self._side)
        self._splitter.setStretchFactor(0, 3)
        self._splitter.setStretchFactor(1, 2)
        vbox(
            buttons, self.progress, self.message, self.legend, (self._splitter, 1), (self.needs, 1), of=self, margins=6
        )
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
        index, kernel = result.chosen, None
        if result.table is not None and result.plan is not None and index is not None and index < len(result.table):
            kernel = kernel_of(result.table.measurement(index), result.plan.title, result.plan.gpu)
        self.placer.offer(kernel)

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        """At the end of a session its best kernel is placed on the best roofline that is known of its board."""
        if event.progress.session == self._context.result.session and not event.progress.state.alive:
            self.place_session()

    def place_session(self) -> None:
        """Place the kernel of the session that is shown."""
        self._selected()
        plan, store = self._context.result.plan, self._context.store
        precision = plan.origin.get("precision", "") if plan is not None else ""
        if plan is not None and precision:
            known = ([sweep] for sweep in known_sweeps(plan, precision, store) if sweep.model is not None)
            self._known.run(lambda _stop: next(known, []))

    @Slot()
    def _draw(self) -> None:
        """In sight only: a plot that nobody sees would lengthen the turn in which another page comes."""
        self._drawn = self.isVisible()
        if self._drawn:
            self._draw_now()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._drawn:
            self._draw()

    def _draw_now(self) -> None:
        shown, focus = self.list.shown, self.list.focus
        empty = not self.list.entries
        for widget in (self._splitter, self.legend):
            widget.setVisible(not empty)
        self.needs.setVisible(empty)
        self.remove.setEnabled(not empty)
        self.plot.say("" if shown or empty else "Nothing is ticked in the list.")
        self.plot.show_sweeps(shown, focus, self.placer.kernel)
        coding = self.plot.coding
        self.key.show_coding(coding, _THREADS if coding is not None else None)
        self._fill_table()
        self.placer.show_sweeps(shown)
        self._show_words()

    def recolour(self) -> None:
        self._fill_table()
        self._show_words()

    def _fill_table(self) -> None:
        shown = self.list.shown
        fill_columns(self.table, [describe_sweep(sweep) for _, sweep in shown], [icon_of(at) for at, _ in shown])

    def _show_words(self) -> None:
        focus, words = self.list.focus, ""
        held = describe_held(focus) if focus is not None else None
        self.tabs.setTabVisible(self.tabs.indexOf(self.held), held is not None and bool(held.rows))
        if held is not None:
            self.held.show_listing(held)
        if focus is not None and focus.reasons:
            unknown = f" — {verdict(focus)}" if verdict(focus) else ""
            words = f"{focus.label}{unknown}: {'; '.join(focus.reasons)}"
        if words and self.measuring.busy:
            words += " — so far: more points are being measured"
        self.reasons.setText(words)
        self.reasons.setVisible(bool(words))
        self.reasons.setStyleSheet(f"color: {theme.colours().muted};")
        self.message.setStyleSheet(f"color: {theme.colours().vermillion};")
