"""`SpaceStrip`: how large the space is as it is edited, and what each restriction leaves of it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QScrollArea, QToolButton, QWidget

from ...engine.space.search_space import SearchSpace, pruning_steps
from ...numbers import count_text, duration
from ..plots.label import PlainLabel
from ..plots.toggle import look_pressed
from ..space.pruning_picture import PruningPicture
from ..widgets import hbox, vbox

_LINES = 8  # of the picture; it scrolls beyond


class SpaceStrip(QWidget):
    """A line of words, and the picture of the pruning, which can be folded away."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = PlainLabel(wrap=True, selectable=True)
        self.words.setAccessibleName("Size of the space")
        self.fold = QToolButton()
        self.fold.setText("What each restriction leaves")
        self.fold.setCheckable(True)
        look_pressed(self.fold)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.picture = PruningPicture()
        self.area = QScrollArea()
        self.area.setWidget(self.picture)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        vbox(hbox((self.words, 1), self.fold), self.area, of=self, margins=0, spacing=2)
        self.fold.toggled.connect(self._folded)
        self._folded()

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
        self.fold.setEnabled(bool(steps))

    @Slot()
    def _folded(self) -> None:
        shown = self.fold.isChecked()
        self.fold.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)
        self.area.setVisible(shown)
