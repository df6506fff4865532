"""`FigureChoices`: the figures on the axes, linear or logarithmic, and those shown by colour and by marker.

`Codings`: what the colours and shapes of a session's points stand for, from its first measurement to its last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QSignalBlocker, QSize, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QComboBox, QHBoxLayout, QSizePolicy, QWidget

from ...engine.analysis.costs import readings_of
from ...engine.analysis.quantities import Quantity, quantities_of, quantity, usual_goals
from ...engine.results.objectives import Goal, likely_goal
from ...engine.runner.pool.pool import board_name
from ...engine.space.result_table import BOARD_NUMBER, ResultTable
from ...engine.specification.plan import SessionPlan
from ..plots.markers import Coding, ShapeCoding, Styles, with_shapes
from ..shared.label import PlainLabel
from ..shared.widgets import Toggle, hbox
from .points import FrontPoints

AS_COLOUR = ""  # the marker shows the same figure as the colour


class BetterEnd(QWidget):
    """Two buttons side by side, 'max' and 'min': the pressed one is in force, the other is what can be chosen."""

    changed = Signal()

    def __init__(self, axis: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.larger, self.smaller = (
            Toggle(
                text, f"{name} is better on the {axis} axis", f"Pressed: {name.lower()} is better on the {axis} axis"
            )
            for text, name in (("max", "Larger"), ("min", "Smaller"))
        )
        group = QButtonGroup(self)
        group.addButton(self.larger)
        group.addButton(self.smaller)
        self.larger.setChecked(True)
        self.larger.toggled.connect(self.changed)
        hbox(self.larger, self.smaller, of=self, margins=0, spacing=0)

    @property
    def is_larger(self) -> bool:
        """Whether larger is better."""
        return self.larger.isChecked()

    def set_larger(self, larger: bool) -> None:
        """Press one of the two without saying so."""
        with QSignalBlocker(self):
            (self.larger if larger else self.smaller).setChecked(True)


class FigureChoices(QWidget):
    """Choices of every parameter and figure of the session, in one row where there is room, else in two.

    More may be put into `aside`, the second.
    """

    axes_changed = Signal()
    coding_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plan: SessionPlan | None = None
        self._table: ResultTable | None = None
        self.offered: tuple[str, ...] = ()
        self._stand_ins: set[QComboBox] = set()  # of a figure that no measurement had yet when the axes were chosen
        self._quantities: dict[str, Quantity] = {}
        self.x_figure, self.y_figure, self.colour, self.marker = (QComboBox() for _ in range(4))
        self.x_better, self.y_better = BetterEnd("x"), BetterEnd("y")
        self.x_log, self.y_log = _log_button("x"), _log_button("y")
        for choice, name in (
            (self.x_figure, "Figure on the x axis"),
            (self.y_figure, "Figure on the y axis"),
            (self.colour, "Figure shown as colour"),
            (self.marker, "Figure shown as the marker's shape"),
        ):
            choice.setAccessibleName(name)
            choice.setToolTip(name)
            choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            choice.setMinimumContentsLength(7)
            choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.aside = _row("&Colour", self.colour, "&Marker", self.marker)
        upright = ("&Y", self.y_figure, self.y_log, self.y_better)
        self._rows = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(4)
        self._axes = _row(*upright, "&X", self.x_figure, self.x_log, self.x_better)
        self._rows.addLayout(self._axes, 3)
        self._rows.addLayout(self.aside, 2)
        for choice in (self.x_figure, self.y_figure):
            choice.currentIndexChanged.connect(self._axis_chosen)
        for better in (self.x_better, self.y_better):
            better.changed.connect(self._direction_chosen)
        for button in (self.x_log, self.y_log):
            button.toggled.connect(self._log_chosen)
        for choice in (self.colour, self.marker):
            choice.currentIndexChanged.connect(self._coding_chosen)

    def _widths(self) -> list[int]:
        return [row.minimumSize().width() for row in (self._axes, self.aside)]

    def minimumSizeHint(self) -> QSize:
        """That of two rows: one row gives way."""
        return QSize(max(self._widths()), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = event.size().width() >= sum(self._widths()) + self._rows.spacing()
        across = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        if across != self._rows.direction():
            self._rows.setDirection(across)

    # --- what is offered ---------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Offer nothing: there is no session, or another one begins."""
        self._plan, self._table, self.offered = None, None, ()
        for choice in (self.x_figure, self.y_figure, self.colour, self.marker):
            with QSignalBlocker(choice):
                choice.clear()

    def offer(self, table: ResultTable, plan: SessionPlan) -> bool:
        """Offer every figure there is, keeping what the user has chosen; True if the axes were chosen just now."""
        if self.offered == table.figure_names:
            return False
        first = not self.offered
        self._plan, self._table, self.offered = plan, table, table.figure_names
        self._quantities = {
            **{name: quantity(name, units=plan.units) for name in self.offered},
            **quantities_of(plan),
        }
        goals = self._usual_goals()
        usual = (goals[0].name, goals[1].name, self._usual_colour(), AS_COLOUR)
        taken = {goal.name for goal in goals}
        for choice, preferred in zip((self.x_figure, self.y_figure, self.colour, self.marker), usual, strict=True):
            kept = preferred if first or choice in self._stand_ins else choice.currentData()
            with QSignalBlocker(choice):
                choice.clear()
                if choice is self.marker:
                    choice.addItem("as colour", AS_COLOUR)
                for name, described in self._quantities.items():
                    choice.addItem(described.title, name)
                index = choice.findData(kept)
                if index < 0 or (choice is self.y_figure and kept == self.x_figure.currentData()):
                    index = _other_than(choice, taken)
                    self._stand_ins.add(choice)
                elif choice in self._stand_ins:
                    self._stand_ins.remove(choice)
                    first = True
                choice.setCurrentIndex(index)
        if first:
            for better, goal in zip((self.x_better, self.y_better), goals, strict=True):
                better.set_larger(goal.maximise)
        return first

    def _usual_goals(self) -> tuple[Goal, Goal]:
        assert self._plan is not None
        return usual_goals(self._plan.objective, self.offered)

    def _usual_colour(self) -> str:
        assert self._plan is not None
        names = [p.name for p in self._plan.space.parameters if len(p.values) > 1]
        wanted = ("graphics_clock", "gr_clock", "core_clock", "observed_clock", "clock", "power_w")
        candidates = [*names, *self.offered]
        return next((n for word in wanted for n in candidates if word in n), candidates[0])

    # --- what is chosen ----------------------------------------------------------------------------------------------

    @property
    def stand_in(self) -> bool:
        """Whether an axis shows another figure than it should, which no measurement has, and the user chose neither."""
        return bool(self._stand_ins)

    @property
    def goals(self) -> tuple[Goal, Goal]:
        """Of the x and the y axis."""
        return (
            Goal(self.x_figure.currentData(), self.x_better.is_larger),
            Goal(self.y_figure.currentData(), self.y_better.is_larger),
        )

    @property
    def log(self) -> tuple[bool, bool]:
        """Whether the x and the y axis are logarithmic."""
        return self.x_log.isChecked(), self.y_log.isChecked()

    @property
    def titles(self) -> tuple[Quantity, Quantity]:
        """How the figures on the x and the y axis are shown."""
        return self._quantities[self.x_figure.currentData()], self._quantities[self.y_figure.currentData()]

    @property
    def colour_name(self) -> str:
        return str(self.colour.currentData())

    @property
    def marker_name(self) -> str:
        """Empty: the same as the colour."""
        return str(self.marker.currentData() or AS_COLOUR)

    @property
    def names(self) -> tuple[str, ...]:
        """All that is shown: on the axes, by colour and by marker."""
        shown = (goal.name for goal in self.goals)
        return tuple(dict.fromkeys(name for name in (*shown, self.colour_name, self.marker_name) if name))

    def described(self, name: str) -> Quantity:
        """How any of the figures is shown."""
        return self._quantities[name]

    def words_of(self, name: str) -> tuple[str, ...]:
        """The words of a parameter of words, by their codes, and boards by their numbers; empty for other figures."""
        if name == BOARD_NUMBER and self._table is not None:
            return ("", *map(board_name, self._table.boards))
        for parameter in self._plan.space.parameters if self._plan is not None else ():
            if parameter.name == name and parameter.numbers is None:
                return tuple(str(value) for value in parameter.values)
        return ()

    @Slot()
    def _axis_chosen(self) -> None:
        if self._plan is None:
            return
        self._stand_ins.clear()
        goals = {goal.name: goal for goal in self._usual_goals()}
        if self.x_figure.currentData() == self.y_figure.currentData():  # the other axis gives way
            other = self.x_figure if self.sender() is self.y_figure else self.y_figure
            with QSignalBlocker(other):
                other.setCurrentIndex(_other_than(other, {other.currentData()}))
        for choice, better in ((self.x_figure, self.x_better), (self.y_figure, self.y_better)):
            name = choice.currentData()
            better.set_larger((goals.get(name) or likely_goal(name)).maximise)
        self.axes_changed.emit()

    @Slot()
    def _direction_chosen(self) -> None:
        if self._plan is not None:
            self.axes_changed.emit()

    @Slot()
    def _log_chosen(self) -> None:
        if self._plan is not None:
            self.axes_changed.emit()

    @Slot()
    def _coding_chosen(self) -> None:
        if self._plan is not None:
            self.coding_changed.emit()


