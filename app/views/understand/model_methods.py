"""The ways to tune for energy side by side: bars, and beneath them what each chose and what it took.

The ways to tune for energy as bars: gain, loss and measurements needed [Schoonhoven2024, figure 6.3].
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction, QColor, QResizeEvent
from PySide6.QtWidgets import (
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from ...engine.models.compare_methods import Methods, methods_of_recording, methods_of_store, methods_of_table
from ...engine.models.roofline.describe_sweeps import describe_methods
from ..plots.descriptions import ListingTable
from ..plots.plot import Box, dress, set_up_axes
from ..shared import theme
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.panel import Panel
from ..shared.past_sessions import PAST_SHOWN, PastSession, PastSessions
from ..shared.tasks import LatestTask
from ..shared.widgets import hbox, menu_button, open_file

_WIDTH = 0.36  # of a method's room, each of its two bars
_LINES = (7, 16)  # characters of a name before it goes on in the next line, at least and at most
_AXIS = 70  # pixels beside the bars


class MethodBars(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Two bars for each method: its efficiency and its speed against race to idle, with its clock and its effort."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, viewBox=Box(), enableMenu=False)
        self._methods: Methods | None = None
        set_up_axes(self, left="Change against race to idle (%)")
        self.setMouseEnabled(x=False, y=False)
        self._legend = self.addLegend(offset=(-8, 4), colCount=2)
        self.getAxis("bottom").setStyle(hideOverlappingLabels=False)
        theme.follow(self.redraw)

    def show_methods(self, methods: Methods | None) -> None:
        """Draw them side by side."""
        self._methods = methods
        self.redraw()

    @Slot()
    def redraw(self) -> None:
        """As it was, in the theme's colours."""
        colours = theme.colours()
        self.clear()
        self._legend.clear()
        self._legend.setLabelTextColor(QColor(colours.text))
        dress(self, ("bottom", "left"), upright=False)
        if self._methods is None:
            return
        results = self._methods.results
        gains = [100 * result.efficiency_change for result in results]
        losses = [100 * result.speed_change for result in results]
        for values, side, colour, name in (
            (gains, -0.5, colours.green, f"efficiency ({self._methods.efficiency_name})"),
            (losses, 0.5, colours.vermillion, f"speed ({self._methods.speed_name})"),
        ):
            places = [position + side * _WIDTH for position in range(len(results))]
            bars = pg.BarGraphItem(
                x=places, height=values, width=_WIDTH, brush=QColor(colour), pen=pg.mkPen(colours.base), name=name
            )
            self.addItem(bars)
            for x, value in zip(places, values, strict=True):
                self._add_text(f"{value:+.1f}", x, value, below=value < 0)
        self.addItem(pg.InfiniteLine(pos=0.0, angle=0, pen=pg.mkPen(colours.muted, width=1)))
        room_px = (self.width() - _AXIS) / len(results)
        length = int(np.clip(room_px / self.fontMetrics().averageCharWidth() - 1, *_LINES))
        names = [
            (
                index,
                "\n".join(
                    _in_lines(text, length)
                    for text in (item.label, f"{item.clock_mhz:.0f} MHz", f"{item.measurements} measured")
                ),
            )
            for index, item in enumerate(results)
        ]
        self.getAxis("bottom").setTicks([names])
        lines = max(words.count("\n") + 1 for _, words in names)
        self.getAxis("bottom").setHeight(lines * self.fontMetrics().height() + 10)
        low, high = min(0.0, *gains, *losses), max(0.0, *gains, *losses)
        room = 0.14 * max(high - low, 1.0)
        self.setXRange(-0.5, len(results) - 0.5, padding=0.01)
        self.setYRange(low - room, high + 2.5 * room, padding=0.0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Names are broken to the room there is."""
        super().resizeEvent(event)
        if getattr(self, "_methods", None) is not None:
            self.redraw()

    def _add_text(self, words: str, x: float, y: float, *, below: bool) -> None:
        text = pg.TextItem(words, color=theme.colours().text, anchor=(0.5, 0.0 if below else 1.0))
        text.setPos(x, y)
        self.addItem(text, ignoreBounds=True)


def _in_lines(name: str, length: int) -> str:
    """A name broken after words so that neighbours do not run into each other."""
    lines = [""]
    for word in name.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > length:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


_FILES = "Recordings (*.json *.json.gz *.csv);;All files (*)"
_EMPTY = (
    "Measure a whole space of parameters and graphics clocks (strategy brute_force, no budget), or open a recording of "
    "one: each way to tune for energy is then followed through those measurements, and counted as if it were alone."
)


class MethodsView(Panel):
    """Race to idle and the other five. Usable without a window: `MethodsView(context)`."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._methods: Methods | None = None
        self._failed = False
        self._background = LatestTask(self, self.show_methods, self._complain)
        self.compare = menu_button(
            "&Compare methods", "From which measurements", self._fill_sources, self._source_chosen
        )
        self.past = PastSessions(self.compare.menu(), self._past)
        self.title, self.message = PlainLabel(), PlainLabel(_EMPTY)
        self.bars, self.table = MethodBars(), ListingTable("The methods' figures")
        self._lay_out()
        self.past.failed.connect(self._complain)
        self.recolour()

    def _lay_out(self) -> None:
        head = hbox(self.compare, (self.title, 1))
        for label in (self.title, self.message):
            label.setWordWrap(True)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self.bars)
        self.splitter.addWidget(self.table)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(head)
        layout.addWidget(self.message)
        layout.addWidget(self.splitter, 1)
        layout.addStretch()

    @property
    def methods(self) -> Methods | None:
        """What is shown."""
        return self._methods

    # --- sources -----------------------------------------------------------------------------------------------------

    @Slot()
    def _fill_sources(self) -> None:
        menu, table = self.compare.menu(), self._context.result.table
        menu.addAction("From the &session shown", self.compare_session).setEnabled(table is not None and len(table) > 0)
        menu.addAction("From a &file …", self.choose_file)
        menu.addSection("Past sessions")
        self.past.add()

    def _past(self) -> list[PastSession]:
        message = "Session {0.id} · {0.shown_name} · {0.gpu} · {0.evaluated} measured"
        return [PastSession(record.id, message.format(record)) for record in self._context.store.sessions(PAST_SHOWN)]

    @Slot(QAction)
    def _source_chosen(self, action: QAction) -> None:
        if action.data() is not None:
            store, session = self._context.store, int(action.data())
            self._background.run(lambda _stop: methods_of_store(store, session))

    @Slot()
    def compare_session(self) -> None:
        """From what the running or last session measured."""
        result = self._context.result
        table, plan = result.table, result.plan
        if table is not None and plan is not None:
            self._background.run(
                lambda _stop: methods_of_table(table, gpu=plan.gpu, title=plan.title, source=plan.source)
            )

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a recording."""
        open_file(self, "Compare the methods on a recording", _FILES, self.open)

    def open(self, path: Path) -> None:
        """From a recording."""
        self._background.run(lambda _stop: methods_of_recording(path))

    # --- what is shown -----------------------------------------------------------------------------------------------

    @Slot(object)
    def show_methods(self, methods: Methods) -> None:
        """Draw them and write them out."""
        self._methods, self._failed = methods, False
        self.recolour()
        described = describe_methods(methods)
        self.title.setText(f"{described.title}: {described.origin}")
        self.message.setText("; ".join(described.remarks))
        self.splitter.show()
        self.bars.show_methods(methods)
        self.table.show_listing(described.listings[0], tips=[chosen.text for chosen in described.figures])

    @Slot(str, str)
    def _complain(self, what: str, remedy: str) -> None:
        self._failed = True
        self.message.setText(f"{what}: {remedy}" if remedy else what)
        self.recolour()

    def recolour(self) -> None:
        colours = theme.colours()
        self.message.setStyleSheet(f"color: {colours.vermillion if self._failed else colours.muted};")
