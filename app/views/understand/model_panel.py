"""Frequency models on demand: fit a sweep, the session or files, overlay them, steer a session or set a clock.

`FitSources`: the button that adds fits to the picture, from files and past sessions.

Power limits drawn: their effect on power and speed, beside locked clocks [Schoonhoven2024, figures 6.6, 6.7].

`LateTabs`: tabs whose pages are made when they are first shown or asked for, each in a turn of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QColor, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QTabWidget,
    QTextBrowser,
    QToolButton,
    QWidget,
)

from ...engine.models.clock_fits import ClockFit, clock_fit, fits_of_file, fits_of_store, newest_fit
from ...engine.models.describe_fits import describe_load
from ...engine.models.fit.frequency import FrequencyFit
from ...engine.report.reproduce import sweep_words
from ...engine.session import events
from ..control.apply_button import ApplyButton
from ..plots.descriptions import rich_text
from ..plots.model_plot import ModelPlot, caps_legend, explained_as_html, power_legend, voltage_legend
from ..plots.overlay_list import OverlayList, colour_of
from ..plots.plot import Box, dress, set_up_axes
from ..shared import theme
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.needs import Needs
from ..shared.panel import PanelInParts
from ..shared.past_sessions import PAST_SHOWN, PastSession, PastSessions
from ..shared.tasks import LatestTask
from ..shared.widgets import ProgressBar, open_file, vbox
from .model_methods import MethodsView
from .voltage import VoltagePlot


class LateTabs(QTabWidget):
    """Plots take long to make, and most windows are closed before most of them were looked at."""

    made = Signal(QWidget)  # a page, which is in its place already

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._makers: dict[int, Callable[[], QWidget]] = {}  # of the pages that are not there yet
        self._pages: list[QWidget] = []
        self.currentChanged.connect(self._shown)

    def add(self, title: str, make: Callable[[], QWidget]) -> None:
        """One more tab; the first one's page is made at once."""
        self._makers[self.count()] = make
        self._pages.append(QWidget())
        self.addTab(self._pages[-1], title)

    def is_made(self, index: int) -> bool:
        """Whether the page of a tab is there."""
        return index not in self._makers

    def page(self, index: int) -> QWidget:
        """The page of a tab, made now where it was not yet."""
        make = self._makers.pop(index, None)
        if make is not None:
            place, shown = self._pages[index], self.currentIndex()
            page = self._pages[index] = make()
            blocked = self.blockSignals(True)
            self.insertTab(index, page, self.tabText(index))
            self.removeTab(index + 1)
            self.setCurrentIndex(shown)
            self.blockSignals(blocked)
            place.deleteLater()
            self.made.emit(page)
        return self._pages[index]

    @Slot(int)
    def _shown(self, index: int) -> None:
        if index >= 0:
            self.page(index)


_ABOVE = 1.12  # room over the highest point


