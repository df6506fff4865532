"""`LabelForm`: the user's own name, tags and notes of a stored session."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QFormLayout, QLineEdit, QPlainTextEdit, QWidget

from ...engine.store.record import Label, SessionRecord


class LabelForm(QWidget):
    """Emits `written(session, label)` when a field is left or Return is pressed, and something has changed."""

    written = Signal(int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._record: SessionRecord | None = None
        self.name, self.tags, self.notes = QLineEdit(), QLineEdit(), _Notes()
        self.tags.setPlaceholderText("comma-separated")
        self.notes.setFixedHeight(3 * self.notes.fontMetrics().lineSpacing() + 12)
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(4)
        form.addRow("Na&me", self.name)
        form.addRow("Ta&gs", self.tags)
        form.addRow("Not&es", self.notes)
        for line in (self.name, self.tags):
            line.editingFinished.connect(self.write)
        self.notes.left.connect(self.write)
        self.show_record(None)

    def show_record(self, record: SessionRecord | None) -> None:
        """Another session; what was typed for the one before is written first."""
        same = record is not None and self._record is not None and record.id == self._record.id
        if same and self.is_typed_in():
            self._record = record  # only its progress changed: what is being typed stays
            return
        self.write()
        self._record = record
        self.setEnabled(record is not None)
        label = record.label if record is not None else Label()
        self.name.setText(label.name)
        self.name.setPlaceholderText(record.title if record is not None else "")
        self.tags.setText(", ".join(label.tags))
        self.notes.setPlainText(label.notes)

    def is_typed_in(self) -> bool:
        """One of the fields has the focus."""
        return any(field.hasFocus() for field in (self.name, self.tags, self.notes))

    @Slot()
    def write(self) -> None:
        """Emit what is typed, if it differs from what is stored."""
        if self._record is None:
            return
        tags = tuple(dict.fromkeys(tag.strip() for tag in self.tags.text().split(",") if tag.strip()))
        label = replace(
            self._record.label, name=self.name.text().strip(), tags=tags, notes=self.notes.toPlainText().strip()
        )
        if label != self._record.label:
            self._record = replace(self._record, label=label)
            self.written.emit(self._record.id, label)


class _Notes(QPlainTextEdit):
    """Tab leaves it, as it leaves every other field."""

    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()
