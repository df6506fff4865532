"""`Fields`: single values of a section as a form; what is wrong with one stands right below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QComboBox, QFormLayout, QLineEdit, QWidget

from ...engine.specification.toml_edit import Place
from ..plots.label import PlainLabel
from ..widgets import vbox
from .cells import shown_expressions, shown_value, typed_expressions, typed_value
from .complaint import Complaint
from .edited import EditedSpecification
from .entry_table import Problems


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One value: its place, its words, and how it is shown and read. `choices` may be chosen instead of typed."""

    place: Place
    label: str
    tip: str
    show: Callable[[Any], str] = shown_value
    read: Callable[[str], Any] = typed_value
    choices: tuple[str, ...] = ()


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else shown_value(value)


def text_field(place: Place, label: str, tip: str) -> FieldSpec:
    """Text as it is typed, whatever it looks like."""
    return FieldSpec(place, label, tip, text_of, str)


def list_field(place: Place, label: str, tip: str) -> FieldSpec:
    """Texts or expressions with commas between them."""
    return FieldSpec(place, label, tip, shown_expressions, typed_expressions)


class Field(QObject):
    """One of them: a line, or a list to choose from that takes text too."""

    changed = Signal()

    def __init__(self, spec: FieldSpec, edited: EditedSpecification, parent: QWidget) -> None:
        super().__init__(parent)
        self.spec, self._edited = spec, edited
        self._value: Any = None
        self.line = QLineEdit()
        self.widget: QWidget = self.line
        if spec.choices:
            self.choice = QComboBox()
            self.choice.setEditable(True)
            self.choice.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
            self.choice.addItems(["", *spec.choices])
            self.choice.setLineEdit(self.line)
            self.widget = self.choice
        for each in (self.widget, self.line):
            each.setToolTip(spec.tip)
            each.setAccessibleName(spec.label.replace("&", ""))
        self.complaint = Complaint(self.line)
        self.line.textChanged.connect(self._note)

    def show_value(self, value: Any, problem: str) -> None:
        """Show what the document has; what is typed just now stays where it means the same."""
        self._value = value
        self.complaint.say(problem)
        text = "" if value is None else self.spec.show(value)
        typed = self.line.text()
        if typed == text or (typed.strip() and value is not None and self._read(typed) == value):
            return
        with QSignalBlocker(self.line):
            self.line.setText(text)

    def _read(self, text: str) -> Any:
        value = self.spec.read(text)
        single = isinstance(value, list) and len(value) == 1 and not isinstance(self._value, list)
        return value[0] if single and self._value is not None else value

    @Slot()
    def _note(self) -> None:
        text = self.line.text()
        self._value = self._read(text) if text.strip() else None
        self._edited.set_value(self.spec.place, self._value)


class Fields(QWidget):
    """The fields of a section, one below another."""

    def __init__(self, edited: EditedSpecification, specs: Sequence[FieldSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setVerticalSpacing(4)
        self.by_place = {spec.place: Field(spec, edited, self) for spec in specs}
        for spec, field in zip(specs, self.by_place.values(), strict=True):
            label = PlainLabel(spec.label)
            label.setBuddy(field.line)
            form.addRow(label, vbox(field.widget, field.complaint, spacing=0))

    def show_values(self, document: Mapping[str, Any], problems: Problems) -> None:
        """Show what a document has at the places of the fields."""
        for place, field in self.by_place.items():
            value: Any = document
            for key in place:
                value = value.get(key) if isinstance(value, Mapping) else None
            wrong = [str(problem) for at, problem in problems.items() if at[: len(place)] == place]
            field.show_value(value, "; ".join(wrong))
