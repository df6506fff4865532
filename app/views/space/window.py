"""`SpaceWindow`: the search space of what was opened: what its restrictions leave, and every valid configuration.

The configurations of a search space as a table: a Qt model over row numbers, and its view.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Slot
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFrame,
    QHeaderView,
    QScrollArea,
    QSplitter,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from ...base.formatting import count_text, duration
from ...engine.analysis.quantities import parameter_text, quantities_of
from ...engine.space.search_space import SearchSpace, pruning_steps
from ...engine.specification.plan import SessionPlan
from ..shared.label import PlainLabel
from .pruning_picture import PruningPicture

AnyIndex = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()
_PADDING = 16  # pixels around a cell's text
_MEASURED = 200  # values of a column that are measured for its width


class SpaceModel(QAbstractTableModel):
    """Rows are rows of the space; each cell is looked up when it is drawn, nothing is copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.space: SearchSpace | None = None
        self._titles: tuple[str, ...] = ()

    def set_plan(self, plan: SessionPlan | None) -> None:
        """Show the space of a plan, or none."""
        self.beginResetModel()
        self.space = None if plan is None else plan.space
        self._titles = () if plan is None else tuple(described.title for described in quantities_of(plan).values())
        self.endResetModel()

    def longest(self, column: int) -> list[str]:
        """Texts as wide as those of a column are expected to be."""
        values = () if self.space is None else self.space.parameters[column].values
        step = max(1, len(values) // _MEASURED)
        return [parameter_text(value) for value in (*values[::step], *values[-1:])]

    # --- Qt's side ---------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() or self.space is None else self.space.size

    def columnCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() or self.space is None else len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self.space is None or role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        if orientation is Qt.Orientation.Vertical:
            return section + 1 if role == Qt.ItemDataRole.DisplayRole else None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._titles[section]
        parameter = self.space.parameters[section]
        count = len(parameter.values)
        kind = "device setting" if parameter.device_setting else "parameter"
        return f"{parameter.name}: {kind} of {count} value{'' if count == 1 else 's'}"

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self.space is None or not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return parameter_text(
                self.space.parameters[index.column()].values[self.space.codes[index.row(), index.column()]]
            )
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


class SpaceTable(QTableView):
    """The table of the window."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = SpaceModel(self)
        self.setModel(self.rows)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setAccessibleName("Valid configurations")
        self.horizontalHeader().setHighlightSections(False)
        header = self.verticalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # heights that were asked of rows would not scale
        header.setDefaultSectionSize(self.fontMetrics().height() + 4)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self, context=Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy_selected)

    def set_plan(self, plan: SessionPlan | None) -> None:
        """Show the space of a plan, or none, each column as wide as its values need."""
        self.rows.set_plan(plan)
        measure = self.fontMetrics().horizontalAdvance
        for column in range(self.rows.columnCount()):
            head = self.rows.headerData(column, Qt.Orientation.Horizontal)
            self.setColumnWidth(column, max(measure(text) for text in (head, *self.rows.longest(column))) + _PADDING)

    @Slot()
    def copy_selected(self) -> None:
        """Put the selected configuration on the clipboard, as one line."""
        space, row = self.rows.space, self.currentIndex().row()
        if space is not None and row >= 0:
            words = (f"{name}={parameter_text(value)}" for name, value in space.configuration(row).items())
            QGuiApplication.clipboard().setText(", ".join(words))


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
