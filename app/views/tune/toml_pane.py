"""`TomlPane`: the text in colours, line numbers, a mark on each line that has a problem, completion of keys.

What the guide says of a specification's keys: help for the key at the cursor, and what can be completed there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, QStringListModel, Qt, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QCompleter, QListView, QPlainTextEdit, QTextEdit, QToolTip, QWidget

from ...base.files import read_text
from ...base.paths import resources
from ..shared import theme
from ..shared.label import plain_tip
from ..shared.pasting import TextField

HEADING = "## Every key"  # of the guide's page; its rows are `| key | words |`, with [] around the name of a table
_MOST_BYTES = 1 << 20
_ROW = re.compile(r"^\| `(\[?)([\w.]+)\]?` \| (.+) \|$", re.MULTILINE)
_HIDDEN = re.compile(r"\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|#[^\n]*")
_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*([A-Za-z_][\w.-]*)[ \t]*\]", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*([\w-]+)(?:\.[\w.-]+)?[ \t]*=", re.MULTILINE)
_WORD = re.compile(r"[\w.-]*$")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a position in a text lies: its table, the entry that is not complete before it, and the word there."""

    table: str
    entry: str  # '' where a new one can begin
    head: str  # what stands before the word in its line, without texts and comments
    word: str

    @property
    def inner(self) -> str:
        """What the keys at this spot belong to."""
        return _joined(self.table, self.entry)


@lru_cache(maxsize=1)
def known_keys() -> dict[str, tuple[str, bool]]:
    """By the name of a key, as `kernel.source`: what it is, in Markdown, and whether it is a table."""
    page = read_text(resources() / "guide" / "specification.md", _MOST_BYTES).partition(HEADING)[2]
    return {name: (words, bool(table)) for table, name, words in _ROW.findall(page)}


def spot_at(text: str, position: int) -> Spot:
    """Where a position lies, counted in characters."""
    before = _HIDDEN.sub('""', text[:position])
    headers = list(_HEADER.finditer(before))
    table, begin = (headers[-1][1], headers[-1].end()) if headers else ("", 0)
    entries = list(_ENTRY.finditer(before, begin))
    above, line = before[: before.rfind("\n") + 1], before[before.rfind("\n") + 1 :]
    rest = above[entries[-1].end() :] if entries else ""
    open_yet = not rest or sum(letter in "[{" for letter in rest) > sum(letter in "]}" for letter in rest)
    word = _WORD.search(line)
    assert word is not None
    return Spot(table, entries[-1][1] if entries and open_yet else "", line[: word.start()], word[0])


def help_at(text: str, position: int) -> tuple[str, str]:
    """The key, or else the table, at a position, and what the guide says of it; '' if there is none."""
    rest = re.match(r"[\w.-]*", text[position:])
    spot = spot_at(text, position + (rest.end() if rest else 0))
    for name in (_joined(spot.inner, spot.word), spot.inner, spot.word, spot.table):
        if name in known_keys():
            return name, known_keys()[name][0]
    return "", ""


def completions_at(text: str, position: int) -> tuple[str, list[str]]:
    """The word before a position, and what it can become: keys of the table, or tables after a bracket."""
    spot, keys = spot_at(text, position), known_keys()
    if not spot.entry and spot.head.strip() in ("[", "[["):
        completions = [f"{name}{']' * len(spot.head.strip())}" for name, (_, table) in keys.items() if table]
    elif (not spot.entry and not spot.head.strip()) or spot.head.rstrip()[-1:] in ("{", ","):
        above = f"{spot.inner}." if spot.inner else ""
        completions = [f"{name.removeprefix(above)} = " for name in keys if name.startswith(above)]
        completions = [key for key in completions if "." not in key]
    else:
        completions = []
    return spot.word, [match for match in completions if match.startswith(spot.word)]


def _joined(table: str, key: str) -> str:
    return ".".join(value for value in (table, key) if value)


_TOKENS = re.compile(
    r"(?P<comment>#.*)"
    r"|(?P<table>^\s*\[[^\]]*\]+)"
    r"""|(?P<key>^\s*(?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*\s*(?==))"""
    r"""|(?P<text>"(?:\\.|[^"\\])*"|'[^']*')"""
    r"|(?P<number>(?<![\w.])[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?\b|\b(?:true|false)\b)"
)
_COLOURS = {"comment": "muted", "table": "purple", "key": "accent", "text": "green", "number": "orange"}
_MARK = "▶"


class TomlHighlighter(QSyntaxHighlighter):
    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._formats: dict[str, QTextCharFormat] = {}
        self.recolour()

    def recolour(self) -> None:
        """Take over the theme's colours."""
        for kind, colour in _COLOURS.items():
            self._formats[kind] = QTextCharFormat()
            self._formats[kind].setForeground(QColor(getattr(theme.colours(), colour)))
        self._formats["table"].setFontWeight(QFont.Weight.Bold)

    def highlightBlock(self, text: str) -> None:
        for token in _TOKENS.finditer(text[:2000]):
            self.setFormat(token.start(), token.end() - token.start(), self._formats[str(token.lastgroup)])


