"""`Palette`: type a few letters, press Return: every action of the window within reach (Ctrl+K).

How well typed letters fit a line of words: in order, best at the beginnings of words and side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import shiboken6
from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QAction, QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QHeaderView, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import vbox

_STARTS, _BESIDE, _PLAIN = 6.0, 4.0, 1.0  # points of a letter: it begins a word, stands beside the last one, neither
_GAP = 0.05  # points lost for each letter that is passed over


def score(typed: str, line: str) -> float | None:
    """Points, more for a better fit; None if a letter is missing. Words separated by blanks may lie in any order."""
    scores = [_best(word, line.casefold()) for word in typed.casefold().split()]
    present = [points for points in scores if points is not None]
    return sum(present) if len(present) == len(scores) else None


def _best(word: str, line: str) -> float | None:
    """The best of all ways to find the letters in order."""
    reached = {-1: 0.0}  # where the letter found last may stand -> the most points so far
    for letter in word:
        reached = {
            place: max(points + _step(line, before, place) for before, points in reached.items() if before < place)
            for place, stands in enumerate(line)
            if stands == letter and place > min(reached)
        }
        if not reached:
            return None
    return max(reached.values())


def _step(line: str, before: int, place: int) -> float:
    starts = place == 0 or not line[place - 1].isalnum()
    beside = before >= 0 and place == before + 1
    return (_STARTS if starts else _BESIDE if beside else _PLAIN) - _GAP * (place - before - 1)


_SHOWN = 60
_WIDTH, _HEIGHT = 620, 380
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 10, Qt.Key.Key_PageUp: -10}
_KEYS = (*_STEPS, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape)


class Palette(QFrame):
    """Lies over its parent's top while it is open; goes with Escape, with a choice and with the focus."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._window = parent
        self._actions: list[tuple[str, QAction]] = []
        self._came_from: QWidget | None = None
        self._found: list[QAction] = []
        self._rows: list[QTreeWidgetItem] = []  # of the list, the best fit first
        self.setObjectName("palette")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.typed = QLineEdit()
        self.typed.setPlaceholderText("Find an action")
        self.typed.setAccessibleName("Find an action")
        self.typed.setClearButtonEnabled(True)
        self.found = QTreeWidget()
        self.found.setAccessibleName("Actions found")
        self.found.setColumnCount(3)
        self.found.setHeaderHidden(True)
        self.found.setRootIsDecorated(False)
        self.found.setUniformRowHeights(True)
        self.found.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        head = self.found.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        self.says = PlainLabel()
        self.says.setContentsMargins(4, 0, 4, 0)
        vbox(self.typed, (self.found, 1), self.says, of=self).setContentsMargins(8, 8, 8, 6)
        self.typed.textChanged.connect(self._search)
        self.typed.installEventFilter(self)
        self.found.itemClicked.connect(self.run_chosen)
        self.found.currentItemChanged.connect(self._explain)
        theme.style(
            self,
            "#palette {{ background: {c.window}; border: 1px solid {c.border}; border-radius: 6px; }}",
            "#palette QLabel {{ color: {c.muted}; }}",
            "#palette QTreeWidget::item {{ padding: 3px 2px; }}",
        )
        self.hide()

    def open(self, actions: Sequence[tuple[str, QAction]]) -> None:
        """Offer these actions, each with the path of its menus."""
        window = self._window
        self._came_from = window.focusWidget()
        self._actions = list(actions)
        self.typed.clear()
        self._search("")
        width = min(_WIDTH, window.width() - 20)
        self.setGeometry((window.width() - width) // 2, 36, width, min(_HEIGHT, window.height() - 60))
        self.show()
        self.raise_()
        self.typed.setFocus()

    def close_it(self) -> None:
        """Hide, the focus back where it was."""
        if not self.isVisible():
            return
        self.hide()
        self._show_rows([], [])
        self._actions.clear()
        came_from, self._came_from = self._came_from, None
        if came_from is not None and shiboken6.isValid(came_from) and came_from.isVisible():
            came_from.setFocus()

    @property
    def names(self) -> list[str]:
        """What is found, the best fit first."""
        return [row.text(0) for row in self._rows]

    @Slot()
    def run_chosen(self, *_: object) -> None:
        """Do what is marked."""
        action = self._marked()
        if action is not None and action.isEnabled():
            self.close_it()
            action.trigger()

    def _marked(self) -> QAction | None:
        item = self.found.currentItem()
        action = self._found[self._rows.index(item)] if item in self._rows else None
        return action if action is not None and shiboken6.isValid(action) else None

    @Slot(str)
    def _search(self, typed: str) -> None:
        fits = []
        self._actions = [(path, action) for path, action in self._actions if shiboken6.isValid(action)]
        for place, (path, action) in enumerate(self._actions):  # a menu may have been filled again meanwhile
            name = _name(action)
            points = score(typed, name)
            if points is None and _all_in(typed, f"{path} {name} {action.statusTip()}"):
                points = -1.0  # in its description only: after those with it in their name
            if points is not None:
                fits.append((action.isEnabled(), points, -place, path, action))
        fits.sort(key=lambda fit: fit[:3], reverse=True)
        rows = []
        for enabled, _, _, path, action in fits[:_SHOWN]:
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            ticked = "✓ " if action.isCheckable() and action.isChecked() else ""
            item = QTreeWidgetItem([ticked + _name(action), path, keys])
            item.setDisabled(not enabled)
            rows.append(item)
        self._show_rows(rows, [fit[-1] for fit in fits[:_SHOWN]])
        if rows:
            self.found.setCurrentItem(rows[0])
        else:
            self.says.setText("No action of that name")

    def _show_rows(self, rows: list[QTreeWidgetItem], actions: list[QAction]) -> None:
        """The actions are kept beside the items, not in them: Qt would keep the address of what is gone."""
        self._rows, self._found = [], []
        self.found.clear()
        self._rows, self._found = rows, actions
        self.found.addTopLevelItems(rows)

    @Slot()
    def _explain(self, *_: object) -> None:
        action = self._marked()
        if action is not None:
            self.says.setText(action.statusTip() + ("" if action.isEnabled() else " · not available now"))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The keys of the line move through the list."""
        if isinstance(event, QKeyEvent) and event.key() in _KEYS:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # Escape means the palette now, whatever else it means in the window
            elif event.type() == QEvent.Type.KeyPress:
                self._press(Qt.Key(event.key()))
            return True
        if isinstance(event, QFocusEvent) and event.lostFocus() and event.reason() != Qt.FocusReason.PopupFocusReason:
            self.close_it()
        return super().eventFilter(watched, event)

    def _press(self, key: Qt.Key) -> None:
        if key in _STEPS:
            self._move(_STEPS[key])
        elif key == Qt.Key.Key_Escape:
            self.close_it()
        else:
            self.run_chosen()

    def _move(self, by: int) -> None:
        marked = self.found.currentItem()
        if marked in self._rows:
            count, index = len(self._rows), self._rows.index(marked)
            self.found.setCurrentItem(
                self._rows[(index + by) % count if abs(by) == 1 else min(max(index + by, 0), count - 1)]
            )


def _all_in(typed: str, words: str) -> bool:
    return all(word in words.casefold() for word in typed.casefold().split())


def _name(action: QAction) -> str:
    return action.text().replace("&", "")
