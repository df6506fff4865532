"""`MainWindow`: the header, the result bar and the workspaces; what it is made of, and how it opens and closes.

What each of the window's actions does that is not the button of a panel. A handler is given the checked state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QPoint, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QAction, QCloseEvent, QDesktopServices, QDragEnterEvent, QDropEvent, QShowEvent
from PySide6.QtWidgets import QMainWindow, QMenu, QToolBar, QWidget

from ...base.paths import resources
from ...engine.session import events
from ..control.confirm_bar import ConfirmBar
from ..shared import theme
from ..shared.panel import end_all
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.turns import Frames, InParts
from ..shared.watched_boards import WatchedBoard
from ..shared.widgets import button, lies_behind, save_file, vbox
from .banner import Banner, QuitBar
from .copying import Copying
from .file_menus import FileMenus, FileOpener
from .header import BoardMenu, Header, HeldLabel, ResultBar
from .hints import Hints
from .host import Host
from .live_traces import LiveTraces
from .loading import Known, Loaded, Panels, QtTypes, load_panels
from .log import open_log_folder
from .notices import Notices, offer_left_over, offer_recovery
from .notifications import BoardNews, Notifications
from .palette import Entry, Palette
from .panels import CHANNELS, INSPECTOR, PANELS, TRACES, WORKSPACES
from .report_writer import ReportWriter
from .services import Services
from .side_windows import SideWindows
from .tune_states import TUNE, TuneStates
from .window_actions import ACTIONS, LENGTH_ACTIONS, Actions, Handler, every_action
from .wiring import Wiring
from .workspaces import Placement, Workspaces

if TYPE_CHECKING:
    from ..watch.strip import PowerStrip

_NARROW, _WIDE = 0.30, 0.60  # parts of a workspace's width for its docks


def handlers_of(window: Host) -> dict[str, Handler]:
    """By the names of the actions."""
    places, beside, panels, activity = window.workspaces, window.side_windows, window.panels, window.bridge.activity
    handlers: dict[str, Handler] = {
        "open": lambda _: window.file_opener.choose(),
        "open_folder": lambda _: window.file_opener.choose_folder(),
        "new_specification": lambda _: beside.begin_specification(),
        "new_operator": lambda _: beside.begin_specification("example", "mm"),
        "new_program": lambda _: beside.begin_specification("command"),
        "new_service": lambda _: beside.begin_specification("example", "vllm"),
        "other_machine": lambda _: window.ask_machine(),
        "edit_specification": lambda _: window.edit_specification(),
        "copy_command": lambda _: window.copying.copy_command(),
        "copy_python": lambda _: window.copying.copy_python(),
        "settings": lambda _: beside.show_settings(),
        "undo": lambda _: panels["tune"].form.history.undo(),
        "redo": lambda _: panels["tune"].form.history.redo(),
        "pool_here": lambda _: panels["tune"].runs_on.ask_boards() if "tune" in panels else None,
        "pool_connect": lambda _: panels["tune"].runs_on.ask_scheduler() if "tune" in panels else None,
        "report": lambda _: window.ask_report(),
        "quit": lambda _: window.close(),
        "pause": lambda _: activity.pause_or_resume(),
        "stop": lambda _: activity.stop(),
        "alarms": lambda _: beside.show_alarms(),
        "meters": lambda _: beside.show_meters(),
        "strip": window.show_strip,
        "narrow_docks": lambda _: places.share(_NARROW),
        "wide_docks": lambda _: places.share(_WIDE),
        "dismiss": lambda _: window.notices.dismiss(),
        "notices": lambda _: beside.show_notices(),
        "full_screen": window.set_full_screen,
        INSPECTOR: window.show_inspector,
        "live_traces": places.set_strip,
        "reset_layout": lambda _: window.reset_layout(),
        "sensors": lambda _: beside.show_sensors(),
        "palette": lambda _: window.find_action(),
        "shortcuts": lambda _: beside.show_help(),
        "log_folder": lambda _: open_log_folder(),
        "diagnostics": lambda _: window.copy_diagnostics(),
        "doctor": lambda _: beside.show_doctor(),
        "savings": lambda _: beside.show_savings(),
        "about": lambda _: beside.show_about(),
        **_of_traces(window),
    }
    for workspace in WORKSPACES:
        handlers[f"workspace_{workspace.name}"] = _always(places.show_workspace, workspace.name)
    for panel in PANELS:
        handlers[f"go_{panel.name}"] = _always(places.go_to, panel.name)
        handlers[f"toggle_{panel.name}"] = _with_state(places.set_dock, panel.name)
    for mode in ("system", "light", "dark"):
        handlers[f"theme_{mode}"] = _always(window.set_theme, mode)
    return handlers


def _of_traces(window: Host) -> dict[str, Handler]:
    """What is done with the traces is done where it is seen: in Watch. Their length is that of the strip, too."""
    monitor, view = window.monitor, window.monitor.view

    def watching(do: Handler) -> Handler:
        def handler(checked: bool) -> None:
            if not monitor.isVisible():
                window.workspaces.bring(TRACES)
            do(checked)

        return handler

    def show_length(length_s: float) -> None:
        if not monitor.isVisible() and not window.workspaces.shows_strip:
            window.workspaces.bring(TRACES)
        window.traces.set_length(length_s)

    handlers: dict[str, Handler] = {
        "write_readings": watching(lambda _: monitor.menu.ask_readings()),
        "write_picture": watching(lambda _: monitor.menu.ask_picture()),
        "record": lambda _: window.board.recorder.toggle(),
        "record_to": lambda _: monitor.record.ask_file() if monitor.record is not None else None,
        "lanes": watching(lambda _: monitor.lanes_menu.show_window()),
        "hold": watching(view.hold),
        "zoom_in": watching(lambda _: view.zoom(0.5)),
        "zoom_out": watching(lambda _: view.zoom(2.0)),
        "zoom_span": watching(lambda _: view.show_span()),
        "clear_span": watching(lambda _: view.set_span(None)),
    }
    for name, length_s in LENGTH_ACTIONS.items():
        handlers[name] = _always(show_length, length_s)
    return handlers


def _always(do: Callable[..., object], what: object) -> Handler:
    """A handler that does the same whatever the checked state."""
    return lambda _: do(what)


def _with_state(do: Callable[..., object], what: object) -> Handler:
    return lambda checked: do(what, checked)


EXAMPLE = "gemm.toml"
_LATEST_MS = 2000  # a GPU that reports nothing must not keep the panels away


class MainWindow(QMainWindow, InParts):
    """Owns the services and the panels, and ends them when it closes."""

    panels_loaded = Signal()

    def __init__(self, services: Services, others: tuple[str, ...] = (), *, at_once: bool = True) -> None:
        """`others` are selectors of boards that are watched beside the one that is shown."""
        super().__init__()
        self.services = services
        self.boards, self.bridge, self.result = services.boards, services.bridge, services.result
        self._others = others
        self.settings = Settings()
        self.strip: PowerStrip | None = None  # once it was asked for
        self._to_open: tuple[Path, bool] | None = None  # a specification, and whether to start it
        self._loaded: Loaded | None = None  # until the panels are there: it holds the board that was first
        self._ready = self._closed = False
        self._asks = True  # before it closes, where something runs
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """All that is there before the panels are loaded."""
        self.panels = Panels(self)
        self.traces = LiveTraces(self.boards, self.services.meters, self.result, self.bridge)
        self.monitor = self.traces.monitor
        yield
        self.workspaces = Workspaces(self.panels, self.traces.strip, self.screen().availableSize(), self.settings)
        self.frames = Frames(self)
        for dock in (self, *self.workspaces.docks.values()):
            self.frames.follow(dock)
        yield
        self.quit_bar, held = QuitBar(self.bridge), HeldLabel(self.boards)
        self.statusBar().setSizeGripEnabled(False)
        self.notices = Notices(self.isActiveWindow, self)
        self.all_notices = button("Notices", "All that was reported, with the time of each")
        self.all_notices.setFlat(True)
        for widget in (self.all_notices, held):
            self.statusBar().addPermanentWidget(widget)
        self.banner = Banner(self.notices, self.statusBar(), self.all_notices)
        self.confirm_bar = ConfirmBar(self.boards, self._control_in_sight)
        self.notifications = Notifications(self, self.notices)
        self.side_windows = SideWindows(self, self.services, self.settings, self.notices)
        self.reports = ReportWriter(self.services, self.settings, self)
        self.copying = Copying(self.panels, self.services.context, lambda: self.monitor.view.window_of_time.length_s)
        self.file_opener = FileOpener(self)
        yield
        self._put_together()
        yield
        self._make_actions()
        yield
        self.news = BoardNews(self.services, self.notices, self.notifications, self.actions_by_name)
        self.wiring = Wiring(self, self)
        self.hints = Hints(self, self)
        self.panels.add(TRACES, self.monitor)
        self._types = QtTypes(self)
        self._loader = LatestTask(self, self._panels_imported, self._panels_failed)
        self._connect()
        self._board_changed(self.board)
        yield
        self._placement = Placement(self, self.workspaces, self.settings)
        self._placement.restore()
        QTimer.singleShot(_LATEST_MS, self._load_panels)

    def _put_together(self) -> None:
        self.header = Header(self.boards, self.bridge)
        self.badge, self.control_switch = self.header.badge, self.header.control_switch
        places = self.workspaces
        self.result_bar = ResultBar(
            self.result, self.bridge, lambda: places.bring("queue"), lambda: places.go_to(INSPECTOR)
        )
        self.addToolBar(self.header)
        self.addToolBarBreak()
        self.addToolBar(self.result_bar)
        centre = QWidget()
        bars = (self.quit_bar, self.confirm_bar)
        vbox(*bars, (self.workspaces, 1), of=centre, margins=0, spacing=0)
        self.setCentralWidget(centre)

    def _make_actions(self) -> None:
        of_traces = QToolBar("Traces")
        of_traces.setObjectName("toolbar")
        of_traces.setMovable(False)
        self.workspaces.by_name["watch"].addToolBar(of_traces)
        self.actions_made = Actions(ACTIONS, handlers_of(self), self, self.menuBar(), of_traces, self.monitor)
        self.actions_by_name: dict[str, QAction] = self.actions_made.by_name
        self.actions_by_name[f"theme_{self.settings.theme}"].setChecked(True)
        for name in ("undo", "redo"):
            self.actions_by_name[name].setEnabled(False)  # until there is a form
        self.header.offer(self.actions_by_name["palette"], self.actions_by_name[INSPECTOR])
        drawers = [*self.workspaces.by_name[TUNE].docks.by_name, ""]
        self.tune_states = TuneStates(
            self.workspaces,
            self.bridge,
            self.result,
            [self.actions_by_name[f"toggle_{name}" if name else "live_traces"] for name in drawers],
        )
        self.workspaces.by_name[TUNE].addToolBar(self.tune_states)
        submenus = self.actions_made.submenus
        beyond = [self.actions_by_name[name] for name in ("other_machine", "pool_here", "pool_connect")]
        self.files = FileMenus(self, self.settings, submenus["recent"], submenus["examples"], beyond)

    def _connect(self) -> None:
        self.notices.follow(self.bridge)
        self.notices.changed.connect(self._count_notices)
        self.all_notices.clicked.connect(self.side_windows.show_notices)
        self.bridge.activity.changed.connect(self._activity_changed)
        self._activity_changed()
        self.quit_bar.confirmed.connect(self.close, Qt.ConnectionType.QueuedConnection)
        self.boards.board_changed.connect(self._board_changed)
        self.news.alarmed.connect(self.traces.update)
        self.news.known.connect(self._show_known)
        self.monitor.saved.connect(self.notices.written)
        self.monitor.menu.said.connect(self.notices.inform)
        self.monitor.failed.connect(self.notices.fail)
        self.monitor.view.window_changed.connect(self._window_of_time_changed)
        self.traces.strip.view.menu_asked.connect(self._open_strip_menu)
        self.traces.first_frame.connect(self._load_panels, Qt.ConnectionType.QueuedConnection)
        self.notifications.follow(self.bridge)
        self.files.chosen.connect(self.open_specification)
        self.reports.started.connect(self.notices.inform)
        self.reports.written.connect(self._report_written)
        self.reports.failed.connect(self.notices.fail)
        self.copying.said.connect(self.notices.inform)
        self.copying.failed.connect(self.notices.fail)
        self.file_opener.to_tune.connect(self.open_specification)
        self.file_opener.to_model.connect(self.open_log)
        self.file_opener.to_log.connect(self.side_windows.show_log)
        self.file_opener.to_program.connect(self.open_program)
        self.file_opener.to_table.connect(self.side_windows.show_table)
        self.file_opener.apart.connect(self._keep_several)
        self.side_windows.fit_asked.connect(self.open_log)
        self.side_windows.table_ready.connect(self._keep_table)
        self.file_opener.failed.connect(self.notices.fail)
        self.side_windows.shown.connect(self.wiring.adopt_window)
        self.side_windows.specification_ready.connect(self.open_specification)
        self.side_windows.theme_chosen.connect(self.set_theme)
        self.side_windows.find_asked.connect(self.find_action)
        self.side_windows.reset_asked.connect(self.reset_everything)
        self.workspaces.changed.connect(self._in_sight_changed)
        self._in_sight_changed()
        self._types.made.connect(self._import_panels)
        self.workspaces.settled.connect(self._panels_there)

    @cached_property
    def search(self) -> Palette:
        """Created on first use."""
        return Palette(self)

    @property
    def board(self) -> WatchedBoard:
        """The board that is shown."""
        return self.boards.current

    # --- the panels, once the window is up ----------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """The panels are loaded after the first traces; at once where the workspace in sight has none."""
        super().showEvent(event)
        if not self.monitor.isVisible() and not self.workspaces.shows_strip:
            QTimer.singleShot(0, self._load_panels)

    @Slot()
    def _load_panels(self) -> None:
        if self._loaded is None and not self._ready and not self._loader.busy and not self._closed:
            self._types.make()

    @Slot()
    def _import_panels(self) -> None:
        """Import the panels off Qt's thread: plots and models take longer to load than the window to open."""
        if not self._closed:
            self._loader.run(lambda _stop: load_panels(self.services))
            self.panels.offer(CHANNELS, self.traces.make_readout)  # half of the time it takes is types of Qt's
            self.workspaces.make_waiting()

    @Slot(object)
    def _panels_imported(self, loaded: Loaded) -> None:
        if self._closed:
            return
        self._loaded = loaded
        self._show_known(loaded.known)
        self._board_menu = BoardMenu(self.actions_made.submenus["gpus"], self.boards, loaded.gpus)
        self.panels.load(loaded.classes, self.services.context())
        self.workspaces.make_waiting()

    @Slot(str, str)
    def _panels_failed(self, what: str, remedy: str) -> None:
        """The traces continue; the other pages say that they are missing."""
        self.workspaces.say("Not loaded: see the message below the window")
        self.notices.fail(what, remedy)

    @Slot()
    def _panels_there(self) -> None:
        """Those of the first workspace in sight, and those that are made whatever is."""
        if self._ready or self._loaded is None:
            return
        self._ready = True
        sessions, gpu = self._loaded.sessions, self.board.gpu
        self._loaded = None
        offer_recovery(
            self.notices, sessions, gpu.info.label, self.settings, self.open_session, self.resume_session, self.bridge
        )
        self.setAcceptDrops(True)
        for selector in self._others:
            self.boards.watch(selector)
        if gpu.info.live:
            self.boards.watch_real()
        self.panels_loaded.emit()
        self._open_waiting()

    # --- what is opened -----------------------------------------------------------------------------------------------

    @Slot(object)
    def open_specification(self, path: Path, *, start: bool = False) -> None:
        """Hand a specification to the tuning panel, as soon as it is there."""
        self._to_open = (path, start)
        self.workspaces.bring("front", "tune")
        self._open_waiting()

    def _open_waiting(self) -> None:
        if self._to_open is not None and "tune" in self.panels:
            (path, start), self._to_open = self._to_open, None
            self.panels["tune"].open(path, start=start)

    @Slot(int)
    def open_session(self, session: int) -> None:
        """Show a stored session's results."""
        self.workspaces.bring("front")
        self.bridge.submit(events.Open(session))

    @Slot(object)
    def compare_sessions(self, sessions: tuple[int, ...]) -> None:
        """Compare exactly these stored sessions."""
        self.workspaces.bring("compare")
        self.panels["compare"].compare(sessions)

    @Slot(int)
    def resume_session(self, session: int) -> None:
        """Continue a stored session."""
        self.workspaces.bring("front", "tune")
        self.panels["tune"].open_session(session)

    @Slot()
    def edit_specification(self) -> None:
        """Edit the specification that is open, or begin one."""
        editor = self.side_windows.show_editor()
        path = self.panels["tune"].specification if self.panels.has("tune") else None
        if path is not None:
            editor.open(path)

    @Slot(object)
    def open_log(self, path: Path) -> None:
        """Fit the frequency model to a table of clocks."""
        if "model" in self.panels:
            self.workspaces.bring("model")
            self.panels["model"].add.open(path)

    @Slot(object)
    def open_program(self, path: Path) -> None:
        """Show the profile of a program, or take a trace of one."""
        if "program" in self.panels:
            self.workspaces.bring("program")
            self.panels["program"].open(path)

    @Slot(object, object)
    def _keep_table(self, path: Path, columns: object) -> None:
        """Keep a table as a session, and show it."""
        self.workspaces.bring("sessions")
        if "sessions" in self.panels:
            self.panels["sessions"].import_files([path], columns=columns)

    @Slot(object)
    def _keep_several(self, dropped: tuple[tuple[Path, ...], int]) -> None:
        """Keep recordings as sessions."""
        self.workspaces.bring("sessions")
        self.panels["sessions"].import_files(dropped[0], asked=dropped[1])

    @Slot(object)
    def tune_example(self, path: Path | None = None) -> None:
        """Tune an example on the shown board, GEMM unless another one is named."""
        self.open_specification(path or resources() / "examples" / EXAMPLE, start=True)

    def ask_machine(self) -> None:
        """Ask for another machine, whose boards are then watched."""
        self.workspaces.go_to("boards")
        if "boards" in self.panels:
            self.panels["boards"].hosts.ask()

    @Slot()
    def ask_report(self) -> None:
        """Choose where the report of the shown session goes."""
        plan = self.result.plan
        if plan is None:
            self.notices.fail("there is no session to report", "run one, or open one in Library")
        else:
            save_file(self, "Report", f"{plan.title}-report.html", "HTML (*.html)", self.reports.write)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere."""
        if _files_of(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """A specification is opened to be tuned; recordings are kept as sessions, and the last one is shown.

        A log or a table that is dropped alone is opened in a window of its own, and so are results of a service.
        """
        if "sessions" in self.panels:
            event.acceptProposedAction()
            files = _files_of(event.mimeData())
            if len(files) > 1:
                self.file_opener.open_several(tuple(files), self.panels["sessions"].keep_only())
            else:
                self.panels["sessions"].import_files(files, by_hand=True)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        """Result, draft, layout and what runs stay as they are."""
        self.setWindowTitle(board.gpu.info.label)  # Qt adds the program's name
        if self.strip is not None:
            self.strip.show_board(board.gpu, board.trace)

    @Slot(object)
    def _show_known(self, known: Known) -> None:
        """What was kept of the shown board: settings that a crash left, and the fit that estimates its voltage."""
        offer_left_over(self.notices, known.left_over, known.board.gpu, self.bridge)
        if known.fit is not None and known.board is self.board:
            from ...engine.models.fit.voltage import VoltageEstimate

            self.monitor.show_estimate(VoltageEstimate.of(*known.fit, known.board.gpu.info))

    @Slot()
    def _count_notices(self) -> None:
        """How many say what is wrong now."""
        self.all_notices.setText(f"Notices ({count})" if (count := len(self.notices.problems)) else "Notices")

    @Slot(object)
    def _report_written(self, path: Path) -> None:
        self.notices.written(path)
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.resolve()))):
            self.notices.fail(f"Written: {path}; no browser could be started", "open the file with one")

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

    @Slot(QPoint, str)
    def _open_strip_menu(self, position: QPoint, _lane: str) -> None:
        menu = QMenu(self)
        menu.setAccessibleName("Live traces")
        menu.addActions([self.actions_by_name[name] for name in (*LENGTH_ACTIONS, f"go_{TRACES}", "live_traces")])
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(position)

    @Slot()
    def _in_sight_changed(self) -> None:
        for name, dock in self.workspaces.docks.items():
            self.actions_by_name[f"toggle_{name}"].setChecked(not dock.isHidden())
        self.actions_by_name[INSPECTOR].setChecked(self.workspaces.shows_inspector)
        self.actions_by_name["live_traces"].setChecked(self.workspaces.shows_strip)

    @Slot()
    def _activity_changed(self) -> None:
        """Whatever runs is paused and stopped from anywhere."""
        activity = self.bridge.activity
        self.actions_by_name["pause"].setEnabled(activity.can_pause)
        self.actions_by_name["stop"].setEnabled(activity.busy and not activity.stopping)
        if not activity.busy:
            self.notices.end("a session is running", "stop it first")

    def _control_in_sight(self, board: WatchedBoard) -> bool:
        """The Control panel shows the countdown of the shown board itself."""
        return (
            board is self.board and self.panels.has("control") and not self.panels["control"].visibleRegion().isEmpty()
        )

    def show_inspector(self, shown: bool) -> None:
        """Show the Inspector beside this workspace, with the focus, or hide it."""
        if shown:
            self.workspaces.go_to(INSPECTOR)
        else:
            self.workspaces.set_inspector(False)

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
            from ..watch.strip import PowerStrip  # imported late: few ask for it

            self.strip = PowerStrip(self.board.gpu, self.board.trace, self.settings)
            self.strip.opened.connect(self.notifications.bring_window)
            self.strip.closed.connect(self._strip_closed)
        self.strip.show()

    @Slot()
    def _strip_closed(self) -> None:
        self.actions_by_name["strip"].setChecked(False)

    def reset_layout(self) -> None:
        """Every workspace as at the very first start."""
        self.workspaces.reset()
        self.notices.inform("The layout is as at the first start")

    def reset_everything(self) -> None:
        """Reset the layout and colours to those of the first start; the stored ones were removed before."""
        self.actions_by_name["theme_system"].trigger()
        self.reset_layout()
        self.monitor.lanes_menu.look_again()
        if self.panels.has("front"):
            self.panels["front"].show_menu.look_again()

    def copy_diagnostics(self) -> None:
        """Versions, board and sensors onto the clipboard."""
        from .about import copy_diagnostics  # imported late: few need it

        copy_diagnostics(self.board.gpu)
        self.notices.inform("Diagnostics copied: no UUID and no serial number is in them")

    def find_action(self) -> None:
        """Open the search over all that there is, or close it."""
        from . import finding  # imported late: the window opens without the guide

        if self.search.isVisible():
            self.search.close_it()
            return
        self.activateWindow()  # the guide's window asks for it too
        offered, store, beside = every_action(self.menuBar()), self.services.store, self.side_windows

        def read() -> list[Entry]:
            stored = finding.sessions(store.sessions(), self.open_session)
            return [*stored, *finding.guide(beside.show_help)]

        rows = finding.settings(beside.setting_rows(), beside.show_settings)
        self.search.open([*finding.actions(offered), *finding.boards(self.boards, offered), *rows], read)

    # --- from start to end --------------------------------------------------------------------------------------------

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab passes by the docks that lie behind others."""
        begun = self.focusWidget()
        while super().focusNextPrevChild(forward):
            reached = self.focusWidget()
            if reached is None or reached is begun or not lies_behind(reached):
                return True
        return False

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
            self.workspaces.stop_watching()
            for widget in (self.side_windows, self.panels):
                widget.shutdown()
            end_all(self)
            self.services.close()
        super().closeEvent(event)


def _files_of(data: QMimeData) -> list[Path]:
    """The files and folders of a drag, none where it carries something else."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return [path for path in paths if path.exists()]
