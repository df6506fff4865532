"""`SliceView`: one figure over one parameter, the others held at the selected configuration."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QWidget

from ...engine.analysis.quantities import Quantity, quantities_of
from ...engine.objectives import Goal
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import ResultTable
from ..plots.chart_plot import ChartPlot
from ..plots.label import PlainLabel
from ..widgets import hbox, vbox
from .slice import Slice, best_of, chart_of, positions, slice_through

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
                for each in sorted(varied, key=lambda p: not p.device_setting):
                    self.parameter.addItem(described[each.name].title, each.name)
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
        at: QPointF = event.scenePos()  # type: ignore[attr-defined]
        x = positions(self._plan, self.cut.parameter)[self.cut.place]
        y = self._table.values(self._goal.name)[self.cut.index] * self._described.factor
        places = [view.mapViewToScene(QPointF(*each)) for each in zip(x.tolist(), y.tolist(), strict=True)]
        away = np.asarray([np.hypot(place.x() - at.x(), place.y() - at.y()) for place in places])
        if len(away) and away.min() <= _REACH_PX:
            self.picked.emit(int(self.cut.index[int(away.argmin())]))