def _other_than(choice: QComboBox, names: set[str]) -> int:
    """The place of the first figure that is none of these; it counts as one of them from now on."""
    at = next((index for index in range(choice.count()) if choice.itemData(index) not in names), 0)
    names.add(choice.itemData(at))
    return at


def _row(*parts: str | QWidget) -> QHBoxLayout:
    """Labels, each the buddy of what follows it, and widgets, side by side."""
    row = hbox(spacing=4)
    for part, following in zip(parts, (*parts[1:], None), strict=True):
        if isinstance(part, str):
            label = PlainLabel(part)
            if isinstance(following, QWidget):
                label.setBuddy(following)
            row.addWidget(label)
        else:
            row.addWidget(part)
    return row


def _log_button(axis: str) -> Toggle:
    """Pressed while the axis is logarithmic."""
    tip = f"Pressed: a logarithmic {axis} axis, on which what is not above zero has no place"
    return Toggle("log", f"Logarithmic {axis} axis", tip)


Floats = npt.NDArray[np.float64]


class Codings:
    """Colours by one column, shapes by another (empty: shapes go with the colours).

    A parameter's values are known before the first measurement, so its colours never change. A figure's scale is
    extended when a value lies outside; `extended_at` then is the number of measurements at which that was last so. What
    a filter hides counts as well: hiding it changes no colour.
    """

    def __init__(self, table: ResultTable, colour_name: str, shape_name: str) -> None:
        self._table = table
        self.names = (colour_name, shape_name)
        self.colour, self.shape = self._made()
        self.extended_at = 0

    def _made(self) -> tuple[Coding, ShapeCoding | None]:
        colour_name, shape_name = self.names
        fixed = _known_values(self._table, colour_name)
        colour = Coding(fixed) if fixed is not None else Coding.of_figure(readings_of(self._table, colour_name))
        if not shape_name:
            return colour, None
        fixed = _known_values(self._table, shape_name)
        shape = ShapeCoding(fixed) if fixed is not None else ShapeCoding.of_figure(readings_of(self._table, shape_name))
        return colour, shape

    def styles(self, points: FrontPoints, start: int = 0) -> Styles:
        """The styles of the points from `start` on."""
        colour_name, shape_name = self.names
        styles = self.colour.styles(points.colour_values(colour_name, start))
        if self.shape is None:
            return styles
        return with_shapes(styles, self.shape.shapes(points.colour_values(shape_name, start)))

    def extend(self, points: FrontPoints, start: int) -> bool:
        """Find a place for the points from `start` on; True where colours or shapes of the others changed for that."""
        colour_name, shape_name = self.names
        covered = self.colour.covers(points.colour_values(colour_name, start))
        if self.shape is not None:
            covered &= self.shape.covers(points.colour_values(shape_name, start))
        if not covered:
            self.colour, self.shape = self._made()
            self.extended_at = points.seen if start else 0
        return not covered


def _known_values(table: ResultTable, name: str) -> Floats | None:
    """Values of which each has a marker of its own: a parameter's, and the numbers of boards. None for a figure."""
    if name != BOARD_NUMBER:
        return parameter_values(table, name)
    return np.arange(1.0, len(table.boards) + 1.0)


def parameter_values(table: ResultTable, name: str) -> Floats | None:
    """All values of a parameter as the table's columns have them: words by their places. None for a figure."""
    if name in table.value_names or name not in table.space.names:
        return None
    parameter = table.space.parameters[table.space.names.index(name)]
    return np.arange(len(parameter.values), dtype=np.float64) if parameter.numbers is None else parameter.numbers
