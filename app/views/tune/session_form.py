"""What the user chooses before a session starts: strategy and its options, objective, budget, seed.

`FormHistory`: undo and redo of what the user changed in a form.

`History`: the states that something went through, and the way back and forth between them.

A form for a strategy's options, made from its `Options` dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QObject, QSignalBlocker, Qt, Signal, SignalInstance, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from ...base.formatting import counted
from ...engine.analysis.quantities import quantity
from ...engine.results.objectives import Goal, likely_goal
from ...engine.runner.boards import ReadyPlan
from ...engine.strategies import base as strategies
from ...engine.strategies.base import LARGEST, Strategy, choices_of, description
from ..shared.label import PlainLabel
from ..shared.widgets import NumberBox, ShortNumberBox, WholeBox, look_pressed, vbox
from .draft import Draft

_KEPT = 200
S = TypeVar("S")


class History(Generic[S]):
    """Changes in a row with the same key, such as the digits typed into one field, are one step."""

    def __init__(self) -> None:
        self._states: list[S] = []
        self._at = -1
        self._key = ""  # of the newest step

    @property
    def begun(self) -> bool:
        return self._at >= 0

    @property
    def can_undo(self) -> bool:
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        return self._at + 1 < len(self._states)

    @property
    def state(self) -> S:
        """The state that is in force. `begin` comes first."""
        return self._states[self._at]

    def begin(self, state: S) -> None:
        """Forget everything but this."""
        self._states, self._at, self._key = [state], 0, ""

    def note(self, state: S, key: str) -> None:
        """There is a new state; an empty key makes it a step of its own."""
        del self._states[self._at + 1 :]
        if key and key == self._key and self._at > 0:
            self._states[self._at] = state
        else:
            self._states = [*self._states, state][-_KEPT:]
        self._at, self._key = len(self._states) - 1, key

    def undo(self) -> S:
        """The state before, now in force."""
        self._at, self._key = max(0, self._at - 1), ""
        return self.state

    def redo(self) -> S:
        """The state after, now in force."""
        self._at, self._key = min(len(self._states) - 1, self._at + 1), ""
        return self.state


State = dict[str, Any]  # the values of a form, by field


class FormHistory(QObject):
    """The states of a form, read and set by two callables.

    Changes of one field in a row are one step: digits are typed one by one.
    """

    changed = Signal()

    def __init__(self, read: Callable[[], State], write: Callable[[State], None], parent: QObject) -> None:
        super().__init__(parent)
        self._read, self._write = read, write
        self._states: History[State] = History()

    @property
    def can_undo(self) -> bool:
        return self._states.can_undo

    @property
    def can_redo(self) -> bool:
        return self._states.can_redo

    @Slot()
    def undo(self) -> None:
        """Take the newest change back."""
        if self.can_undo:
            self._write(self._states.undo())
            self.changed.emit()

    @Slot()
    def redo(self) -> None:
        """Make it again."""
        if self.can_redo:
            self._write(self._states.redo())
            self.changed.emit()

    @Slot()
    def begin(self) -> None:
        """Forget everything: the form was filled with something else."""
        self._states.begin(self._read())
        self.changed.emit()

    @Slot()
    def note(self) -> None:
        """The user changed something."""
        if not self._states.begun:
            return
        state, before = self._read(), self._states.state
        fields = [name for name in state if state[name] != before[name]]
        if fields:
            self._states.note(state, fields[0] if len(fields) == 1 else "")
            self.changed.emit()


_DECIMALS = 12


class StrategyOptions(QWidget):
    """One line per option, its help as the tool tip, its default filled in."""

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._form = QFormLayout(self)
        self._form.setContentsMargins(0, 0, 0, 0)
        self._form.setVerticalSpacing(3)
        self._form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.editors: dict[str, QWidget] = {}  # by option

    def show_strategy(self, strategy: Strategy, given: dict[str, Any]) -> None:
        """Show a strategy's options, `given` in place of the defaults."""
        while self._form.rowCount():
            self._form.removeRow(0)
        self.editors = {}
        self._form.addRow(PlainLabel(description(strategy), wrap=True))
        for field in dataclasses.fields(strategy.Options):
            editor = _editor(given.get(field.name, field.default), field.default, choices_of(field))
            label = PlainLabel(field.name.replace("_", " ").capitalize())
            for widget in (editor, label):
                widget.setToolTip(str(field.metadata.get("help", "")))
            label.setBuddy(editor)
            self._form.addRow(label, editor)
            self.editors[field.name] = editor
            _changes(editor).connect(self.edited)
        if not self.editors:
            self._form.addRow(PlainLabel(f"{strategy.label} has no options."))

    def values(self) -> dict[str, Any]:
        """The options as they stand in the form."""
        return {name: _value(editor) for name, editor in self.editors.items()}


def _changes(editor: QWidget) -> SignalInstance:
    """The signal of a change in an editor."""
    if isinstance(editor, QCheckBox):
        return editor.toggled
    if isinstance(editor, QComboBox):
        return editor.currentIndexChanged
    if isinstance(editor, WholeBox | NumberBox):
        return editor.valueChanged
    assert isinstance(editor, QLineEdit)
    return editor.textChanged


def _editor(value: Any, default: Any, choices: tuple[str, ...]) -> QWidget:
    if choices:
        several = QComboBox()
        several.addItems(choices)
        several.setCurrentText(str(value))
        return several
    if isinstance(value, bool):
        box = QCheckBox()
        box.setChecked(value)
        return box
    if isinstance(default, float) and isinstance(value, int | float):
        number = ShortNumberBox()
        number.setDecimals(_DECIMALS)
        number.setRange(-LARGEST, LARGEST)
        number.setStepType(ShortNumberBox.StepType.AdaptiveDecimalStepType)
        number.setValue(value)
        return number
    if isinstance(value, int | float):
        whole = WholeBox()
        whole.setRange(-LARGEST, LARGEST)
        whole.setValue(int(value))
        return whole
    return QLineEdit(str(value))


def _value(editor: QWidget) -> Any:
    if isinstance(editor, QCheckBox):
        return editor.isChecked()
    if isinstance(editor, QComboBox):
        return editor.currentText()
    if isinstance(editor, WholeBox | NumberBox):
        return editor.value()
    assert isinstance(editor, QLineEdit)
    return editor.text()


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
        """Disable these, with the reason as tip, and enable all others. `further` is said beside it."""
        for widget in self._tips:
            locked = widget in fields
            widget.setEnabled(not locked)
            widget.setToolTip(why if locked else self._tips[widget])
        self.why.setText(". ".join(text for text in (why, further) if text) or " ")

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

    def plan(self) -> ReadyPlan:
        """The draft's plan with what was changed here. Raises InputError if an option is out of its range."""
        assert self._draft is not None
        plan, before, state = self._draft.plan, self._filled, self.state()
        same = state["strategy"] == before["strategy"]
        own, shown = (plan.strategy_options, before["options"]) if same else ({}, {})
        options = {
            **own,
            **{name: option for name, option in state.pop("options").items() if shown.get(name, ...) != option},
        }
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
    """A spin box for a count whose zero is displayed as no limit."""
    box = ShortNumberBox()
    box.setDecimals(decimals)
    box.setRange(0, _LARGEST)
    box.setSpecialValueText(none)
    box.setGroupSeparatorShown(True)
    box.setToolTip(help_text)
    return box
