"""The sweeps that are overlaid: a tick shows or hides one, the chosen one is in focus."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from app.engine.roofline_sweeps import Sweep
from app.views import theme
from app.views.roofline_table import icon_of

_LINES = (1, 6)  # of the list that are in sight, at least and at most


class SweepList(QListWidget):
    """`changed` after sweeps were added, removed, shown or hidden, or another one came into focus."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sweeps: list[Sweep] = []
        self.setAccessibleName("Sweeps that are overlaid")
        self.setToolTip(
            "Tick what is shown. The points of the chosen one are coloured by occupancy, and its balances are marked"
        )
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._fit_height()
        self.itemChanged.connect(self._told)
        self.currentRowChanged.connect(self._told)
        theme.notifier().changed.connect(self._recolour)

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """All of them."""
        return tuple(self._sweeps)

    @property
    def shown(self) -> list[tuple[int, Sweep]]:
        """The ticked ones, each with its place."""
        return [
            (at, sweep) for at, sweep in enumerate(self._sweeps) if self.item(at).checkState() == Qt.CheckState.Checked
        ]

    @property
    def focus(self) -> Sweep | None:
        """The chosen one, if it is shown; else the last that is."""
        shown = self.shown
        chosen = [sweep for at, sweep in shown if at == self.currentRow()]
        return chosen[0] if chosen else shown[-1][1] if shown else None

    def put(self, sweeps: Sequence[Sweep]) -> None:
        """Add sweeps, the first in focus; one that was there before is put in its place."""
        first = len(self._sweeps)
        with QSignalBlocker(self):
            for sweep in sweeps:
                keys = [each.key for each in self._sweeps]
                at = keys.index(sweep.key) if sweep.key in keys else len(keys)
                self._sweeps[at : at + 1] = [sweep]
                if at == len(keys):
                    item = QListWidgetItem()
                    item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
                    item.setCheckState(Qt.CheckState.Checked)
                    self.addItem(item)
                self._dress(at)
            if len(self._sweeps) > first:
                self.setCurrentRow(first)
        self._fit_height()
        self.changed.emit()

    @Slot()
    def remove_chosen(self) -> None:
        """Take the chosen one away."""
        at = self.currentRow()
        if not 0 <= at < len(self._sweeps):
            return
        with QSignalBlocker(self):
            del self._sweeps[at]
            self.takeItem(at)
            for place in range(len(self._sweeps)):
                self._dress(place)
        self._fit_height()
        self.changed.emit()

    def _fit_height(self) -> None:
        """As high as its lines need, within bounds."""
        line = self.fontMetrics().height() + 5
        self.setFixedHeight(min(max(len(self._sweeps), _LINES[0]), _LINES[1]) * line + 4)

    def _dress(self, at: int) -> None:
        sweep, item = self._sweeps[at], self.item(at)
        item.setIcon(icon_of(at))
        item.setText(f"{sweep.label}, {sweep.origin}")
        item.setToolTip("\n".join((item.text(), *sweep.reasons)))

    @Slot()
    def _told(self, *_: object) -> None:
        self.changed.emit()

    @Slot()
    def _recolour(self) -> None:
        with QSignalBlocker(self):
            for at in range(len(self._sweeps)):
                self.item(at).setIcon(icon_of(at))
