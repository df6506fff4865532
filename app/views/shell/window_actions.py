"""The window's actions: the one list behind its menus, toolbar, palette, shortcuts and their page.

Every action of the window as one list: menus, toolbar, palette, shortcuts and their page are made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QMenu, QMenuBar, QToolBar, QWidget

from ..shared.widgets import look_pressed
from ..watch.time_window import LENGTHS_S
from .panels import INSPECTOR, PANELS, WORKSPACES

Handler = Callable[[bool], object]  # is given the checked state


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action. `group` makes it one of several exclusive choices; `separator` draws a line before it.

    `button` names a button of a panel, 'panel.attribute': the action presses it, and is enabled while it is. `submenu`
    makes it a submenu that is filled elsewhere.
    """

    name: str
    text: str  # in the menu; '&' marks the mnemonic
    menu: str
    shortcut: str = ""
    tip: str = ""
    short: str = ""  # in the toolbar; empty: not there
    checkable: bool = False
    checked: bool = False
    group: str = ""
    separator: bool = False
    button: str = ""
    submenu: bool = False
    local: bool = False  # its key works only where the traces have the focus: elsewhere it means something else

    @property
    def says(self) -> str:
        """What it does, in words."""
        return self.tip or self.text.replace("&", "").rstrip("… ")


class Actions:
    """The actions and submenus made of a list of specs. `handlers[name]` is given the checked state.

    Raises KeyError for a spec that has neither a handler nor a button nor a submenu.
    """

    def __init__(
        self,
        specs: Sequence[ActionSpec],
        handlers: Mapping[str, Handler],
        parent: QWidget,
        menu_bar: QMenuBar,
        toolbar: QToolBar,
        local: QWidget,
    ) -> None:
        self.by_name: dict[str, QAction] = {}
        self.submenus: dict[str, QMenu] = {}
        self._specs = specs
        self._mirrors: list[_Mirror] = []
        groups: dict[str, QActionGroup] = {}
        menus = {title: menu_bar.addMenu(title) for title in dict.fromkeys(spec.menu for spec in specs)}
        for spec in specs:
            menu = menus[spec.menu]
            if spec.separator:
                menu.addSeparator()
            if spec.submenu:
                self.submenus[spec.name] = menu.addMenu(spec.text)
                continue
            action = self.by_name[spec.name] = _make(spec, parent)
            if spec.group:
                groups.setdefault(spec.group, QActionGroup(parent)).addAction(action)
            if spec.button:
                action.setEnabled(False)  # until its panel is there
            else:
                action.triggered.connect(handlers[spec.name])
            menu.addAction(action)
            if spec.local:
                action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
                local.addAction(action)
            if spec.short:
                action.setIconText(spec.short)
                if spec.separator:
                    toolbar.addSeparator()
                toolbar.addAction(action)
                button = toolbar.widgetForAction(action)
                if action.isCheckable() and isinstance(button, QAbstractButton):
                    look_pressed(button)

    def connect_buttons(self, name: str, panel: QWidget, bring: Callable[[str], None]) -> None:
        """A panel is there: each action of one of its buttons presses it, the panel shown, and follows its state."""
        for spec in self._specs:
            of, _, attribute = spec.button.partition(".")
            if of == name:
                button = attrgetter(attribute)(panel)
                assert isinstance(button, QAbstractButton)
                self._mirrors.append(_Mirror(self.by_name[spec.name], button, name, bring))

    def disconnect_buttons(self) -> None:
        """Before the panels are deleted."""
        for mirror in self._mirrors:
            mirror.disconnect_button()
        self._mirrors.clear()


class _Mirror(QObject):
    """An action that stands for a button."""

    def __init__(self, action: QAction, button: QAbstractButton, panel: str, bring: Callable[[str], None]) -> None:
        super().__init__(button)
        self._action, self._button, self._panel, self._bring = action, button, panel, bring
        action.setEnabled(button.isEnabled())
        action.triggered.connect(self._press)
        button.installEventFilter(self)

    def disconnect_button(self) -> None:
        self._button.removeEventFilter(self)
        self._action.triggered.disconnect(self._press)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.EnabledChange:
            self._action.setEnabled(self._button.isEnabled())
        return False

    def _press(self) -> None:
        self._bring(self._panel)
        self._button.click()


