"""`Beside`: what stands beside the text: help for the key at the cursor, the size of the space, and the problems."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QScrollArea, QWidget

from ...engine.space.search_space import SearchSpace, pruning_steps
from ...numbers import count_text, counted, duration
from ..plots.label import PlainLabel
from ..space.pruning_picture import PruningPicture
from ..widgets import vbox
from .checking import Found

_LINE = Qt.ItemDataRole.UserRole
_LINES = 12  # of the picture; it scrolls beyond


class Beside(QWidget):
    """Shows what was found in the text; a problem that is chosen is gone to."""

    line_chosen = Signal(int)  # from 1

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count = _heading("Problems")
        self.problems = QListWidget()
        self.problems.setAccessibleName("Problems")
        self.problems.setWordWrap(True)
        self.problems.setAlternatingRowColors(True)
        self.problems.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.problems.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.words = PlainLabel(wrap=True, selectable=True)
        self.words.setAccessibleName("Size of the space")
        self.picture = PruningPicture()
        self.area = QScrollArea()
        self.area.setWidget(self.picture)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFixedHeight(self.picture.height_of(2))
        self.key = _heading("Key")
        self.help = PlainLabel(wrap=True, selectable=True)
        self.help.setTextFormat(Qt.TextFormat.MarkdownText)
        self.help.setAccessibleName("Help for the key at the cursor")
        self.help.setMinimumHeight(5 * self.help.fontMetrics().lineSpacing())
        self.help.setAlignment(Qt.AlignmentFlag.AlignTop)
        parts = self.key, self.help, _heading("Space"), self.words, self.area, self.count, (self.problems, 100), 1
        vbox(*parts, of=self, margins=0, spacing=4).setContentsMargins(8, 0, 0, 0)
        self.problems.itemActivated.connect(self._chosen)
        self.problems.itemClicked.connect(self._chosen)

    def show_problems(self, found: Sequence[Found]) -> None:
        """List what is wrong, each with its line."""
        self.problems.clear()
        for each in found:
            at = f"Line {each.line}: " if each.line is not None else ""
            QListWidgetItem(f"{at}{each}", self.problems).setData(_LINE, each.line or 1)
        self.count.setText(counted(len(found), "problem") if found else "No problems")
        self.problems.setVisible(bool(found))

    def say(self, text: str) -> None:
        """There is no size, or not yet; the picture stays until there is another one."""
        self.words.setText(text)

    def show_space(self, space: SearchSpace) -> None:
        """Show a space that was built."""
        size = f"{count_text(space.size)} valid of {count_text(space.cartesian)} combinations"
        built = f" · built in {duration(space.build_seconds)}" if space.build_seconds else ""
        self.words.setText(" · ".join([size + built, *space.notes]))
        steps = pruning_steps(space)
        self.picture.show_steps(space.cartesian, steps)
        self.area.setFixedHeight(self.picture.height_of(min(_LINES, 2 + len(steps))))

    def show_help(self, key: str, words: str) -> None:
        """Show what the guide says of a key."""
        self.key.setText(key or "Key")
        self.help.setText(words or "Put the cursor on a key to read what it does. Ctrl+Space lists the keys.")

    @Slot(QListWidgetItem)
    def _chosen(self, item: QListWidgetItem) -> None:
        self.line_chosen.emit(item.data(_LINE))


def _heading(text: str) -> PlainLabel:
    label = PlainLabel(text)
    font = label.font()
    font.setBold(True)
    label.setFont(font)
    return label