class CapsPlot(pg.GraphicsLayoutWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Left: power over the limit, and speed beneath it. Right: energy over speed, by limits and by locked clocks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fits: list[tuple[int, ClockFit]] = []
        self._over_limit, self.over_speed = (
            self.addPlot(0, 0, viewBox=Box(), enableMenu=False),
            self.addPlot(0, 1, rowspan=2, viewBox=Box(), enableMenu=False),
        )
        self._speed = self.addPlot(1, 0, viewBox=Box(), enableMenu=False)
        self._speed.setXLink(self._over_limit)
        for plot, bottom, left in (
            (self._over_limit, "", "Power drawn (W)"),
            (self._speed, "Power limit (W)", "Speed (% of full)"),
            (self.over_speed, "Speed (% of full)", "Energy per work (% of that at full speed)"),
        ):
            plot.setMenuEnabled(False)
            set_up_axes(plot, bottom, left)
        theme.follow(self.redraw)

    def show_fits(self, fits: Sequence[tuple[int, ClockFit]]) -> None:
        """Draw the fits that include power limits."""
        self._fits = [(place, each) for place, each in fits if each.caps is not None]
        self.redraw()

    @Slot()
    def redraw(self) -> None:
        """As it was, in the theme's colours."""
        colours = theme.colours()
        self.setBackground(colours.base)
        for plot in (self._over_limit, self._speed, self.over_speed):
            plot.clear()
            dress(plot, ("bottom", "left"))
        for place, each in self._fits:
            alone = len(self._fits) == 1
            limits = QColor(colours.vermillion) if alone else colour_of(place)
            locked = QColor(colours.blue) if alone else colour_of(place)
            self._draw_limits(each, limits)
            self._draw_clocks(each, locked)
        self._fit_range()

    def _draw_limits(self, each: ClockFit, colour: QColor) -> None:
        caps = each.caps
        assert caps is not None
        plot = self._over_limit
        along = np.linspace(float(caps.limit_w.min()), float(caps.limit_w.max()), 200)
        kept = pg.mkPen(theme.colours().muted, width=1, style=Qt.PenStyle.DotLine)
        plot.addItem(pg.PlotCurveItem(along, along, pen=kept))
        plot.addItem(pg.PlotCurveItem(along, caps.power(along), pen=pg.mkPen(colour, width=2), antialias=True))
        from_w = caps.without_effect_from_w or float("inf")
        dots = [theme.colours().base if limit_w >= from_w else colour for limit_w in caps.limit_w]
        plot.addItem(pg.ScatterPlotItem(caps.limit_w, caps.power_w, symbol="o", size=8, pen=colour, brush=dots))
        speed = 100 * caps.rate / caps.rate[-1]
        modelled = 100 * caps.speed(along)
        self._speed.addItem(pg.PlotCurveItem(along, modelled, pen=pg.mkPen(colour, width=2), antialias=True))
        self._speed.addItem(pg.ScatterPlotItem(caps.limit_w, speed, symbol="o", size=8, pen=colour, brush=dots))
        line = pg.PlotCurveItem(speed, 100 * caps.energy, pen=pg.mkPen(colour, width=1.5), antialias=True)
        points = pg.ScatterPlotItem(speed, 100 * caps.energy, symbol="s", size=8, pen=None, brush=colour)
        for item in (line, points):
            self.over_speed.addItem(item)

    def _draw_clocks(self, each: ClockFit, colour: QColor) -> None:
        fit, caps = each.fit, each.caps
        if fit is None or caps is None or not len(fit.rate):
            return
        full_speed, full_energy = float(caps.rate[-1]), float(caps.power_w[-1] / caps.rate[-1])
        speed, energy = 100 * fit.rate / full_speed, 100 * fit.power_w / fit.rate / full_energy
        order = np.argsort(fit.clock_mhz)
        pen = pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashLine)
        self.over_speed.addItem(pg.PlotCurveItem(speed[order], energy[order], pen=pen, antialias=True))
        brush = QColor(theme.colours().base)
        self.over_speed.addItem(
            pg.ScatterPlotItem(speed, energy, symbol="o", size=8, pen=pg.mkPen(colour, width=1.5), brush=brush)
        )

    def _fit_range(self) -> None:
        caps = [each.caps for _, each in self._fits if each.caps is not None]
        if not caps:
            return
        lowest = min(float(cap.limit_w.min()) for cap in caps)
        highest = max(float(cap.limit_w.max()) for cap in caps)
        self._over_limit.setXRange(lowest, highest, padding=0.05)
        top = max(float(cap.power_w.max()) for cap in caps)
        self._over_limit.setYRange(0.0, max(top, highest) * _ABOVE, padding=0.0)
        slowest = min(float((cap.rate / cap.rate[-1]).min()) for cap in caps)
        self._speed.setYRange(100 * slowest - 3.0, 103.0, padding=0.0)
        self.over_speed.enableAutoRange()


_FILES = "Sweeps (*.csv *.csv.gz *.json *.json.gz);;All files (*)"


