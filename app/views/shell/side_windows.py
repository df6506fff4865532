"""`SideWindows`: the windows beside the main one: made when they are first asked for, one of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from ..shared.panel import Ending
from ..shared.settings import Settings
from ..shared.turns import OwnTurn
from ..shared.watched_boards import WatchedBoard

if TYPE_CHECKING:
    from ..tune.editor_window import SpecificationEditor
    from .doctor_window import Found
    from .notices import Notices
    from .services import Services
    from .settings_window import SettingsWindow

_W = TypeVar("_W", bound=QWidget)


class SideWindows(QObject):
    """None of them is modal. Their modules are imported late: the window's first frame needs none."""

    shown = Signal(QWidget)  # the window that was asked for
    specification_ready = Signal(object)  # Path of what is to be set up to run
    theme_chosen = Signal(str)
    fit_asked = Signal(object)  # Path of a log or a table, for the frequency model
    table_ready = Signal(object, object)  # Path and TableColumns, to be kept as a session
    find_asked = Signal()
    reset_asked = Signal()  # the settings were reset: everything else goes back too

    def __init__(self, window: QWidget, services: Services, settings: Settings, notices: Notices) -> None:
        super().__init__(window)
        boards, self._keep_samples = services.boards, services.keep_samples
        self._notices = notices
        self._window, self._boards, self._meters, self._settings = window, boards, services.meters, settings
        self.by_name: dict[str, QWidget] = {}  # those that were made
        self._wizard, self._begun = OwnTurn(self, self._ask_new), ("", "")
        boards.board_changed.connect(self._board_changed)

    @Slot(str)
    def show_help(self, page: str = "") -> None:
        """The user guide and every shortcut; at a page where one is named, with its heading after a '#'."""
        from .help import HelpWindow

        def make() -> HelpWindow:
            made = HelpWindow(self._window)
            made.find_asked.connect(self.find_asked)
            return made

        made = self._made("help", make)
        if page:
            made.show_page(page)
        self._show(made)

    def show_sensors(self) -> None:
        """How fast and how sharp each power source is."""
        from ..watch.sensor_panel import SensorWindow

        made = self._made("sensors", lambda: SensorWindow(self._boards.current.gpu.info, self._window))
        made.look_again()
        self._show(made)

    def show_alarms(self) -> None:
        """What raises an alarm, and what did."""
        from ..watch.alarm_window import AlarmWindow

        board = self._boards.current
        made = self._made("alarms", lambda: AlarmWindow(board.alarms, board.gpu, self._window))
        made.look_again()
        self._show(made)

    def show_meters(self) -> None:
        """Which power meters there are, what they report, and which are assigned to the shown board."""
        from ..watch.meters_window import MeterWindow

        made = self._made("meters", lambda: MeterWindow(self._boards.current, self._meters, self._window))
        self._show(made)

    def show_editor(self) -> SpecificationEditor:
        """The editor of specifications; what a crash left unsaved is offered at the first time."""
        from ..tune.editor_window import SpecificationEditor

        def make() -> SpecificationEditor:
            made = SpecificationEditor(self._boards.current.gpu, self._window)
            made.run_asked.connect(self.specification_ready)
            made.offer_untitled()
            return made

        made = self._made("editor", make)
        self._show(made)
        return made

    def begin_specification(self, way: str = "", example: str = "") -> None:
        """The editor, and then its wizard, as of `NewWindow.begin`: each takes long enough to make."""
        self._begun = way, example
        self.show_editor()
        self._wizard.start()

    @Slot()
    def _ask_new(self) -> None:
        self.show_editor().ask_new(*self._begun)

    @Slot(object)
    def show_log(self, path: Path) -> None:
        """A log of power over time, or a recording of a board's channels."""
        from ..library.log_window import LogWindow

        def make() -> LogWindow:
            made = LogWindow(self._window)
            made.watch_asked.connect(self._play)
            made.fit_asked.connect(self.fit_asked)
            return made

        made = self._made("log", make)
        made.open(path)
        self._show(made)

    @Slot(str)
    def _play(self, selector: str) -> None:
        """Show a recording as a board, from its beginning where it has ended."""
        from ...sensors.recorded.gpu import RecordedGpu

        board = self._boards.find(selector)
        if board is not None and isinstance(board.gpu, RecordedGpu):
            board.gpu.play_again()
        self._boards.show(selector)

    @Slot(object)
    def show_table(self, paths: Path | tuple[Path, ...]) -> None:
        """Another tool's table of measurements, or results of a benchmark of a server with logs."""
        from ..library.table_window import TableWindow

        def make() -> TableWindow:
            made = TableWindow(self._window)
            made.fit_asked.connect(self.fit_asked)
            made.accepted_columns.connect(self.table_ready)
            return made

        made = self._made("table", make)
        made.open(*(paths if isinstance(paths, tuple) else (paths,)))
        self._show(made)

    def setting_rows(self) -> dict[str, str]:
        """The name of each row of the settings, and what it is."""
        return {name: field.toolTip() for name, field in self._settings_window().rows().items()}

    def show_settings(self, row: str = "") -> None:
        """What the window remembers, the focus in the row of that name."""
        made = self._settings_window()
        made.show_settings()
        self._show(made)
        if row:
            made.rows()[row].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _settings_window(self) -> SettingsWindow:
        from .settings_window import SettingsWindow

        def make() -> SettingsWindow:
            made = SettingsWindow(self._settings, self._window)
            made.theme_chosen.connect(self.theme_chosen)
            made.samples_chosen.connect(self._keep_samples)
            made.reset_asked.connect(self.reset_asked)
            return made

        return self._made("settings", make)

    @Slot()
    def show_notices(self) -> None:
        """All that was reported."""
        from .banner import NoticesWindow

        self._show(self._made("notices", lambda: NoticesWindow(self._notices, self._window)))

    def show_doctor(self, findings: Found | None = None) -> None:
        """What is missing or wrong on this machine: what was found already, else looked at now."""
        from .doctor_window import DoctorWindow

        made = self._made("doctor", lambda: DoctorWindow(self._window))
        self._show(made)
        if findings is not None:
            made.show_found(findings)
        elif not made.busy:
            made.look()

    def show_savings(self) -> None:
        """What can be saved on the shown board, as the user is."""
        from ..library.savings_window import SavingsWindow

        self._show(self._made("savings", lambda: SavingsWindow(self._boards.current.gpu, self._window)))

    def show_about(self) -> None:
        """Versions and the board's facts."""
        from .about import AboutWindow

        def make() -> AboutWindow:
            window = AboutWindow(self._boards.current.gpu, self._window)
            window.page_asked.connect(self.show_help)
            return window

        self._show(self._made("about", make))

    def shutdown(self) -> None:
        """End what they have running."""
        for made in self.by_name.values():
            if isinstance(made, Ending):
                made.shutdown()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        """Those that are about a board are about the shown one."""
        for name, made in self.by_name.items():
            show_board = getattr(made, "show_board", None)
            if name == "alarms" and show_board is not None:
                show_board(board.alarms, board.gpu)
            elif name == "meters" and show_board is not None:
                show_board(board)
            elif show_board is not None:
                show_board(board.gpu)

    def _made(self, name: str, make: Callable[[], _W]) -> _W:
        if name not in self.by_name:
            self.by_name[name] = make()
        return cast(_W, self.by_name[name])

    def _show(self, made: QWidget) -> None:
        self.shown.emit(made)
        made.show()
        made.raise_()
        made.activateWindow()
