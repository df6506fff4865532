"""Fields for numbers: one that is typed and cannot be is refused in words; none is cut to what fits."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QToolTip

from .plots.label import plain_tip

_IN_NUMBERS: Final = frozenset("0123456789+-.,eE")
_DIGITS: Final = 16  # with the arrows
_RELEASED_MS: Final = 300  # the click that leaves a field hides every tip once more when it is released


class _Refusing:
    """Qt drops each digit that leaves the range: 99999 becomes 999. Here the text stays, and the value before it too.

    The words stand beside the field for a while, and `refused` sends them when it is left.
    """

    def __init__(self: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._kept = self.value()
        self.editingFinished.connect(self._settle)
        self.lineEdit().textEdited.connect(self._look)

    def validate(self: Any, text: str, position: int) -> Any:
        """Qt's hook, which would drop every digit that leaves the range."""
        state, *where = super().validate(text, position)  # type: ignore[misc]  # of the box
        typed = state == QValidator.State.Invalid and _IN_NUMBERS.issuperset(self._typed(text))
        return (QValidator.State.Intermediate if typed else state, *where)

    def fixup(self: Any, text: str) -> Any:
        """Qt's hook for a text that is no value when the field is left: the one before stays."""
        if self._typed(text):
            self.setValue(self._kept)
            words = self._why_not(text)
            self.refused.emit(words)
            QTimer.singleShot(_RELEASED_MS, self, lambda: self._say(words))
        return super().fixup(text)  # type: ignore[misc]

    def keyPressEvent(self: Any, event: Any) -> None:
        """Enter presses the button of a dialog, but not with another number than the one that was typed."""
        refused = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not self.hasAcceptableInput()
        super().keyPressEvent(event)  # type: ignore[misc]
        event.setAccepted(event.isAccepted() or refused)

    def setValue(self: Any, value: Any) -> None:
        """What the program sets is what a refused number leaves, unless it is what is being typed."""
        if value != self.value():
            super().setValue(value)  # type: ignore[misc]
            self._settle()

    def stepBy(self: Any, steps: int) -> None:
        """So is what is stepped to."""
        super().stepBy(steps)  # type: ignore[misc]
        self._settle()

    def _typed(self: Any, text: str) -> str:
        bare = text.removeprefix(self.prefix()).removesuffix(self.suffix())
        return "".join(bare.split()).replace(self.locale().groupSeparator(), "")

    def _why_not(self: Any, text: str) -> str:
        typed, unit = self._typed(text), self.suffix()
        number, is_one = self.locale().toDouble(typed)
        ends = f"{self.textFromValue(self.minimum())} to {self.textFromValue(self.maximum())}{unit}"
        inside = is_one and self.minimum() <= number <= self.maximum()
        what = "cannot be given so exactly" if inside else f"is outside {ends}" if is_one else "is no number"
        kept = (self.value() == self.minimum() and self.specialValueText()) or self.textFromValue(self.value()) + unit
        return f"{typed}{unit} {what}: {kept} stays"

    def _look(self: Any, text: str) -> None:
        """Of digits typed one by one none is the value once all of them together cannot be."""
        if super().validate(text, 0)[0] == QValidator.State.Invalid:  # type: ignore[misc]
            at = self.lineEdit().cursorPosition()
            self.setValue(self._kept)
            self.lineEdit().setText(text)
            self.lineEdit().setCursorPosition(at)
            self._say(self._why_not(text))

    def _say(self: Any, words: str) -> None:
        QToolTip.showText(self.mapToGlobal(QPoint(0, 1000)), plain_tip(words), self)
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, words))

    def _settle(self: Any) -> None:
        self._kept = self.value()


class WholeBox(_Refusing, QSpinBox):
    """A whole number."""

    refused = Signal(str)  # what was typed and cannot be, in one line


class NumberBox(_Refusing, QDoubleSpinBox):
    """A number with decimals."""

    refused = Signal(str)  # what was typed and cannot be, in one line


class ShortNumberBox(NumberBox):
    """A number that shows no more digits than it needs, and needs no room for its largest."""

    def sizeHint(self) -> QSize:
        return super().sizeHint().boundedTo(QSize(self.fontMetrics().horizontalAdvance("0" * _DIGITS), 1000))

    minimumSizeHint = sizeHint

    def textFromValue(self, value: float) -> str:
        text, point = super().textFromValue(value), self.locale().decimalPoint()
        return text.rstrip("0").removesuffix(point) if point in text else text
