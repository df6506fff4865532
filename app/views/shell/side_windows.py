"""`SideWindows`: the windows that stay beside the main one: made when they are first asked for, one of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from ..score.window import ScoreWindow
    from .window import MainWindow

_W = TypeVar("_W", bound=QWidget)


class SideWindows:
    """None of them is modal: nothing waits for them."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._made: dict[str, QWidget] = {}

    def show_help(self) -> None:
        """The user guide and every shortcut."""
        from .help import HelpWindow  # imported late, as all here: the window's first frame needs none

        self._show("help", lambda: HelpWindow(self._window))

    def show_sensors(self) -> None:
        """How fast and how sharp each power source is."""
        from ..monitor.sensor_panel import SensorWindow

        made = self._make("sensors", lambda: SensorWindow(self._window.board.gpu.info, self._window))
        made.look_again()
        self._show("sensors", lambda: made)

    def show_scores(self) -> ScoreWindow:
        """The strategies' scores, on the cache that is open under Tune where there is one."""
        from ..score.window import ScoreWindow

        made = self._make("scores", lambda: ScoreWindow(self._window))
        panels = self._window.panels
        cache = panels["tune"].cache if "tune" in panels else None
        if cache is not None and made.scores is None:
            made.set_caches([cache])
        self._show("scores", lambda: made)
        return made

    def show_settings(self) -> None:
        """What the window remembers."""
        from .settings_window import SettingsWindow

        window = self._window
        known = "settings" in self._made
        made = self._make("settings", lambda: SettingsWindow(window.settings, window))
        if not known:
            made.theme_chosen.connect(window.set_theme)
            made.reset_asked.connect(window.reset_everything)
        made.show_settings()
        self._show("settings", lambda: made)

    def show_about(self) -> None:
        """Versions and the board's facts."""
        from .about import AboutWindow

        self._show("about", lambda: AboutWindow(self._window.board.gpu, self._window))

    def begin_tour(self) -> None:
        """The three steps, from the first one."""
        from .first_steps import first_steps
        from .tour import Tour

        known = "tour" in self._made
        tour = self._make("tour", lambda: Tour(self._window, first_steps(self._window)))
        if not known:
            self._window.dock_area.changed.connect(tour.stay_in_sight, Qt.ConnectionType.QueuedConnection)
        tour.begin()

    def shutdown(self) -> None:
        """End what they have running."""
        for made in self._made.values():
            shutdown = getattr(made, "shutdown", None)
            if shutdown is not None:
                shutdown()

    def _make(self, name: str, make: Callable[[], _W]) -> _W:
        if name not in self._made:
            self._made[name] = make()
        return cast(_W, self._made[name])

    def _show(self, name: str, make: Callable[[], QWidget]) -> None:
        made = self._make(name, make)
        if self._window.plot_menus is not None:
            self._window.plot_menus.adopt(made, made.windowTitle())
        made.show()
        made.raise_()
        made.activateWindow()
