"""`SpaceWindow`: the search space of what was opened: what its restrictions leave, and every valid configuration.

The configurations of a search space as a table: a Qt model over row numbers, and its view.

What each restriction leaves of a space, as bars on a logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QEvent, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent, QKeySequence, QPainter, QPaintEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFrame,
    QHeaderView,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QTableView,
    QToolTip,
    QWidget,
)

from ...base.formatting import count_text, duration
from ...engine.analysis.quantities import parameter_text, quantities_of
from ...engine.space.search_space import PruningStep, SearchSpace, pruning_steps
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.record_model import NO_PARENT, AnyIndex
from ..shared.widgets import vbox

_GAP = 10  # pixels between columns
_WORDS = 0.42  # of the width is for the text of a restriction
_HEAD = ("Restrictions in the order applied", "What is left, on a logarithmic scale", "removed")


class PruningPicture(QWidget):
    """One line for all combinations and one per restriction: its words, a bar of what it leaves, and figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: tuple[tuple[str, int, str, str], ...] = ()  # restriction, left, share removed, tool tip
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("What each restriction leaves")

    @property
    def lines(self) -> tuple[tuple[str, int, str, str], ...]:
        """What is drawn, line by line: words, combinations left, share removed, tool tip."""
        return self._lines

    def show_steps(self, cartesian: int, steps: Sequence[PruningStep]) -> None:
        """Draw a space of `cartesian` combinations, pruned in these steps."""
        every = ("all combinations", cartesian, "", f"{count_text(cartesian)} combinations before any restriction")
        self._lines = (every, *((s.restriction, s.after, _share_left(s), _explanation(s)) for s in steps))
        self.setAccessibleDescription("\n".join(line[3] for line in self._lines))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, self.height_of(1 + len(self._lines)))

    def height_of(self, lines: int) -> int:
        """The height of `lines` lines, that of the heads included, in pixels."""
        return self._height * lines + 2

    def minimumSizeHint(self) -> QSize:
        return QSize(320, self.sizeHint().height())

    @property
    def _height(self) -> int:
        return self.fontMetrics().height() + 5

    def event(self, event: QEvent) -> bool:
        """The tool tip of the line under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            line = event.pos().y() // self._height - 1
            tip = self._lines[line][3] if 0 <= line < len(self._lines) else ""
            QToolTip.showText(event.globalPos(), plain_tip(tip), self)
            return True
        return super().event(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self._lines:
            return
        colours, metrics = theme.colours(), self.fontMetrics()
        painter = QPainter(self)
        figures = max(metrics.horizontalAdvance(count_text(left)) for _, left, _, _ in self._lines)
        shares = metrics.horizontalAdvance("−99.99 %")
        width = self.width() - _GAP
        words = int(width * _WORDS)
        room = max(20, width - words - figures - shares - 3 * _GAP)
        scale = room / max(1e-9, _decades(self._lines[0][1]))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        before = self._lines[0][1]
        painter.setPen(QColor(colours.muted))
        begin = words + _GAP
        for left, width_of, text in ((0, words, _HEAD[0]), (begin, room + _GAP + figures, _HEAD[1])):
            elided = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width_of)
            painter.drawText(QRectF(left, 0, width_of, self._height), Qt.AlignmentFlag.AlignVCenter, elided)
        painter.drawText(QRectF(width - shares, 0, shares, self._height), right, _HEAD[2])
        for place, (text, left, share, _) in enumerate(self._lines, start=1):
            top, height = place * self._height, self._height
            elided = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, words)
            painter.setPen(QColor(colours.text if place == 1 or share else colours.muted))
            painter.drawText(QRectF(0, top, words, height), Qt.AlignmentFlag.AlignVCenter, elided)
            painter.fillRect(QRectF(begin, top + 3, room, height - 6), QColor(colours.grid))
            painter.fillRect(QRectF(begin, top + 3, scale * _decades(before), height - 6), QColor(colours.border))
            painter.fillRect(QRectF(begin, top + 3, scale * _decades(left), height - 6), QColor(colours.accent))
            painter.drawText(QRectF(begin + room + _GAP, top, figures, height), right, count_text(left))
            painter.setPen(QColor(colours.muted))
            painter.drawText(QRectF(width - shares, top, shares, height), right, share)
            before = left


def _decades(count: int) -> float:
    """The length of a bar: the logarithm of a count, so that one combination is still seen."""
    return math.log10(count) + 0.3 if count > 0 else 0.0


def _share_left(step: PruningStep) -> str:
    """How much of what was left a restriction removed; empty if it was nothing."""
    if not step.removed:
        return ""
    percent = 100 * step.share
    return f"−{percent:.1f} %" if 0.05 <= percent < 99.95 else "−<0.1 %" if percent < 0.05 else f"−{percent:.2f} %"


def _explanation(step: PruningStep) -> str:
    removed = f"removes {count_text(step.removed)} of {count_text(step.before)}" if step.removed else "removes nothing"
    return f"{step.restriction}\n{removed}, {count_text(step.after)} left"


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

    def rowCount(self, parent: AnyIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() or self.space is None else self.space.size

    def columnCount(self, parent: AnyIndex = NO_PARENT) -> int:
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
        vbox(self.words, (self.parts, 1), of=self)
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
