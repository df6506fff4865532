"""`Workspace`: one of the window's views of the work: panels in the middle, docks around them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QTabWidget

from .docks import Docks
from .page import Page
from .panels import PanelSpec, Place, WorkspaceSpec


class Workspace(QMainWindow):
    """A window within the window, so that docks can be moved in it. `room` is what the screen has for it."""

    changed = Signal()  # a dock or a tab came to sight or went

    def __init__(self, spec: WorkspaceSpec, panels: Sequence[PanelSpec], room: QSize) -> None:
        super().__init__()
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setObjectName(spec.name)
        self.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks
            | QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AnimatedDocks
        )
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.spec, self.panels = spec, tuple(panels)
        self.was_shown = False
        centre = [each for each in panels if each.place is Place.CENTRE]
        self._in_centre = {each.name: Page() for each in centre}
        self.tabs = QTabWidget() if len(centre) > 1 else None
        if self.tabs is not None:
            self.tabs.setDocumentMode(True)
            for each in centre:
                self.tabs.addTab(self._in_centre[each.name], each.text)
            self.tabs.currentChanged.connect(self._tab_changed)
        self.setCentralWidget(self.tabs or self._in_centre[centre[0].name])
        self.docks = Docks(self, [each for each in panels if each.is_dock], room)
        self.docks.changed.connect(self.changed)
        self.pages = {**self._in_centre, **self.docks.pages}

    def bring(self, name: str) -> None:
        """Show a panel in front of those with which it shares its place."""
        if name in self.docks.by_name:
            self.docks.bring(name)
        elif self.tabs is not None:
            self.tabs.setCurrentWidget(self._in_centre[name])

    def in_front(self) -> list[str]:
        """The panels in the order in which they are wanted: those in sight first."""

        def behind(name: str) -> bool:
            docked = name in self.docks.by_name
            return not (self.docks.in_front(name) if docked else self._in_centre[name].isVisible())

        return sorted((spec.name for spec in self.panels), key=behind)

    @Slot(int)
    def _tab_changed(self, _: int) -> None:
        self.changed.emit()
