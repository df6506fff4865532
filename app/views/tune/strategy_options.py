"""A form for a strategy's options, made from its `Options` dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit, QWidget

from ...engine.strategies.base import LARGEST, Strategy, choices_of, description
from ..number_boxes import NumberBox, ShortNumberBox, WholeBox
from ..plots.label import PlainLabel

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
