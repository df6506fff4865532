"""`ChooserBar`: ways to choose a configuration, and what the choice costs and gains against the fastest.

The ways to choose a configuration, and what a choice costs and gains, in words; free of Qt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtGui import QAction, QActionGroup, QShowEvent
from PySide6.QtWidgets import QMenu, QPushButton, QSlider, QWidget

from ...engine.analysis import choosers
from ...engine.analysis.costs import Costs, costs_of, values_of
from ...engine.analysis.tradeoff import Load
from ...engine.models.arrays import Floats
from ...engine.results.objectives import Objective
from ...engine.session import events
from ...engine.space.result_table import ResultTable
from ...engine.space.within_limits import feasible
from ..plots.figures import signed
from ..shared.context import Context
from ..shared.current_result import RowFilter
from ..shared.label import PlainLabel
from ..shared.settings import Settings
from ..shared.widgets import NumberBox, hbox, vbox
from .load_form import LoadForm, menu_with

BY_HAND = "by_hand"
WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The measurements to choose among; NaN if one failed, is hidden, or lacks the figure."""

    costs: Costs
    goal: Floats  # of the session's objective, less is better


@dataclass(frozen=True, slots=True)
class Limit:
    """The parameter of a way of choosing: a number within bounds."""

    unit: str
    least: float
    most: float
    usual: float
    step: float


@dataclass(frozen=True, slots=True)
class Way:
    """One way to choose. `choose(candidates, number)` gives an index; the number is the limit's or the weight."""

    name: str
    label: str
    short: str  # beside the point
    choose: Callable[[Candidates, float], int | None]
    limit: Limit | None = None


def _by_costs(choose: Callable[[Floats, Floats], int | None]) -> Callable[[Candidates, float], int | None]:
    return lambda c, _: choose(c.costs.time_s, c.costs.energy_j)


WAYS: tuple[Way, ...] = (
    Way(BY_HAND, "By hand: a point or a row", "", lambda c, _: None),
    Way("objective", "Best by the objective", "best", lambda c, _: _least(c.goal)),
    Way("fastest", "Fastest", "fastest", _by_costs(choosers.fastest)),
    Way("least_energy", "Least energy", "least energy", _by_costs(choosers.least_energy)),
    Way("knee", "Knee of the front", "knee", _by_costs(choosers.knee)),
    Way(
        "at_most_slower",
        "Least energy, slower by at most",
        "at most slower",
        lambda c, limit: choosers.at_most_slower(c.costs.time_s, c.costs.energy_j, limit / 100),
        Limit(" %", 0.0, 1000.0, 5.0, 1.0),
    ),
    Way(
        "at_most_power",
        "Fastest, drawing at most",
        "at most W",
        lambda c, limit: choosers.at_most_power(c.costs.time_s, c.costs.energy_j, c.costs.power_w, limit),
        Limit(" W", 1.0, 5000.0, 200.0, 5.0),
    ),
    Way("least_edp", "Least energy × time", "least E·t", _by_costs(choosers.least_edp)),
    Way("least_ed2p", "Least energy × time²", "least E·t²", _by_costs(lambda t, e: choosers.least_edp(t, e, 2.0))),
    Way(
        WEIGHTED,
        "Weight of time, a",
        "weighted",
        lambda c, weight: choosers.weighted(c.costs.time_s, c.costs.energy_j, weight),
    ),
)


def candidates_of(table: ResultTable, objective: Objective, shown: RowFilter) -> Candidates:
    """Time, energy, power and objective of every measurement, NaN if it is hidden or breaks a limit."""
    table = table.so_far()
    goal = objective.goal
    costs, values = costs_of(table), values_of(table, goal.name)
    hidden = ~shown.passes(table.space, table.rows()) if shown else np.zeros(len(table), dtype=np.bool_)
    hidden |= ~feasible(table, objective.limits)
    time_s, energy_j, power_w, values = (
        np.where(hidden, np.nan, column) for column in (costs.time_s, costs.energy_j, costs.power_w, values)
    )
    kept = replace(costs, time_s=time_s, energy_j=energy_j, power_w=power_w)
    return Candidates(kept, -values if goal.maximise else values)


def per_year(candidates: Candidates, index: int, load: Load) -> str:
    """What a choice saves in a year against the fastest, as a sentence; empty if that is not known."""
    fastest = choosers.fastest(candidates.costs.time_s, candidates.costs.energy_j)
    _, year = choosers.against(candidates.costs, fastest, index, load)
    if year is None or fastest == index:
        return ""
    boards = f" on {load.boards} boards" if load.boards > 1 else ""
    runs = f"{signed(load.hours_per_year, 0)} h a year{boards}"
    return f"{_first_upper(year.words)}, where the fastest runs {runs}.".replace("CO2", "CO₂")


