"""`CudaHighlighter`: CUDA C++ in colours: comments, directives, words, numbers, and the session's own parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from ..plots import theme

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