class TomlPane(TextField):
    """Keys are offered as they are typed, and all of them with Ctrl+Space."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.fixed_font())
        self.setAccessibleName("Specification as TOML")
        self._problems: dict[int, str] = {}  # by line, from 1
        self._names = QStringListModel(self)
        self.completer = QCompleter(self._names, self)
        self.completer.setWidget(self)
        self.offered = QListView()
        self.completer.setPopup(self.offered)
        self.completer.activated.connect(self.complete)
        self._highlighter = TomlHighlighter(self.document())
        self._margin = _Margin(self)
        self.blockCountChanged.connect(self._fit_margin)
        self.updateRequest.connect(self._scroll_margin)
        theme.notifier().changed.connect(self._recolour)
        self._fit_margin()

    @property
    def problems(self) -> Mapping[int, str]:
        """What is wrong, by line from 1."""
        return self._problems

    @property
    def before(self) -> str:
        """The text up to the cursor."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(self.textCursor().position(), QTextCursor.MoveMode.KeepAnchor)
        return cursor.selectedText().replace("\u2029", "\n")

    @Slot(str)
    def complete(self, chosen: str) -> None:
        """Put what was chosen in place of the word before the cursor."""
        cursor = self.textCursor()
        word = len(self.completer.completionPrefix())
        cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, word)
        cursor.insertText(chosen)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Offer what a word can become; while it is offered, Return, Tab and Escape are of the list."""
        popup, keys = self.offered, Qt.Key
        if popup.isVisible() and event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Tab, keys.Key_Escape):
            event.ignore()
            return
        asked = event.key() == keys.Key_Space and event.modifiers() == Qt.KeyboardModifier.ControlModifier
        if not asked:
            super().keyPressEvent(event)
        before = self.before
        word, names = completions_at(before, len(before)) if asked or event.text().strip() else ("", [])
        if not names or not (word or asked):
            popup.hide()
            return
        self._names.setStringList(names)
        self.completer.setCompletionPrefix(word)
        popup.setCurrentIndex(self.completer.completionModel().index(0, 0))
        rectangle = self.cursorRect().translated(self.margin_width, 0)
        rectangle.setWidth(popup.sizeHintForColumn(0) + popup.verticalScrollBar().sizeHint().width() + 8)
        self.completer.complete(rectangle)

    def show_problems(self, problems: Mapping[int, str]) -> None:
        """Mark lines; the margin says what is wrong there."""
        self._problems = dict(problems)
        marked = []
        for line in problems:
            selection = QTextEdit.ExtraSelection()
            selection.cursor = QTextCursor(self.document().findBlockByNumber(line - 1))
            ground = QColor(theme.colours().warning)
            selection.format.setBackground(ground)
            selection.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            marked.append(selection)
        self.setExtraSelections(marked)
        self.setAccessibleDescription("; ".join(f"line {line}: {problem}" for line, problem in self._problems.items()))
        self._margin.update()

    def go_to_line(self, line: int) -> None:
        """Bring a line, from 1, into sight."""
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(line - 1)))
        self.centerCursor()

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Tab is of the list while something is offered."""
        return not self.offered.isVisible() and super().focusNextPrevChild(forwards)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inner = self.contentsRect()
        self._margin.setGeometry(QRect(inner.left(), inner.top(), self.margin_width, inner.height()))

    @property
    def margin_width(self) -> int:
        """Of line numbers and marks, in pixels."""
        digits = max(2, len(str(self.blockCount())))
        return self.fontMetrics().horizontalAdvance("9" * digits + _MARK) + 10

    def paint_margin(self, rect: QRect) -> None:
        """Draw the line numbers and marks of what is in sight."""
        colours, metrics = theme.colours(), self.fontMetrics()
        painter = QPainter(self._margin)
        painter.fillRect(rect, QColor(colours.window))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= rect.bottom():
            line = block.blockNumber() + 1
            if line in self._problems:
                painter.fillRect(QRect(0, round(top), self.margin_width, metrics.height()), QColor(colours.warning))
                painter.setPen(QColor(colours.warning_text))
                painter.drawText(2, round(top) + metrics.ascent(), _MARK)
            else:
                painter.setPen(QColor(colours.muted))
            box = QRect(0, round(top), self.margin_width - 4, metrics.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignRight, str(line))
            top += self.blockBoundingRect(block).height()
            block = block.next()
        painter.end()

    def line_at(self, y: int) -> int:
        """The line, from 1, at a height of the margin."""
        return self.cursorForPosition(QPoint(0, y)).blockNumber() + 1

    @Slot()
    def _fit_margin(self) -> None:
        self.setViewportMargins(self.margin_width, 0, 0, 0)

    @Slot(QRect, int)
    def _scroll_margin(self, rect: QRect, down: int) -> None:
        if down:
            self._margin.scroll(0, down)
        else:
            self._margin.update(0, rect.y(), self._margin.width(), rect.height())

    @Slot()
    def _recolour(self) -> None:
        self._highlighter.recolour()
        self._highlighter.rehighlight()
        self.show_problems(self._problems)


class _Margin(QWidget):
    """Line numbers at the left of the text; a tool tip says what is wrong in a marked line."""

    def __init__(self, pane: TomlPane) -> None:
        super().__init__(pane)
        self._pane = pane

    def sizeHint(self) -> QSize:
        return QSize(self._pane.margin_width, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._pane.paint_margin(event.rect())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            text = self._pane.problems.get(self._pane.line_at(event.pos().y()), "")
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return super().event(event)
