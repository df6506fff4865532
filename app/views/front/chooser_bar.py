"""`ChooserBar`: ways to choose a configuration, and what the choice costs and gains against the fastest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QSizePolicy,
    QSlider,
    QToolButton,
    QWidget,
)

from ...engine.analysis import choosers
from ...engine.analysis.costs import Costs, costs_of
from ...engine.analysis.tradeoff import Load, Tradeoff, Yearly
from ...engine.space.result_table import ResultTable
from ..plots.figures import signed
from ..plots.label import PlainLabel
from ..plots.row_filter import EVERYTHING, RowFilter
from ..settings import Settings
from .load_form import LoadForm, menu_with

_STEPS = 100  # of the slider
BY_HAND = "by_hand"
WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Chooser:
    """One way to choose. `choose(costs, limit, weight)` gives an index; `limit` is (unit, least, most, usual, step)."""

    name: str
    label: str
    short: str  # beside the point
    choose: Callable[[Costs, float, float], int | None]
    limit: tuple[str, float, float, float, float] | None = None


CHOOSERS: tuple[Chooser, ...] = (
    Chooser(BY_HAND, "By hand: click a point", "", lambda c, limit, a: None),
    Chooser("fastest", "Fastest", "fastest", lambda c, limit, a: choosers.fastest(c.time_s, c.energy_j)),
    Chooser(
        "least_energy", "Least energy", "least energy", lambda c, limit, a: choosers.least_energy(c.time_s, c.energy_j)
    ),
    Chooser(
        "least_edp", "Least energy × time", "least E·t", lambda c, limit, a: choosers.least_edp(c.time_s, c.energy_j)
    ),
    Chooser(
        "least_ed2p",
        "Least energy × time²",
        "least E·t²",
        lambda c, limit, a: choosers.least_edp(c.time_s, c.energy_j, 2.0),
    ),
    Chooser(
        "at_most_slower",
        "Least energy, slower by at most",
        "at most slower",
        lambda c, limit, a: choosers.at_most_slower(c.time_s, c.energy_j, limit / 100),
        (" %", 0.0, 1000.0, 5.0, 1.0),
    ),
    Chooser(
        "at_most_power",
        "Fastest, drawing at most",
        "at most W",
        lambda c, limit, a: choosers.at_most_power(c.time_s, c.energy_j, c.power_w, limit),
        (" W", 1.0, 5000.0, 200.0, 5.0),
    ),
    Chooser("knee", "Knee of the front", "knee", lambda c, limit, a: choosers.knee(c.time_s, c.energy_j)),
    Chooser(
        WEIGHTED,
        "Weight of time, a",
        "weighted",
        lambda c, limit, a: choosers.weighted(c.time_s, c.energy_j, a),
    ),
)


class ChooserBar(QWidget):
    """`chosen` carries an index into the table. It chooses among what the filter shows."""

    chosen = Signal(int, str)  # index, -1 where nothing fits; the word beside the point

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: ResultTable | None = None
        self._costs: Costs | None = None
        self._filter: RowFilter = EVERYTHING
        self._index = -1
        self.way = QComboBox()
        for chooser in CHOOSERS:
            self.way.addItem(chooser.label, chooser.name)
        self.way.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.way.setMinimumContentsLength(14)
        self.way.setAccessibleName("Way to choose a configuration")
        self.limit = QDoubleSpinBox()
        self.limit.setDecimals(0)
        self.limit.setAccessibleName("Limit")
        self.limit.setKeyboardTracking(False)
        self.weight = QSlider(Qt.Orientation.Horizontal)
        self.weight.setRange(0, _STEPS)
        self.weight.setValue(_STEPS // 2)
        self.weight.setMinimumWidth(70)
        self.weight.setAccessibleName("Weight a of time in M = a t + (1 - a) e")
        self.weight.setToolTip(
            "a in M = a·t + (1 − a)·e, both scaled along the front: left the least energy, right the fastest"
        )
        self._weight_words = PlainLabel()
        self._settings = settings
        self.load = LoadForm(settings)
        self.per_year = QToolButton()
        self.per_year.setText("Per year …")
        self.per_year.setToolTip("Hours a year, boards, price of electricity, carbon intensity")
        self.per_year.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.per_year.setMenu(menu_with(self.load, self.per_year))
        self.per_year.menu().aboutToShow.connect(self.load.look_again)
        self.words = PlainLabel()
        self.words.setWordWrap(True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._lay_out()
        self.way.currentIndexChanged.connect(self._way_chosen)
        self.limit.valueChanged.connect(self.choose)
        self.weight.valueChanged.connect(self._weight_moved)
        self.load.changed.connect(self._show_comparison)
        self._way_chosen()

    def _lay_out(self) -> None:
        choose = PlainLabel("C&hoose")
        choose.setBuddy(self.way)
        self.way.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(2)
        grid.addWidget(choose, 0, 0)
        grid.addWidget(self.way, 0, 1)
        grid.addWidget(self.limit, 0, 2)
        grid.addWidget(self.weight, 0, 3)
        grid.addWidget(self._weight_words, 0, 4)
        grid.addWidget(self.words, 1, 0, 1, 4)
        grid.addWidget(self.per_year, 1, 4, Qt.AlignmentFlag.AlignTop)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(3, 2)

    # --- the session -------------------------------------------------------------------------------------------------

    def set_session(self, table: ResultTable | None) -> None:
        """Choose among other measurements; by hand at first."""
        self._table, self._costs, self._filter, self._index = table, None, EVERYTHING, -1
        self.by_hand()
        self._show_comparison()

    def refresh(self, shown: RowFilter) -> None:
        """The table has grown, or other rows are shown: what was asked for may be another one now."""
        self._filter, self._costs = shown, None
        self.choose()
        self._show_comparison()

    def follow(self, index: int) -> None:
        """A measurement was selected anywhere in the window; it may have been measured since the bar was refreshed."""
        if self._costs is not None and index >= len(self._costs.time_s):
            self._costs = None
        if index != self._index:
            self._index = index
            self.by_hand()
        self._show_comparison()

    def by_hand(self) -> None:
        """What is selected was not chosen here."""
        with QSignalBlocker(self.way):
            self.way.setCurrentIndex(self.way.findData(BY_HAND))
        self._show_limit()

    def choose_by(self, name: str) -> None:
        """Choose in one of the ways, by its name."""
        self.way.setCurrentIndex(self.way.findData(name))

    @property
    def chooser(self) -> Chooser:
        return CHOOSERS[self.way.currentIndex()]

    # --- choosing ----------------------------------------------------------------------------------------------------

    @Slot()
    def _way_chosen(self) -> None:
        self._show_limit()
        self.choose()

    @Slot()
    def _weight_moved(self) -> None:
        if self.chooser.name != WEIGHTED:
            self.choose_by(WEIGHTED)
        else:
            self.choose()
        self._show_weight()

    @Slot()
    def choose(self) -> None:
        """Choose again in the current way."""
        if self.chooser.name == BY_HAND or self._table is None:
            return
        index = self.chooser.choose(self.costs(), self.limit.value(), self.weight.value() / _STEPS)
        self._index = -1 if index is None else index
        short = self.chooser.short
        if self.chooser.limit is not None:
            short = f"at most {self.limit.text().replace(' ', ' ')}" + (" slower" if "%" in self.limit.text() else "")
        self.chosen.emit(self._index, short)
        self._show_comparison()

    def costs(self) -> Costs:
        """Time, energy and power of every measurement, NaN where it is filtered out."""
        assert self._table is not None
        if self._costs is None:
            costs = costs_of(self._table)
            if self._filter:
                passed = self._filter.passes(self._table.space, self._table.rows()[: len(costs.time_s)])
                costs = replace(
                    costs,
                    time_s=np.where(passed, costs.time_s, np.nan),
                    energy_j=np.where(passed, costs.energy_j, np.nan),
                    power_w=np.where(passed, costs.power_w, np.nan),
                )
            self._costs = costs
        return self._costs

    # --- what is seen ------------------------------------------------------------------------------------------------

    def _show_limit(self) -> None:
        limit = self.chooser.limit
        self.limit.setVisible(limit is not None)
        if limit is not None and self.limit.suffix() != limit[0]:
            with QSignalBlocker(self.limit):
                self.limit.setSuffix(limit[0])
                self.limit.setRange(limit[1], limit[2])
                self.limit.setSingleStep(limit[4])
                self.limit.setValue(limit[3] if limit[0] != " W" else self._usual_power(limit[3]))
        self._show_weight()

    def _usual_power(self, otherwise: float) -> float:
        """Halfway between what the fastest and the one of least energy draw."""
        if self._table is None:
            return otherwise
        costs = self.costs()
        ends = [choose(costs.time_s, costs.energy_j) for choose in (choosers.fastest, choosers.least_energy)]
        drawn = [float(costs.power_w[end]) for end in ends if end is not None and np.isfinite(costs.power_w[end])]
        return sum(drawn) / len(drawn) if drawn else otherwise

    def _show_weight(self) -> None:
        self._weight_words.setText(f"a = {self.weight.value() / _STEPS:.2f}")

    @Slot()
    def _show_comparison(self) -> None:
        """What the selected one costs and gains against the fastest."""
        self.load.look_again()
        self.words.setText(self._comparison())

    def _comparison(self) -> str:
        if self._table is None or not len(self._table):
            return ""
        if not 0 <= self._index < len(self._table):
            if self.chooser.name == BY_HAND:
                return "Click a point or choose a way, to see what it costs and gains against the fastest."
            return "Nothing measured so far fits that."
        costs = self.costs()
        fastest = choosers.fastest(costs.time_s, costs.energy_j)
        if fastest is None:
            return "No time is known, so there is no comparison with the fastest."
        if fastest == self._index:
            return "This is the fastest."
        load = self._settings.load
        change, year = choosers.against(costs, fastest, self._index, load)
        return trade_text(change, year, load)


def trade_text(change: Tradeoff | None, year: Yearly | None, load: Load) -> str:
    """'18 % less energy for 4 % more time than the fastest; 312 kWh, … less per year at 4000 h'."""
    if change is None:
        return ""
    text = f"{_first_upper(change.words)} than the fastest."
    if year is not None:
        runs = f"{signed(load.hours_per_year, 0)} h a year"
        boards = f" on {load.boards} boards" if load.boards > 1 else ""
        text += f" {_first_upper(year.words)}, where the fastest runs {runs}{boards}."
    return text.replace("CO2", "CO₂")


def _first_upper(words: str) -> str:
    return words[:1].upper() + words[1:]