def _first_upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _least(column: Floats) -> int | None:
    return int(np.nanargmin(column)) if np.isfinite(column).any() else None


_STEPS = 100  # of the slider
_SLOW_MS = 250  # between two looks at a table that grows
_NOTHING_FITS = "Nothing measured so far fits that; the best by the objective is shown."
_LINES = 3  # room for the comparison, whether there is one or not


class ChooserBar(QWidget):
    """Chooses among what the result shows. Follows a table that grows while it is in sight."""

    def __init__(self, context: Context, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result, self._settings = context.result, settings
        self._known: Candidates | None = None  # until the table grows, or another filter is set
        self.choose_button = QPushButton("&Choose")
        self.menu = QMenu(self.choose_button)
        self._actions: dict[str, QAction] = {}
        self.limit = NumberBox()
        self.weight = QSlider(Qt.Orientation.Horizontal)
        self._weight_words = PlainLabel()
        self.load = LoadForm(settings)
        self.per_year = QPushButton("Per &year …")
        self.words = PlainLabel(wrap=True, selectable=True)
        self._slowly = QTimer(self, interval=_SLOW_MS, singleShot=True)
        self._fill()
        self._lay_out()
        self.limit.valueChanged.connect(self.choose)
        self.weight.valueChanged.connect(self._weight_moved)
        self.load.changed.connect(self._show_comparison)
        self._slowly.timeout.connect(self.refresh)
        self._result.replaced.connect(self._begin)
        self._result.changed.connect(self._follow)
        self._result.best_changed.connect(self._show_comparison)
        self._result.filtered.connect(self.refresh)
        context.bridge.subscribe(events.MeasurementsAdded, self._measurements_added)
        context.bridge.subscribe(events.FiguresRestated, self._figures_restated)
        self._begin()

    def _fill(self) -> None:
        self.choose_button.setToolTip("Choose a configuration: the fastest, the least energy, the knee and others")
        group = QActionGroup(self)
        for way in WAYS:
            action = self._actions[way.name] = self.menu.addAction(way.label)
            action.setCheckable(True)
            action.setData(way.name)
            group.addAction(action)
            if way.name in (BY_HAND, "knee"):
                self.menu.addSeparator()
        self._actions[BY_HAND].setChecked(True)
        group.triggered.connect(self._way_chosen)
        self.choose_button.setMenu(self.menu)
        self.limit.setDecimals(0)
        self.limit.setAccessibleName("Limit")
        self.limit.setKeyboardTracking(False)
        self.weight.setRange(0, _STEPS)
        self.weight.setValue(_STEPS // 2)
        self.weight.setMinimumWidth(70)
        self.weight.setAccessibleName("Weight a of time in M = a t + (1 - a) e")
        self.weight.setToolTip(
            "a in M = a·t + (1 − a)·e, both scaled along the front: left the least energy, right the fastest"
        )
        self.per_year.setToolTip("Hours a year, boards, price of electricity, carbon intensity")
        of_year = menu_with(self.load, self.per_year)
        of_year.aboutToShow.connect(self.load.look_again)
        self.per_year.setMenu(of_year)

    def _lay_out(self) -> None:
        self.words.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.words.setMinimumHeight(_LINES * self.words.fontMetrics().lineSpacing())
        vbox(
            hbox(self.choose_button, 1, self.per_year),
            hbox(self.limit, (self.weight, 1), self._weight_words, 1),
            self.words,
            of=self,
            margins=0,
            spacing=4,
        )

    # --- choosing ----------------------------------------------------------------------------------------------------

    @property
    def way(self) -> Way:
        """The way that is ticked."""
        return next(way for way in WAYS if self._actions[way.name].isChecked())

    def choose_by(self, name: str) -> None:
        """Choose in one of the ways, by its name."""
        self._actions[name].trigger()

    @Slot()
    def choose(self) -> None:
        """Choose again in the current way."""
        way, candidates = self.way, self._candidates()
        if candidates is None or way.name == BY_HAND:
            return
        number = self.weight.value() / _STEPS if way.name == WEIGHTED else self.limit.value()
        index = way.choose(candidates, number)
        self._result.select(-1 if index is None else index, self._rule(way, number), way.name, number)

    def _rule(self, way: Way, number: float) -> str:
        """The rule in words: beside the point, on the chip and in what is exported."""
        words = way.short
        if way.limit is not None:
            words = f"at most {number:g}{way.limit.unit}" + (" slower" if "%" in way.limit.unit else "")
        elif way.name == WEIGHTED:
            words = f"least a t + (1 − a) e, a = {number:.2f}"
        elif way.name == "objective" and self._result.plan is not None:
            words = str(self._result.plan.objective.goal)
        return f"{words}, of what is shown" if self._result.shown else words

    @Slot()
    def refresh(self) -> None:
        """Choose again after the table has grown or shows other values."""
        began = time.perf_counter()
        self._known = None
        self.choose()
        self._show_comparison()
        self._slowly.setInterval(max(_SLOW_MS, int(7000 * (time.perf_counter() - began))))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._known = None
        self._show_comparison()

    def _candidates(self, index: int = -1) -> Candidates | None:
        """None before there is a session. `index` is among them: it may have been measured since the last look."""
        table, plan = self._result.table, self._result.plan
        if table is None or plan is None:
            return None
        if self._known is None or index >= len(self._known.goal):
            self._known = candidates_of(table, plan.objective, self._result.shown)
        return self._known

    @Slot()
    def _begin(self) -> None:
        """Another session: by hand at first."""
        self._known = None
        self.setEnabled(self._result.table is not None)
        self._follow()

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        # a way that is ticked chooses whether or not it is in sight
        wanted = self.isVisible() or self.way.name != BY_HAND
        if event.session == self._result.session and wanted and not self._slowly.isActive():
            self._slowly.start()

    @Slot(object)
    def _figures_restated(self, _event: events.FiguresRestated) -> None:
        self._known = None
        self.refresh()

    @Slot()
    def _way_chosen(self, *_: object) -> None:
        self._show_limit()
        if self.way.name == BY_HAND:
            self._result.select(self._result.index, "")
        else:
            self.choose()

    @Slot()
    def _weight_moved(self) -> None:
        self._show_weight()
        self.choose()

    @Slot()
    def _follow(self, *_: object) -> None:
        """A measurement was selected anywhere in the window, or an earlier choice is made again."""
        choice = self._result.choice
        self._actions[choice.name or BY_HAND].setChecked(True)
        self._show_limit()
        with QSignalBlocker(self.weight), QSignalBlocker(self.limit):
            if self.way.name == WEIGHTED:
                self.weight.setValue(round(choice.number * _STEPS))
            elif self.way.limit is not None:
                self.limit.setValue(choice.number)
        self._show_weight()
        self._show_comparison()

    # --- what is seen ------------------------------------------------------------------------------------------------

    def _show_limit(self) -> None:
        limit, weighted = self.way.limit, self.way.name == WEIGHTED
        self.limit.setVisible(limit is not None)
        self.weight.setVisible(weighted)
        self._weight_words.setVisible(weighted)
        if limit is not None and self.limit.suffix() != limit.unit:
            with QSignalBlocker(self.limit):
                self.limit.setSuffix(limit.unit)
                self.limit.setRange(limit.least, limit.most)
                self.limit.setSingleStep(limit.step)
                self.limit.setValue(limit.usual if limit.unit != " W" else self._usual_power(limit.usual))
        self._show_weight()

    def _usual_power(self, otherwise: float) -> float:
        """Halfway between what the fastest and the one of least energy draw."""
        candidates = self._candidates()
        if candidates is None:
            return otherwise
        costs = candidates.costs
        ends = [choose(costs.time_s, costs.energy_j) for choose in (choosers.fastest, choosers.least_energy)]
        drawn = [float(costs.power_w[end]) for end in ends if end is not None and np.isfinite(costs.power_w[end])]
        return sum(drawn) / len(drawn) if drawn else otherwise

    def _show_weight(self) -> None:
        self._weight_words.setText(f"a = {self.weight.value() / _STEPS:.2f}")

    @Slot()
    def _show_comparison(self) -> None:
        """What the choice costs and gains against the fastest and the untouched board, and in a year."""
        self.load.look_again()
        result, chosen = self._result, self._result.chosen
        candidates = self._candidates(-1 if chosen is None else chosen)
        stands = result.standing() if candidates is not None else None
        if candidates is None or chosen is None or stands is None:
            self.words.setText("")
        elif result.index < 0 and result.way:
            self.words.setText(_NOTHING_FITS)
        else:
            fastest = stands.against_fastest
            same = fastest is not None and fastest.energy.distinguishable is False
            texts = (*stands.sentences, "" if same else per_year(candidates, chosen, self._settings.load))
            self.words.setText(" ".join(filter(None, texts)))
