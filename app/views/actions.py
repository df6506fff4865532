"""Every action of the window as one list: menu, toolbar, shortcuts and the shortcut help are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenuBar, QToolBar, QWidget


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action. `group` makes it one of several exclusive choices; `separator` draws a line before it."""

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


def build_actions(
    specs: Sequence[ActionSpec],
    handlers: Mapping[str, Callable[[bool], None]],
    parent: QWidget,
    menu_bar: QMenuBar,
    toolbar: QToolBar,
) -> dict[str, QAction]:
    """Make the actions, by name, and put them where their specs say. `handlers[name]` is given the checked state.

    Raises KeyError for a spec without a handler.
    """
    made: dict[str, QAction] = {}
    groups: dict[str, QActionGroup] = {}
    menus = {title: menu_bar.addMenu(title) for title in dict.fromkeys(spec.menu for spec in specs)}
    for spec in specs:
        action = QAction(spec.text, parent)
        action.setObjectName(spec.name)
        action.setCheckable(spec.checkable or bool(spec.group))
        action.setChecked(spec.checked)
        if spec.shortcut:
            action.setShortcut(QKeySequence(spec.shortcut))
        keys = f" ({spec.shortcut})" if spec.shortcut else ""
        tip = spec.tip or spec.text.replace("&", "").rstrip("…")
        action.setToolTip(tip + keys)
        action.setStatusTip(tip)
        if spec.group:
            group = groups.get(spec.group)
            if group is None:
                group = groups[spec.group] = QActionGroup(parent)
            group.addAction(action)
        action.triggered.connect(handlers[spec.name])
        if spec.separator:
            menus[spec.menu].addSeparator()
        menus[spec.menu].addAction(action)
        if spec.short:
            action.setIconText(spec.short)
            if spec.separator:
                toolbar.addSeparator()
            toolbar.addAction(action)
        made[spec.name] = action
    return made


def shortcut_table(specs: Sequence[ActionSpec]) -> list[tuple[str, str]]:
    """(keys, what they do) of every action that has a shortcut, in the list's order."""
    return [(spec.shortcut, spec.tip or spec.text.replace("&", "")) for spec in specs if spec.shortcut]
