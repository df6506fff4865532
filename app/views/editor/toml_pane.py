"""`TomlPane`: the text itself, in colours, with line numbers and a mark on every line that has a problem."""

from __future__ import annotations

import re
from collections.abc import Mapping

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QToolTip, QWidget

from ..plots import theme
from ..plots.label import plain_tip

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


class TomlPane(QPlainTextEdit):
    """`typed` says that the user changed the text; `show_text` is not heard, and keeps the cursor where it is."""

    typed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUndoRedoEnabled(False)  # one history is over the form and the text
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.fixed_font())
        self.setTabChangesFocus(True)
        self.setAccessibleName("Specification as TOML")
        self._problems: dict[int, str] = {}  # by line, from 1
        self._filling = False
        self._highlighter = TomlHighlighter(self.document())
        self._margin = _Margin(self)
        self.blockCountChanged.connect(self._fit_margin)
        self.updateRequest.connect(self._scroll_margin)
        self.textChanged.connect(self._note)
        theme.notifier().changed.connect(self._recolour)
        self._fit_margin()

    @property
    def problems(self) -> Mapping[int, str]:
        """What is wrong, by line from 1."""
        return self._problems

    def show_text(self, text: str) -> None:
        """Show another text: only where it differs is anything touched."""
        old = self.toPlainText()
        if text == old:
            return
        most = min(len(text), len(old))
        start = next((at for at in range(most) if text[at] != old[at]), most)
        tail = 0
        while tail < most - start and text[-1 - tail] == old[-1 - tail]:
            tail += 1
        cursor = QTextCursor(self.document())
        cursor.setPosition(_units(old[:start]))
        cursor.setPosition(_units(old[: len(old) - tail]), QTextCursor.MoveMode.KeepAnchor)
        self._filling = True
        cursor.insertText(text[start : len(text) - tail])
        self._filling = False

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
        self.setAccessibleDescription("; ".join(f"line {line}: {what}" for line, what in self._problems.items()))
        self._margin.update()

    def go_to_line(self, line: int) -> None:
        """Bring a line, from 1, into sight."""
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(line - 1)))
        self.centerCursor()

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
        return self.cursorForPosition(self.viewport().rect().topLeft().__class__(0, y)).blockNumber() + 1

    @Slot()
    def _note(self) -> None:
        if not self._filling:
            self.typed.emit()

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
        self._filling = True
        self._highlighter.rehighlight()
        self._filling = False
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


def _units(text: str) -> int:
    """The length of a text as Qt counts it, in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
