"""`Badge`: which GPU this is, and, in a coloured field, that it is simulated or recorded where it is."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from ...sensors.gpu import GpuInfo
from ..plots import theme
from ..plots.label import PlainLabel, plain_tip
from ..widgets import hbox

_TIPS = {
    "simulated": "No board answers these readings: a model of one does, with its sensor's refresh, averaging and noise",
    "recorded": "These readings were taken from a real board at another time, and are replayed in a loop",
}


class Badge(QWidget):
    """Always visible."""

    def __init__(self, info: GpuInfo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field, self.name = PlainLabel(), PlainLabel()
        self.field.setObjectName("badge")
        hbox(self.field, self.name, of=self).setContentsMargins(6, 0, 10, 0)
        self.show_board(info)
        self._recolour()
        theme.notifier().changed.connect(self._recolour)

    def show_board(self, info: GpuInfo) -> None:
        """Another board is shown."""
        self.field.setText(info.source.upper())
        self.field.setToolTip(_TIPS.get(info.source, ""))
        self.field.setVisible(info.source != "nvml")
        self.name.setText(info.name)
        self.name.setToolTip(plain_tip(f"{info.power_source}\nDriver: {info.driver or 'none'}"))

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#badge {{ background: {c.badge}; color: {c.badge_text}; border-radius: 3px; padding: 1px 6px;"
            " font-weight: 600; }"
        )
