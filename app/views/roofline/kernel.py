"""Placing a kernel on the rooflines by its work and traffic, and what each board is expected to take for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QGridLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from ...engine.tuning_methods.roofline_sweeps import PlacedKernel, Sweep
from ...numbers import UNKNOWN
from ..plots.overlay_list import icon_of
from ..plots.quantities import format_number
from ..shell.label import PlainLabel
from .table import NOT_TOLD, in_two_lines

_HEADS = (
    ("Time (ms)", "Work over peak or traffic over bandwidth, whichever takes longer, and longer at a power limit"),
    ("Power (W)", "Energy over time"),
    ("Energy (J)", "W ε_flop + Q ε_mem + T π₀"),
)
_HOW = "Enter what the kernel does, or take it from the configuration that is selected."


class KernelPlacer(QWidget):
    """Two fields, a button that fills them, and the table of expectations. `changed` after every change."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._offered: PlacedKernel | None = None
        self._kernel: PlacedKernel | None = None
        self.work, self.traffic = QLineEdit(), QLineEdit()
        self.take = QPushButton("From the &selection")
        self.message, self.table = PlainLabel(_HOW), QTableWidget(0, len(_HEADS))
        grid = QGridLayout(self)
        grid.setContentsMargins(4, 4, 4, 0)
        for column, (text, field, tip) in enumerate(
            (
                ("&Work (flop)", self.work, "Floating-point operations of one launch, such as 1.4e11"),
                ("Tra&ffic (B)", self.traffic, "Bytes to and from memory of one launch, such as 2e8"),
            )
        ):
            label = PlainLabel(text)
            label.setBuddy(field)
            field.setToolTip(tip)
            field.setPlaceholderText(tip.rpartition(" ")[2])
            field.setClearButtonEnabled(True)
            grid.addWidget(label, 0, column)
            grid.addWidget(field, 1, column)
            field.textEdited.connect(self._typed)
        grid.addWidget(self.take, 1, 2)
        grid.addWidget(self.message, 2, 0, 1, 3)
        grid.addWidget(self.table, 3, 0, 1, 3)
        grid.setRowStretch(3, 1)
        self.message.setWordWrap(True)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setAccessibleName("Expected time, power and energy of the kernel")
        for column, (text, tip) in enumerate(_HEADS):
            head = QTableWidgetItem(text)
            head.setToolTip(tip)
            self.table.setHorizontalHeaderItem(column, head)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.verticalHeader().setDefaultSectionSize(2 * self.fontMetrics().height() + 6)
        self.table.setShowGrid(False)
        self.take.clicked.connect(self.take_offered)
        self.offer(None)

    @property
    def kernel(self) -> PlacedKernel | None:
        """What is placed; None where the fields do not tell it."""
        return self._kernel

    def offer(self, kernel: PlacedKernel | None) -> None:
        """The kernel of the selected configuration, if it tells its work and traffic."""
        self._offered = kernel
        self.take.setEnabled(kernel is not None)
        self.take.setToolTip(
            "Take work and traffic from the selected configuration's GFLOP/s, GB/s and time"
            if kernel is not None
            else "Select a configuration whose values hold GFLOP/s and GB/s, under Tune or Front"
        )

    @Slot()
    def take_offered(self) -> None:
        """Place the selected configuration."""
        if self._offered is None:
            return
        self.work.setText(f"{self._offered.work_flop:.4g}")
        self.traffic.setText(f"{self._offered.traffic_byte:.4g}")
        self._kernel = self._offered
        self._tell()

    @Slot()
    def _typed(self) -> None:
        work, traffic = _number(self.work.text()), _number(self.traffic.text())
        told = work is not None and traffic is not None
        self._kernel = PlacedKernel(work, traffic) if work is not None and traffic is not None else None
        self._tell("" if told or not (self.work.text() and self.traffic.text()) else "Both must be numbers above zero.")

    def _tell(self, complaint: str = "") -> None:
        kernel = self._kernel
        if kernel is None:
            self.message.setText(complaint or _HOW)
        else:
            name = f"{kernel.name}: " if kernel.name else ""
            self.message.setText(f"{name}{format_number(kernel.intensity)} flop/B; ★ expected, ✖ measured in the plots")
        self.changed.emit()

    def show_sweeps(self, shown: Sequence[tuple[int, Sweep]]) -> None:
        """What each board is expected to take, and what was measured."""
        kernel = self._kernel
        rows: list[tuple[QTableWidgetItem, tuple[float, float, float] | None, str]] = []
        if kernel is not None:
            for place, sweep in shown:
                head = QTableWidgetItem(icon_of(place), in_two_lines(sweep))
                rows.append((head, expected(sweep, kernel), "\n".join(sweep.reasons)))
            if kernel.time_s is not None:
                told = (kernel.time_s, kernel.power_w or math.nan, kernel.energy_j or math.nan)
                where = f"measured\n{kernel.gpu}" if kernel.gpu else "measured"
                rows.append((QTableWidgetItem(where), told, "As the selected configuration was measured"))
        self.table.setRowCount(len(rows))
        for row, (head, told_values, tip) in enumerate(rows):
            head.setToolTip(tip)
            self.table.setVerticalHeaderItem(row, head)
            for column, factor in enumerate((1e3, 1.0, 1.0)):
                text = NOT_TOLD if told_values is None else _text(told_values[column] * factor)
                item = QTableWidgetItem(text)
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                item.setToolTip(tip)
                self.table.setItem(row, column, item)


def expected(sweep: Sweep, kernel: PlacedKernel) -> tuple[float, float, float] | None:
    """Time (s), power (W) and energy (J) of a kernel on a board within its limit; None where it is not known."""
    if sweep.model is None:
        return None
    time_s, energy_j, power_w = sweep.model.predict(kernel.work_flop, kernel.traffic_byte, sweep.limit_w)
    return time_s, power_w, energy_j


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def _text(value: float) -> str:
    return format_number(value) if math.isfinite(value) else UNKNOWN