class FitSources(QToolButton):
    """`found` has the fits of what was chosen; `failed` has the fault and the remedy, both empty at a new try."""

    found = Signal(object)  # list[ClockFit]
    failed = Signal(str, str)

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._reader = LatestTask(self, self.found, self.failed)
        self.setText("&Add")
        self.setToolTip("Overlay another board or kernel")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        self.setMenu(menu)
        self.past = PastSessions(menu, self._past)
        self.past.failed.connect(self.failed)
        menu.aboutToShow.connect(self._fill)
        menu.triggered.connect(self._chosen)

    def open_on_file(self) -> None:
        """Add the newest fit of the window's board that was made here."""
        store, gpu = self._context.store, self._context.gpu.info.name
        self._reader.run(lambda _stop: newest_fit(store, gpu))

    def open_menu(self) -> None:
        """Show the menu of curves that can be added, below the button."""
        self.menu().popup(self.mapToGlobal(self.rect().bottomLeft()))

    def open(self, path: Path) -> None:
        """Add the fits of clocks and power limits in a CSV or a recording."""
        self.failed.emit("", "")
        self._reader.run(lambda _stop: fits_of_file(path))

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a file."""
        open_file(self, "Open a sweep of clocks or power limits", _FILES, self.open)

    @Slot()
    def _fill(self) -> None:
        menu = self.menu()
        menu.clear()
        menu.addAction("A &file …").setData("file")
        menu.addSection("Past sessions")
        self.past.add()

    def _past(self) -> list[PastSession]:
        return [
            PastSession(record.id, f"Session {record.id} · {record.shown_name} · {record.gpu}")
            for record in self._context.store.sessions(PAST_SHOWN)
        ]

    @Slot(QAction)
    def _chosen(self, action: QAction) -> None:
        if action.data() == "file":
            self.choose_file()
        elif action.data() is not None:
            self.failed.emit("", "")
            store, session = self._context.store, int(action.data())
            self._reader.run(lambda _stop: fits_of_store(store, session))


_POWER, _VOLTAGE, _CAPS, _METHODS = range(4)  # tabs
_SWEEP_POINTS = 10
_NO_SESSION = "No model of this board yet: it takes a session over the clocks, or a sweep of them."
_RUNS = "The session runs: its clocks are modelled when it has ended."
_WIDE = 700  # pixels from which the words fit beside the plot
_ROOM_FOR_EXPLANATION = 420  # pixels of height


class ModelPanel(PanelInParts):
    """Shows fits over each other, the chosen one in full. Usable without a window: `ModelPanel(context)`."""

    def make(self) -> Iterator[None]:
        """The plot, the controls, what is drawn."""
        context = self._context
        self._fitting = False
        self._asked: tuple[str, ...] = ()  # what is being fitted, in words of the command `fit`
        self.plot = ModelPlot(at_once=False)
        yield
        yield from self.plot.make_parts()
        self.sweep = QToolButton()
        self._own: ClockFit | None = None  # of the session that is shown
        self._fitter = LatestTask(self, self._session_fitted, self._not_fitted)
        self.add, self.remove, self.steer = FitSources(context), QPushButton("&Remove"), QPushButton("S&teer")
        self.apply = ApplyButton(context)
        self.progress, self.message = ProgressBar(), PlainLabel()
        self.list: OverlayList[ClockFit] = OverlayList(
            "Fits that are overlaid", "Tick what is shown. The chosen one is shown in full: band, ridge, optimum, range"
        )
        self.facts, self.legend, self.steering = QTextBrowser(), PlainLabel(), PlainLabel()
        self.explanation = PlainLabel(wrap=True, selectable=True)
        self.why_not = PlainLabel(wrap=True, muted=True)  # the recommended clock is not applied
        self.needs = Needs(_NO_SESSION, "Fit a clock &sweep", self.fit_sweep)
        self._fill_controls()
        yield
        self._lay_out()
        yield
        self.sweep.clicked.connect(self.fit_sweep)
        self.remove.clicked.connect(self.list.remove_chosen)
        self.steer.clicked.connect(self.steer_session)
        self.apply.changed.connect(self._show_why_not)
        self.list.changed.connect(self._draw)
        self.tabs.currentChanged.connect(self._tab_changed)
        self.add.found.connect(self.show_fits)
        self.add.failed.connect(self._complain)
        self.subscribe(events.SessionStarted, self._session_started)
        self.subscribe(events.SessionChanged | events.FiguresRestated, self._session_changed)
        self.subscribe(events.FitProgress, self._fit_progress)
        self.subscribe(events.FitFinished, self._fit_finished)
        self.subscribe(events.EngineFault, self._fault)
        context.result.steered.connect(self._steered)
        self._draw()
        self.add.open_on_file()
        if not context.bridge.activity.busy:
            self.fit_session()

    def _fill_controls(self) -> None:
        self.sweep.setText("Fit a clock &sweep")
        self.sweep.setToolTip(f"Run a fully loading kernel at about {_SWEEP_POINTS} clocks; a running session waits")
        self.sweep.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        menu = QMenu(self.sweep)
        menu.setToolTipsVisible(True)
        self.with_limits = _checkable(menu, "Power &limits too", "The same load under ten power limits, to compare")
        self.with_memory = _checkable(menu, "At each &memory clock", "A sweep for each memory clock the board can take")
        self.sweep.setMenu(menu)
        self.remove.setToolTip("Take the chosen fit out of the picture; sessions and files stay")
        self.steer.setToolTip(
            "Keep the next session to the clocks within ±10 % of the optimum, once the points bracket it"
        )
        self.progress.setFormat("%v of %m clocks")
        self.progress.hide()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        for widget in (self.sweep, self.steer, self.apply):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        buttons.addWidget(self.add)
        buttons.addWidget(self.remove)
        self.tabs = LateTabs()
        self.tabs.setAccessibleName("Pages of the model")
        self.tabs.setDocumentMode(True)
        self.tabs.add("Power and energy", lambda: self.plot)
        self.tabs.add("Voltage", self._make_voltage)
        self.tabs.add("Power limits", self._make_caps)
        self.tabs.add("Methods", lambda: MethodsView(self._context))
        self.facts.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.facts.setAccessibleName("The model's parameters")
        self._side = QWidget()
        vbox(self.list, (self.facts, 1), of=self._side, margins=0)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self.tabs)
        self.splitter.addWidget(self._side)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setSizes([540, 300])
        self.splitter.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)  # what there is, no more
        for label in (self.legend, self.explanation):
            label.setTextFormat(Qt.TextFormat.RichText)
        for label in (self.legend, self.steering, self.message):
            label.setWordWrap(True)
        self.steering.hide()
        self.message.hide()
        layout = vbox(buttons, of=self, margins=6)
        for line in (self.progress, self.message, self.legend):
            layout.addWidget(line)
        layout.addWidget(self.splitter, 1)
        for line in (self.explanation, self.why_not, self.steering):
            layout.addWidget(line)
        self.setMinimumHeight(260)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Words beside the plot where there is room, else below it; the explanation gives way to the plot."""
        super().resizeEvent(event)
        self._show_explanation()
        wide = self.width() >= _WIDE
        self.splitter.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)

    def provenance(self) -> str:
        """What the plots are of: fits of their own boards, whatever result is shown."""
        if self.tabs.currentIndex() == _METHODS:
            return self.methods.title.text()
        return ", ".join(fit.label for _, fit in self.list.shown)

    @property
    def voltage(self) -> VoltagePlot:
        """The voltage over the clock."""
        return cast(VoltagePlot, self.tabs.page(_VOLTAGE))

    @property
    def caps(self) -> CapsPlot:
        """Power limits against clocks."""
        return cast(CapsPlot, self.tabs.page(_CAPS))

    @property
    def methods(self) -> MethodsView:
        """The ways to tune for energy."""
        return cast(MethodsView, self.tabs.page(_METHODS))

    def _make_voltage(self) -> VoltagePlot:
        made = VoltagePlot()
        made.show_fits(self._models, self.fit)
        return made

    def _make_caps(self) -> CapsPlot:
        made = CapsPlot()
        made.show_fits(self.list.shown)
        return made

    @property
    def fit(self) -> FrequencyFit | None:
        """The fit that is shown in full."""
        focus = self.list.focus
        return focus.fit if focus is not None else None

    # --- asking ------------------------------------------------------------------------------------------------------

    @Slot()
    def fit_sweep(self) -> None:
        """Sweep the clocks under full load and fit."""
        self._ask(
            events.Fit(
                board=self._context.gpu.info.uuid,
                points=_SWEEP_POINTS,
                memory_clocks=self.with_memory.isChecked(),
                power_limits=self.with_limits.isChecked(),
            )
        )

    def fit_session(self) -> None:
        """Fit the configuration of the session that was measured at the most clocks, off Qt's thread."""
        table, plan, session = self._context.result.table, self._context.result.plan, self._context.result.session
        if table is None or plan is None or not len(table):
            return
        words = (str(session),) if session else ()
        self._fitter.run(lambda _stop: clock_fit(table, plan, words))

    @Slot(object)
    def _session_started(self, _event: events.SessionStarted) -> None:
        self._fitter.cancel()
        if self._own is not None:
            self.list.choose(self._own)
            self.list.remove_chosen()
        self._own = None
        self.needs.words.setText(_RUNS)

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged | events.FiguresRestated) -> None:
        if event.progress.session == self._context.result.session and not event.progress.state.alive:
            self.fit_session()

    @Slot(object)
    def _session_fitted(self, fit: ClockFit) -> None:
        self._own = fit
        self.show_fits([fit])

    @Slot(str, str)
    def _not_fitted(self, what: str, _remedy: str) -> None:
        self.needs.words.setText(f"The session gives no model of the clocks: {what}.")

    @Slot()
    def steer_session(self) -> None:
        """Keep the next session to the range, or take that back."""
        result, fit = self._context.result, self.fit
        if result.clocks_mhz is not None:
            result.steer(None)
        elif fit is not None and fit.range_mhz is not None and fit.optimum_bracketed:
            result.steer(fit.range_mhz)

    def _ask(self, command: events.Fit) -> None:
        if self._fitting:
            return
        self._asked = sweep_words(command, self._context.gpu)
        self._fitting = True
        self._complain("", "")
        self.progress.setRange(0, 0)
        self.progress.show()
        self._context.bridge.submit(command)
        self._set_buttons()

    # --- answers -----------------------------------------------------------------------------------------------------

    @Slot(object)
    def _fit_progress(self, event: events.FitProgress) -> None:
        self.progress.setFormat(f"%v of %m {event.what}")
        self.progress.setRange(0, event.total)
        self.progress.setValue(event.done)
        self.progress.show()

    @Slot(object)
    def _fit_finished(self, event: events.FitFinished) -> None:
        self._end_fitting()
        self.show_fits([ClockFit(event.fit, event.caps, event.source, self._asked)])

    @Slot(object)
    def show_fits(self, clock_fits: list[ClockFit]) -> None:
        """Overlay fits, the first one in focus; a later fit to the same takes the place of an earlier one."""
        if not clock_fits:
            return
        self.list.put(clock_fits)
        self.list.choose(clock_fits[0])
        if clock_fits[0].fit is None:
            self.tabs.setCurrentWidget(self.caps)

    @Slot(object)
    def _fault(self, _event: events.EngineFault) -> None:
        if self._fitting:
            self._end_fitting()

    @Slot(object)
    def _steered(self, clocks: tuple[float, float] | None) -> None:
        self.steer.setText("S&teer" if clocks is None else "Stop s&teering")
        self.steering.setVisible(clocks is not None)
        if clocks is not None:
            self.steering.setText(
                f"The next session keeps to the supported graphics clocks within {clocks[0]:.0f}–{clocks[1]:.0f} MHz."
            )
        self._set_buttons()

    @Slot(str, str)
    def _complain(self, what: str, remedy: str) -> None:
        self.message.setText(f"{what}: {remedy}" if remedy else what)
        self.message.setVisible(bool(what))

    def _end_fitting(self) -> None:
        self._fitting = False
        self.progress.hide()
        self._set_buttons()

    # --- what is shown -----------------------------------------------------------------------------------------------

    def _set_buttons(self) -> None:
        fit = self.fit
        self.sweep.setEnabled(not self._fitting)
        self.needs.button.setEnabled(not self._fitting)
        self.remove.setEnabled(bool(self.list.entries))
        bracketed = fit is not None and fit.range_mhz is not None and fit.optimum_bracketed
        self.steer.setEnabled(bracketed or self._context.result.clocks_mhz is not None)

    @Slot()
    def _draw(self) -> None:
        shown, focus = self.list.shown, self.list.focus
        models = self._models
        place = next((at for at, each in shown if each is focus), None)
        fit = focus.fit if focus is not None else None
        others = [(at, each) for at, each in models if each is not fit]
        self.plot.show_fit(fit, place, others)
        if self.tabs.is_made(_VOLTAGE):
            self.voltage.show_fits(models, fit)
        if self.tabs.is_made(_CAPS):
            self.caps.show_fits(shown)
        self.plot.offer(None if self.list.entries else self.needs)
        self.plot.say("" if models or not self.list.entries else "Nothing ticked knows the clocks.")
        self._offer_clock()
        self._show_words()
        self._set_buttons()

    def _offer_clock(self) -> None:
        """The recommended clock of the fit that is shown in full, to be set."""
        fit = self.fit
        clock = fit.recommended_clock_mhz if fit is not None else None
        self.apply.setText(f"&Apply {clock:.0f} MHz" if clock is not None else "&Apply")
        if fit is None:
            self.apply.withdraw("There is no model yet: fit a clock sweep first")
        elif clock is None:
            self.apply.withdraw("The model recommends no clock: its points do not determine one")
        else:
            self.apply.offer({"graphics_clock_mhz": clock}, fit.gpu, simulated=fit.simulated)

    def _show_explanation(self) -> None:
        shown = self.fit is not None and self.tabs.currentWidget() is self.plot
        room = self.height() >= _ROOM_FOR_EXPLANATION
        self.explanation.setVisible(shown and room)
        self.why_not.setVisible(shown and room and bool(self.why_not.text()))

    @Slot()
    def _show_why_not(self) -> None:
        words = f"Not to be applied now. {self.apply.why_not}." if self.apply.why_not else ""
        self.why_not.setText(words or (f"{self.apply.whose}." if self.apply.whose else ""))
        self._show_explanation()

    @property
    def _models(self) -> list[tuple[int, FrequencyFit]]:
        """The ticked fits that include clocks, with their positions."""
        return [(place, each.fit) for place, each in self.list.shown if each.fit is not None]

    @Slot(int)
    def _tab_changed(self, _index: int) -> None:
        self._show_words()

    def recolour(self) -> None:
        self._show_words()

    def _show_words(self) -> None:
        focus, tab = self.list.focus, self.tabs.currentIndex()
        own = tab != _METHODS  # they have words of their own
        self._side.setVisible(own and bool(self.list.entries))
        words = ""
        self.explanation.setText(explained_as_html(self.fit) if self.fit is not None else "")
        self._show_explanation()
        if focus is not None:
            self.facts.setHtml(rich_text(describe_load(focus.fit, focus.caps, focus.comparison, focus.origin)))
            alone = len(self.list.shown) == 1
            if tab == _POWER and focus.fit is not None:
                words = power_legend(focus.fit, alone=alone)
            elif tab == _VOLTAGE:
                words = voltage_legend(focus.fit)
            elif tab == _CAPS:
                words = caps_legend(focus)
        else:
            self.facts.clear()
        self.legend.setText(words)
        self.legend.setVisible(bool(words))
        self.message.setStyleSheet(f"color: {theme.colours().vermillion};")


def _checkable(menu: QMenu, words: str, tip: str) -> QAction:
    action = QAction(words, menu.parent())  # Shiboken loses the one that `addAction(words)` makes: Qt keeps it, though
    action.setCheckable(True)
    action.setToolTip(tip)
    menu.addAction(action)
    return action
