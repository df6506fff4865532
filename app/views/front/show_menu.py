"""`ShowMenu`: what is drawn over the scatter, as a menu of a button."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ..settings import Settings
from .overlays import OVERLAYS

_KEY, _BARS = "front", "parameters"  # in the settings
_AT_FIRST = frozenset(overlay.name for overlay in OVERLAYS if overlay.at_first) | {_BARS}


class ShowMenu(QToolButton):
    """Ticks for the overlays, kept over restarts; `bars` shows the parameters' histograms."""

    changed = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setText("&Show")
        self.setToolTip("What is drawn over the points")
        self.setAccessibleName("What is shown")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.ticks: dict[str, QAction] = {}
        for overlay in OVERLAYS:
            tick = self.ticks[overlay.name] = menu.addAction(overlay.text)
            tick.setCheckable(True)
            tick.setToolTip(overlay.tip)
            tick.toggled.connect(self.changed)
            tick.triggered.connect(self._keep)  # by the user
        menu.addSeparator()
        self.bars = menu.addAction("Pa&rameters")
        self.bars.setToolTip(
            "How the values of each parameter are distributed; hide values there (where there is room)"
        )
        self.bars.setCheckable(True)
        self.bars.triggered.connect(self._keep)
        menu.addSeparator()
        self.everything = menu.addAction("&Zoom to everything")
        self.everything.setToolTip("So that every point is in sight (double click or A in the plot)")
        self.front = menu.addAction("Zoom to &front")
        self.front.setToolTip("So that the configurations on the front lie apart (F in the plot)")
        self.setMenu(menu)
        self.look_again()

    def look_again(self) -> None:
        """The settings may be as at the first start again."""
        ticked = self._settings.shown(_KEY, _AT_FIRST)
        for name, tick in (*self.ticks.items(), (_BARS, self.bars)):
            tick.setChecked(name in ticked)

    @property
    def shown(self) -> frozenset[str]:
        """Names of the overlays that are switched on."""
        return frozenset(name for name, tick in self.ticks.items() if tick.isChecked())

    def set_possible(self, name: str, possible: bool) -> None:
        """Enable or disable an overlay, as the figures on the axes allow."""
        self.ticks[name].setEnabled(possible)

    @Slot()
    def _keep(self) -> None:
        self._settings.note_shown(_KEY, self.shown | ({_BARS} if self.bars.isChecked() else set()))
