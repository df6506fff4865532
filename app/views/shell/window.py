"""`MainWindow`: the traces of the shown board in the middle, the panels beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QEvent, QMimeData, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDesktopServices, QDragEnterEvent, QDropEvent, QPainter
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabWidget, QToolBar, QWidget

from ...engine.session.events import Open
from ...numbers import duration
from ...paths import resources
from ...sensors.sampler import SensorEvent
from ..context import Context
from ..control.confirm_bar import ConfirmBar
from ..control.switch import ControlSwitch
from ..file_dialogs import save_file
from ..monitor.panel import MonitorPanel
from ..monitor.readout import Readout
from ..monitor.window_marks import WindowMarks
from ..plots import theme
from ..plots.label import PlainLabel
from ..settings import Settings
from ..threads.tasks import LatestTask
from ..watched_board import WatchedBoard
from ..widgets import vbox
from .actions import Actions, Handler, every_action
from .badge import Badge
from .banner import Banner
from .board_menu import BoardMenu
from .copying import Copying
from .docks import Docks, placeholder
from .file_menus import FileMenus
from .file_opener import FileOpener
from .log import open_log_folder
from .notifications import Notifications
from .palette import Palette
from .panels import CHANNELS, PANELS, Known, Loaded, Panels, known_of, load_panels
from .placement import Placement
from .quit_bar import QuitBar
from .report_writer import ReportWriter
from .result_bar import ResultBar
from .services import Services
from .side_windows import SideWindows
from .start_offers import offer_left_over, offer_recovery
from .window_actions import ACTIONS, LENGTH_ACTIONS

if TYPE_CHECKING:
    from ..home.panel import HomePanel
    from ..monitor.lane_layout import Layout
    from ..monitor.strip import PowerStrip
    from ..plots.plot_menus import PlotMenus
    from .tour import Tour

EXAMPLE = "gemm.toml"


class MainWindow(QMainWindow):
    """Owns the services and the panels, and ends them when it closes."""

    panels_loaded = Signal()

    def __init__(self, services: Services, others: tuple[str, ...] = ()) -> None:
        """`others` are selectors of boards that are watched beside the one that is shown."""
        super().__init__()
        self.services = services
        self.boards, self.bridge, self.result = services.boards, services.bridge, services.result
        self._others = others
        board = self.board
        self.settings = Settings()
        self.panels: Panels = {}
        self.plot_menus: PlotMenus | None = None  # once the panels are there
        self.tour: Tour | None = None
        self.strip: PowerStrip | None = None  # once it was asked for
        self._to_open: tuple[Path, bool] | None = None  # a specification, and whether to start it
        self._closed = False
        self._asks = True  # before it closes, where something runs
        self.setWindowTitle(board.gpu.info.label)  # Qt adds the program's name
        self.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks
            | QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AnimatedDocks
        )
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.readout = Readout(board.gpu.channels)
        self.monitor = MonitorPanel(board.gpu, board.trace, self.readout, board.recorder)
        self.window_marks = WindowMarks(self.result, self.monitor.view, board)
        self.monitor.view.add_overlay(self._paint_alarms)
        self.banner = Banner()
        self.notifications = Notifications(self)
        self.confirm_bar = ConfirmBar(self.boards, self._control_in_sight)
        self.quit_bar = QuitBar(self.bridge)
        self._put_centre()
        self.dock_area = Docks(self, PANELS, self.screen().availableSize())
        self.dock_area.put(CHANNELS, self.readout)
        self.side_windows = SideWindows(self, self.boards, self.settings)
        self.reports = ReportWriter(self.services, self.settings, self)
        self.copying = Copying(self.panels, self.monitor, services.context, self)
        self._make_actions()
        self.actions_by_name[f"theme_{self.settings.theme}"].setChecked(True)
        self._placement = Placement(self, self.dock_area, self.settings)
        self._placement.restore()
        self._held = PlainLabel()  # how much the trace keeps
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addPermanentWidget(self._held)
        self._show_held()
        self._slow_timer = QTimer(self)
        self._slow_timer.timeout.connect(self._show_held)
        self._slow_timer.start(1000)
        self.monitor.view.setFocus()
        self._loader, self._asking = LatestTask(self), LatestTask(self)
        self._connect()
        QTimer.singleShot(2000, self._load_panels)  # a GPU that reports nothing must not keep the panels away

    def open_specification(self, path: Path, *, start: bool = False) -> None:
        """Hand a specification to the tuning panel, as soon as it is there."""
        self._to_open = (path, start)
        if "tune" in self.panels:
            self._open_waiting()

    @Slot()
    def _open_waiting(self) -> None:
        if self._to_open is not None and "tune" in self.panels:
            (path, start), self._to_open = self._to_open, None
            self.dock_area.bring("front", "tune")
            self.panels["tune"].open(path, start=start)

    @property
    def board(self) -> WatchedBoard:
        """The board that is shown."""
        return self.boards.current

    @property
    def docks(self) -> dict[str, QDockWidget]:
        """The docks by name."""
        return self.dock_area.by_name

    # --- building -----------------------------------------------------------------------------------------------------

    def _put_centre(self) -> None:
        centre = QWidget()
        vbox(self.quit_bar, self.banner, self.confirm_bar, (self.monitor, 1), of=centre, margins=0, spacing=0)
        self.setCentralWidget(centre)

    def _make_actions(self) -> None:
        toolbar = QToolBar("Traces")
        toolbar.setObjectName("toolbar")
        toolbar.setMovable(False)
        self.badge = Badge(self.boards)
        toolbar.addWidget(self.badge)
        self.addToolBar(toolbar)
        self.result_bar = ResultBar(self.result, self.bridge, lambda: self.dock_area.bring("queue"))
        self.addToolBarBreak()
        self.addToolBar(self.result_bar)
        self.actions_made = Actions(ACTIONS, self._handlers(), self, self.menuBar(), toolbar, self.monitor)
        self.actions_by_name = self.actions_made.by_name
        self.control_switch = ControlSwitch(self.board, self.bridge)
        self._of_control = (toolbar.addSeparator(), toolbar.addWidget(self.control_switch))
        self._show_control_switch()
        for name in ("undo", "redo"):
            self.actions_by_name[name].setEnabled(False)  # until there is a form
        self.palette_of_actions = Palette(self)
        submenus = self.actions_made.submenus
        self.files = FileMenus(self, self.settings, submenus["recent"], submenus["examples"])
        self.file_opener = FileOpener(self)

    def _handlers(self) -> dict[str, Handler]:
        """What each action does that is not the button of a panel; a handler is given the checked state."""
        view, docks, beside = self.monitor.view, self.dock_area, self.side_windows
        handlers: dict[str, Handler] = {
            "open": lambda _: self.choose_file(),
            "write_readings": lambda _: self.monitor.menu.ask_readings(),
            "write_picture": lambda _: self.monitor.menu.ask_picture(),
            "settings": lambda _: beside.show_settings(),
            "undo": lambda _: self.panels["tune"].form.history.undo(),
            "redo": lambda _: self.panels["tune"].form.history.redo(),
            "copy_command": lambda _: self.copying.copy_command(),
            "copy_python": lambda _: self.copying.copy_python(),
            "report": lambda _: self.ask_report(),
            "quit": lambda _: self.close(),
            "pause": lambda _: self.bridge.activity.pause_or_resume(),
            "stop": lambda _: self.bridge.activity.stop(),
            "record": lambda _: self.board.recorder.toggle(),
            "record_to": lambda _: self.monitor.record.ask_file() if self.monitor.record is not None else None,
            "lanes": lambda _: self.monitor.lanes_menu.show_window(),
            "alarms": lambda _: beside.show_alarms(),
            "hold": view.hold,
            "zoom_in": lambda _: view.zoom(0.5),
            "zoom_out": lambda _: view.zoom(2.0),
            "zoom_span": lambda _: view.show_span(),
            "clear_span": lambda _: view.set_span(None),
            "strip": self.show_strip,
            "wide_traces": lambda _: docks.share(0.30),
            "wide_panels": lambda _: docks.share(0.60),
            "full_screen": self.set_full_screen,
            "go_traces": lambda _: view.setFocus(Qt.FocusReason.ShortcutFocusReason),
            "reset_layout": lambda _: self.reset_layout(),
            "sensors": lambda _: beside.show_sensors(),
            "scores": lambda _: beside.show_scores(self.panels["tune"].cache if "tune" in self.panels else None),
            "palette": lambda _: self.find_action(),
            "shortcuts": lambda _: beside.show_help(),
            "tour": lambda _: self.begin_tour(),
            "log_folder": lambda _: open_log_folder(),
            "diagnostics": lambda _: self.copy_diagnostics(),
            "about": lambda _: beside.show_about(),
        }
        for name, length_s in LENGTH_ACTIONS.items():
            handlers[name] = lambda _, length_s=length_s: view.set_length(length_s)  # type: ignore[misc]
        for name in docks.by_name:
            handlers[f"go_{name}"] = lambda _, name=name: docks.go_to(name)  # type: ignore[misc]
            handlers[f"toggle_{name}"] = lambda shown, name=name: docks.set_shown(name, shown)  # type: ignore[misc]
        for mode in ("system", "light", "dark"):
            handlers[f"theme_{mode}"] = lambda _, mode=mode: self.set_theme(mode)  # type: ignore[misc]
        return handlers

    def _connect(self) -> None:
        self.bridge.fault.connect(self.banner.show_fault)
        self.bridge.fit_finished.connect(self.monitor.show_fit)
        self.bridge.activity.changed.connect(self._activity_changed)
        self._activity_changed()
        self.quit_bar.confirmed.connect(self.close, Qt.ConnectionType.QueuedConnection)
        self.boards.sensor_event.connect(self._sensor_event)
        self.boards.board_changed.connect(self._board_changed)
        self.boards.added.connect(self._board_added)
        self.boards.removed.connect(self._overlay_boards)
        self.boards.failed.connect(self.banner.show_message)
        self._asking.done.connect(self._show_known)
        self._asking.failed.connect(self.bridge.report)
        self.monitor.saved.connect(self._written)
        self.monitor.menu.said.connect(self._say)
        self.monitor.failed.connect(self.banner.show_message)
        for board in self.boards.all:
            self._listen_to(board)
        self.notifications.follow(self.bridge, self.banner.show_message)
        self.monitor.view.window_changed.connect(self._window_of_time_changed)
        self.monitor.view.first_frame.connect(self._load_panels, Qt.ConnectionType.QueuedConnection)
        self.files.chosen.connect(self.open_specification)
        self.file_opener.to_tune.connect(self.open_specification)
        self.file_opener.to_model.connect(self._open_log)
        self.file_opener.failed.connect(self.banner.show_message)
        self.reports.started.connect(self.statusBar().showMessage)
        self.reports.written.connect(self._report_written)
        self.reports.failed.connect(self.banner.show_message)
        self.copying.said.connect(self._say)
        self.copying.failed.connect(self.banner.show_message)
        self.side_windows.shown.connect(self._adopt_side_window)
        self.side_windows.theme_chosen.connect(self.set_theme)
        self.side_windows.reset_asked.connect(self.reset_everything)
        self.dock_area.changed.connect(self._docks_changed)
        self._docks_changed()
        self._loader.done.connect(self._panels_imported)
        self._loader.failed.connect(self._panels_failed)
        self.panels_loaded.connect(self._open_waiting)

    # --- the panels, once the window is up ----------------------------------------------------------------------------

    @Slot()
    def _load_panels(self) -> None:
        """Import the panels off Qt's thread: plots and models take longer to load than the window to open."""
        if not self.panels and not self._closed:
            self._loader.run(lambda _stop: load_panels(self.services))

    @Slot(object)
    def _panels_imported(self, loaded: Loaded) -> None:
        self._show_known(loaded.known)
        self._make_panels(loaded, list(loaded.classes.items()), self.services.context())
        self._board_menu = BoardMenu(self.actions_made.submenus["gpus"], self.boards, loaded.gpus)

    def _make_panels(
        self, loaded: Loaded, waiting: list[tuple[str, Callable[[Context], QWidget]]], context: Context
    ) -> None:
        """One panel per turn of the event loop, so that no turn is long."""
        if self._closed:
            return
        name, make = waiting.pop(0)
        panel = make(context)
        self.panels[name] = panel  # type: ignore[literal-required]
        self.dock_area.put(name, panel)
        if waiting:
            QTimer.singleShot(0, self, lambda: self._make_panels(loaded, waiting, context))
        else:
            self._panels_made(loaded)

    @Slot(str, str)
    def _panels_failed(self, what: str, remedy: str) -> None:
        """The traces continue; the docks of the panels say that they are missing."""
        for spec in PANELS:
            if spec.panel:
                self.dock_area.put(spec.name, placeholder("Not loaded: see the message above the traces"))
        self.banner.show_message(what, remedy)

    def _panels_made(self, loaded: Loaded) -> None:
        tune, sessions = self.panels["tune"], self.panels["sessions"]
        self.actions_made.connect_buttons(cast(Mapping[str, QWidget], self.panels), self.dock_area.bring)
        tune.file_opened.connect(self.settings.add_recent)
        tune.form.history.changed.connect(self._history_changed)
        self._history_changed()
        inspector = self.panels["inspector"]
        inspector.report_asked.connect(self.ask_report)
        self.reports.started.connect(inspector.answer.report_started)
        self.reports.written.connect(inspector.answer.report_written)
        self.reports.failed.connect(inspector.answer.report_failed)
        self.actions_made.submenus["choose"].addActions(inspector.chooser.menu.actions())
        sessions.open_asked.connect(self.open_session)
        sessions.resume_asked.connect(self.resume_session)
        sessions.compare_asked.connect(self.compare_sessions)
        self.panels["queue"].open_asked.connect(self.open_session)
        self.panels["queue"].compare_asked.connect(self.compare_sessions)
        sessions.report_asked.connect(self.reports.write_stored)
        sessions.specification_met.connect(self.open_specification)
        sessions.said.connect(self._say)
        sessions.listed.connect(self.panels["home"].refresh_soon)
        self._connect_home(self.panels["home"])
        roofline = self.panels["roofline"]
        roofline.session_opened.connect(self._bring_roofline)
        sessions.roofline_resume_asked.connect(roofline.measuring.resume)
        sessions.roofline_resume_asked.connect(self._bring_roofline)
        self._overlay_boards()
        offer_recovery(
            self.banner,
            loaded.sessions,
            self.board.gpu.info.label,
            self.settings,
            self.open_session,
            self.resume_session,
        )
        self._adopt_plots()
        self.dock_area.changed.connect(
            self._adopt_plots, Qt.ConnectionType.QueuedConnection
        )  # some are made when shown
        self.setAcceptDrops(True)
        for selector in self._others:
            self.boards.watch(selector)
        if self.board.gpu.info.source == "nvml":
            self.boards.watch_real()
        self.panels_loaded.emit()

    def _connect_home(self, home: HomePanel) -> None:
        home.watch_asked.connect(self._watch)
        home.example_asked.connect(self._tune_example)
        home.file_asked.connect(self.file_opener.choose)
        home.recent_file_asked.connect(self.file_opener.open)
        home.session_asked.connect(self.open_session)
        home.resume_asked.connect(self.resume_session)

    @Slot()
    def _watch(self) -> None:
        self.dock_area.bring("boards")
        self.monitor.view.setFocus()

    @Slot()
    def _tune_example(self) -> None:
        self.open_specification(resources() / "examples" / EXAMPLE, start=True)

    @Slot(object)
    def _open_log(self, path: Path) -> None:
        self.dock_area.bring("model")
        self.panels["model"].add.open(path)

    @Slot(int)
    def open_session(self, session: int) -> None:
        """Show a stored session's results."""
        self.bridge.submit(Open(session))
        self.dock_area.bring("front")

    @Slot(object)
    def compare_sessions(self, sessions: tuple[int, ...]) -> None:
        """Compare exactly these stored sessions."""
        self.dock_area.bring("compare")
        self.panels["compare"].compare(sessions)

    @Slot(int)
    def resume_session(self, session: int) -> None:
        """Continue a stored session."""
        self.dock_area.bring("front", "tune")
        self.panels["tune"].open_session(session)

    # --- slots --------------------------------------------------------------------------------------------------------

    @Slot(object, object)
    def _sensor_event(self, board: WatchedBoard, event: SensorEvent) -> None:
        message = event.message if board is self.board else f"{board.gpu.info.label}: {event.message}"
        if event.kind in ("lost", "failed"):
            self.banner.show_message(message)
        else:
            self._say(message)

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        """Show another board's traces and facts. Result, draft, layout and what runs stay as they are."""
        gpu = board.gpu
        self.setWindowTitle(gpu.info.label)
        self.monitor.show_board(gpu, board.trace)
        if self.monitor.record is not None:
            self.monitor.record.show_board(board.recorder, gpu.info)
        if self.strip is not None:
            self.strip.show_board(gpu, board.trace)
        self._overlay_boards()
        self._recorder_changed()
        self.window_marks.show_board(board)
        self.control_switch.show_board(board)
        self._show_control_switch()
        self._show_held()
        services = self.services
        self._asking.run(lambda _stop: known_of(services.store, board))

    def _show_control_switch(self) -> None:
        for action in self._of_control:
            action.setVisible(self.board.gpu.info.source != "recorded")

    def _listen_to(self, board: WatchedBoard) -> None:
        """Say what any board raises and what was recorded of it, whichever is shown."""
        board.recorder.saved.connect(self._written)
        board.recorder.failed.connect(self.banner.show_message)
        board.recorder.changed.connect(self._recorder_changed)
        board.alarms.raised.connect(self._alarm_raised)

    @Slot(object)
    def _board_added(self, board: WatchedBoard) -> None:
        self._listen_to(board)
        self._overlay_boards()

    def _paint_alarms(self, painter: QPainter, layout: Layout, bounds: tuple[int, int], colours: theme.Colours) -> None:
        self.board.alarms.paint(painter, layout, bounds, colours)

    @Slot(object)
    def _show_known(self, known: Known) -> None:
        """What was kept of the shown board: settings that a crash left, and the fit that estimates its voltage."""
        offer_left_over(self.banner, known.left_over, known.board.gpu, self.bridge.submit)
        if known.fit is not None and known.board is self.board:
            from ...engine.models.voltage_estimate import VoltageEstimate

            self.monitor.show_estimate(VoltageEstimate.of(*known.fit, known.board.gpu.info))

    @Slot(str)
    def _say(self, words: str) -> None:
        self.statusBar().showMessage(words, 8000)

    @Slot()
    def _show_held(self) -> None:
        """How often the sensors are read, and how much the trace holds."""
        trace = self.board.trace
        held = duration(max(0, trace.last_ns - trace.first_ns) / 1e9)
        speed = self.board.gpu.clock.speed
        pace = "" if speed == 1.0 else f"{speed:g} times as fast as real time · "
        self._held.setText(f"{pace}{1 / self.board.sampler.interval_s:.0f} readings/s · {held} kept, 8 h at most ")

    @Slot(object)
    def _written(self, path: Path | str) -> None:
        self.statusBar().showMessage(f"Written: {path}", 15000)

    @Slot(object)
    def _report_written(self, path: Path) -> None:
        self._written(path)
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.resolve()))):
            self.banner.show_message(f"Written: {path}; no browser could be started", "open the file with one")

    @Slot(str)
    def _alarm_raised(self, line: str) -> None:
        self.banner.show_message(line)
        self.notifications.show_message(line)
        self.monitor.view.update()

    @Slot()
    def _recorder_changed(self) -> None:
        recorder = self.board.recorder
        self.actions_by_name["record"].setEnabled(not recorder.busy)
        self.actions_by_name["record"].setChecked(recorder.recording)
        self.actions_by_name["record_to"].setEnabled(not recorder.busy and not recorder.recording)

    @Slot()
    def _window_of_time_changed(self) -> None:
        window = self.monitor.view.window_of_time
        self.actions_by_name["hold"].setChecked(not window.live)
        for name, length_s in LENGTH_ACTIONS.items():
            action = self.actions_by_name[name]
            group = action.actionGroup()
            group.setExclusive(False)
            action.setChecked(abs(window.length_s - length_s) < 1e-6 * length_s)
            group.setExclusive(True)

    @Slot()
    def _docks_changed(self) -> None:
        for name, dock in self.docks.items():
            self.actions_by_name[f"toggle_{name}"].setChecked(not dock.isHidden())

    def _control_in_sight(self, board: WatchedBoard) -> bool:
        """The Control panel shows the countdown of the shown board itself."""
        control = self.panels.get("control")
        return board is self.board and control is not None and not control.visibleRegion().isEmpty()

    def set_theme(self, mode: theme.Mode) -> None:
        """Follow the system, or be light or dark; remembered."""
        theme.set_mode(mode)
        self.settings.theme = mode

    def set_full_screen(self, full: bool) -> None:
        """Nothing but the window on its screen, or as it was before."""
        states = self.windowState()
        screen = Qt.WindowState.WindowFullScreen
        self.setWindowState(states | screen if full else states & ~screen)

    def show_strip(self, shown: bool) -> None:
        """A small window above all others with the board's power; or close it."""
        if not shown:
            if self.strip is not None:
                self.strip.close()
            return
        if self.strip is None:
            from ..monitor.strip import PowerStrip  # imported late: few ask for it

            self.strip = PowerStrip(self.board.gpu, self.board.trace, self.settings)
            self.strip.opened.connect(self.notifications.bring_window)
            self.strip.closed.connect(self._strip_closed)
        self.strip.show()

    @Slot()
    def _strip_closed(self) -> None:
        self.actions_by_name["strip"].setChecked(False)

    def reset_layout(self) -> None:
        """Every dock where it was at the very first start."""
        self.dock_area.reset()
        self._say("The layout is as at the first start")

    def reset_everything(self) -> None:
        """Layout and colours as at the first start; what is remembered is gone already."""
        self.actions_by_name["theme_system"].trigger()
        self.reset_layout()
        self.monitor.lanes_menu.look_again()
        if "front" in self.panels:
            self.panels["front"].show_menu.look_again()

    def begin_tour(self) -> None:
        """Show the first steps, from the first one."""
        from .tour import Tour, first_steps

        if self.tour is None:
            steps = first_steps(self.board.gpu.info.source, self.monitor, self._bring, self._open_example)
            self.tour = Tour(self, steps)
            self.dock_area.changed.connect(self.tour.stay_in_sight, Qt.ConnectionType.QueuedConnection)
        self.tour.begin()

    def _bring(self, name: str) -> QDockWidget:
        self.dock_area.bring(name)
        return self.docks[name]

    def _open_example(self) -> None:
        self.open_specification(resources() / "examples" / EXAMPLE)

    def copy_diagnostics(self) -> None:
        """Versions, board and sensors onto the clipboard."""
        from .diagnostics import copy_diagnostics  # imported late: few need it

        copy_diagnostics(self.board.gpu)
        self._say("Diagnostics copied: no UUID and no serial number is in them")

    def find_action(self) -> None:
        """Open the palette, or close it."""
        if self.palette_of_actions.isVisible():
            self.palette_of_actions.close_it()
        else:
            self.palette_of_actions.open(every_action(self.menuBar()))

    def choose_file(self) -> None:
        """Choose what to tune."""
        if "tune" in self.panels:
            self.dock_area.bring("tune")
            self.panels["tune"].choose_file()

    @Slot()
    def _adopt_plots(self) -> None:
        """Give every plot its menu."""
        from ..plots.plot_menus import PlotMenus  # imported late: plots come with the panels

        if self.plot_menus is None:
            self.plot_menus = PlotMenus(self, lambda: self.result.caption or self.board.gpu.info.label)
            self.plot_menus.said.connect(self._say)
            self.plot_menus.failed.connect(self.banner.show_message)
            self.plot_menus.more = [self.actions_by_name[name] for name in ("copy_command", "copy_python")]
            self.panels["front"].pages.made.connect(self._adopt_plots)  # figures that are made when asked for
        for name, panel in cast(Mapping[str, QWidget], self.panels).items():
            self.plot_menus.adopt(panel, self.docks[name].windowTitle(), getattr(panel, "provenance", None))

    @Slot()
    def _activity_changed(self) -> None:
        """Whatever runs is paused and stopped from anywhere."""
        activity = self.bridge.activity
        self.actions_by_name["pause"].setEnabled(activity.can_pause)
        self.actions_by_name["stop"].setEnabled(activity.busy and not activity.stopping)

    @Slot()
    def _bring_roofline(self) -> None:
        self.dock_area.bring("roofline")

    @Slot(QWidget)
    def _adopt_side_window(self, window: QWidget) -> None:
        if self.plot_menus is not None:
            own = getattr(window, "provenance", lambda: self.board.gpu.info.label)
            self.plot_menus.adopt(window, window.windowTitle(), own)

    @Slot()
    def _overlay_boards(self, *_: object) -> None:
        """Draw the power of the other boards that are watched beside that of this one."""
        others = [board for board in self.boards.all if board is not self.board]
        self.monitor.view.set_boards([(board.gpu, board.trace) for board in others])

    @Slot()
    def _history_changed(self) -> None:
        history = self.panels["tune"].form.history
        self.actions_by_name["undo"].setEnabled(history.can_undo)
        self.actions_by_name["redo"].setEnabled(history.can_redo)

    def ask_report(self) -> None:
        """Choose where the report of the shown session goes."""
        plan = self.result.plan
        if plan is None:
            self.banner.show_message("there is no session to report", "run one, or open one under Sessions")
        else:
            save_file(self, "Report", f"{plan.title}-report.html", "HTML (*.html)", self.reports.write)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere."""
        if _files_of(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """A specification is opened to be tuned; recordings are kept as sessions, and the last one is shown."""
        if "sessions" in self.panels:
            event.acceptProposedAction()
            self.dock_area.bring("sessions")
            self.panels["sessions"].import_files(_files_of(event.mimeData()))

    # --- from start to end --------------------------------------------------------------------------------------------

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.WindowStateChange:
            self.actions_by_name["full_screen"].setChecked(self.isFullScreen())
        super().changeEvent(event)

    def close_at_once(self) -> None:
        """Close without asking, whatever runs: its session can be resumed."""
        self._asks = False
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._closed and self._asks and self.quit_bar.ask():
            event.ignore()
            return
        if not self._closed:
            self._closed = True
            self._placement.keep()
            if self.strip is not None:
                self.strip.close()
                self.strip.deleteLater()
            self.settings.sync()
            self.actions_made.disconnect_buttons()
            self.dock_area.stop_watching()
            self.monitor.shutdown()
            self._loader.shutdown()
            self._asking.shutdown()
            self.side_windows.shutdown()
            self.reports.shutdown()
            self.file_opener.shutdown()
            self.copying.shutdown()
            if self.plot_menus is not None:
                self.plot_menus.shutdown()
            for panel in self.panels.values():
                shutdown = getattr(panel, "shutdown", None)
                if shutdown is not None:
                    shutdown()
            self.services.close()
        super().closeEvent(event)


def _files_of(data: QMimeData) -> list[Path]:
    """The files of a drag, none where it carries something else."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return [path for path in paths if path.is_file()]
