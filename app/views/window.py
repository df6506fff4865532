"""`MainWindow`: the traces in the middle, the panels beside them, one window per GPU."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QCloseEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QFileDialog,
    QLabel,
    QMainWindow,
    QSizePolicy,
    QTabWidget,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from app.paths import data_folder
from app.sensors.sampler import SensorEvent
from app.views import theme
from app.views.actions import build_actions
from app.views.background import Background
from app.views.badge import Badge
from app.views.banner import Banner
from app.views.bridge import Engine, EngineBridge
from app.views.confirm_bar import ConfirmBar
from app.views.context import Context
from app.views.control_switch import ControlSwitch
from app.views.figures import duration_text
from app.views.help import HelpWindow
from app.views.monitor import MonitorPanel
from app.views.readout import Readout
from app.views.selection import Selection
from app.views.station import Station
from app.views.window_actions import ACTIONS, LENGTH_ACTIONS

if TYPE_CHECKING:
    from app.engine.control.guard import DeviceGuard
    from app.engine.control.left_over import LeftOver
    from app.engine.events import Event
    from app.engine.store import Store
    from app.views.score_window import ScoreWindow
    from app.views.sensor_panel import SensorWindow

_TALL_PX = 900  # from this height of the screen on, two panels fit above one another
_PANELS = {
    "tune": ("Tune", "TunePanel"),
    "configuration": ("Configuration", "ConfigurationPanel"),
    "front": ("Front", "FrontPanel"),
    "model": ("Model", "ModelPanel"),
    "roofline": ("Roofline", "RooflinePanel"),
    "control": ("Control", "ControlPanel"),
}
_LAYOUT_VERSION = 4  # raised when docks are added or renamed: an older saved layout is then left alone


class MainWindow(QMainWindow):
    """Owns the station, the bridge and the panels, and ends them when it closes."""

    gpu_chosen = Signal(str)  # a selector from the GPU menu
    panels_loaded = Signal()

    def __init__(self, station: Station) -> None:
        super().__init__()
        self.station = station
        self.bridge = EngineBridge(self._make_tuner)
        self.selection = Selection(self.bridge)
        self._store: Store | None = None
        self._guard: DeviceGuard | None = None
        self._help: HelpWindow | None = None
        self._sensors: SensorWindow | None = None
        self._score_window: ScoreWindow | None = None
        self._specification: tuple[Path, bool] | None = None
        self._write_chosen: Callable[[Path], None] | None = None
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
        self.banner = Banner()
        self.confirm_bar = ConfirmBar(self.bridge)
        self._put_centre()
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.docks: dict[str, QDockWidget] = {}
        self._add_docks()
        toolbar = QToolBar("Traces")
        toolbar.setObjectName("toolbar")
        toolbar.setMovable(False)
        toolbar.addWidget(Badge(info))
        self.control_switch = ControlSwitch(info, self.bridge) if info.source == "nvml" else None
        self.addToolBar(toolbar)
        self.actions_by_name = build_actions(ACTIONS, self._handlers(), self, self.menuBar(), toolbar)
        if self.control_switch is not None:
            toolbar.addSeparator()
            toolbar.addWidget(self.control_switch)
        self._gpu_menu = self.menuBar().addMenu("&GPU")
        self.menuBar().insertMenu(self.menuBar().actions()[-2], self._gpu_menu)
        self._settings = QSettings(str(data_folder() / "window.ini"), QSettings.Format.IniFormat)
        self._restore()
        self.statusBar().setSizeGripEnabled(False)
        self._kept = QLabel()
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
            from app.engine.store import Store

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
            for name in ("front", "tune"):
                self.docks[name].raise_()
            self.panels["tune"].open(path, start=start)

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

    def _add_docks(self) -> None:
        """All in one stack of tabs; on a tall screen the plots in a stack of their own below."""
        titles = {"channels": "Channels", **{name: title for name, (title, _) in _PANELS.items()}}
        tall = self.screen().availableGeometry().height() >= _TALL_PX
        for name, title in titles.items():
            dock = QDockWidget(title, self)
            dock.setObjectName(name)
            dock.setWidget(self.readout if name == "channels" else _empty("Loading…"))
            self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
            below = tall and name in ("front", "model", "roofline")
            stack = "front" if below else "channels"
            if stack in self.docks:
                self.tabifyDockWidget(self.docks[stack], dock)
            self.docks[name] = dock
        for name in ("channels", "front") if tall else ("channels",):
            self.docks[name].raise_()

    def _handlers(self) -> dict[str, Callable[[bool], None]]:
        view = self.monitor.view
        handlers: dict[str, Callable[[bool], None]] = {
            "write_csv": lambda _: self._ask_file("Readings", "readings.csv", "CSV (*.csv)", self.monitor.write_csv),
            "write_picture": lambda _: self._ask_file(
                "Picture", "traces.png", "PNG (*.png);;SVG (*.svg)", self.monitor.write_picture
            ),
            "quit": lambda _: self._quit(),
            "hold": view.hold,
            "zoom_in": lambda _: view.zoom(0.5),
            "zoom_out": lambda _: view.zoom(2.0),
            "zoom_span": lambda _: view.show_span(),
            "clear_span": lambda _: view.set_span(None),
            "wide_traces": lambda _: self._share(0.30),
            "wide_panels": lambda _: self._share(0.66),
            "sensors": lambda _: self._show_sensors(),
            "scores": lambda _: self._show_scores(),
            "shortcuts": lambda _: self._show_help(),
        }
        for name, length_s in LENGTH_ACTIONS.items():
            handlers[name] = lambda _, length_s=length_s: view.set_length(length_s)  # type: ignore[misc]
        for name in self.docks:
            handlers[f"toggle_{name}"] = lambda shown, name=name: self._show_dock(name, shown)  # type: ignore[misc]
        for mode in ("system", "light", "dark"):
            handlers[f"theme_{mode}"] = lambda _, mode=mode: self._set_theme(mode)  # type: ignore[misc]
        return handlers

    def _connect(self) -> None:
        self.bridge.fault.connect(self.banner.show_fault)
        self.bridge.fit_finished.connect(self.monitor.show_fit)
        self.station.sensor_event.connect(self._sensor_event, Qt.ConnectionType.QueuedConnection)
        self.monitor.saved.connect(self._saved)
        self.monitor.failed.connect(self.banner.tell)
        self.monitor.view.window_changed.connect(self._window_of_time_changed)
        for name, dock in self.docks.items():
            dock.visibilityChanged.connect(self._docks_changed)
            self.actions_by_name[f"toggle_{name}"].setChecked(not dock.isHidden())

    # --- the panels, once the window is up ----------------------------------------------------------------------------

    @Slot()
    def _load_panels(self) -> None:
        """Import the panels off Qt's thread: plots and models take longer to load than the window to open."""
        if not self.panels and not self._closed:
            self._loader.run(self._import_panels)

    def _import_panels(self, _: threading.Event) -> dict[str, Callable[[Context], QWidget]]:
        from app.sensors.select import gpu_selectors

        self._selectors = gpu_selectors()
        self.engine_store()
        importlib.import_module("app.engine.tuner")
        self._left_over = importlib.import_module("app.engine.control.left_over").left_over(self.station.gpu.info.uuid)
        return {name: getattr(importlib.import_module(f"app.views.{name}"), cls) for name, (_, cls) in _PANELS.items()}

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
            self._own_guard(),
        )
        self._offer_left_over(self._left_over)
        waiting = list(classes.items())

        def make_next() -> None:
            """One panel per turn of the event loop, so that no turn is long."""
            if self._closed:
                return
            name, make = waiting.pop(0)
            self.panels[name] = panel = make(context)
            old = self.docks[name].widget()
            self.docks[name].setWidget(panel)
            old.deleteLater()
            if waiting:
                QTimer.singleShot(0, make_next)
            else:
                self.panels_loaded.emit()

        make_next()
        self._fill_gpu_menu()

    @Slot(str, str)
    def _panels_failed(self, what: str, remedy: str) -> None:
        """The traces go on; the panels say that they are not there."""
        for name in _PANELS:
            self.docks[name].setWidget(_empty("Not loaded: see the message above the traces"))
        self.banner.tell(what, remedy)

    def _fill_gpu_menu(self) -> None:
        for selector, label in self._selectors:
            action = QAction(label, self)
            action.setData(selector)
            action.triggered.connect(self._gpu_action)
            self._gpu_menu.addAction(action)

    def _make_tuner(self, on_event: Callable[[Event], None]) -> Engine:
        from app.engine.tuner import Tuner

        return Tuner(self.engine_store(), on_event, gpu=self.station.gpu, guard=self._own_guard())

    def _own_guard(self) -> DeviceGuard:
        """The one door to this board's settings, shut at every start; its changes are told, and kept of real boards."""
        if self._guard is None:
            from app.engine.control.device_log import Change, keep
            from app.engine.control.guard import DeviceGuard
            from app.engine.events import DeviceChanged

            real, bridge = self.station.gpu.info.source == "nvml", self.bridge

            def changed(change: Change) -> None:
                if real:
                    keep(change)
                bridge.tell(DeviceChanged(change))

            self._guard = DeviceGuard(self.station.gpu, on_change=changed)
        return self._guard

    def _offer_left_over(self, found: LeftOver | None) -> None:
        """What a crash or a power cut left set, to be put back in one click."""
        if found is None or not found.unfinished:
            return
        from app.engine.events import Apply

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
        kept = duration_text(max(0, trace.last_ns - trace.first_ns) / 1e9)
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

    @Slot(bool)
    def _docks_changed(self, _: bool) -> None:
        for name, dock in self.docks.items():
            self.actions_by_name[f"toggle_{name}"].setChecked(not dock.isHidden())

    def _show_dock(self, name: str, shown: bool) -> None:
        """Bring a panel to the front; only one that is at the front already is closed."""
        dock = self.docks[name]
        in_front = not dock.visibleRegion().isEmpty()
        if not shown and not in_front:
            shown = True
        dock.setVisible(shown)
        if shown:
            dock.raise_()
        self._docks_changed(shown)

    def _share(self, panels: float) -> None:
        dock = next((d for d in self.docks.values() if not d.isHidden() and not d.isFloating()), None)
        if dock is not None:
            self.resizeDocks([dock], [int(self.width() * panels)], Qt.Orientation.Horizontal)

    def _set_theme(self, mode: theme.Mode) -> None:
        theme.set_mode(mode)
        self._settings.setValue("theme", mode)

    def _show_help(self) -> None:
        if self._help is None:
            self._help = HelpWindow(self)
        self._help.show()
        self._help.raise_()

    def _show_sensors(self) -> None:
        from app.views.sensor_panel import SensorWindow  # imported late: the window's first frame does not need it

        if self._sensors is None:
            self._sensors = SensorWindow(self.station.gpu.info, self)
        self._sensors.look_again()
        self._sensors.show()
        self._sensors.raise_()

    def _show_scores(self) -> None:
        """Open the strategies' scores, on the cache that is open under Tune where there is one."""
        from app.views.score_window import ScoreWindow

        if self._score_window is None:
            self._score_window = ScoreWindow(self)
        cache = self.panels["tune"].cache if "tune" in self.panels else None
        if cache is not None and self._score_window.scores is None:
            self._score_window.set_caches([cache])
        self._score_window.show()
        self._score_window.raise_()

    def _ask_file(self, title: str, name: str, kinds: str, write: Callable[[Path], None]) -> None:
        dialog = QFileDialog(self, title, str(Path.home() / name), kinds)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(name)
        self._write_chosen = write
        dialog.fileSelected.connect(self._file_chosen)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    @Slot(str)
    def _file_chosen(self, path: str) -> None:
        if self._write_chosen is not None:
            self._write_chosen(Path(path))

    def _quit(self) -> None:
        self.close()

    # --- from start to end --------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        self.resize(self.screen().availableSize().boundedTo(QSize(1600, 940)))
        geometry, state = self._settings.value("geometry"), self._settings.value("state")
        mode = str(self._settings.value("theme", "system"))
        if f"theme_{mode}" in self.actions_by_name:
            self.actions_by_name[f"theme_{mode}"].setChecked(True)
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        if not (isinstance(state, QByteArray) and self.restoreState(state, _LAYOUT_VERSION)):
            self._share(0.36)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._closed:
            self._closed = True
            self._settings.setValue("geometry", self.saveGeometry())
            self._settings.setValue("state", self.saveState(_LAYOUT_VERSION))
            self._settings.sync()
            self.monitor.shutdown()
            self._loader.shutdown()
            if self._score_window is not None:
                self._score_window.shutdown()
            for panel in self.panels.values():
                shutdown = getattr(panel, "shutdown", None)
                if shutdown is not None:
                    shutdown()
            self.bridge.close()
            self.station.close()
            if self._store is not None:
                self._store.close()
        super().closeEvent(event)


def _empty(text: str) -> QWidget:
    label = QLabel(text)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
    return label
