"""One search (Ctrl+K) over actions, sessions, boards, settings and the guide; Enter goes to what is marked."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, grid_space, measured, plan_for, ready
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTreeWidgetItem
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.store.database import Store
from app.engine.store.record import Label
from app.views.shell.app import Program
from app.views.shell.finding import guide
from app.views.shell.help import HelpWindow
from app.views.shell.palette import Entry, best_fits
from app.views.shell.settings_window import SettingsWindow
from app.views.shell.window import MainWindow

Open = Callable[..., Program]


def keep(store: Store, title: str) -> int:
    space = grid_space(4, 4)
    session = store.create_session(plan_for(space, OBJECTIVE, title=title))
    store.append(session, [measured(space, row) for row in range(6)], elapsed_s=3.0)
    store.finish(session, SessionState.DONE, "as planned")
    return session


@pytest.fixture
def window(qtbot: QtBot, open_program: Open) -> MainWindow:
    window = ready(qtbot, open_program(FakeGpu(working)))
    for title in ("saxpy", "stencil"):
        keep(window.services.store, title)
    window.services.store.label(2, Label("night run", ("paper",), "before lunch"))
    return window


def search(qtbot: QtBot, window: MainWindow, typed: str, wanted: str) -> None:
    """Type it once everything is read, and mark the entry of that name."""
    if not window.search.isVisible():
        window.actions_by_name["palette"].trigger()
    qtbot.waitUntil(lambda: not window.search._reading.busy, timeout=20_000)
    window.search.typed.clear()
    qtbot.keyClicks(window.search.typed, typed)
    for _ in window.search.names:
        if marked(window).text(0) == wanted:
            return
        qtbot.keyClick(window.search.typed, Qt.Key.Key_Down)
    raise AssertionError((wanted, window.search.names))


def marked(window: MainWindow) -> QTreeWidgetItem:
    item = window.search.found.currentItem()
    assert item is not None
    return item


def groups(window: MainWindow) -> list[str]:
    found = window.search.found
    items = [found.topLevelItem(row) for row in range(found.topLevelItemCount())]
    return [item.text(0) for item in items if item is not None and not item.flags() & Qt.ItemFlag.ItemIsSelectable]


def test_groups_are_labelled_and_the_best_fit_comes_first(qtbot: QtBot, window: MainWindow) -> None:
    search(qtbot, window, "", "saxpy · session 1")
    assert groups(window) == ["Actions", "Boards", "Settings", "Sessions", "Guide"]
    for typed, group, name in (
        ("saxpy", "Sessions", "saxpy · session 1"),
        ("ngtrn", "Sessions", "night run · session 2"),
        ("lunch", "Sessions", "night run · session 2"),
        ("carbon", "Settings", "Carbon intensity"),
        ("nvidia h200", "Boards", "NVIDIA H200 (simulated)"),
    ):
        search(qtbot, window, typed, name)
        assert (groups(window)[0], window.search.names[0]) == (group, name), typed


def test_enter_opens_a_session(qtbot: QtBot, window: MainWindow) -> None:
    search(qtbot, window, "stencil", "night run · session 2")
    qtbot.keyClick(window.search.typed, Qt.Key.Key_Return)
    assert not window.search.isVisible()
    qtbot.waitUntil(lambda: window.result.session == 2, timeout=20_000)


def test_enter_shows_a_board(qtbot: QtBot, window: MainWindow) -> None:
    search(qtbot, window, "h200", "NVIDIA H200 (simulated)")
    qtbot.keyClick(window.search.typed, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "H200" in window.board.gpu.info.name, timeout=20_000)


@pytest.mark.parametrize(("name", "field"), [("Keep samples", "samples"), ("Electricity", "load.price")])
def test_enter_goes_to_the_row_of_a_setting(qtbot: QtBot, window: MainWindow, name: str, field: str) -> None:
    search(qtbot, window, name, name)
    made = window.side_windows.by_name["settings"]
    assert isinstance(made, SettingsWindow)
    assert not made.isVisible(), "to look for its rows shows nothing"
    assert {"Colours", "Keep samples", "Electricity", "Data folder"} <= made.rows().keys()
    qtbot.keyClick(window.search.typed, Qt.Key.Key_Return)
    assert made.isVisible()
    assert made.focusWidget() is attrgetter(field)(made)


def test_enter_opens_the_guide_at_the_heading(qtbot: QtBot, window: MainWindow) -> None:
    search(qtbot, window, "which power source is", "Which power source is used")
    assert marked(window).text(1) == "Measuring right"
    qtbot.keyClick(window.search.typed, Qt.Key.Key_Return)
    page = window.side_windows.by_name["help"]
    assert isinstance(page, HelpWindow)
    assert page.text.textCursor().block().text() == "Which power source is used"
    page.search.click()
    assert window.search.isVisible(), "the guide has no search of its own"


def test_every_heading_of_the_guide_is_found_where_it_stands(qtbot: QtBot) -> None:
    addresses: list[str] = []
    entries = guide(addresses.append)
    page = HelpWindow()
    qtbot.addWidget(page)
    for entry in entries:
        entry.do()
        page.show_page(addresses[-1])
        if "#" in addresses[-1]:
            assert page.text.textCursor().block().text() == entry.name
    assert len(entries) > 100


def test_the_name_comes_before_the_description_and_scattered_letters_count_where_no_word_is_found() -> None:
    def entry(name: str, words: str = "", enabled: bool = True) -> Entry:
        return Entry("Actions", name, "", lambda: None, words=words, enabled=enabled)

    entries = [
        entry("Stop", "pause the session"),
        entry("Pause", enabled=False),
        entry("Pause or resume"),
        entry("Poor as useless"),
    ]
    assert [fit[-1].name for fit in best_fits("pause", entries)] == [
        "Pause or resume",
        "Pause",
        "Stop",
    ]
    assert [fit[-1].name for fit in best_fits("poaus", entries)] == ["Poor as useless"]
    assert [fit[-1].name for fit in best_fits("p.[a", entries)] == []


def test_the_best_of_very_many_is_found(qtbot: QtBot) -> None:
    entries = [Entry("Sessions", f"gemm · session {n}", "", lambda: None) for n in range(5000)]
    entries.append(Entry("Sessions", "transpose · session 7777", "", lambda: None))
    for typed, name in (
        ("77 sess gemm", "gemm · session 77"),
        ("trnsp", "transpose · session 7777"),
        ("gemm 4999", "gemm · session 4999"),
    ):
        assert best_fits(typed, entries)[0][-1].name == name
