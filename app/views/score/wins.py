"""The pairwise table: on how many spaces one strategy is significantly better than another."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...engine.analysis.score_runs import Scores
from ..plots import theme
from ..plots.figures import signed
from .plots import label_of


class WinsTable(QTableWidget):
    """Strategies by their mean score, the best first; a cell counts the spaces on which the row beats the column."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAccessibleName("On how many spaces one strategy beats another significantly")
        self.setToolTip(
            "On how many spaces the row's strategy is significantly better than the column's (Mann-Whitney, 5 %)"
        )
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._scores: Scores | None = None
        theme.notifier().changed.connect(self._refresh)

    def show_scores(self, scores: Scores) -> None:
        """Fill the table."""
        self._scores = scores
        self._refresh()

    def _refresh(self) -> None:
        scores = self._scores
        if scores is None:
            return
        means = {name: scores.overall(name).mean for name in scores.strategies}
        ranked = sorted(means, key=lambda name: -means[name])
        self.setRowCount(len(ranked))
        self.setColumnCount(1 + len(ranked))
        self.setVerticalHeaderLabels([f"{place} {label_of(name)}" for place, name in enumerate(ranked, 1)])
        self.setHorizontalHeaderLabels(["score", *(str(place) for place in range(1, len(ranked) + 1))])
        for row, name in enumerate(ranked):
            interval = scores.overall(name)
            item = self._put(row, 0, signed(interval.mean, 3))
            item.setToolTip(f"95 % interval {signed(interval.low, 3)} to {signed(interval.high, 3)}")
            for column, other in enumerate(ranked, 1):
                won = scores.wins[name].get(other, 0)
                item = self._put(row, column, str(won) if other != name else "")
                item.setToolTip(f"{label_of(name)} beats {label_of(other)} on {won} of {len(scores.advantages)} spaces")
                if won:
                    colour = QColor(theme.colours().green)
                    colour.setAlpha(40 + 140 * won // len(scores.advantages))
                    item.setBackground(colour)

    def _put(self, row: int, column: int, text: str) -> QTableWidgetItem:
        item = QTableWidgetItem(text)
        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setItem(row, column, item)
        return item
