"""`Palette`: type a few letters, press Return: actions, sessions, boards, settings and the guide (Ctrl+K).

How well typed letters fit a line of words: in order, best at the beginnings of words and side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import itemgetter

import shiboken6
from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QHeaderView, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.tasks import LatestTask
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


@dataclass(slots=True)
class Entry:
    """One thing that is found, and what is done with it."""

    group: str
    name: str
    beside: str  # where it belongs: a path of menus, a board and a day, a page of the guide
    do: Callable[[], object]
    says: str = ""  # below the list, while it is marked
    words: str = ""  # by which it is found too
    keys: str = ""
    enabled: bool = True
    line: str = field(init=False)
    all_words: str = field(init=False)

    def __post_init__(self) -> None:
        self.line = self.name.removeprefix(TICKED).casefold()
        self.all_words = f"{self.line} {self.beside} {self.says} {self.words}".casefold()


TICKED = "✓ "
_SCORED = 60  # of a group: to score takes longer than to find
Fit = tuple[
    bool, bool, int, float, int, Entry
]  # named as typed, can be done, rank, points, minus its place in the group


def best_fits(typed: str, entries: Iterable[Entry]) -> list[Fit]:
    """Those of one group that fit, the best first: words of the name that begin as typed, words within it, words of
    the description, letters of the name in that order. What has the words in its name comes first even if it cannot
    be done now."""
    words = typed.casefold().split()
    in_order = [re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in word)) for word in words]
    found: list[tuple[bool, bool, int, int, Entry]] = []
    for place, entry in enumerate(entries):
        line, all_words = entry.line, entry.all_words
        if all(word in line for word in words):
            rank = 3 if all(f" {word}" in f" {line}" for word in words) else 2
        elif all(word in all_words for word in words):
            rank = 1
        elif all(pattern.match(line) for pattern in in_order):
            rank = 0
        else:
            continue
        found.append((bool(words) and rank > 1, entry.enabled, rank, -place, entry))
    if any(rank for *_, rank, _, _ in found):  # scattered letters are for what is found by no word
        found = [fit for fit in found if fit[2]]
    scored = [
        (named, enabled, rank, score(typed, entry.line) or 0.0, place, entry)
        for named, enabled, rank, place, entry in nlargest(_SCORED, found, key=itemgetter(0, 1, 2, 3))
    ]
    return sorted(scored, key=itemgetter(0, 1, 2, 3, 4), reverse=True)


_SHOWN = 12  # of a group
_PLACEHOLDER = "Find an action, a session, a board, a setting or a page of the guide"
_WIDTH, _HEIGHT = 720, 460
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 10, Qt.Key.Key_PageUp: -10}
_KEYS = (*_STEPS, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape)


class Palette(QFrame):
    """Lies over its parent's top while it is open; goes with Escape, with a choice and with the focus."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._window = parent
        self._entries: dict[str, list[Entry]] = {}  # by group
        self._later: list[Entry] = []  # of those that take time to read
        self._came_from: QWidget | None = None
        self._found: list[Entry] = []
        self._rows: list[QTreeWidgetItem] = []  # of the list, the best fit first; without the groups' names
        self._reading = LatestTask(self, self._read)
        self.setObjectName("palette")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.typed = QLineEdit()
        self.typed.setPlaceholderText(_PLACEHOLDER)
        self.typed.setAccessibleName(_PLACEHOLDER)
        self.typed.setClearButtonEnabled(True)
        self.found = QTreeWidget()
        self.found.setAccessibleName("What was found")
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

    def open(self, entries: Sequence[Entry], read_later: Callable[[], list[Entry]]) -> None:
        """Offer these entries, and those that are read meanwhile on another thread."""
        window = self._window
        self._came_from = window.focusWidget()
        self._keep(entries)
        self._reading.run(lambda _stop: read_later())
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
        self._reading.cancel()
        self._show_rows([])
        self._entries.clear()
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
        entry = self._marked()
        if entry is not None and entry.enabled:
            self.close_it()
            entry.do()

    def _marked(self) -> Entry | None:
        item = self.found.currentItem()
        return self._found[self._rows.index(item)] if item in self._rows else None

    def _keep(self, entries: Iterable[Entry]) -> None:
        self._entries = {}
        for entry in (*entries, *self._later):
            self._entries.setdefault(entry.group, []).append(entry)

    @Slot(object)
    def _read(self, later: list[Entry]) -> None:
        """What was read meanwhile is among it from now on; what was marked by hand stays so."""
        before = {id(entry) for entry in self._later}
        self._later = later
        self._keep([entry for entries in self._entries.values() for entry in entries if id(entry) not in before])
        marked = self._marked() if self._rows and self.found.currentItem() is not self._rows[0] else None
        self._search(self.typed.text())
        if marked in self._found:
            self.found.setCurrentItem(self._rows[self._found.index(marked)])

    @Slot(str)
    def _search(self, typed: str) -> None:
        groups = {group: best_fits(typed, entries) for group, entries in self._entries.items()}
        fitting = [(group, fits) for group, fits in groups.items() if fits]
        fitting.sort(key=lambda item: item[1][0][:4], reverse=True)
        self._show_rows([(group, [fit[-1] for fit in fits[:_SHOWN]]) for group, fits in fitting])
        if self._rows:
            self.found.setCurrentItem(self._rows[0])
        else:
            self.says.setText("Nothing of that name")

    def _show_rows(self, groups: Sequence[tuple[str, list[Entry]]]) -> None:
        self._rows, self._found = [], []
        self.found.clear()
        items, heads = [], []
        for group, entries in groups:
            heads.append(QTreeWidgetItem([group]))
            heads[-1].setFlags(Qt.ItemFlag.NoItemFlags)
            rows = [QTreeWidgetItem([entry.name, entry.beside, entry.keys]) for entry in entries]
            for row, entry in zip(rows, entries, strict=True):
                row.setDisabled(not entry.enabled)
            items += [heads[-1], *rows]
            self._rows += rows
            self._found += entries
        self.found.addTopLevelItems(items)
        bold = self.found.font()
        bold.setBold(True)
        for head in heads:
            head.setFirstColumnSpanned(True)
            head.setFont(0, bold)

    @Slot()
    def _explain(self, *_: object) -> None:
        entry = self._marked()
        if entry is not None:
            self.says.setText(entry.says + ("" if entry.enabled else " · not available now"))
            words = f"{entry.name}, {entry.group}, {entry.beside}"
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.typed, words))

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
