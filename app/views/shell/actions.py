"""Every action of the window as one list: menus, toolbar, palette, shortcuts and their page are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QMenu, QMenuBar, QToolBar, QWidget

from ..shared.widgets import look_pressed

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

    def button_of(self, name: str) -> tuple[str, str]:
        """The panel of the button that an action presses, and the button's attributes in it."""
        panel, _, attribute = next(spec.button for spec in self._specs if spec.name == name).partition(".")
        return panel, attribute

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
    found: list[tuple[str, QAction]] = []

    def walk(path: str, actions: Sequence[QAction]) -> None:
        for action in actions:
            menu = QMenu.menuInAction(action)  # PySide6 before 6.11.2 deletes the menu that QAction.menu() returns
            name = action.text().replace("&", "")
            if isinstance(menu, QMenu):
                menu.aboutToShow.emit()  # those made on demand are made now
                walk(f"{path} › {name}" if path else name, menu.actions())
            elif not action.isSeparator() and action.isVisible():
                found.append((path, action))

    walk("", menu_bar.actions())
    return found
