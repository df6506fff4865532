"""The Pareto laboratory: any two figures of the session against each other, filters, brushing.

`FigureTabs`: the front, parallel coordinates or a slice in one place; each is made when it is first asked for.

`ShowMenu`: what is drawn over the scatter, as a menu of a button.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QStackedWidget, QTabBar, QToolButton, QWidget

from ...base.errors import InputError
from ...base.formatting import count_text, counted
from ...engine.analysis.iso_lines import Product
from ...engine.analysis.quantities import quantities_of
from ...engine.results.settings import UNTOUCHED
from ...engine.results.state import Progress
from ...engine.session import events
from ...engine.session.references import Reference, references_of
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..plots.colour_key import ColourKey, KeyMark
from ..plots.parameter_bars import ParameterBars
from ..shared.current_result import Indices, RowFilter
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import PanelInParts
from ..shared.settings import Settings
from ..shared.widgets import hbox, vbox
from .figure_choices import Codings, FigureChoices
from .front_plot import FrontPlot
from .hover_card import measurement_html
from .overlays import OVERLAYS
from .parallel_plot import ParallelPlot
from .points import FrontPoints
from .slice_view import SliceView


class FigureTabs(QStackedWidget):
    """`bar` is the chooser, for wherever there is room. `made` announces a page when it is first shown."""

    made = Signal(QWidget)
    changed = Signal()

    def __init__(self, pages: Sequence[tuple[str, str, Callable[[], QWidget]]], parent: QWidget | None = None) -> None:
        """`pages`: title, tool tip, and what makes the page."""
        super().__init__(parent)
        self._makers = [maker for _, _, maker in pages]
        self._pages: dict[int, QWidget] = {}
        self.bar = QTabBar()
        self.bar.setShape(QTabBar.Shape.RoundedSouth)
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setAccessibleName("Figure of the measurements")
        for index, (title, tip, _) in enumerate(pages):
            self.bar.addTab(title)
            self.bar.setTabToolTip(index, tip)
        self.bar.currentChanged.connect(self._show)
        self._show(0)

    @Slot(int)
    def _show(self, index: int) -> None:
        page = self._pages.get(index)
        if page is None:
            page = self._pages[index] = self._makers[index]()
            self.addWidget(page)
            self.made.emit(page)
        self.setCurrentWidget(page)
        self.changed.emit()


_KEY, _BARS = "front", "parameters"  # in the settings
_AT_FIRST = frozenset(overlay.name for overlay in OVERLAYS if overlay.at_first) | {_BARS}


class ShowMenu(QToolButton):
    """Ticks for the overlays, kept over restarts; `bars` shows the parameters' histograms."""

    changed = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setText("&Show")
        self.setToolTip("What is drawn over the points")
        self.setAccessibleName("What is shown")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.ticks: dict[str, QAction] = {}
        for overlay in OVERLAYS:
            tick = self.ticks[overlay.name] = menu.addAction(overlay.text)
            tick.setCheckable(True)
            tick.setToolTip(overlay.tip)
            tick.toggled.connect(self.changed)
            tick.triggered.connect(self._keep)  # by the user
        menu.addSeparator()
        self.bars = menu.addAction("Pa&rameters")
        self.bars.setToolTip(
            "How the values of each parameter are distributed; hide values there (where there is room)"
        )
        self.bars.setCheckable(True)
        self.bars.triggered.connect(self._keep)
        menu.addSeparator()
        self.everything = menu.addAction("&Zoom to everything")
        self.everything.setToolTip("So that every point is in sight (double click or A in the plot)")
        self.front = menu.addAction("Zoom to &front")
        self.front.setToolTip("So that the configurations on the front lie apart (F in the plot)")
        self.setMenu(menu)
        self.look_again()

    def look_again(self) -> None:
        """The settings may be as at the first start again."""
        ticked = self._settings.shown(_KEY, _AT_FIRST)
        for name, tick in (*self.ticks.items(), (_BARS, self.bars)):
            tick.setChecked(name in ticked)

    @property
    def shown(self) -> frozenset[str]:
        """Names of the overlays that are switched on."""
        return frozenset(name for name, tick in self.ticks.items() if tick.isChecked())

    def set_possible(self, name: str, possible: bool) -> None:
        """Enable or disable an overlay, as the figures on the axes allow."""
        self.ticks[name].setEnabled(possible)

    @Slot()
    def _keep(self) -> None:
        self._settings.note_shown(_KEY, self.shown | ({_BARS} if self.bars.isChecked() else set()))


