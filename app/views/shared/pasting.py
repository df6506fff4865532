"""What is pasted into a field is cut to what the field can show at once, with a notice.

`limit_line` bounds the line of a field, a list or a number when it gets the focus; `TextField` has several lines.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, QWidget

from .widgets import say_at

_BOUNDED = "bounded"  # a property of a line
_CHARACTERS = 4096  # as long as a path can be
_DIGITS = 200  # of a number, with what stands beside it
_LINES, _LINE_CHARACTERS, _TEXT_CHARACTERS = 1000, 4096, 50_000


def limit_line(widget: QWidget | None) -> None:
    """Bound what can be pasted into a widget, where it has a line to type in."""
    number = isinstance(widget, QAbstractSpinBox)
    line = widget.lineEdit() if isinstance(widget, (QAbstractSpinBox, QComboBox)) else widget
    if isinstance(line, QLineEdit) and not line.property(_BOUNDED):
        line.setProperty(_BOUNDED, True)
        line.setMaxLength(min(line.maxLength(), max(_DIGITS if number else _CHARACTERS, len(line.text()))))
        if not number:  # which refuses what is no number by itself
            line.inputRejected.connect(partial(_say_if_full, line))


def _say_if_full(line: QLineEdit) -> None:
    if len(line.text()) >= line.maxLength():
        say_at(line, f"Cut: this field holds {line.maxLength()} characters")


class TextField(QPlainTextEdit):
    """Text of several lines. Tab leaves it, as it leaves every other field."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Qt's hook for what is pasted or dropped."""
        text = source.text()
        lines = text[:_TEXT_CHARACTERS].splitlines(keepends=True)[:_LINES]
        kept = "".join(line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}\n" for line in lines)
        if len(kept) < len(text):
            source = QMimeData()
            source.setText(kept)
            say_at(self, f"Cut: {len(kept)} of {len(text)} characters were pasted, as many as can be shown at once")
        super().insertFromMimeData(source)