def _make(spec: ActionSpec, parent: QWidget) -> QAction:
    action = QAction(spec.text, parent)
    action.setObjectName(spec.name)
    action.setCheckable(spec.checkable or bool(spec.group))
    action.setChecked(spec.checked)
    if spec.shortcut:
        action.setShortcut(QKeySequence(spec.shortcut))
    action.setToolTip(spec.says + (f" ({spec.shortcut})" if spec.shortcut else ""))
    action.setStatusTip(spec.says)
    return action


def shortcut_table(specs: Sequence[ActionSpec]) -> dict[str, list[tuple[str, str]]]:
    """(keys, what they do) of every action that has a shortcut, by menu, in the list's order."""
    table: dict[str, list[tuple[str, str]]] = {}
    for spec in specs:
        if spec.shortcut:
            table.setdefault(spec.menu.replace("&", ""), []).append((spec.shortcut, spec.says))
    return table


def every_action(menu_bar: QMenuBar) -> list[tuple[str, QAction]]:
    """(path of menus, action) of all that a menu bar offers, submenus that are filled later included."""
    results: list[tuple[str, QAction]] = []
    found: set[QAction] = set()

    def walk(path: str, actions: Sequence[QAction]) -> None:
        for action in actions:
            menu = QMenu.menuInAction(action)  # PySide6 before 6.11.2 deletes the menu that QAction.menu() returns
            name = action.text().replace("&", "")
            if isinstance(menu, QMenu):
                menu.aboutToShow.emit()  # those made on demand are made now
                walk(f"{path} › {name}" if path else name, menu.actions())
            elif not action.isSeparator() and action.isVisible() and action not in found:
                found.add(action)  # once, though it may stand in several menus
                results.append((path, action))

    walk("", menu_bar.actions())
    return results


_LENGTH_NAMES = ("10 s", "1 min", "10 min", "1 h", "24 h")
LENGTH_ACTIONS = {f"length_{int(length_s)}": length_s for length_s in LENGTHS_S}