_EMPTY = (
    "No session yet.\nOpen a specification or a recorded cache in Tune and press Start,\n"
    "or open a stored session in Library;\neach measurement then appears here."
)
_NO_STYLES = np.empty(0, dtype=np.uint16)
_WAITING = "Waiting for the first measurements that have both figures."
_ALL_HIDDEN = "Every measurement is hidden by the filter."
_ROOM_FOR_BARS = 800  # pixels of height
_SLOW_MS = 250  # between two looks at what takes longer than a point: overlays, histograms


class FrontPanel(PanelInParts):
    """Follows the running session. Usable without a window: `FrontPanel(context)`."""

    def make(self) -> Iterator[None]:
        """The choices, the plot, what stands around it."""
        context = self._context
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._missing = ""  # why most measurements lack the objective; empty if they have it
        self.points: FrontPoints | None = None
        self._codings: Codings | None = None
        self.parallel: ParallelPlot | None = None
        self.slice: SliceView | None = None
        self.figures = FigureChoices()
        self.show_menu = ShowMenu(Settings())
        yield
        self.plot = FrontPlot(self._describe, at_once=False)
        yield from self.plot.make_parts()
        self.pages = FigureTabs(
            (
                ("Front", "Two figures against each other", lambda: self.plot),
                ("Parallel", "All parameters and the two figures on parallel axes", self._make_parallel),
                ("Slice", "The figure on the y axis over one parameter", self._make_slice),
            )
        )
        self.key = ColourKey()
        self.bars = ParameterBars()
        self.count = PlainLabel()
        self.unpin = _link("Pinned configurations, compared in the Inspector; click to unpin them")
        self.unmark = _link("Marked measurements; click to unmark them")
        self.unfilter = _link("Some values are hidden below; click to show them all")
        self._slowly = QTimer(self, interval=_SLOW_MS, singleShot=True)
        self._lay_out()
        yield
        self._connect()
        self._begin(context.result.table, context.result.plan)

    def _lay_out(self) -> None:
        self.figures.aside.addWidget(self.show_menu)
        self.count.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.plot.place_key(self.key)
        below = hbox((self.count, 1), self.unpin, self.unmark, self.unfilter, self.pages.bar)
        vbox(self.figures, (self.pages, 1), below, self.bars, of=self, margins=3, spacing=3)
        self.pages.setMinimumHeight(90)
        self.setMinimumSize(360, 260)

    def _connect(self) -> None:
        result = self._context.result
        self.figures.axes_changed.connect(self._rebuild)
        self.figures.coding_changed.connect(self._code)
        self.show_menu.changed.connect(self._show_overlays)
        self._show_overlays()
        self.show_menu.bars.toggled.connect(self._show_bars)
        self.show_menu.everything.triggered.connect(self.plot.show_all)
        self.show_menu.front.triggered.connect(self.plot.show_front)
        self.plot.picked.connect(result.select)
        self.plot.pinned.connect(result.pin)
        self.plot.brushed.connect(result.brush)
        self.bars.picked.connect(result.brush)
        self.bars.filtered.connect(self._filtered)
        self.unfilter.clicked.connect(self.bars.show_everything)
        self.unmark.clicked.connect(self._unmark)
        result.changed.connect(self._selected)
        result.brushed.connect(self._brushed)
        result.pinned.connect(self._pinned)
        self.unpin.clicked.connect(result.unpin_all)
        self.subscribe(events.SessionStarted | events.FiguresRestated, self._session_started)
        self.subscribe(events.MeasurementsAdded, self._measurements_added)
        self.subscribe(events.SessionChanged, self._session_changed)
        self._slowly.timeout.connect(self._refresh_slow)
        self.pages.changed.connect(self._page_changed)

    def _make_parallel(self) -> ParallelPlot:
        selection = self._context.result
        self.parallel = ParallelPlot(self._describe)
        self.parallel.picked.connect(selection.select)
        self.parallel.pinned.connect(selection.pin)
        self.parallel.brushed.connect(selection.brush)
        self.parallel.set_pinned(selection.pins)
        return self.parallel

    def _make_slice(self) -> SliceView:
        self.slice = SliceView()
        self.slice.picked.connect(self._context.result.select)
        return self.slice

    @Slot()
    def _page_changed(self) -> None:
        self._show_page()
        self._show_key()

    def _show_page(self) -> None:
        """What the figure in place of the front shows; nothing if that is the front."""
        page, selection, points = self.pages.currentWidget(), self._context.result, self.points
        if page is self.parallel and self.parallel is not None:
            described = quantities_of(self._plan) if self._plan is not None else {}
            self.parallel.select(selection.index)
            titles = self.figures.titles if points is not None else None
            self.parallel.show_points(points, titles, described, selection.rows)
        elif page is self.slice and self.slice is not None:
            self.slice.show_session(self._table, self._plan)
            if points is not None:
                self.slice.show_figure(self.figures.goals[1], self.figures.titles[1], selection.index)

    # --- the session -------------------------------------------------------------------------------------------------

    @Slot(object)
    def _session_started(self, event: events.SessionStarted | events.FiguresRestated) -> None:
        self._begin(event.table, event.plan)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        if event.session == self._context.result.session and self.isVisible():
            self._note_missing(event.progress)
            self.refresh()

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        self._note_missing(event.progress)

    def _note_missing(self, progress: Progress) -> None:
        """Where no measurement has the objective, the reason stands here rather than a front of other figures."""
        if progress.session == (self._context.result.session or 0) and progress.health.missing != self._missing:
            self._missing = progress.health.missing
            self._rebuild()
            self._count_points()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def _begin(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        self._table, self._plan, self.points, self._codings, self._missing = table, plan, None, None, ""
        self.plot.references.set_references(_references(plan))
        self._deepened = table.deepened if table is not None else 0  # entries that got their energy after their time
        self.figures.clear()
        self.bars.set_session(table, plan)
        self.bars.come_after(self.pages.bar)
        self._show_bars()
        for widget in (self.figures, self.pages.bar):
            widget.setVisible(table is not None)  # there is nothing to choose from
        self._show_points()
        self._show_page()
        self.refresh()

    def refresh(self) -> None:
        """Show what the table has grown by."""
        if self._table is None or self._plan is None:
            return
        deepened, self._deepened = self._deepened, self._table.deepened
        if self.figures.offer(self._table, self._plan) or deepened != self._deepened:
            self._rebuild()
        if self.points is None or self._codings is None:
            return
        start = len(self.points)
        before = self.points.seen
        if self.points.update():
            extended = self._codings.extend(self.points, start)
            self.plot.add_points(self._codings.styles(self.points, start))
            if extended:
                self.plot.set_styles(self._codings.styles(self.points))
                self._show_key()
        self._count_points()
        if self.points.seen != before and not self._slowly.isActive():
            self._slowly.start()

    @Slot()
    def _refresh_slow(self) -> None:
        """What is made of all points at once follows at its own pace: an eighth of the time at most goes into it."""
        if self._table is not None:
            began = time.perf_counter()
            self.plot.overlays.draw()
            self.plot.labels.changed()
            self.plot.put_key()
            self.bars.refresh(self._context.result.rows)
            self._show_page()
            self._slowly.setInterval(max(_SLOW_MS, int(7000 * (time.perf_counter() - began))))

    # --- what is shown -----------------------------------------------------------------------------------------------

    @Slot()
    def _rebuild(self) -> None:
        if self._table is None or not self.figures.offered:
            return
        if self._missing and self.figures.stand_in:
            self.points = None
            self._show_points()
            return
        self.points = FrontPoints(
            self._table,
            *self.figures.goals,
            log=self.figures.log,
            shown=self.bars.filter,
            limits=self._plan.objective.limits if self._plan is not None else (),
        )
        self.points.update()
        self._show_points()
        self._refresh_slow()

    def _show_points(self) -> None:
        points = self.points
        self._choose_codings()
        styles = self._codings.styles(points) if points is not None and self._codings is not None else _NO_STYLES
        self.plot.show_points(points, styles, self.figures.titles if points is not None else None)
        for name, product in (("energy", Product.ENERGY), ("edp", Product.EDP)):
            self.show_menu.set_possible(name, self.plot.overlays.determines(product))
        self.show_menu.set_possible("references", bool(self.plot.references.references))
        self._show_key()
        self._count_points()

    @Slot()
    def _code(self) -> None:
        """Other figures are shown by colour or marker."""
        if self.points is not None:
            self._choose_codings()
            assert self._codings is not None
            self.plot.set_styles(self._codings.styles(self.points))
            self._show_key()

    def _choose_codings(self) -> None:
        """Those of the session and of what was chosen; kept while these stay, whatever the axes and the filter show."""
        if self._table is None or self.points is None:
            return
        names = (self.figures.colour_name, self.figures.marker_name)
        if self._codings is None or self._codings.names != names:
            self._codings = Codings(self._table, *names)

    def _show_key(self) -> None:
        self._fill_key()
        self.plot.put_key()

    def _fill_key(self) -> None:
        figures, codings = self.figures, self._codings
        if self.pages.currentWidget() is not self.plot:
            self.key.hide()
            return
        if self.points is None or codings is None:
            self.key.show_coding(None, None)
            return
        name, marker = codings.names
        note = f"extended at {count_text(codings.extended_at)}" if codings.extended_at else ""
        settings = (p.name for p in self._table.space.parameters if UNTOUCHED in p.values) if self._table else ()
        untouched = [KeyMark("x", "text", UNTOUCHED)] if {name, marker} & set(settings) else []
        self.key.show_marks([*untouched, *self.plot.references.key])
        self.key.show_coding(codings.colour, figures.described(name), figures.words_of(name), note)
        self.key.show_shapes(codings.shape, figures.described(marker) if marker else None, figures.words_of(marker))

    @Slot()
    def _show_overlays(self) -> None:
        self.plot.show_overlays(self.show_menu.shown)
        self._show_key()

    @Slot()
    def _show_bars(self) -> None:
        wanted = self.show_menu.bars.isChecked() and bool(self.bars.histograms)
        self.bars.setVisible(wanted and self.height() >= _ROOM_FOR_BARS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The histograms give way to the plot where there is little room."""
        super().resizeEvent(event)
        self._show_bars()

    # --- filter, marks, choice ---------------------------------------------------------------------------------------

    @Slot(object)
    def _filtered(self, shown: RowFilter) -> None:
        self._context.result.show_only(shown)
        self._rebuild()

    @Slot()
    def _unmark(self) -> None:
        self._context.result.brush(np.empty(0, dtype=np.int64))

    @Slot()
    def _brushed(self) -> None:
        rows: Indices = self._context.result.rows
        self.plot.mark(rows)
        if self.parallel is not None and self.parallel.isVisible():
            self.parallel.mark(rows)
        self.bars.refresh(rows)
        self._count_points()

    @Slot()
    def _pinned(self) -> None:
        pins = self._context.result.pins
        self.plot.pins.set_pinned(pins)
        if self.parallel is not None:
            self.parallel.set_pinned(pins)
        self.plot.labels.changed()
        self.unpin.setVisible(bool(pins))
        self.unpin.setText(f"{len(pins)} pinned ✕")

    @Slot(int)
    def _selected(self, index: int) -> None:
        self.plot.name_choice(self._context.result.way)
        self.plot.select(index)
        if self.parallel is not None and self.parallel.isVisible():
            self.parallel.select(index)
        if self.slice is not None and self.slice.isVisible():
            self.slice.select(index)

    # --- words -------------------------------------------------------------------------------------------------------

    def _count_points(self) -> None:
        shown = len(self.points) if self.points is not None else 0
        marked = len(self._context.result.rows)
        self.unmark.setVisible(bool(marked))
        self.unmark.setText(f"{count_text(marked)} marked ✕")
        self.unfilter.setVisible(bool(self.bars.filter))
        hidden = f"{self._missing}." if self._missing else _ALL_HIDDEN if self.bars.filter else _WAITING
        self.plot.say("" if shown else _EMPTY if self._table is None else hidden)
        if self._table is None or self._plan is None or self.points is None:
            self.count.setText("")
            return
        timed = self._table.timed()
        others = int(timed.sum()) - int(timed[self.points.index].sum())  # which have no place here
        words = [f"{count_text(shown)} of {counted(len(self._table) - others, 'measurement')}"]
        words += [f"{count_text(others)} only timed"] if others else []
        words += [f"{len(self.points.front)} on the front"]
        failed = sum(self._table.failures().values())
        words += [f"{count_text(failed)} failed"] if failed else []
        words += ["stronger colour: more points"] if self.plot.cloud.faded else []
        self.count.setText(" · ".join(words))
        self.count.setToolTip(plain_tip(self.count.text()))

    def _describe(self, index: int) -> str:
        assert self._table is not None
        assert self._plan is not None
        return measurement_html(self._table, self._plan, index, self.figures.names)


def _references(plan: SessionPlan | None) -> tuple[Reference, ...]:
    """None if the session is of no operator, or what it keeps of them is damaged."""
    try:
        return references_of(plan) if plan is not None else ()
    except InputError:
        return ()


def _link(words: str) -> QToolButton:
    button = QToolButton()
    button.setText("filtered ✕")
    button.setToolTip(words)
    button.setAccessibleName(words)
    button.setAutoRaise(True)
    button.hide()
    return button
