"""One list of actions: found by a few letters, pressed as the buttons they stand for, listed on the page of keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.views.shell.help import HelpWindow
from app.views.shell.palette import score
from app.views.shell.panels import PANELS
from app.views.shell.window_actions import ACTIONS, every_action

Open = Callable[..., Any]


@pytest.mark.parametrize(
    ("typed", "better", "worse"),
    [
        ("zi", "Zoom in", "Size of it"),
        ("dark", "Dark", "Dear market"),
        ("layout reset", "Reset layout", "Relay out reset"),
        ("EXP", "Export picture", "Wide explanations"),
    ],
)
def test_letters_fit_best_where_words_begin(typed: str, better: str, worse: str) -> None:
    good, poor = score(typed, better), score(typed, worse)
    assert good is not None
    assert poor is None or good > poor


def test_a_missing_letter_fits_nothing_and_nothing_typed_fits_all() -> None:
    assert score("zq", "Zoom in") is None
    assert score("", "Zoom in") == 0
    assert score("ni", "in") is None, "in order"


def test_the_palette_finds_and_does(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    palette = window.search
    window.actions_by_name["palette"].trigger()
    assert palette.isVisible()
    assert len(palette.names) >= 30
    qtbot.keyClicks(palette.typed, "last 10 m")
    assert palette.names[0] == "Last 10 min"
    qtbot.keyClick(palette.typed, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert window.monitor.view.window_of_time.length_s == 600

    window.actions_by_name["palette"].trigger()
    window.actions_made.submenus["recent"].aboutToShow.emit()  # what was offered of it is gone
    for row in range(palette.found.topLevelItemCount()):
        palette.found.setCurrentItem(palette.found.topLevelItem(row))
    qtbot.keyClicks(palette.typed, "nothing y")
    qtbot.keyClick(palette.typed, Qt.Key.Key_Escape)
    window.actions_by_name["palette"].trigger()
    qtbot.keyClicks(palette.typed, "xqzxq")
    assert palette.names == []
    qtbot.keyClick(palette.typed, Qt.Key.Key_Return)
    assert palette.isVisible(), "there is nothing to do"
    qtbot.keyClick(palette.typed, Qt.Key.Key_Escape)
    assert not palette.isVisible()

    # every menu is within its reach
    offered = {action.objectName() for _, action in every_action(window.menuBar())}
    assert {spec.name for spec in ACTIONS if not spec.submenu} <= offered
    assert any("GPU" in path and "A100" in action.text() for path, action in every_action(window.menuBar()))


def test_actions_of_buttons_follow_them(qtbot: QtBot, open_program: Open) -> None:
    window = open_program(FakeGpu(working)).window
    start = window.actions_by_name["start"]
    assert not start.isEnabled(), "its panel is not there yet"
    with qtbot.waitSignal(window.panels_loaded, timeout=20_000):
        pass
    tune = window.panels["tune"]
    assert not start.isEnabled(), "nothing is open"
    pressed: list[bool] = []
    button: QPushButton = tune.start
    button.clicked.disconnect()
    button.clicked.connect(lambda: pressed.append(True))
    button.setEnabled(True)
    assert start.isEnabled()
    window.workspaces.docks["tune"].close()
    window.workspaces.show_workspace("library")
    start.trigger()
    assert len(pressed) == 1
    assert tune.isVisible(), "where it happens is brought to sight"
    # a key of the traces is theirs alone: Space presses the button that has the focus
    view = window.monitor.view
    window.workspaces.bring("tune")
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert len(pressed) == 2
    assert view.window_of_time.live
    window.workspaces.go_to("traces")
    qtbot.keyClick(view, Qt.Key.Key_Space)
    assert not view.window_of_time.live
    button.setEnabled(False)
    assert not start.isEnabled()


def within(panel: QWidget, focused: QWidget | None) -> bool:
    return focused is not None and (panel is focused or panel.isAncestorOf(focused))


def test_a_panels_key_goes_to_it_wherever_it_is_and_never_closes_it(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    for spec in (spec for spec in PANELS if spec.shortcut):
        key = QKeySequence(spec.shortcut)[0]
        for before in ("wherever it is", "in front", "closed", "in another workspace"):
            if before == "closed" and spec.is_dock:
                window.actions_by_name[f"toggle_{spec.name}"].trigger()
                assert window.workspaces.docks[spec.name].isHidden(), "an unticked entry of the View menu closes it"
            if before == "in another workspace":
                window.workspaces.show_workspace("library" if spec.workspace != "library" else "watch")
            QTest.keyClick(window, key.key(), key.keyboardModifiers())
            panel = window.panels[spec.name]
            qtbot.waitUntil(lambda panel=panel: not panel.visibleRegion().isEmpty(), timeout=5_000)
            assert window.workspaces.current.spec.name == spec.workspace
            qtbot.waitUntil(lambda panel=panel: within(panel, window.focusWidget()), timeout=5_000)
            if spec.is_dock:
                assert window.actions_by_name[f"toggle_{spec.name}"].isChecked()


def test_the_inspector_is_shown_and_hidden_by_its_key_in_each_workspace_for_itself(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    window.workspaces.show_workspace("watch")
    action = window.actions_by_name["inspector"]
    assert not action.isChecked()
    QTest.keyClick(window, Qt.Key.Key_F4)
    assert window.panels["inspector"].isVisible()
    assert action.isChecked()
    window.workspaces.show_workspace("understand")
    assert action.isChecked(), "as at first"
    QTest.keyClick(window, Qt.Key.Key_F4)
    assert not window.panels["inspector"].isVisible()
    window.close()
    again = ready(qtbot, open_program(FakeGpu(working)))
    again.workspaces.show_workspace("tune")
    assert not again.workspaces.shows_inspector
    again.workspaces.show_workspace("watch")
    assert again.workspaces.shows_inspector


def test_f10_is_left_to_the_menu_bar_and_f11_is_full_screen(qtbot: QtBot, open_program: Open) -> None:
    assert not [spec.name for spec in ACTIONS if spec.shortcut == "F10"]
    window = ready(qtbot, open_program(FakeGpu(working)))
    full = window.actions_by_name["full_screen"]
    window.showMaximized()
    QTest.keyClick(window, Qt.Key.Key_F11)
    qtbot.waitUntil(window.isFullScreen, timeout=5_000)
    assert full.isChecked()
    QTest.keyClick(window, Qt.Key.Key_F11)
    qtbot.waitUntil(lambda: not window.isFullScreen(), timeout=5_000)
    assert not full.isChecked()
    assert window.isMaximized(), "as it was before"


def test_the_page_of_keys_lists_every_one(qtbot: QtBot) -> None:
    page = HelpWindow()
    qtbot.addWidget(page)
    page.show_page("keys")
    text = page.text.toPlainText()
    for spec in ACTIONS:
        if spec.shortcut:
            assert spec.shortcut in text
            assert spec.says in text


def test_what_was_opened_is_offered_again(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    menu = window.actions_made.submenus["recent"]
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions()] == ["nothing yet"]
    for name in ("gemm", "copy", "gemm"):
        window.open_specification(resources() / "examples" / f"{name}.toml", start=False)
        with qtbot.waitSignal(window.panels["tune"].file_opened, timeout=20_000):
            pass
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions() if not action.isSeparator()][:2] == ["gemm.toml", "copy.toml"]
    with qtbot.waitSignal(window.panels["tune"].file_opened, timeout=20_000) as opened:
        menu.actions()[1].trigger()
    assert Path(opened.args[0]).name == "copy.toml"
    window.settings.forget_recent()
    assert window.settings.recent == []


def test_docks_move_hide_and_come_back(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    watch, docks = window.workspaces.by_name["watch"], window.workspaces.docks
    window.workspaces.show_workspace("watch")
    first = watch.dockWidgetArea(docks["boards"])
    docks["boards"].setFloating(True)
    docks["channels"].close()
    window.workspaces.show_workspace("tune")
    tune = window.workspaces.by_name["tune"]
    tune.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, docks["tune"])
    window.close()

    again = ready(qtbot, open_program(FakeGpu(working)))
    docks, watch, tune = again.workspaces.docks, again.workspaces.by_name["watch"], again.workspaces.by_name["tune"]
    assert docks["channels"].isHidden(), "kept over a restart"
    assert not again.actions_by_name["toggle_channels"].isChecked()
    assert docks["boards"].isFloating()
    assert tune.dockWidgetArea(docks["tune"]) == Qt.DockWidgetArea.BottomDockWidgetArea
    again.actions_by_name["reset_layout"].trigger()
    for name, dock in docks.items():
        shown = name not in ("queue", "table", "convergence", "pool")  # drawers of Tune, which is being set up
        assert dock.isHidden() != shown, name
        assert not dock.isFloating(), name
        assert again.actions_by_name[f"toggle_{name}"].isChecked() == shown
    assert watch.dockWidgetArea(docks["boards"]) == first
    assert tune.dockWidgetArea(docks["tune"]) == Qt.DockWidgetArea.LeftDockWidgetArea


def test_operators_services_other_machines_and_the_pool_stand_in_the_menus_with_a_line_each(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    offered = [action for _, action in every_action(window.menuBar())]
    assert len(set(offered)) == len(offered), "each once, though it stands among the examples too"
    lines = {action.text().replace("&", ""): action.statusTip() for action in offered}
    for name in ("Tune an operator…", "Tune a program…", "Tune a served model…", "Boards of another machine…"):
        assert lines[name]
    examples = window.actions_made.submenus["examples"].actions()
    texts = [action.text() for action in examples]
    for title in ("Kernels", "Operators", "Programs", "Served models and other services", "Other boards"):
        assert title in texts
    for start in ("gemm: ", "mm: Matrix product", "vllm: vLLM: how many sequences", "program: "):
        assert any(text.startswith(start) for text in texts), start
    beyond = texts[texts.index("Other boards") + 1 :]
    assert [text.replace("&", "") for text in beyond] == [
        "Boards of another machine…",
        "Run on several boards…",
        "Run on the boards of a pool…",
    ]
