"""Placing a kernel on the rooflines by its work and traffic, and what each board is expected to take for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QLineEdit, QPushButton, QWidget

from ...base.formatting import number
from ...engine.models.roofline.describe_sweeps import describe_kernel
from ...engine.models.roofline.points import PlacedKernel, Sweep
from ..plots.descriptions import ListingTable
from ..plots.overlay_list import icon_of
from ..shared.label import PlainLabel

_TIPS = (
    "Work over peak or traffic over bandwidth, whichever takes longer, and longer at a power limit",
    "Energy over time",
    "W ε_flop + Q ε_mem + T π_0",
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
        self.message = PlainLabel(_HOW)
        self.table = ListingTable("Expected time, power and energy of the kernel")
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
        self.take.clicked.connect(self.take_offered)
        self.offer(None)

    @property
    def kernel(self) -> PlacedKernel | None:
        """What is placed; None where the fields hold no work and traffic."""
        return self._kernel

    def offer(self, kernel: PlacedKernel | None) -> None:
        """Offer the kernel of the selected configuration, where its work and traffic are known."""
        self._offered = kernel
        self.take.setEnabled(kernel is not None)
        self.take.setToolTip(
            "Take work and traffic from the selected configuration's GFLOP/s, GB/s and time"
            if kernel is not None
            else "Select a configuration whose values hold GFLOP/s and GB/s, in Tune or Front"
        )

    @Slot()
    def take_offered(self) -> None:
        """Place the selected configuration."""
        if self._offered is None:
            return
        self.work.setText(f"{self._offered.work_flop:.4g}")
        self.traffic.setText(f"{self._offered.traffic_byte:.4g}")
        self._kernel = self._offered
        self._show_kernel()

    @Slot()
    def _typed(self) -> None:
        work, traffic = _positive(self.work.text()), _positive(self.traffic.text())
        self._kernel = PlacedKernel(work, traffic) if work is not None and traffic is not None else None
        both = bool(self.work.text() and self.traffic.text())
        self._show_kernel("Both must be numbers above zero." if both and self._kernel is None else "")

    def _show_kernel(self, complaint: str = "") -> None:
        kernel = self._kernel
        if kernel is None:
            self.message.setText(complaint or _HOW)
        else:
            name = f"{kernel.name}: " if kernel.name else ""
            self.message.setText(f"{name}{number(kernel.intensity)} flop/B; ★ expected, ✖ measured in the plots")
        self.changed.emit()

    def show_sweeps(self, shown: Sequence[tuple[int, Sweep]]) -> None:
        """What each board is expected to take, and what was measured."""
        if self._kernel is None:
            self.table.setRowCount(0)
            return
        sweeps = [sweep for _, sweep in shown]
        tips = ["\n".join(sweep.reasons) for sweep in sweeps] + ["As the selected configuration was measured"]
        expected = describe_kernel(self._kernel, sweeps)
        self.table.show_listing(expected, tips=tips, icons=[icon_of(place) for place, _ in shown])
        for column, tip in enumerate(_TIPS, start=1):
            self.table.model().setHeaderData(column, Qt.Orientation.Horizontal, tip, Qt.ItemDataRole.ToolTipRole)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None
