"""Small widgets and layouts that every panel uses: file dialogs, boxes, buttons, fields for numbers, tables, focus."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from PySide6.QtCore import QObject, QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAction, QColor, QPalette, QValidator
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QBoxLayout,
    QDockWidget,
    QDoubleSpinBox,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLayout,
    QMenu,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QTableView,
    QToolButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from . import theme
from .label import plain_tip


def open_file(parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object]) -> None:
    """Let the user choose an existing file. `kinds` as Qt writes them: "Tables (*.csv);;All files (*)".

    As all dialogs here it does not block the window: it calls `chosen` once it is answered, and is deleted.
    """
    dialog = _dialog(parent, title, kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.fileSelected.connect(lambda name: chosen(Path(name)))
    dialog.open()


def open_files(parent: QWidget, title: str, kinds: str, chosen: Callable[[list[Path]], object]) -> None:
    """Let the user choose one or several existing files."""
    dialog = _dialog(parent, title, kinds)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.filesSelected.connect(lambda names: chosen([Path(name) for name in names]))
    dialog.open()


def choose_folder(parent: QWidget, title: str, chosen: Callable[[Path], object], *, start: str = "") -> None:
    """Let the user choose a folder, starting at `start`."""
    dialog = _dialog(parent, title, start=start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.fileSelected.connect(lambda name: chosen(Path(name)))
    dialog.open()


def save_file(
    parent: QWidget, title: str, name: str, kinds: str, chosen: Callable[[Path], object], *, suffix: str = ""
) -> None:
    """Let the user choose a file to write, `name` by default; `suffix` is added where the user gives none."""
    dialog = _dialog(parent, title, kinds, start=str(Path.home() / name))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(suffix)
    dialog.selectFile(name)
    dialog.fileSelected.connect(lambda path: chosen(Path(path)))
    dialog.open()


def _dialog(parent: QWidget, title: str, kinds: str = "", *, start: str = "") -> QFileDialog:
    dialog = QFileDialog(parent, title, start, kinds)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog


# A widget, a layout within, either with its stretch, or a number: the stretch of an empty place.
Item = QWidget | QLayout | int | tuple[QWidget | QLayout, int]
_L = TypeVar("_L", bound=QBoxLayout)


def hbox(
    *items: Item, of: QWidget | None = None, margins: int | None = None, spacing: int | None = None
) -> QHBoxLayout:
    """The items side by side; the layout of a widget where `of` is given. Margins and spacing in pixels."""
    return _filled(QHBoxLayout(), items, of, margins, spacing)


def vbox(
    *items: Item, of: QWidget | None = None, margins: int | None = None, spacing: int | None = None
) -> QVBoxLayout:
    """The items below one another; the layout of a widget where `of` is given."""
    return _filled(QVBoxLayout(), items, of, margins, spacing)


def button(text: str, tip: str = "", clicked: Callable[[], object] | None = None) -> QPushButton:
    """A button that calls `clicked`, which takes no argument."""
    made = QPushButton(text)
    made.setToolTip(tip)
    if clicked is not None:
        made.clicked.connect(clicked)
    return made


def menu_button(
    text: str, tip: str, fill: Callable[[], object], chosen: Callable[[QAction], object] | None = None
) -> QToolButton:
    """A button that opens a menu, which is emptied and filled again whenever it is about to be shown."""
    made = QToolButton()
    made.setText(text)
    made.setToolTip(tip)
    made.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    menu = QMenu(made)
    menu.aboutToShow.connect(menu.clear)
    menu.aboutToShow.connect(fill)
    if chosen is not None:
        menu.triggered.connect(chosen)
    made.setMenu(menu)
    return made


def set_up_table(table: QTableView, name: str) -> None:
    """Rows are selected whole, several of them too; a third click on a head takes the sorting back; Tab leaves it."""
    table.setAccessibleName(name)
    table.setSortingEnabled(True)
    table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    table.horizontalHeader().setSortIndicatorClearable(True)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    table.setAlternatingRowColors(True)
    table.setWordWrap(False)
    table.setCornerWidget(QWidget())  # else the corner between scroll bars has the table's own colours
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 6)


def local_time(seconds: float) -> str:
    """A time since the epoch, in the user's time zone, to the minute."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _filled(layout: _L, items: tuple[Item, ...], of: QWidget | None, margins: int | None, spacing: int | None) -> _L:
    if of is not None:
        of.setLayout(layout)
    if margins is not None:
        layout.setContentsMargins(margins, margins, margins, margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for item in items:
        if isinstance(item, int):
            layout.addStretch(item)
            continue
        inner, stretch = item if isinstance(item, tuple) else (item, 0)
        if isinstance(inner, QLayout):
            layout.addLayout(inner, stretch)
        else:
            layout.addWidget(inner, stretch)
    return layout


def say_at(widget: QWidget, words: str) -> None:
    """Say something about a field, beside it and to a screen reader."""
    QToolTip.showText(widget.mapToGlobal(QPoint(0, widget.height())), plain_tip(words), widget)
    QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


_IN_NUMBERS: Final = frozenset("0123456789+-.,eE")
_DIGITS: Final = 16  # with the arrows
_RELEASED_MS: Final = 300  # the click that leaves a field hides every tip once more when it is released


class _Refusing:
    """A field for numbers that refuses an impossible one with a message, and cuts none to what fits.

    Qt drops each digit that leaves the range: 99999 becomes 999. Here the text stays, and the value before it too. The
    message stands beside the field for a while, and `refused` sends it when the field is left.
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
        shown = typed if len(typed) <= 2 * _DIGITS else f"{typed[:_DIGITS]}…"
        return f"{shown}{unit} {what}: {kept} stays"

    def _look(self: Any, text: str) -> None:
        """Of digits typed one by one none is the value once all of them together cannot be."""
        if super().validate(text, 0)[0] == QValidator.State.Invalid:  # type: ignore[misc]
            cursor = self.lineEdit().cursorPosition()
            self.setValue(self._kept)
            self.lineEdit().setText(text)
            self.lineEdit().setCursorPosition(cursor)
            self._say(self._why_not(text))

    def _say(self: Any, words: str) -> None:
        say_at(self, words)

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


_MARGIN_PX = 12


class ProgressBar(QProgressBar):
    """A bar that is repainted once per iteration of the event loop, with its text on one line.

    Qt's own is drawn in the middle of `setValue`, and with it all that waits to be drawn in its window.
    """

    def setValue(self, value: int) -> None:
        """How far it is; drawn when the event loop comes to it."""
        self.setUpdatesEnabled(False)
        super().setValue(value)
        self.setUpdatesEnabled(True)

    def text(self) -> str:
        """What is written on it: cut where it does not fit, where Qt would begin a second line."""
        room = self.width() - _MARGIN_PX
        return self.fontMetrics().elidedText(super().text(), Qt.TextElideMode.ElideRight, room)


class Toggle(QToolButton):
    """A small button that stays pressed, in the accent's colours."""

    def __init__(self, text: str, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(text)
        self.setAccessibleName(name)
        self.setToolTip(tip)
        self.setCheckable(True)
        look_pressed(self)


def look_pressed(button: QAbstractButton) -> None:
    """Give a button the accent's colours while it is pressed, light or dark: the style's own shade is hardly seen."""
    _Pressed(button)


class _Pressed(QObject):
    """Lives as long as its button."""

    def __init__(self, button: QAbstractButton) -> None:
        super().__init__(button)
        self._button = button
        button.toggled.connect(self._recolour)
        theme.follow(self._recolour)

    @Slot()
    def _recolour(self) -> None:
        palette, c = QPalette(), theme.colours()
        if self._button.isChecked():
            # the style lightens it: too much for white words
            palette.setColor(QPalette.ColorRole.Button, QColor(c.accent).darker(100 if c.dark else 115))
            for role in (QPalette.ColorRole.ButtonText, QPalette.ColorRole.WindowText):  # the words, and an arrow
                palette.setColor(role, QColor(c.accent_text))
        self._button.setPalette(palette)


_LINE_PX = 12  # widgets whose upper edges are as near to each other stand in one line

# Nothing here, or elsewhere, calls Qt's `nextInFocusChain` or `previousInFocusChain`: PySide takes the widget that they
# return for the Python child of the one whose method it is. When that one goes, the other's menus and actions, and
# those of everything in it, are taken for deleted too, although Qt has deleted none of them.


def takes_focus(widget: QWidget) -> bool:
    """Whether the Tab key reaches a widget now."""
    return widget.isVisible() and widget.isEnabled() and bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def lies_behind(widget: QWidget) -> bool:
    """Whether it is in a dock that another one hides: Qt keeps such a dock visible, beside the window."""
    around: QWidget | None = widget
    while around is not None and not around.isWindow():
        if isinstance(around, QDockWidget):
            return around.visibleRegion().isEmpty()
        around = around.parentWidget()
    return False


def first_to_focus(inside: QWidget) -> QWidget | None:
    """The first widget in reading order that the Tab key reaches; None if there is none."""
    reached = [value for value in inside.findChildren(QWidget) if takes_focus(value) and inside.isAncestorOf(value)]
    places = {widget: widget.mapTo(inside, QPoint()) for widget in reached}
    top = min((place.y() for place in places.values()), default=0)
    first_line = [widget for widget, place in places.items() if place.y() < top + _LINE_PX]
    return min(first_line, key=lambda widget: places[widget].x(), default=None)
