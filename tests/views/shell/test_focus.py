"""The focus goes to what comes first, and looking for it changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import shiboken6
from fixtures.lab import ready
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.views.shared.widgets import first_to_focus
from app.views.shell.app import Program
from app.views.shell.panels import PANELS
from app.views.shell.window import MainWindow

VIEWS = Path(__file__).resolve().parents[3] / "app" / "views"


def field(inside: QWidget, x: int, y: int) -> QLineEdit:
    made = QLineEdit(inside)
    made.setGeometry(x, y, 60, 20)
    return made


def test_the_first_in_reading_order_that_can_take_it_gets_the_focus(qtbot: QtBot) -> None:
    inside = QWidget()
    qtbot.addWidget(inside)
    inside.resize(300, 200)
    assert first_to_focus(inside) is None
    below, right, left = field(inside, 0, 60), field(inside, 120, 8), field(inside, 20, 12)
    hidden, disabled, skipped = (field(inside, 0, 0) for _ in range(3))
    inside.show()
    hidden.hide()
    disabled.setEnabled(False)
    skipped.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    assert first_to_focus(inside) is left
    left.hide()
    assert first_to_focus(inside) is right
    right.hide()
    assert first_to_focus(inside) is below


def test_nobody_walks_along_the_chain_that_pyside_takes_for_parents_and_children() -> None:
    for path in VIEWS.rglob("*.py"):
        if path.name != "widgets.py":
            assert "InFocusChain" not in path.read_text(encoding="utf-8"), path


def is_with_its_own(widget: QWidget) -> bool:
    """Python takes it for the child of a widget that it lies in."""
    [parent] = [line for line in shiboken6.dump(widget).splitlines() if line.startswith("parent")]
    around, above = [], widget.parentWidget()
    while above is not None:
        around.append(above)
        above = above.parentWidget()
    return any(f"at {id(each):#x}>" in parent for each in around)


def is_in(window: MainWindow, name: str) -> bool:
    """The focus is within that panel."""
    return bool(window.panels[name].isAncestorOf(window.focusWidget()))


def test_going_to_a_panel_leaves_its_widgets_to_their_parents(
    qtbot: QtBot, open_program: Callable[..., Program]
) -> None:
    window = ready(qtbot, open_program())
    for spec in PANELS:
        window.workspaces.go_to(spec.name)
        qtbot.waitUntil(partial(is_in, window, spec.name), timeout=20_000)  # once the panel knows what it shows
    held = [*(window.panels[spec.name] for spec in PANELS), window.panels["front"].show_menu]
    assert [type(widget).__name__ for widget in held if not is_with_its_own(widget)] == []


def test_tab_leaves_every_table() -> None:
    """Qt's tables keep it for their cells unless they are asked not to."""
    tables = r"QTable(?:View|Widget)\((?!QTable)|class \w+\(QTable(?:View|Widget)[,)]"
    sources = {path: path.read_text(encoding="utf-8") for path in VIEWS.rglob("*.py")}
    with_tables = [path for path, text in sources.items() if re.search(tables, text)]
    assert len(with_tables) > 10
    assert [p.name for p in with_tables if not re.search("setTabKeyNavigation|set_up_table", sources[p])] == []
