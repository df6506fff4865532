"""`SpaceWindow`: the search space of what was opened: what its restrictions leave, and every valid configuration."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QSplitter, QVBoxLayout, QWidget

from ...engine.session.plan import SessionPlan
from ...engine.space.search_space import pruning_steps
from ...numbers import count_text, duration
from ..plots.label import PlainLabel
from .pruning_picture import PruningPicture
from .table import SpaceTable

_LINES_AT_FIRST = 12  # of the picture; it scrolls beyond


class SpaceWindow(QDialog):
    """Stays beside the main window and follows what is opened there."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModal(False)
        self.resize(860, 640)
        self.words, self.picture, self.table = PlainLabel(), PruningPicture(), SpaceTable()
        self.words.setWordWrap(True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.pruning = QScrollArea()
        self.pruning.setWidget(self.picture)
        self.pruning.setWidgetResizable(True)
        self.pruning.setFrameShape(QFrame.Shape.NoFrame)
        self.pruning.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.parts = QSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(self.pruning)
        self.parts.addWidget(self.table)
        self.parts.setStretchFactor(1, 1)
        layout = QVBoxLayout(self)
        layout.addWidget(self.words)
        layout.addWidget(self.parts, 1)
        self.show_plan(None)

    def show_plan(self, plan: SessionPlan | None) -> None:
        """Show the space of what was opened, or that there is none."""
        self.table.set_plan(plan)
        self.parts.setVisible(plan is not None)
        if plan is None:
            self.setWindowTitle("Search space")
            self.words.setText("Nothing is opened in Tune.")
            return
        space = plan.space
        steps = pruning_steps(space)
        built = f", built in {duration(space.build_seconds)}" if space.build_seconds else ""
        self.setWindowTitle(f"Search space of {plan.title}")
        share = f" ({_share(space.size, space.cartesian)})" if space.size < space.cartesian else ""
        size = f"{count_text(space.size)} valid of {count_text(space.cartesian)} combinations{share}{built}"
        self.words.setText("\n".join([size, *space.notes]))
        self.picture.show_steps(space.cartesian, steps)
        self.pruning.setVisible(bool(steps))
        shown = self.picture.height_of(min(_LINES_AT_FIRST, 2 + len(steps)))
        self.parts.setSizes([shown, max(200, self.height() - shown)])


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if 1000 * part >= whole else f"1 in {count_text(whole // part)}"
