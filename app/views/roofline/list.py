"""The sweeps that are overlaid on the roofline's plots."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from ...engine.tuning_methods.roofline_sweeps import Sweep
from ..plots.overlay_list import OverlayList


class SweepList(OverlayList[Sweep]):
    """The chosen one's points are coloured by occupancy, and its balances are marked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Sweeps that are overlaid",
            "Tick what is shown. The points of the chosen one are coloured by occupancy, and its balances are marked",
            parent,
        )
