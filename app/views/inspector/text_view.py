"""Text to read and copy in a fixed-width font: a compiler's message, a kernel's source."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from ..plots import theme
from ..plots.label import PlainLabel
from .cuda_highlighter import CudaHighlighter

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
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.copy)
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