_FILE = (
    ActionSpec("open", "&Open…", "&File", "Ctrl+O", "Open a specification, a recording, a log or a table"),
    ActionSpec("open_folder", "Open a &folder of points…", "&File", tip="Open a folder with one JSON file per point"),
    ActionSpec("recent", "Open &recent", "&File", submenu=True),
    ActionSpec("examples", "Open an e&xample", "&File", submenu=True),
    ActionSpec(
        "new_specification",
        "&New specification…",
        "&File",
        "Ctrl+N",
        "Begin one from a kernel, a command or an example",
        separator=True,
    ),
    ActionSpec("savings", "What can I sa&ve?…", "&File", "", "Levers that need no rights, tried in turns"),
    ActionSpec("new_operator", "Tune an op&erator…", "&File", "", "Tune a product or a convolution by its shape alone"),
    ActionSpec("new_program", "Tune a pro&gram…", "&File", "", "Run a command with several values and measure each"),
    ActionSpec(
        "new_service", "Tune a served &model…", "&File", "", "Measure a server at several loads: joules for each token"
    ),
    ActionSpec(
        "edit_specification", "E&dit specification…", "&File", "Ctrl+Shift+O", "A form beside the TOML of what is open"
    ),
    ActionSpec(
        "write_readings",
        "Export &readings…",
        "&File",
        "Ctrl+E",
        "CSV or JSON of the marked span, else of what is shown",
        separator=True,
    ),
    ActionSpec("write_picture", "Export &picture…", "&File", "Ctrl+P", "PNG or SVG of the traces as they are shown"),
    ActionSpec("settings", "Se&ttings…", "&File", "Ctrl+,", "Colours, prices, folders", separator=True),
    ActionSpec("quit", "&Quit", "&File", "Ctrl+Q", separator=True),
)
_EDIT = (
    ActionSpec("undo", "&Undo", "&Edit", "Ctrl+Z", "Take back the newest change to what is set up in Tune"),
    ActionSpec("redo", "&Redo", "&Edit", "Ctrl+Shift+Z", "Make the change again"),
    ActionSpec(
        "copy_command",
        "Copy as &command line",
        "&Edit",
        "Ctrl+Shift+C",
        "Copy the command that gives what the view in use shows",
        separator=True,
    ),
    ActionSpec("copy_python", "Copy as &Python", "&Edit", "", "Copy a script that gives what the view in use shows"),
)
_SESSION = (
    ActionSpec("start", "&Start", "&Session", "Ctrl+Return", "Start the session as it is set up", button="tune.start"),
    ActionSpec(
        "enqueue",
        "Add to &queue",
        "&Session",
        "Ctrl+Shift+Return",
        "Run the session as it is set up once nothing else runs",
        button="tune.queue",
    ),
    ActionSpec(
        "pool_here",
        "Run on several &boards…",
        "&Session",
        "",
        "Let sessions run on several boards of this computer",
    ),
    ActionSpec(
        "pool_connect",
        "Run on the boards of a poo&l…",
        "&Session",
        "",
        "Let sessions run on the boards of a pool of machines",
    ),
    ActionSpec("pause", "&Pause or resume", "&Session", "Ctrl+.", "Pause the session that runs, or continue it"),
    ActionSpec("stop", "S&top", "&Session", "Ctrl+Shift+.", "End what runs; a session can be resumed"),
    ActionSpec("choose", "&Choose", "&Session", submenu=True, separator=True),
    ActionSpec(
        "apply",
        "&Apply configuration",
        "&Session",
        "",
        "Set the clocks and the power limit of the chosen configuration",
        button="inspector.answer.apply",
    ),
    ActionSpec(
        "export",
        "E&xport configuration",
        "&Session",
        "Ctrl+Shift+E",
        "Write the selected configuration, else the best one, in the format that was exported last, all at first",
        button="inspector.answer.export",
    ),
)
_REPORT = (
    ActionSpec(
        "report",
        "&Report…",
        "&Session",
        "Ctrl+R",
        "One HTML file of the session that is shown: question, board, front, choice and why, model, how to repeat it",
    ),
)
_TRACES = (
    ActionSpec(
        "hold",
        "&Hold",
        "&Traces",
        "Space",
        "Stop the traces where they are; reading continues",
        "Hold",
        checkable=True,
        local=True,
    ),
    *(
        ActionSpec(
            name,
            f"Last {label}",
            "&Traces",
            f"Alt+{place}",
            f"Show {label}",
            label,
            group="length",
            checked=length_s == 60.0,
            separator=place == 1,
        )
        for place, (label, (name, length_s)) in enumerate(
            zip(_LENGTH_NAMES, LENGTH_ACTIONS.items(), strict=True), start=1
        )
    ),
    ActionSpec("zoom_in", "Zoom &in", "&Traces", "+", "Shorter stretch of time", separator=True, local=True),
    ActionSpec("zoom_out", "Zoom &out", "&Traces", "-", "Longer stretch of time", local=True),
    ActionSpec(
        "zoom_span", "&Zoom to span", "&Traces", "Z", "Show the marked span", "To span", separator=True, local=True
    ),
    ActionSpec("clear_span", "&Clear span", "&Traces", "Esc", "Forget the marked span", local=True),
    ActionSpec(
        "record",
        "&Record",
        "&Traces",
        "Ctrl+Shift+R",
        "Record every reading to a file in the data folder, or end the recording",
        checkable=True,
        separator=True,
    ),
    ActionSpec("record_to", "Record t&o…", "&Traces", "", "Record every reading to a file of your choice"),
    ActionSpec("lanes", "Traces &shown…", "&Traces", "", "Choose, order and scale the traces"),
    ActionSpec("meters", "Power &meters…", "&Traces", "", "Find a meter, see its trace and assign it to this board"),
    ActionSpec("alarms", "&Alarms…", "&Traces", "", "A line and a mark when power, temperature or the cap is reached"),
)
_GO = (
    *(ActionSpec(f"workspace_{spec.name}", spec.text, "G&o", spec.shortcut, spec.tip) for spec in WORKSPACES),
    *(
        ActionSpec(f"go_{spec.name}", spec.text, "G&o", spec.shortcut, spec.tip, separator=place == 0)
        for place, spec in enumerate(PANELS)
    ),
)
_VIEW = (
    *(
        ActionSpec(
            f"toggle_{spec.name}",
            spec.text,
            "&View",
            tip=f"Open or close the panel {spec.title}",
            checkable=True,
            checked=True,
        )
        for spec in PANELS
        if spec.is_dock
    ),
    ActionSpec(
        INSPECTOR, "&Inspector", "&View", "F4", "The selected configuration, beside this workspace", checkable=True
    ),
    ActionSpec(
        "live_traces",
        "L&ive traces",
        "&View",
        "Shift+F4",
        "Power, clock and voltage below this workspace",
        checkable=True,
    ),
    ActionSpec(
        "sensors", "Power &sensors", "&View", "F9", "How fast and how sharp each power source is", separator=True
    ),
    ActionSpec(
        "strip",
        "Compact str&ip",
        "&View",
        "",
        "Power, clock and limit in a small window above all others",
        checkable=True,
    ),
    ActionSpec("notices", "N&otices…", "&View", "Ctrl+Shift+M", "All that was reported, with the time of each"),
    ActionSpec("dismiss", "Dis&miss message", "&View", "Ctrl+M", "Close the notice below the window"),
    ActionSpec("narrow_docks", "&Narrow docks", "&View", "F2", "More room for the middle", separator=True),
    ActionSpec("wide_docks", "&Wide docks", "&View", "F3", "More room for the docks of this workspace"),
    ActionSpec("reset_layout", "Reset layou&t", "&View", "", "Every workspace as at the first start"),
    ActionSpec("full_screen", "F&ull screen", "&View", "F11", "The window alone on its screen", checkable=True),
    ActionSpec("theme_system", "Colours of the s&ystem", "&View", group="theme", checked=True, separator=True),
    ActionSpec("theme_light", "Li&ght", "&View", group="theme", tip="Light colours"),
    ActionSpec("theme_dark", "&Dark", "&View", group="theme", tip="Dark colours"),
)
_GPU = (
    ActionSpec("gpus", "&Open", "&GPU", submenu=True),
    ActionSpec(
        "other_machine", "Boards of another &machine…", "&GPU", "", "Watch the boards of another machine by your ssh"
    ),
)
_HELP = (
    ActionSpec(
        "palette", "&Find…", "&Help", "Ctrl+K", "Actions, sessions, boards, settings and the guide by a few letters"
    ),
    ActionSpec("shortcuts", "&User guide and keys", "&Help", "F1", "The user guide, every key and what the mouse does"),
    ActionSpec(
        "doctor", "Check this &machine", "&Help", tip="What is missing or wrong here, and the remedy", separator=True
    ),
    ActionSpec("log_folder", "&Log folder", "&Help", tip="Open the folder in which the log lies"),
    ActionSpec(
        "diagnostics", "&Copy diagnostics", "&Help", tip="Versions, board and sensors; no UUID, no serial number"
    ),
    ActionSpec("about", "&About Wattridge", "&Help", tip="Versions and the board's facts"),
)
ACTIONS: tuple[ActionSpec, ...] = (*_FILE, *_EDIT, *_SESSION, *_REPORT, *_TRACES, *_GO, *_VIEW, *_GPU, *_HELP)

MOUSE_HELP = (
    ("Drag", "Mark a span: its mean power and energy are shown under the traces"),
    ("Wheel", "Zoom: live about now, held about the mouse"),
    ("Right or Shift drag", "Move through time"),
    ("Right click, menu key", "Copy or export the plot, and what else it offers"),
    ("Left, right", "Move through time, where the traces have the focus"),
    ("Double click, End", "Follow the newest reading again"),
)
