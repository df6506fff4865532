"""What the user chooses before a session starts: strategy and its options, objective, budget, seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from ...engine.analysis.quantities import quantity
from ...engine.objectives import Goal, likely_goal
from ...engine.session.plan import SessionPlan
from ...engine.strategies import base as strategies
from ...numbers import counted
from ..number_boxes import ShortNumberBox
from ..plots.label import PlainLabel
from ..plots.toggle import look_pressed
from ..widgets import vbox
from .draft import Draft
from .form_history import FormHistory
from .strategy_options import StrategyOptions

_LARGEST = 2**53  # whole numbers up to here are exact in a field


class SessionForm(QWidget):
    """Shows a draft's plan and gives it back as it was changed."""

    edited = Signal()  # the user changed something, or that changed something else
    draft_shown = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._draft: Draft | None = None
        self._filled: dict[str, Any] = {}  # what is chosen in the draft itself
        self.strategy, self.objective, self.direction = QComboBox(), QComboBox(), QComboBox()
        self.direction.addItem("maximise", True)
        self.direction.addItem("minimise", False)
        self.evaluations = _count("whole space", "Measure at most so many configurations")
        self.seconds = _count("no limit", "End after so many seconds", decimals=3)
        self.seconds.setSuffix(" s")
        self.patience = _count("no limit", "End after so many evaluations without an improvement")
        self.seed = _count("", "The same seed repeats the strategy's choices")
        self.seed.setGroupSeparatorShown(False)
        self.more = QToolButton()
        self.more.setText("Options")
        self.more.setCheckable(True)
        look_pressed(self.more)
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.setArrowType(Qt.ArrowType.RightArrow)
        self.options = StrategyOptions()
        self.details = QWidget()  # what few users change: patience, seed and the strategy's options
        self.details.hide()
        self.why = PlainLabel(" ", wrap=True, muted=True)  # what cannot be chosen; its line is always there
        self._tips = {widget: widget.toolTip() for widget in (*self.searching, *self.goal, *self.limits)}
        self._lay_out()
        self.strategy.currentIndexChanged.connect(self._strategy_chosen)
        self.objective.currentIndexChanged.connect(self._objective_chosen)
        self.more.toggled.connect(self._show_options)
        for choice in (self.strategy, self.objective, self.direction):
            choice.currentIndexChanged.connect(self._note_edit)
        for count in (self.evaluations, self.seconds, self.patience, self.seed):
            count.valueChanged.connect(self._note_edit)
        self.options.edited.connect(self._note_edit)
        self._filling = False  # by the program: no edit
        self.history = FormHistory(self.state, self.set_state, self)
        self.edited.connect(self.history.note)
        self.draft_shown.connect(self.history.begin)
        self.setEnabled(False)

    def _lay_out(self) -> None:
        counts = QGridLayout()
        for row, (text, box) in enumerate((("&Patience", self.patience), ("See&d", self.seed))):
            counts.addWidget(_named(text, box), row, 0)
            counts.addWidget(box, row, 1)
        counts.setColumnStretch(1, 1)
        vbox(counts, self.options, of=self.details, margins=0)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(4)
        rows: tuple[tuple[str, QWidget, QWidget | None], ...] = (
            ("&Strategy", self.strategy, None),
            ("&Objective", self.objective, self.direction),
            ("&Evaluations", self.evaluations, None),
            ("&Time", self.seconds, self.more),  # right above what it opens
        )
        for row, (text, field, beside) in enumerate(rows):
            grid.addWidget(_named(text, field), row, 0)
            grid.addWidget(field, row, 1, 1, 1 if beside is not None else 2)
            if beside is not None:
                beside.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
                grid.addWidget(beside, row, 2)
        grid.addWidget(self.details, len(rows), 0, 1, 3)
        grid.addWidget(self.why, len(rows) + 1, 0, 1, 3)
        grid.setColumnStretch(1, 1)
        for choice in (self.strategy, self.objective):
            choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            choice.setMinimumContentsLength(8)
            choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.direction.setAccessibleName("Direction of the objective")

    def show_draft(self, draft: Draft) -> None:
        """Fill in a draft's plan."""
        self._filling = True
        self._draft, plan = draft, draft.plan
        with QSignalBlocker(self.strategy), QSignalBlocker(self.objective):
            self.strategy.clear()
            for name in sorted(strategies.names(), key=lambda name: (name != "auto", strategies.get(name).label)):
                self.strategy.addItem(strategies.get(name).label, name)
                tip = strategies.description(strategies.get(name))
                self.strategy.setItemData(self.strategy.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
            self.strategy.setCurrentIndex(max(0, self.strategy.findData(plan.strategy)))
            self.objective.clear()
            for name in dict.fromkeys((*draft.figures, plan.objective.goal.name)):
                self.objective.addItem(quantity(name, units=plan.units).title, name)
            self.objective.setCurrentIndex(self.objective.findData(plan.objective.goal.name))
        self.direction.setCurrentIndex(0 if plan.objective.goal.maximise else 1)
        self.evaluations.setMaximum(plan.space.size)
        self.evaluations.setValue(min(plan.max_evaluations or 0, plan.space.size))
        self.seconds.setValue(plan.max_seconds or 0)
        self.patience.setValue(plan.patience or 0)
        self.seed.setValue(plan.seed)
        self._strategy_chosen()
        self.setEnabled(True)
        self.lock(())
        self._filling = False
        self._filled = self.state()
        self.draft_shown.emit()

    @property
    def searching(self) -> tuple[QWidget, ...]:
        """How it is searched."""
        return (self.strategy, self.options, self.seed)

    @property
    def goal(self) -> tuple[QWidget, ...]:
        """What for."""
        return (self.objective, self.direction)

    @property
    def limits(self) -> tuple[QWidget, ...]:
        """How long."""
        return (self.evaluations, self.seconds, self.patience)

    def lock(self, fields: Collection[QWidget], why: str = "", further: str = "") -> None:
        """These cannot be changed, and say why; all others can. `further` is said beside it."""
        for widget in self._tips:
            locked = widget in fields
            widget.setEnabled(not locked)
            widget.setToolTip(why if locked else self._tips[widget])
        self.why.setText(". ".join(words for words in (why, further) if words) or " ")

    def words(self) -> str:
        """What is chosen, in a few words: strategy, objective and budget."""
        count = int(self.evaluations.value())
        limits = [counted(count, "evaluation")] if count else ["whole space"]
        limits += [f"{self.seconds.text()} at most"] if self.seconds.value() else []
        goal = f"{self.direction.currentText()} {self.objective.currentText()}"
        return " · ".join((self.strategy.currentText(), goal, *limits))

    def state(self) -> dict[str, Any]:
        """What is chosen, by field."""
        return {
            "strategy": self.strategy.currentData(),
            "options": self.options.values(),
            "objective": self.objective.currentData(),
            "maximise": self.direction.currentData(),
            "max_evaluations": int(self.evaluations.value()) or None,
            "max_seconds": self.seconds.value() or None,
            "patience": int(self.patience.value()) or None,
            "seed": int(self.seed.value()),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Choose what `state` held before."""
        self._filling = True
        self.strategy.setCurrentIndex(max(0, self.strategy.findData(state["strategy"])))
        self.options.show_strategy(strategies.get(state["strategy"]), state["options"])
        self.objective.setCurrentIndex(max(0, self.objective.findData(state["objective"])))
        self.direction.setCurrentIndex(0 if state["maximise"] else 1)
        for count, name in (
            (self.evaluations, "max_evaluations"),
            (self.seconds, "max_seconds"),
            (self.patience, "patience"),
            (self.seed, "seed"),
        ):
            count.setValue(state[name] or 0)
        self._filling = False

    @Slot()
    def _note_edit(self) -> None:
        if not self._filling and self._draft is not None:
            self.edited.emit()

    def plan(self) -> SessionPlan:
        """The draft's plan with what was changed here. Raises InputError where an option is out of its range."""
        assert self._draft is not None
        plan, before, state = self._draft.plan, self._filled, self.state()
        same = state["strategy"] == before["strategy"]
        own, shown = (plan.strategy_options, before["options"]) if same else ({}, {})
        options = {**own, **{name: at for name, at in state.pop("options").items() if shown.get(name, ...) != at}}
        strategies.make_options(strategies.get(state["strategy"]), dict(options))
        goal = Goal(state.pop("objective"), state.pop("maximise"))
        return dataclasses.replace(
            plan,
            objective=dataclasses.replace(plan.objective, goal=goal),
            strategy_options=options,
            **{name: value for name, value in state.items() if value != before[name]},
        )

    @Slot()
    def _strategy_chosen(self) -> None:
        if self._draft is None:
            return
        plan, name = self._draft.plan, str(self.strategy.currentData())
        self.options.show_strategy(strategies.get(name), dict(plan.strategy_options) if name == plan.strategy else {})

    @Slot()
    def _objective_chosen(self) -> None:
        name = self.objective.currentData()
        if name is not None:
            self.direction.setCurrentIndex(0 if likely_goal(str(name)).maximise else 1)

    @Slot(bool)
    def _show_options(self, shown: bool) -> None:
        self.more.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)
        self.details.setVisible(shown)


def _named(text: str, field: QWidget) -> PlainLabel:
    """The label of a field, with its mnemonic."""
    label = PlainLabel(text)
    label.setBuddy(field)
    return label


def _count(none: str, help_text: str, decimals: int = 0) -> ShortNumberBox:
    """A count whose zero stands for no limit, and says so."""
    box = ShortNumberBox()
    box.setDecimals(decimals)
    box.setRange(0, _LARGEST)
    box.setSpecialValueText(none)
    box.setGroupSeparatorShown(True)
    box.setToolTip(help_text)
    return box
