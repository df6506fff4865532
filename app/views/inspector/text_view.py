"""Text to read and copy in a fixed-width font: a compiler's message, a kernel's source.

`CudaHighlighter`: CUDA C++ in colours: comments, directives, words, numbers, and the session's own parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QGuiApplication,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import hbox

_PLAIN, _IN_COMMENT = 0, 1
_WORDS = (
    "alignas|auto|bool|break|case|char|class|const|constexpr|continue|default|delete|do|double|else|enum|extern|false"
    "|float|for|half|if|inline|int|int32_t|int64_t|long|namespace|new|operator|private|public|register|return|short"
    "|signed|size_t|sizeof|static|static_assert|struct|switch|template|this|true|typedef|typename|uint32_t|uint64_t"
    "|uint8_t|union|unsigned|using|virtual|void|volatile|while"
)
_CUDA_WORDS = (
    r"__\w+__|__restrict|__syncthreads|__syncwarp|__ldg|__shfl\w*|threadIdx|blockIdx|blockDim|gridDim|warpSize|atomic\w+"
    r"|(?:float|double|half|int|uint|char|uchar|short|ushort|long)[1234]"
)
_TOKENS = re.compile(
    r"(?P<comment>//.*|/\*.*?\*/)"
    r"|(?P<opened>/\*.*)"
    r"""|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"|(?P<directive>^\s*#\s*\w+)"
    r"|(?P<number>\b(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[uUlLfFhH]*\b)"
    rf"|(?P<cuda>\b(?:{_CUDA_WORDS})\b)"
    rf"|(?P<word>\b(?:{_WORDS})\b)"
    r"|(?P<name>\b[A-Za-z_]\w*\b)"
)
_COLOURS = {
    "comment": "muted",
    "opened": "muted",
    "text": "green",
    "directive": "purple",
    "number": "orange",
    "cuda": "vermillion",
    "word": "blue",
}


class CudaHighlighter(QSyntaxHighlighter):
    """`tunable` names are set in bold. Refill the document after `recolour`."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self.tunable: frozenset[str] = frozenset()
        self._formats: dict[str, QTextCharFormat] = {}
        self.recolour()

    def set_tunable(self, names: Iterable[str]) -> None:
        """The names that a configuration defines."""
        self.tunable = frozenset(names)

    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        for kind, colour in _COLOURS.items():
            self._formats[kind] = QTextCharFormat()
            self._formats[kind].setForeground(QColor(getattr(colours, colour)))
        self._formats["name"] = QTextCharFormat()
        self._formats["name"].setForeground(QColor(colours.accent))
        self._formats["name"].setFontWeight(QFont.Weight.Bold)

    def highlightBlock(self, text: str) -> None:
        start = 0
        if self.previousBlockState() == _IN_COMMENT:
            end = text.find("*/")
            start = len(text) if end < 0 else end + 2
            self.setFormat(0, start, self._formats["comment"])
            if end < 0:
                self.setCurrentBlockState(_IN_COMMENT)
                return
        self.setCurrentBlockState(_PLAIN)
        for token in _TOKENS.finditer(text, start):
            kind = str(token.lastgroup)
            if kind == "name" and token[0] not in self.tunable:
                continue
            self.setFormat(token.start(), token.end() - token.start(), self._formats[kind])
            if kind == "opened":
                self.setCurrentBlockState(_IN_COMMENT)


_LINES_A_TURN = 150  # of source: colouring them takes Qt's thread a few ms


class TextView(QWidget):
    """A title, a button that copies, and the text."""

    def __init__(self, name: str, *, wrap: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = PlainLabel()
        self.title.setWordWrap(True)
        self.copy = QPushButton("Copy")
        self.copy.setToolTip("Put all of it on the clipboard")
        self.copy.clicked.connect(self.copy_all)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFont(theme.fixed_font())
        self.text.setAccessibleName(name)
        mode = QPlainTextEdit.LineWrapMode
        self.text.setLineWrapMode(mode.WidgetWidth if wrap else mode.NoWrap)
        top = hbox((self.title, 1), self.copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 2, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(top)
        layout.addWidget(self.text, 1)

    @property
    def whole(self) -> str:
        """All that can be copied."""
        return self.text.toPlainText()

    def show_text(self, title: str, text: str) -> None:
        """Show another text under a title."""
        self.title.setText(title)
        self.text.setPlainText(text)
        self.copy.setEnabled(bool(text))

    @Slot()
    def copy_all(self) -> None:
        """Put all of it on the clipboard."""
        QGuiApplication.clipboard().setText(self.whole)


class SourceView(TextView):
    """CUDA source in colours. The source is filled in piece by piece; what stands before it may change at once."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Kernel source", wrap=False, parent=parent)
        self._before, self._source = "", ""
        self._waiting: list[str] = []
        self._highlighter = CudaHighlighter(self.text.document())
        self._filler = QTimer(self)
        self._filler.setInterval(0)
        self._filler.timeout.connect(self._fill)
        theme.notifier().changed.connect(self._recolour)

    @property
    def whole(self) -> str:
        return self._before + self._source

    def show_source(self, title: str, before: str, source: str, names: Iterable[str]) -> None:
        """Show `before` (#defines), then the source; `names` stand out in it."""
        tunable = frozenset(names)
        self.title.setText(title)
        self.copy.setEnabled(bool(before or source))
        if source != self._source or tunable != self._highlighter.tunable:
            self._before, self._source = before, source
            self._highlighter.set_tunable(tunable)
            self._refill()
        elif before != self._before:
            cursor = QTextCursor(self.text.document())
            cursor.setPosition(0)
            cursor.setPosition(
                len(self._before.encode("utf-16-le")) // 2, QTextCursor.MoveMode.KeepAnchor
            )  # as Qt counts
            cursor.insertText(before)
            self._before = before

    def _refill(self) -> None:
        lines = self._source.splitlines(keepends=True)
        pieces = ["".join(lines[at : at + _LINES_A_TURN]) for at in range(0, len(lines), _LINES_A_TURN)]
        self.text.setPlainText(self._before)
        self._waiting = pieces
        self._fill()

    @Slot()
    def _fill(self) -> None:
        if self._waiting:
            cursor = QTextCursor(self.text.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(self._waiting.pop(0))
        if self._waiting:
            self._filler.start()
        else:
            self._filler.stop()

    @Slot()
    def _recolour(self) -> None:
        self._highlighter.recolour()
        self._refill()
