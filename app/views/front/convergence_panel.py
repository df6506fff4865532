"""How the search came to its best: the best so far, every evaluation, and where each improvement came from.

`ConvergencePlot`: every evaluation as a faint point, the best so far as steps, its improvements as marks.

`History`: the course of a session: the objective of every evaluation, and the improvements among them. No Qt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QWidget

from ...base.formatting import duration, percent
from ...engine.analysis.quantities import parameter_text, quantities_of, quantity
from ...engine.session import events
from ...engine.space.result_table import ResultTable
from ...engine.space.within_limits import feasible
from ...engine.specification.plan import SessionPlan
from ..plots.markers import DIM
from ..plots.plot import DENSE, Box, FigureAxis, PlotNote, dress
from ..plots.scatter import PointCloud
from ..shared import theme
from ..shared.context import Context
from ..shared.current_result import CHOOSE
from ..shared.label import PlainLabel
from ..shared.panel import Panel
from ..shared.turns import OwnTurn
from ..shared.widgets import Toggle, hbox, vbox

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Improvement:
    """An evaluation that was better than all before it."""

    place: int  # among the evaluations, from 0
    index: int  # into the table
    value: float  # of the objective


class History:
    """Read from a growing table by `refresh`; what was read once is not looked at again.

    What was timed before it was measured has its place where it was measured; what was only timed is no evaluation.
    """

    def __init__(self, table: ResultTable, plan: SessionPlan) -> None:
        self.table, self.plan = table, plan
        self.quantity = quantity(plan.objective.goal.name, units=plan.units)
        self.improvements: list[Improvement] = []
        self._sign = -1.0 if plan.objective.goal.maximise else 1.0
        self._length = 0
        self._cost_s: Floats = np.empty(0)  # of each entry of the table, as far as it was asked for
        self._deepened = table.deepened
        self.refresh()

    def __len__(self) -> int:
        return self._length

    def refresh(self) -> None:
        """Read what is new in the table."""
        start, length = self._length, len(self.table.evaluated())
        costs = self.values(start, length) * self._sign
        best = self.improvements[-1].value * self._sign if self.improvements else math.inf
        so_far = np.fmin.accumulate(np.concatenate([[best], costs]))
        for place in np.flatnonzero(so_far[1:] < so_far[:-1]).tolist():
            index = int(self.table.evaluated()[start + place])
            self.improvements.append(Improvement(start + place, index, float(so_far[place + 1]) * self._sign))
        self._length = length

    @property
    def indices(self) -> npt.NDArray[np.int64]:
        """Of the evaluations, into the table."""
        return self.table.evaluated()[: self._length]

    def place(self, index: int) -> int:
        """Of the evaluation that an index into the table means; -1 if it is none."""
        indices = np.flatnonzero(self.indices == index)
        return int(indices[0]) if len(indices) else -1

    def values(self, start: int = 0, end: int | None = None) -> Floats:
        """The objective of each evaluation, shape (n,); NaN if it failed or breaks a limit."""
        indices = self.table.evaluated()[start : self._length if end is None else end]
        values = self.table.values(self.plan.objective.goal.name)[indices]
        ok = feasible(self.table, self.plan.objective.limits)[indices]
        return np.where(ok & np.isfinite(values), values, np.nan)

    @property
    def timed(self) -> bool:
        """What the evaluations took is known."""
        return any(self.table.measurement(improvement.index).cost_s > 0 for improvement in self.improvements)

    def seconds(self, start: int = 0) -> Floats:
        """What was spent on measuring up to the end of each evaluation, shape (n,), in s on the board's clock.

        What is only timed counts where it comes first in the table; what was timed before it was measured, as measured.
        """
        if self._deepened != self.table.deepened:
            self._deepened, self._cost_s = self.table.deepened, np.empty(0)
        timed, length = len(self._cost_s), len(self.table)
        fresh_s = np.nan_to_num([self.table.measurement(index).cost_s for index in range(timed, length)])
        self._cost_s = np.append(self._cost_s, fresh_s)
        timed_s = np.cumsum(np.where(self.table.timed()[:length], self._cost_s, 0.0))
        indices = self.indices
        spent_s = (
            np.cumsum(self._cost_s[indices]) + timed_s[np.maximum.accumulate(indices)] if len(indices) else np.empty(0)
        )
        return np.asarray(spent_s[start:], dtype=np.float64)

    def words(self, improvement: Improvement) -> str:
        """Which evaluation it was, what it gave, and what it changed in the best until then."""
        spent = f" ({duration(self.seconds()[improvement.place])})" if self.timed else ""
        text = f"Evaluation {improvement.place + 1}{spent}: {self.quantity.text(improvement.value)}"
        place = self.improvements.index(improvement)
        if place == 0:
            return f"{text}, the first that succeeded"
        before = self.improvements[place - 1]
        if before.value:
            gain = abs(improvement.value - before.value) / abs(before.value)
            text += f", {percent(gain)} better than evaluation {before.place + 1}"
        return f"{text} by {self._changes(before, improvement)}"

    def _changes(self, before: Improvement, after: Improvement) -> str:
        old = self.table.measurement(before.index).configuration
        new = self.table.measurement(after.index).configuration
        changed = [
            f"{shown.label} {parameter_text(old[name])} → {parameter_text(new[name])} {shown.unit}".rstrip()
            for name, shown in quantities_of(self.plan).items()
            if old.get(name) != new.get(name)
        ]
        return ", ".join(changed) or "measuring it again"


_REACH_PX = 14.0
_NOTHING = "Start a session, or open a result: how its search came to its best is drawn here."
_NONE_OK = "No evaluation has succeeded yet."
_SECONDS = "Time spent on measuring (s)"


class ConvergencePlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Over the evaluations, or over the time that was spent on them.

    The mouse, or Left and Right, point at one; a click, Enter or Space choose it.
    """

    pointed = Signal(object)  # an Improvement; None: at none
    chosen = Signal(int)  # index into the table

    def __init__(self, parent: QWidget | None = None) -> None:
        self._axis = FigureAxis("left")
        super().__init__(parent, viewBox=Box(), enableMenu=False, axisItems={"left": self._axis})
        self._history: History | None = None
        self._over_seconds = False
        self._selected = -1
        self._pointed: Improvement | None = None
        self._drawn = 0  # evaluations
        self.getPlotItem().setContentsMargins(2, 8, 12, 2)  # so that the ticks at the ends are whole
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.setAccessibleName("Best so far over the evaluations")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.getAxis("bottom").enableAutoSIPrefix(False)
        self._cloud = PointCloud(self.getViewBox(), theme.colours())
        self._curve = pg.PlotCurveItem(name="best so far")
        self._marks = pg.ScatterPlotItem(size=8, name="improvements")
        self._choice = pg.ScatterPlotItem(size=15, brush=None)
        self._cursor = pg.ScatterPlotItem(size=19, brush=None)
        for item in (self._curve, self._marks, self._choice, self._cursor):
            self.addItem(item)
        self.note = PlotNote(self)
        self.scene().sigMouseMoved.connect(self._mouse_moved)
        self.scene().sigMouseClicked.connect(self._mouse_clicked)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()
        self.redraw()

    def show_history(self, history: History) -> None:
        """Another session's."""
        self._history, self._pointed = history, None
        self._axis.show_quantity(history.quantity, log=False)
        self.redraw()

    @Slot(bool)
    def show_over_seconds(self, over_seconds: bool) -> None:
        """Draw over the time that was spent, or else over the number of evaluations."""
        self._over_seconds = over_seconds
        self.redraw()

    def select(self, index: int) -> None:
        """Ring the evaluation of that index; -1: none."""
        self._selected = index
        self._show_choice()

    def redraw(self) -> None:
        """Draw everything."""
        self._cloud.set_points(np.empty(0), np.empty(0), np.empty(0, dtype=np.uint16))
        self._drawn = 0
        self.getAxis("bottom").setLabel(_SECONDS if self._over_seconds else "Evaluations")
        self.refresh()

    def refresh(self) -> None:
        """Draw what is new in the history."""
        history = self._history
        for name in ("left", "bottom"):
            self.getAxis(name).setVisible(history is not None)
        if history is None:
            self.note.setText(_NOTHING)
            return
        x, values = self._places(self._drawn), history.values(self._drawn)
        finite = np.isfinite(values)
        self._cloud.append(x[finite], values[finite], np.full(int(finite.sum()), DIM, dtype=np.uint16))
        self._drawn = len(history)
        self.note.setText("" if history.improvements else _NONE_OK)
        self._draw_steps(history)
        self._fit(history)
        self._show_choice()
        self._show_cursor()

    def _draw_steps(self, history: History) -> None:
        places = self._places()
        x = places[[improvement.place for improvement in history.improvements]] if history.improvements else np.empty(0)
        y = np.array([improvement.value for improvement in history.improvements])
        self._marks.setData(x, y)
        if not len(x):
            self._curve.setData([], [])
            return
        ends, bests = np.append(x, max(places[-1], x[-1])), np.append(y, y[-1])
        self._curve.setData(np.repeat(ends, 2)[1:], np.repeat(bests, 2)[:-1])

    def _fit(self, history: History) -> None:
        """The whole course in sight."""
        places, (_, y) = self._places(), self._cloud.points()
        if not len(y):
            return
        low, high = float(y.min()), float(y.max())
        margin = 0.06 * ((high - low) or abs(high) or 1.0)
        self.setYRange(low - margin, high + margin, padding=0)
        self.setXRange(0.0, 1.02 * float(places[-1] or 1.0), padding=0)

    def _places(self, start: int = 0) -> Floats:
        """Along x, of the evaluations from `start` on."""
        assert self._history is not None
        if self._over_seconds:
            return self._history.seconds(start)
        return np.arange(start + 1, len(self._history) + 1, dtype=np.float64)

    def _show_choice(self) -> None:
        history = self._history
        place = -1 if history is None else history.place(self._selected)
        if history is None or place < 0 or not np.isfinite(history.values()[place]):
            self._choice.setData([], [])
        else:
            self._choice.setData([self._places()[place]], [history.values()[place]])

    # --- pointing -----------------------------------------------------------------------------------------------------

    def _nearest(self, position: QPointF) -> Improvement | None:
        """The improvement nearest to a place in the scene."""
        if self._history is None or not self._history.improvements:
            return None
        place = self._cloud.mapFromScene(position)
        improvements = self._history.improvements
        x, y = self._cloud.in_pixels(
            self._places()[[match.place for match in improvements]], np.array([e.value for e in improvements])
        )
        distances = np.hypot(x - place.x(), y - place.y())
        return improvements[int(np.argmin(distances))] if distances.min() <= _REACH_PX else None

    @Slot(object)
    def _mouse_moved(self, at: Any) -> None:
        self._point_at(self._nearest(at))

    @Slot(object)
    def _mouse_clicked(self, event: Any) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        near = self._nearest(event.scenePos())
        if near is not None:
            self.chosen.emit(near.index)
            return
        place = self._cloud.nearest(self._cloud.mapFromScene(event.scenePos()))
        if place is not None and self._history is not None:
            finite = self._history.indices[np.isfinite(self._history.values())]
            self.chosen.emit(int(finite[place]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right move the cursor to the improvement before and after; Enter and Space choose it."""
        if event.key() in CHOOSE and self._pointed is not None:
            self.chosen.emit(self._pointed.index)
            return
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or self._history is None or not self._history.improvements:
            super().keyPressEvent(event)
            return
        improvements = self._history.improvements
        places = [match.place for match in improvements]
        begun = self._history.place(self._selected) if self._pointed is None else self._pointed.place
        index = int(np.searchsorted(places, begun, side="left" if step < 0 else "right")) + min(step, 0)
        self._point_at(improvements[min(max(index, 0), len(improvements) - 1)])

    def _point_at(self, improvement: Improvement | None) -> None:
        if improvement is not self._pointed:
            self._pointed = improvement
            self._show_cursor()
            self.pointed.emit(improvement)

    def _show_cursor(self) -> None:
        """Ring the improvement that is pointed at."""
        place = None if self._pointed is None else self._pointed.place
        if place is None or self._pointed is None:
            self._cursor.setData([], [])
        else:
            self._cursor.setData([self._places()[place]], [self._pointed.value])

    @Slot()
    def recolour(self) -> None:
        colours = theme.colours()
        dress(self, ("left", "bottom"), upright=False, density=DENSE)
        self._cloud.set_colours(colours)
        self._curve.setPen(pg.mkPen(colours.accent, width=2))
        self._marks.setBrush(pg.mkBrush(colours.accent))
        self._marks.setPen(pg.mkPen(colours.base))
        self._choice.setPen(pg.mkPen(QColor(colours.text), width=2))
        self._cursor.setPen(pg.mkPen(QColor(colours.muted), width=1))


_UNTIMED = "What the evaluations took is not known"
_TIMED = "Draw over the time that was spent on measuring, on the board's own clock"
_HOW = "Point at a mark, or press Left and Right, to see where that improvement came from; a click or Enter chooses it."


class ConvergencePanel(Panel):
    """Grows with the session while it is in sight. What is selected in it is selected in every view."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._result = context.result
        self.history: History | None = None
        self.plot = ConvergencePlot()
        self.plot.setMinimumHeight(140)
        self.evaluations = Toggle("Evaluations", "Over evaluations", "Draw over the number of evaluations")
        self.seconds = Toggle("Seconds", "Over seconds", _TIMED)
        self._over = QButtonGroup(self)
        for widget in (self.evaluations, self.seconds):
            self._over.addButton(widget)
        self.evaluations.setChecked(True)
        self.words = PlainLabel(_HOW, wrap=True, selectable=True, muted=True)
        self.words.setMinimumHeight(2 * self.words.fontMetrics().lineSpacing())  # the plot keeps its height
        vbox(
            hbox(PlainLabel("Over"), self.evaluations, self.seconds, 1),
            (self.plot, 1),
            self.words,
            of=self,
            margins=6,
        )
        self.seconds.toggled.connect(self.plot.show_over_seconds)
        self.plot.pointed.connect(self._say)
        self.plot.chosen.connect(self._result.select)
        self._result.changed.connect(self._selected)
        self._soon = OwnTurn(self, self._refresh)  # however many points there are
        self.subscribe(events.SessionStarted | events.MeasurementsAdded, self._refresh_soon)
        self.subscribe(events.FiguresRestated | events.SessionChanged, self._refresh_soon)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._soon.start()

    @Slot(object)
    def _refresh_soon(self, _event: object) -> None:
        self._soon.start()

    @Slot()
    def _refresh(self) -> None:
        """Draw what the result holds by now; what is out of sight waits until it is seen."""
        table, plan = self._result.table, self._result.plan
        if not self.isVisible():
            return
        if table is not None and plan is not None:
            if self.history is None or self.history.table is not table:
                self.history = History(table, plan)
                self.plot.show_history(self.history)
            self.history.refresh()
            self.plot.refresh()
        timed = self.history is not None and self.history.timed
        self.seconds.setEnabled(timed)
        self.seconds.setToolTip(_TIMED if timed else _UNTIMED)
        if not timed:
            self.evaluations.setChecked(True)
        self._say(None)

    @Slot(int)
    def _selected(self, index: int) -> None:
        self.plot.select(index)
        self._say(None)

    @Slot(object)
    def _say(self, pointed: Improvement | None) -> None:
        """Of the improvement that is pointed at, else of the one that is selected, else of the newest."""
        improvements = self.history.improvements if self.history is not None else []
        selected = next((match for match in improvements if match.index == self._result.index), None)
        shown = pointed or selected or (improvements[-1] if improvements else None)
        self.words.setText(_HOW if self.history is None or shown is None else self.history.words(shown))
