"""`MainWindow`: the traces in the middle, the panels beside them, one window per GPU."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QMainWindow,
    QTabWidget,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from ...numbers import duration
from ...sensors.sampler import SensorEvent
from ..control.confirm_bar import ConfirmBar
from ..control.switch import ControlSwitch
from ..monitor.panel import MonitorPanel
from ..monitor.readout import Readout
from ..monitor.window_marks import WindowMarks
from ..plots import theme
from ..threads.background import Background
from ..threads.bridge import Engine, EngineBridge
from ..tune.session_flow import SessionFlow, dropped_files
from .actions import Actions, every_action
from .badge import Badge
from .banner import Banner
from .context import Context
from .docks import Docks, placeholder
from .file_menus import FileMenus
from .label import PlainLabel
from .palette import Palette
from .panels import CHANNELS, PANELS
from .selection import Selection
from .settings import Settings
from .side_windows import SideWindows
from .station import Station
from .window_actions import ACTIONS, LENGTH_ACTIONS
from .window_handlers import handlers_of

if TYPE_CHECKING:
    from ...engine.control.guard import DeviceGuard
    from ...engine.control.left_over import LeftOver
    from ...engine.models.frequency import FrequencyFit
    from ...engine.session.events import Event
    from ...engine.store.database import Store
    from ..plots.plot_menus import PlotMenus


class MainWindow(QMainWindow):
    """Owns the station, the bridge and the panels, and ends them when it closes."""

    gpu_chosen = Signal(str)  # a selector from the GPU menu
    panels_loaded = Signal()

    def __init__(self, station: Station, others: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.station = station
        self.others = others  # selectors of boards that are watched at a glance
        self.bridge = EngineBridge(self._make_tuner)
        self.selection = Selection(self.bridge)
        self._store: Store | None = None
        self._guard: DeviceGuard | None = None
        self._specification: tuple[Path, bool] | None = None
        self._closed = False
        self.panels: dict[str, Any] = {}
        info = station.gpu.info
        self.setWindowTitle(info.label)  # Qt adds the program's name
        self.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks
            | QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AnimatedDocks
        )
        self.readout = Readout(station.gpu.channels)
        self.monitor = MonitorPanel(station.gpu, station.trace, self.readout)
        self.window_marks = WindowMarks(self.selection, self.monitor.view)
        self.banner = Banner()
        self.confirm_bar = ConfirmBar(self.bridge)
        self._put_centre()
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.dock_area = Docks(self, PANELS)
        self.dock_area.put(CHANNELS, self.readout)
        self.side_windows = SideWindows(self)
        self.session_flow: SessionFlow | None = None
        self.plot_menus: PlotMenus | None = None  # once the panels are there
        toolbar = QToolBar("Traces")
        toolbar.setObjectName("toolbar")
        toolbar.setMovable(False)
        toolbar.addWidget(Badge(info))
        self.control_switch = ControlSwitch(info, self.bridge) if info.source == "nvml" else None
        self.addToolBar(toolbar)
        self.actions_made = Actions(ACTIONS, handlers_of(self), self, self.menuBar(), toolbar, self.monitor)
        self.actions_by_name = self.actions_made.by_name
        if self.control_switch is not None:
            toolbar.addSeparator()
            toolbar.addWidget(self.control_switch)
        self.palette_of_actions = Palette(self)
        self.settings = Settings()
        submenus = self.actions_made.submenus
        self.files = FileMenus(self, self.settings, submenus["recent"], submenus["examples"])
        self.files.chosen.connect(lambda path: self.open_specification(path, start=False))
        self._restore()
        self.statusBar().setSizeGripEnabled(False)
        self._kept = PlainLabel()
        self.statusBar().addPermanentWidget(self._kept)
        self._show_kept()
        self._slow_timer = QTimer(self)
        self._slow_timer.timeout.connect(self._show_kept)
        self._slow_timer.start(1000)
        self.monitor.view.setFocus()
        self._connect()
        self._loader = Background(self)
        self._loader.done.connect(self._panels_imported)
        self._loader.failed.connect(self._panels_failed)
        self.panels_loaded.connect(self._hand_over)
        self.monitor.view.first_frame.connect(self._load_panels, Qt.ConnectionType.QueuedConnection)
        QTimer.singleShot(2000, self._load_panels)  # a GPU that tells nothing must not keep the panels away

    def engine_store(self) -> Store:
        """The person's sessions, opened at the first use."""
        if self._store is None:
            from ...engine.store.database import Store

            self._store = Store()
        return self._store

    def open_specification(self, path: Path, *, start: bool) -> None:
        """Hand a specification to the tuning panel, as soon as it is there."""
        self._specification = (path, start)
        if "tune" in self.panels:
            self._hand_over()

    @Slot()
    def _hand_over(self) -> None:
        if self._specification is not None and "tune" in self.panels:
            (path, start), self._specification = self._specification, None
            self.dock_area.bring("front", "tune")
            self.panels["tune"].open(path, start=start)

    @property
    def docks(self) -> dict[str, QDockWidget]:
        """The docks by name."""
        return self.dock_area.by_name

    # --- building -----------------------------------------------------------------------------------------------------

    def _put_centre(self) -> None:
        centre = QWidget()
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.banner)
        layout.addWidget(self.confirm_bar)
        layout.addWidget(self.monitor, 1)
        self.setCentralWidget(centre)

    def _connect(self) -> None:
        self.bridge.fault.connect(self.banner.show_fault)
        self.bridge.fit_finished.connect(self.monitor.show_fit)
        self.station.sensor_event.connect(self._sensor_event, Qt.ConnectionType.QueuedConnection)
        self.monitor.saved.connect(self._saved)
        self.monitor.failed.connect(self.banner.tell)
        self.monitor.view.window_changed.connect(self._window_of_time_changed)
        self.dock_area.changed.connect(self._docks_changed)
        self._docks_changed()

    # --- the panels, once the window is up ----------------------------------------------------------------------------

    @Slot()
    def _load_panels(self) -> None:
        """Import the panels off Qt's thread: plots and models take longer to load than the window to open."""
        if not self.panels and not self._closed:
            self._loader.run(self._import_panels)

    def _import_panels(self, _: threading.Event) -> dict[str, Callable[[Context], QWidget]]:
        from ...sensors.select import gpu_selectors

        self._selectors = gpu_selectors()
        store = self.engine_store()
        store.purge()
        self._records = store.sessions()
        importlib.import_module("...engine.session.tuner", __package__)
        board = self.station.gpu.info
        self._kept_fit = store.latest_fit(board.name, simulated=board.source == "simulated")
        left_over = importlib.import_module("...engine.control.left_over", __package__)
        self._left_over = left_over.left_over(board.uuid)
        return {spec.name: spec.load() for spec in PANELS if spec.panel}

    @Slot(object)
    def _panels_imported(self, classes: dict[str, Callable[[Context], QWidget]]) -> None:
        station = self.station
        context = Context(
            self.bridge,
            station.gpu,
            station.trace,
            station.sampler,
            self.engine_store(),
            self.selection,
            self.others,
            self._own_guard(),
        )
        self._offer_left_over(self._left_over)
        self._show_kept_fit(self._kept_fit)
        waiting = list(classes.items())

        def make_next() -> None:
            """One panel per turn of the event loop, so that no turn is long."""
            if self._closed:
                return
            name, make = waiting.pop(0)
            self.panels[name] = panel = make(context)
            self.dock_area.put(name, panel)
            if waiting:
                QTimer.singleShot(0, make_next)
            else:
                self._panels_there()

        make_next()
        self._fill_gpu_menu()

    @Slot(str, str)
    def _panels_failed(self, what: str, remedy: str) -> None:
        """The traces go on; the panels say that they are not there."""
        for spec in PANELS:
            if spec.panel:
                self.dock_area.put(spec.name, placeholder("Not loaded: see the message above the traces"))
        self.banner.tell(what, remedy)

    def _panels_there(self) -> None:
        self.actions_made.tie_buttons(self.panels, self.dock_area.bring)
        self.panels["tune"].file_opened.connect(self._file_opened)
        self.session_flow = SessionFlow(self)
        self.session_flow.offer_recovery(self._records)
        self._adopt_plots()
        self.dock_area.changed.connect(
            self._adopt_plots, Qt.ConnectionType.QueuedConnection
        )  # some are made when shown
        self.panels["boards"].in_full.connect(self.gpu_chosen)
        self.panels["boards"].boards_changed.connect(self._others_changed)
        self.setAcceptDrops(True)
        self.panels["tune"].form.history.changed.connect(self._history_changed)
        self._history_changed()
        self.panels_loaded.emit()

    def _fill_gpu_menu(self) -> None:
        for selector, label in self._selectors:
            action = QAction(label, self)
            action.setData(selector)
            action.triggered.connect(self._gpu_action)
            self.actions_made.submenus["gpus"].addAction(action)

    def _make_tuner(self, on_event: Callable[[Event], None]) -> Engine:
        from ...engine.session.tuner import Tuner

        return Tuner(self.engine_store(), on_event, gpu=self.station.gpu, guard=self._own_guard())

    def _own_guard(self) -> DeviceGuard:
        """The one door to this board's settings, shut at every start; its changes are told, and kept of real boards."""
        if self._guard is None:
            from ...engine.control.device_log import Change, keep
            from ...engine.control.guard import DeviceGuard
            from ...engine.session.events import DeviceChanged

            real, bridge = self.station.gpu.info.source == "nvml", self.bridge

            def changed(change: Change) -> None:
                if real:
                    keep(change)
                bridge.tell(DeviceChanged(change))

            self._guard = DeviceGuard(self.station.gpu, on_change=changed)
        return self._guard

    def _show_kept_fit(self, found: tuple[FrequencyFit, str] | None) -> None:
        """The voltage estimated from the newest fit that is kept of this board."""
        from ...engine.models.voltage_estimate import VoltageEstimate

        if found is not None:
            self.monitor.show_estimate(VoltageEstimate.of(*found, self.station.gpu.info))

    def _offer_left_over(self, found: LeftOver | None) -> None:
        """What a crash or a power cut left set, to be put back in one click."""
        if found is None or not found.unfinished:
            return
        from ...engine.session.events import Apply

        if found.unreadable:
            said = f"This board may still be set, and its settings before are not known: {found.unreadable}."
            reset = Apply(reset=True, defaults=True)
            self.banner.offer(said, "Unlock, default limit", lambda: self.bridge.submit(reset))
            return
        differences = "; ".join(found.differences(self.station.gpu)) or "it looks as before"
        said = f"A session that ended badly left this board set ({differences})."
        self.banner.offer(said, "Put back", lambda: self.bridge.submit(Apply(reset=True)))

    # --- slots --------------------------------------------------------------------------------------------------------

    @Slot()
    def _gpu_action(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.gpu_chosen.emit(action.data())

    @Slot(object)
    def _sensor_event(self, event: SensorEvent) -> None:
        if event.kind in ("lost", "failed"):
            self.banner.tell(event.message)
        else:
            self.statusBar().showMessage(event.message, 8000)

    @Slot()
    def _show_kept(self) -> None:
        """How often is read, and how much is held."""
        trace = self.station.trace
        kept = duration(max(0, trace.last_ns - trace.first_ns) / 1e9)
        speed = self.station.gpu.clock.speed
        pace = "" if speed == 1.0 else f"{speed:g} times as fast as real time · "
        self._kept.setText(f"{pace}{1 / self.station.sampler.interval_s:.0f} readings/s · {kept} kept, 8 h at most ")

    @Slot(str)
    def _saved(self, path: str) -> None:
        self.statusBar().showMessage(f"Written: {path}", 15000)

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

    def set_theme(self, mode: theme.Mode) -> None:
        """Follow the system, or be light or dark; remembered."""
        theme.set_mode(mode)
        self.settings.theme = mode

    def reset_layout(self) -> None:
        """Every dock where it was at the very first start."""
        self.dock_area.reset()
        self.statusBar().showMessage("The layout is as at the first start", 8000)

    def reset_everything(self) -> None:
        """Layout and colours as at the first start; what is remembered is gone already."""
        self.actions_by_name["theme_system"].trigger()
        self.reset_layout()
        if "front" in self.panels:
            self.panels["front"].show_menu.look_again()

    def undo(self) -> None:
        """Take back the newest change to what is set up."""
        if "tune" in self.panels:
            self.panels["tune"].form.history.undo()

    def redo(self) -> None:
        """Make it again."""
        if "tune" in self.panels:
            self.panels["tune"].form.history.redo()

    def copy_diagnostics(self) -> None:
        """Versions, board and sensors onto the clipboard."""
        from .about import copy_diagnostics  # imported late: few need it

        copy_diagnostics(self.station.gpu)
        self.statusBar().showMessage("Diagnostics copied: no UUID and no serial number is in them", 8000)

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

    @Slot(object)
    def _file_opened(self, path: Path) -> None:
        self.settings.add_recent(path)

    @Slot()
    def _adopt_plots(self) -> None:
        from ..plots.plot_menus import PlotMenus  # imported late: plots come with the panels

        if self.plot_menus is None:
            self.plot_menus = PlotMenus(self, self._provenance)
            self.plot_menus.said.connect(lambda words: self.statusBar().showMessage(words, 8000))
            self.plot_menus.failed.connect(self.banner.tell)
        for name, dock in self.docks.items():
            if name in self.panels:
                self.plot_menus.adopt(self.panels[name], dock.windowTitle())

    def _provenance(self) -> str:
        """What is shown is of which session and board, and whether it was simulated or recorded."""
        plan = self.selection.plan
        if plan is None:
            return self.station.gpu.info.label
        board = plan.gpu if plan.source == "nvml" else f"{plan.gpu} ({plan.source})"
        return f"{plan.title} on {board}"

    @Slot(object)
    def _others_changed(self, others: tuple[str, ...]) -> None:
        self.others = others

    @Slot()
    def _history_changed(self) -> None:
        history = self.panels["tune"].form.history
        self.actions_by_name["undo"].setEnabled(history.can_undo)
        self.actions_by_name["redo"].setEnabled(history.can_redo)

    def ask_report(self) -> None:
        """Choose where the report of the shown session goes."""
        if self.session_flow is None or self.selection.plan is None:
            self.banner.tell("there is no session to report", "run one, or open one under Sessions")
        else:
            name = f"{self.selection.plan.title}-report.html"
            self.files.ask("Report", name, "HTML (*.html)", self.session_flow.write_report)

    def leave(self) -> None:
        """Close the window; the program ends with it."""
        self.close()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere."""
        if dropped_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Take the files in."""
        if self.session_flow is not None:
            event.acceptProposedAction()
            self.session_flow.take_files(dropped_files(event.mimeData()))

    # --- from start to end --------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        screen = self.screen().availableSize()
        self.resize(screen.boundedTo(QSize(max(1840, screen.width() * 3 // 4), max(1000, screen.height() * 3 // 4))))
        self.actions_by_name[f"theme_{self.settings.theme}"].setChecked(True)
        geometry = self.settings.kept("geometry")
        if geometry is not None:
            self.restoreGeometry(geometry)
        self.dock_area.restore(self.settings.kept("layout"))

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._closed:
            self._closed = True
            self.settings.keep("geometry", self.saveGeometry())
            self.settings.keep("layout", self.dock_area.state())
            self.settings.sync()
            self.actions_made.let_go()
            self.dock_area.let_go()
            self.monitor.shutdown()
            self._loader.shutdown()
            self.side_windows.shutdown()
            for part in (self.plot_menus, self.session_flow):
                if part is not None:
                    part.shutdown()
            for panel in self.panels.values():
                shutdown = getattr(panel, "shutdown", None)
                if shutdown is not None:
                    shutdown()
            self.bridge.close()
            self.station.close()
            if self._store is not None:
                self._store.close()
        super().closeEvent(event)
