"""`LanesMenu`: in the menu of the traces: hide, move and scale the lane there, show others; kept in the settings."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMenu

from ..settings import Settings
from .lane_choice import LaneChoice
from .lane_view import LaneView
from .lanes_window import LanesWindow


class LanesMenu(QObject):
    """Keeps the choice of a view's lanes."""

    def __init__(self, view: LaneView) -> None:
        super().__init__(view)
        self._view = view
        self._settings = Settings()
        self.window: LanesWindow | None = None
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """Show what is kept: the settings may be as at the first start again."""
        self._view.set_choice(LaneChoice.of(self._settings.lanes))

    @Slot(object)
    def choose(self, choice: LaneChoice) -> None:
        """Show these lanes, and keep that."""
        self._settings.lanes = choice.text()
        self._view.set_choice(choice)

    def _pick(self, choice: LaneChoice) -> None:
        """Chosen in the menu: the window, where it is open, shows it as well."""
        self.choose(choice)
        if self.window is not None:
            self.window.show_choice(choice, self._view.every_lane, self._view.ranges)

    def fill(self, menu: QMenu, title: str) -> None:
        """Append what can be done with the lane of that title, if it is one, and which lanes are shown."""
        choice, view = self._view.choice, self._view
        lanes = choice.in_order(view.every_lane)
        titles = [shown.lane.title for shown in lanes]
        if title:
            visible = [shown.lane.title for shown in view.lanes]
            row = visible.index(title)
            menu.addAction(f"&Hide {title}", partial(self._pick, choice.switch(title, False)))
            for words, step in (("Move &up", -1), ("Move &down", 1)):
                other = visible[row + step] if 0 <= row + step < len(visible) else ""
                moved = _swapped(titles, title, other)
                menu.addAction(words, partial(self._pick, choice.reorder(moved))).setEnabled(bool(other))
            menu.addAction("&Scale…", lambda: self.show_window(title))
            menu.addSeparator()
        for each in titles:
            tick = menu.addAction(each)
            tick.setCheckable(True)
            tick.setChecked(choice.shows(each))
            tick.triggered.connect(lambda shown, each=each: self._pick(choice.switch(each, shown)))
        menu.addSeparator()
        menu.addAction("&Traces shown…", self.show_window)

    @Slot()
    def show_window(self, title: str = "") -> None:
        """Choose, order and scale in a window."""
        view = self._view
        if self.window is None:
            self.window = LanesWindow(view.window())
            self.window.chosen.connect(self.choose)
        self.window.show_choice(view.choice, view.every_lane, view.ranges, title)
        self.window.show()
        self.window.raise_()
        self.window.activateWindow()


def _swapped(titles: list[str], one: str, other: str) -> list[str]:
    places = {one: other, other: one} if other else {}
    return [places.get(title, title) for title in titles]
