"""`SliceView`: one figure over one parameter, the others held at the selected configuration.

A slice of the space: one figure over one parameter, all others held at one configuration; free of Qt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QWidget

from ...engine.analysis.quantities import Quantity, parameter_text, quantities_of
from ...engine.results.chart import Chart, Series
from ...engine.results.measurement import State, Value
from ...engine.results.objectives import Goal, Limit
from ...engine.space.result_table import STATES, ResultTable
from ...engine.space.within_limits import feasible
from ...engine.specification.plan import SessionPlan
from ..plots.chart_plot import ChartPlot
from ..shared.label import PlainLabel
from ..shared.widgets import hbox, vbox

Indices = npt.NDArray[np.int64]
_OK = STATES.index(State.OK)


@dataclass(frozen=True, slots=True)
class Slice:
    """Measurements that differ from the chosen one in one parameter only, in the order of its values."""

    parameter: str
    chosen: int
    index: Indices  # measurements with the figure
    place: Indices  # of each: that of its value in the parameter's list
    failed: Indices  # places of values whose configuration failed
    open: Indices  # places of values whose configuration is not valid or not measured so far


def slice_through(table: ResultTable, chosen: int, parameter: str, figure: str) -> Slice:
    """The slice through a measurement."""
    space = table.space
    length = len(table)
    rows = table.rows()[:length]
    axis = space.names.index(parameter)
    alike = np.ones(length, dtype=np.bool_)
    for other in range(len(space.names)):
        if other != axis:
            codes = space.codes[:, other]
            alike &= codes[rows] == codes[rows[chosen]]
    index = np.flatnonzero(alike)
    place = space.codes[rows[index], axis].astype(np.int64)
    finite = (table.states()[index] == _OK) & np.isfinite(table.values(figure)[:length][index])
    order = np.argsort(place[finite], kind="stable")
    failed = np.setdiff1d(place[~finite], place[finite])
    missing = np.setdiff1d(np.arange(space.axis_sizes[axis]), place)
    return Slice(parameter, chosen, index[finite][order], place[finite][order], failed, missing)


def best_of(table: ResultTable, goal: Goal, limits: Sequence[Limit] = ()) -> int | None:
    """The measurement within the limits that is best in a figure."""
    within = feasible(table, limits)
    values = np.where(within, table.values(goal.name)[: len(within)], np.nan)
    if not np.isfinite(values).any():
        return None
    return int(np.nanargmax(values) if goal.maximise else np.nanargmin(values))


def positions(plan: SessionPlan, name: str) -> npt.NDArray[np.float64]:
    """Where each value of a parameter stands on the axis: settings of the device to scale, others side by side."""
    parameter = next(p for p in plan.space.parameters if p.name == name)
    numbers = parameter.numbers if parameter.device_setting else None
    if numbers is None or np.isnan(numbers).any():  # an untouched setting has no place among numbers
        return np.arange(len(parameter.values), dtype=np.float64)
    return numbers


def chart_of(
    table: ResultTable, plan: SessionPlan, cut: Slice, goal: Goal, described: Quantity, over: Quantity
) -> Chart | str:
    """The slice as a plot, or why there is none."""
    values = plan.space.parameters[plan.space.names.index(cut.parameter)].values
    if not len(cut.index):
        return f"{described.label} is not known along {over.label}."
    at = positions(plan, cut.parameter)
    y = table.values(goal.name)[cut.index] * described.factor
    indices = np.flatnonzero(cut.index == cut.chosen)
    series = [Series("others as chosen", "accent", y, at[cut.place], points=True)]
    if len(indices):
        series.append(
            Series("chosen", "vermillion", y[indices], at[cut.place[indices]], line=False, points=True, symbol="d")
        )
    best = int(y.argmax() if goal.maximise else y.argmin())
    words = [f"Measured at {len(set(cut.place.tolist()))} of {len(values)} values."]
    words += [f"Best at {parameter_text(values[cut.place[best]])} {over.unit}".rstrip() + "."]
    words += [f"{text}: {_listed(values, places)}." for text, places in _others(cut) if len(places)]
    to_scale = not np.array_equal(at, np.arange(len(values)))
    ticks = () if to_scale else tuple(parameter_text(value) for value in values)
    return Chart(over.title, described.title, tuple(series), " ".join(words), ticks=ticks)


def _others(cut: Slice) -> tuple[tuple[str, Indices], ...]:
    return ("Failed", cut.failed), ("Not valid, or not measured so far", cut.open)


def _listed(values: tuple[Value, ...], places: Indices, most: int = 8) -> str:
    texts = [parameter_text(values[place]) for place in places[:most].tolist()]
    return ", ".join(texts) + (f" and {len(places) - most} more" if len(places) > most else "")


_REACH_PX = 16.0
_NOTHING = "Nothing measured so far has this figure."


class SliceView(QWidget):
    """A click on a point picks it. Where nothing is selected the slice goes through the best."""

    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._goal: Goal | None = None
        self._described: Quantity | None = None
        self._selected = -1
        self.cut: Slice | None = None
        self.parameter = QComboBox()
        self.parameter.setAccessibleName("Parameter along which the slice goes")
        self.parameter.setToolTip("All other parameters are held at the selected configuration")
        self.chart = ChartPlot()
        self.through = PlainLabel(muted=True)
        over = PlainLabel("O&ver")
        over.setBuddy(self.parameter)
        vbox(hbox(over, self.parameter, self.through, 1), (self.chart, 1), of=self, margins=0, spacing=2)
        self.parameter.currentIndexChanged.connect(self.refresh)
        self.chart.plot.scene().sigMouseClicked.connect(self._clicked)

    def show_session(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        """Slice another session; its device settings come first."""
        if table is self._table and plan is self._plan:
            return
        self._table, self._plan = table, plan
        with QSignalBlocker(self.parameter):
            self.parameter.clear()
            if plan is not None:
                described = quantities_of(plan)
                varied = [p for p in plan.space.parameters if len(p.values) > 1]
                for item in sorted(varied, key=lambda p: not p.device_setting):
                    self.parameter.addItem(described[item.name].title, item.name)
        self.refresh()

    def show_figure(self, goal: Goal, described: Quantity, selected: int) -> None:
        """Show a figure, through a measurement, -1 for the best."""
        self._goal, self._described, self._selected = goal, described, selected
        self.refresh()

    @Slot(int)
    def select(self, index: int) -> None:
        """Slice through another measurement."""
        self._selected = index
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show what the table has grown by."""
        table, plan, goal, described = self._table, self._plan, self._goal, self._described
        name = self.parameter.currentData()
        self.cut = None
        if table is None or plan is None or goal is None or described is None or name is None or not len(table):
            self.chart.say(_NOTHING)
            return
        chosen = self._selected if 0 <= self._selected < len(table) else best_of(table, goal, plan.objective.limits)
        if chosen is None:
            self.chart.say(_NOTHING)
            return
        given = self._selected >= 0
        self.through.setText(f"through measurement {chosen + 1}" + ("" if given else ", the best so far"))
        self.cut = slice_through(table, chosen, name, goal.name)
        chart = chart_of(table, plan, self.cut, goal, described, quantities_of(plan)[name])
        if isinstance(chart, str):
            self.chart.say(chart)
        else:
            self.chart.show_chart(chart)

    @Slot(object)
    def _clicked(self, event: object) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self.cut is None or self._plan is None:  # type: ignore[attr-defined]
            return
        assert self._table is not None
        assert self._goal is not None
        assert self._described is not None
        view = self.chart.plot.getViewBox()
        position: QPointF = event.scenePos()  # type: ignore[attr-defined]
        x = positions(self._plan, self.cut.parameter)[self.cut.place]
        y = self._table.values(self._goal.name)[self.cut.index] * self._described.factor
        places = [view.mapViewToScene(QPointF(*item)) for item in zip(x.tolist(), y.tolist(), strict=True)]
        away = np.asarray([np.hypot(place.x() - position.x(), place.y() - position.y()) for place in places])
        if len(away) and away.min() <= _REACH_PX:
            self.picked.emit(int(self.cut.index[int(away.argmin())]))
