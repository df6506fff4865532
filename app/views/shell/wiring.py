"""`Wiring`: what the panels ask of the window and of one another, connected as each of them is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QWidget

from .host import Host
from .panels import PANELS

if TYPE_CHECKING:
    from ..plots.plot_menus import PlotMenus


class Wiring(QObject):
    """Follows `Panels.made`. Every plot gets its menu here."""

    def __init__(self, host: Host, window: QWidget) -> None:
        super().__init__(window)
        self._host, self._window = host, window
        self.plot_menus: PlotMenus | None = None  # once there is a panel that was loaded
        self._titles = {spec.name: spec.title for spec in PANELS}
        host.panels.made.connect(self._made)
        host.workspaces.changed.connect(self.adopt_plots, Qt.ConnectionType.QueuedConnection)  # made when shown

    def shutdown(self) -> None:
        """Wait for the files that are being written."""
        if self.plot_menus is not None:
            self.plot_menus.shutdown()

    @Slot(str)
    def _made(self, name: str) -> None:
        host, panel = self._host, self._host.panels[name]
        host.actions_made.connect_buttons(name, panel, host.workspaces.bring)
        connect = {
            "tune": self._connect_tune,
            "sessions": self._connect_sessions,
            "roofline": self._connect_roofline,
            "front": self._connect_front,
        }.get(name)
        if connect is not None:
            connect(panel)
        self._adopt(name, panel)

    def _connect_tune(self, tune: QWidget) -> None:
        tune.file_opened.connect(self._host.settings.add_recent)  # type: ignore[attr-defined]
        tune.form.history.changed.connect(self._history_changed)  # type: ignore[attr-defined]
        self._history_changed()

    def _connect_sessions(self, sessions: QWidget) -> None:
        host = self._host
        sessions.open_asked.connect(host.open_session)  # type: ignore[attr-defined]
        sessions.resume_asked.connect(host.resume_session)  # type: ignore[attr-defined]
        sessions.compare_asked.connect(host.compare_sessions)  # type: ignore[attr-defined]
        sessions.report_asked.connect(host.reports.write_stored)  # type: ignore[attr-defined]
        sessions.specification_met.connect(host.open_specification)  # type: ignore[attr-defined]
        sessions.said.connect(host.say)  # type: ignore[attr-defined]
        sessions.roofline_resume_asked.connect(self._resume_roofline)  # type: ignore[attr-defined]

    def _connect_roofline(self, roofline: QWidget) -> None:
        roofline.session_opened.connect(self._bring_roofline)  # type: ignore[attr-defined]

    def _connect_front(self, front: QWidget) -> None:
        front.pages.made.connect(self.adopt_plots)  # type: ignore[attr-defined]  # figures that are made when asked for

    @Slot()
    def _history_changed(self) -> None:
        history, actions = self._host.panels["tune"].form.history, self._host.actions_by_name
        actions["undo"].setEnabled(history.can_undo)
        actions["redo"].setEnabled(history.can_redo)

    @Slot()
    def _bring_roofline(self) -> None:
        self._host.workspaces.bring("roofline")

    @Slot(int, str)
    def _resume_roofline(self, session: int, precision: str) -> None:
        self._bring_roofline()
        self._host.panels["roofline"].measuring.resume(session, precision)

    # --- the menus of plots -------------------------------------------------------------------------------------------

    @Slot()
    def adopt_plots(self) -> None:
        """Give every plot its menu."""
        for name, panel in self._host.panels.items():
            self._adopt(name, panel)

    def _adopt(self, name: str, panel: QWidget) -> None:
        if name in _WITHOUT_PLOTS:
            return
        host = self._host
        if self.plot_menus is None:
            from ..plots.plot_menus import PlotMenus  # imported late: plots come with the panels

            self.plot_menus = PlotMenus(self._window, lambda: host.result.caption or host.board.gpu.info.label)
            self.plot_menus.said.connect(host.say)
            self.plot_menus.failed.connect(host.banner.show_message)
        self.plot_menus.adopt(panel, self._titles[name], getattr(panel, "provenance", None))

    @Slot(QWidget)
    def adopt_window(self, shown: QWidget) -> None:
        """Give the plots of a window beside this one their menus."""
        if self.plot_menus is not None:
            own = getattr(shown, "provenance", lambda: self._host.board.gpu.info.label)
            self.plot_menus.adopt(shown, shown.windowTitle(), own)


_WITHOUT_PLOTS = {spec.name for spec in PANELS if not spec.panel}  # they are there before plots are loaded
