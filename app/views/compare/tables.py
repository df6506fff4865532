"""A comparison as tables: the gain of tuning for energy in each session, and configurations carried to other boards."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...engine.analysis.compare import Comparison, Pick, Side
from ...numbers import UNKNOWN
from ..plots.figures import MINUS, count_text
from ..plots.quantities import Quantity, format_number
from ..shell.label import plain_tip
from ..shell.provenance import source_words

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class RowsTable(QTableWidget):
    """Rows of texts under heads; numbers to the right. Not to be edited."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)

    def show_rows(self, heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> None:
        """The first `texts` columns are words, the others numbers."""
        self.clear()
        self.setColumnCount(len(heads))
        self.setRowCount(len(rows))
        self.setHorizontalHeaderLabels(list(heads))
        for at, row in enumerate(rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                item.setToolTip(plain_tip(text))
                if column >= texts:
                    item.setTextAlignment(_RIGHT)
                self.setItem(at, column, item)
        self.resizeColumnsToContents()
        self.resizeRowsToContents()
        for column in range(texts):
            self.setColumnWidth(column, min(self.columnWidth(column), 220))


def show_gains(table: RowsTable, found: Comparison, speed: Quantity, efficiency: Quantity) -> None:
    """S1 table 6.2: the fastest, the one of least energy, what that gains and costs, and the front of all together."""
    heads = (
        "Session",
        "Board",
        "Speed",
        "Efficiency",
        "Measured",
        f"Fastest: {speed.title}",
        efficiency.title,
        "MHz",
        f"Least energy: {speed.title}",
        efficiency.title,
        "MHz",
        "Hypervolume",
        "On the joint front",
    )
    rows = [
        (
            side.name,
            _board(side),
            percent(side.speed_change),
            percent(side.efficiency_change),
            count_text(side.measured),
            *_pick(side.fastest, speed, efficiency),
            *_pick(side.frugal, speed, efficiency),
            format_number(side.hypervolume),
            count_text(side.share_of_joint),
        )
        for side in found.sides
    ]
    table.show_rows(heads, rows, texts=2)


def means_text(found: Comparison) -> str:
    """What tuning for energy gains on average, in one sentence."""
    speed, efficiency = (
        each.words.replace("-", MINUS) for each in (found.mean_speed_change, found.mean_efficiency_change)
    )
    return (
        f"From the fastest to the one of least energy, mean ± standard deviation over {found.over}: "
        f"efficiency {efficiency}, speed {speed}"
    )


def show_carried(table: RowsTable, found: Comparison) -> None:
    """What the best of one session costs on another board, at that board's own best clocks."""
    heads = ("Best of", "in", "On", "Time", "Energy", "Parameters")
    rows = [
        (
            each.origin,
            each.chosen_for,
            each.on,
            percent(each.time_ratio - 1),
            percent(each.energy_ratio - 1),
            each.words,
        )
        for each in found.carried
    ]
    table.show_rows(heads, rows, texts=3)


def percent(share: float) -> str:
    """'+4.0 %', '−18.2 %'."""
    return UNKNOWN if math.isnan(share) else f"{100 * share:+.1f} %".replace("-", MINUS)


def _board(side: Side) -> str:
    return f"{side.gpu} ({side.source})" if source_words(side.source) else side.gpu


def _pick(pick: Pick, speed: Quantity, efficiency: Quantity) -> tuple[str, str, str]:
    clock = UNKNOWN if math.isnan(pick.clock_mhz) else f"{pick.clock_mhz:.0f}"
    return speed.number(pick.speed), efficiency.number(pick.efficiency), clock
