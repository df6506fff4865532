"""The Pareto scatter: any two figures of the session against each other, the front drawn through, a third as colour."""

from __future__ import annotations

import html

import numpy as np
from PySide6.QtCore import QSignalBlocker, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from app.engine.events import MeasurementsAdded, SessionStarted
from app.engine.objectives import Goal, likely_goal
from app.engine.results import ResultTable
from app.engine.session import SessionPlan
from app.views import theme
from app.views.colour_key import ColourKey
from app.views.context import Context
from app.views.front_plot import FrontPlot
from app.views.front_points import FrontPoints
from app.views.markers import Coding
from app.views.provenance import source_words
from app.views.quantities import Quantity, is_efficiency, is_speed, quantities_of, quantity
from app.views.results_table import value_text

_EMPTY = (
    "No session yet.\nOpen a specification or a recorded cache under Tune and press Start;\n"
    "each measurement then appears here."
)
_NO_STYLES = np.empty(0, dtype=np.uint16)
_WAITING = "Waiting for the first measurements that have both figures."


class FrontPanel(QWidget):
    """Follows the running session. Usable without a window: `FrontPanel(context)`."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._offered: tuple[str, ...] = ()
        self._points: FrontPoints | None = None
        self._coding: Coding | None = None
        self.x_choice, self.y_choice, self.colour_choice = QComboBox(), QComboBox(), QComboBox()
        self.x_better, self.y_better = _direction_button("x"), _direction_button("y")
        self._show_all = QPushButton("Show all")
        self._show_all.setToolTip("Zoom so that every point is in sight (double click in the plot)")
        self.plot = FrontPlot(self._describe)
        self.key = ColourKey()
        self.count = QLabel()
        self._lay_out()
        for choice in (self.x_choice, self.y_choice):
            choice.currentIndexChanged.connect(self._figures_chosen)
        for button in (self.x_better, self.y_better):
            button.toggled.connect(self._direction_chosen)
        self.colour_choice.currentIndexChanged.connect(self._colour_chosen)
        self._show_all.clicked.connect(self.plot.show_all)
        self.plot.picked.connect(context.selection.select)
        context.selection.changed.connect(self.plot.select)
        context.bridge.session_started.connect(self._session_started)
        context.bridge.measurements_added.connect(self._measurements_added)
        theme.notifier().changed.connect(self.key.update)
        self._begin(context.selection.table, context.selection.plan)

    def _lay_out(self) -> None:
        for choice in (self.x_choice, self.y_choice, self.colour_choice):
            choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            choice.setMinimumContentsLength(9)
            choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        axes = _row("&Y", self.y_choice, self.y_better, "  &X", self.x_choice, self.x_better)
        colour = _row("&Colour", self.colour_choice, self._show_all)
        self.count.setWordWrap(True)
        grid = QGridLayout(self)
        grid.setContentsMargins(6, 6, 6, 6)
        grid.addLayout(axes, 0, 0, 1, 2)
        grid.addLayout(colour, 1, 0, 1, 2)
        grid.addWidget(self.plot, 2, 0)
        grid.addWidget(self.key, 2, 1)
        grid.addWidget(self.count, 3, 0, 1, 2)
        grid.setRowStretch(2, 1)
        grid.setColumnStretch(0, 1)
        self.x_choice.setAccessibleName("Figure on the x axis")
        self.y_choice.setAccessibleName("Figure on the y axis")
        self.colour_choice.setAccessibleName("Figure shown as colour")
        self.setMinimumSize(360, 260)

    # --- the session -------------------------------------------------------------------------------------------------

    @Slot(object)
    def _session_started(self, event: SessionStarted) -> None:
        self._begin(event.table, event.plan)

    @Slot(object)
    def _measurements_added(self, event: MeasurementsAdded) -> None:
        if event.session == self._context.selection.session and self.isVisible():
            self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def _begin(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        self._table, self._plan, self._offered, self._points = table, plan, (), None
        for choice in (self.x_choice, self.y_choice, self.colour_choice):
            with QSignalBlocker(choice):
                choice.clear()
        self._show_points()
        self.refresh()

    def refresh(self) -> None:
        """Take in what the table has grown by."""
        if self._table is None or self._plan is None:
            return
        if self._offered != self._table.value_names:
            self._offer_figures()
        if self._points is None or self._coding is None:
            return
        start = len(self._points)
        if self._points.update():
            values = self._points.colour_values(self._colour_name(), start)
            self.plot.add_points(self._coding.styles(values))
            if not self._coding.covers(values):
                self._colour_chosen()
        self._count_points()

    # --- what is chosen ----------------------------------------------------------------------------------------------

    def _offer_figures(self) -> None:
        """Offer every figure there is, keeping what a person has chosen."""
        assert self._table is not None
        assert self._plan is not None
        first = not self._offered
        self._offered = self._table.value_names
        shown = {
            **{name: quantity(name, units=self._plan.units) for name in self._offered},
            **quantities_of(self._plan),
        }
        goals = self._usual_goals()
        usual = (goals[0].name, goals[1].name, self._usual_colour())
        for choice, preferred in zip((self.x_choice, self.y_choice, self.colour_choice), usual, strict=True):
            kept = preferred if first else choice.currentData()
            with QSignalBlocker(choice):
                choice.clear()
                for name, described in shown.items():
                    choice.addItem(described.title, name)
                choice.setCurrentIndex(max(0, choice.findData(kept)))
        if first:
            for button, goal in zip((self.x_better, self.y_better), goals, strict=True):
                _set_direction(button, goal.maximise)
            self._rebuild()

    def _usual_goals(self) -> tuple[Goal, Goal]:
        """The front of the objective; else a speed and an efficiency; else the first two figures."""
        assert self._plan is not None
        if len(self._plan.objective.front) >= 2:
            return self._plan.objective.front[0], self._plan.objective.front[1]
        metrics_first = sorted(self._offered, key=lambda name: name.endswith(("_s", "_j")))
        speed = next((n for n in metrics_first if is_speed(n)), self._offered[0])
        others = [n for n in metrics_first if n != speed] or [speed]
        efficiency = next((n for n in others if is_efficiency(n)), others[0])
        return likely_goal(speed), likely_goal(efficiency)

    def _usual_colour(self) -> str:
        assert self._plan is not None
        names = [p.name for p in self._plan.space.parameters if len(p.values) > 1]
        wanted = ("graphics_clock", "gr_clock", "core_clock", "observed_clock", "clock", "power_w")
        candidates = [*names, *self._offered]
        return next((n for word in wanted for n in candidates if word in n), candidates[0])

    def _goals(self) -> tuple[Goal, Goal]:
        return (
            Goal(self.x_choice.currentData(), self.x_better.isChecked()),
            Goal(self.y_choice.currentData(), self.y_better.isChecked()),
        )

    def _colour_name(self) -> str:
        return str(self.colour_choice.currentData())

    @Slot()
    def _figures_chosen(self) -> None:
        if self._plan is None or not self._offered:
            return
        known = {goal.name: goal for goal in self._usual_goals()}
        for choice, button in ((self.x_choice, self.x_better), (self.y_choice, self.y_better)):
            name = choice.currentData()
            _set_direction(button, (known.get(name) or likely_goal(name)).maximise)
        self._rebuild()

    @Slot()
    def _direction_chosen(self) -> None:
        for button in (self.x_better, self.y_better):
            _set_direction(button, button.isChecked())
        self._rebuild()

    @Slot()
    def _colour_chosen(self) -> None:
        if self._points is None:
            return
        values = self._points.colour_values(self._colour_name())
        self._coding = Coding(values)
        self.plot.set_styles(self._coding.styles(values))
        self._show_key()

    def _rebuild(self) -> None:
        if self._table is None or not self._offered:
            return
        self._points = FrontPoints(self._table, *self._goals())
        self._points.update()
        self._show_points()

    def _show_points(self) -> None:
        points = self._points
        values = points.colour_values(self._colour_name()) if points is not None else None
        self._coding = Coding(values) if values is not None else None
        styles = self._coding.styles(values) if self._coding is not None and values is not None else _NO_STYLES
        titles = (self._quantity(self.x_choice), self._quantity(self.y_choice)) if points is not None else None
        self.plot.show_points(points, styles, titles)
        self._show_key()
        self._count_points()

    def _show_key(self) -> None:
        described = self._quantity(self.colour_choice) if self._points is not None else None
        words: tuple[str, ...] = ()
        if self._plan is not None and self._points is not None:
            for parameter in self._plan.space.parameters:
                if parameter.name == self._colour_name() and any(isinstance(v, str) for v in parameter.values):
                    words = tuple(str(v) for v in parameter.values)
        self.key.show_coding(self._coding, described, words)

    def _quantity(self, choice: QComboBox) -> Quantity:
        assert self._plan is not None
        name = choice.currentData()
        return quantities_of(self._plan).get(name) or quantity(name, units=self._plan.units)

    # --- words -------------------------------------------------------------------------------------------------------

    def _count_points(self) -> None:
        shown = len(self._points) if self._points is not None else 0
        self.plot.say("" if shown else _EMPTY if self._table is None else _WAITING)
        if self._table is None or self._plan is None or self._points is None:
            self.count.setText("")
            return
        words = [f"{shown} of {len(self._table)} measurements", f"{len(self._points.front)} on the front"]
        failed = sum(self._table.failures().values())
        words += [f"{failed} failed"] if failed else []
        words += [source_words(self._plan.source)] if source_words(self._plan.source) else []
        self.count.setText(" · ".join(words))

    def _describe(self, index: int) -> str:
        """A measurement's configuration and figures, as rich text."""
        assert self._table is not None
        assert self._plan is not None
        measurement = self._table.measurement(index)
        parameters = quantities_of(self._plan)
        configured = [
            (parameters[n].title, value_text(v)) for n, v in measurement.configuration.items() if n in parameters
        ]
        figures = []
        for name, value in measurement.values.items():
            described = quantity(name, units=self._plan.units)
            bounds = measurement.intervals.get(name)
            spread = f" ({described.number(bounds[0])} … {described.number(bounds[1])})" if bounds else ""
            figures.append((described.title, described.number(value) + spread))
        rows = "".join(_card_row(*pair) for pair in configured)
        rows += '<tr><td colspan="2"><hr></td></tr>' + "".join(_card_row(*pair) for pair in figures)
        return f"<b>Measurement {index + 1}</b><table cellspacing='0' cellpadding='1'>{rows}</table>"


def _card_row(name: str, value: str) -> str:
    return f"<tr><td>{html.escape(name)}&nbsp;&nbsp;</td><td align='right'><b>{html.escape(value)}</b></td></tr>"


def _row(*parts: str | QWidget) -> QHBoxLayout:
    """Labels, each the buddy of what follows it, and widgets, side by side."""
    row = QHBoxLayout()
    for part, following in zip(parts, (*parts[1:], None), strict=True):
        if isinstance(part, str):
            label = QLabel(part)
            if isinstance(following, QWidget):
                label.setBuddy(following)
            row.addWidget(label)
        else:
            row.addWidget(part)
    return row


def _direction_button(axis: str) -> QToolButton:
    button = QToolButton()
    button.setCheckable(True)
    button.setAccessibleName(f"Larger is better on the {axis} axis")
    _set_direction(button, True)
    return button


def _set_direction(button: QToolButton, maximise: bool) -> None:
    with QSignalBlocker(button):
        button.setChecked(maximise)
    button.setText("max" if maximise else "min")
    button.setToolTip("Larger is better; press for smaller" if maximise else "Smaller is better; press for larger")
