"""Stored sessions as the user meets them: found, named, opened, resumed, deleted, restored, dropped."""

from __future__ import annotations

import math
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, measured, plan_for, ready
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.analysis.in_turns import Block, compare_in_turns
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.check import Checked
from app.engine.session.check_history import keep as keep_comparison
from app.engine.session.check_history import kept_histories
from app.engine.store.database import Store
from app.engine.store.record import Label
from app.views.library.sessions_panel import NAME, TAGS, SessionsPanel
from app.views.shell.window import MainWindow

OpenProgram = Callable[..., Any]
SPACE = grid_space(4, 4)


def keep(store: Store, title: str, rows: int = 6, state: SessionState = SessionState.DONE) -> int:
    session = store.create_session(plan_for(SPACE, OBJECTIVE, title=title))
    store.append(session, [measured(SPACE, row) for row in range(rows)], elapsed_s=3.0)
    store.finish(session, state, "as planned")
    return session


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> Iterator[SessionsPanel]:
    for title in ("gemm", "stencil", "dot"):
        keep(store, title)
    made = SessionsPanel(Lab(store=store).context)
    qtbot.addWidget(made)
    made.resize(480, 640)
    made.show()
    settled(qtbot, made)
    yield made
    made.shutdown()


def settled(qtbot: QtBot, panel: SessionsPanel) -> None:
    qtbot.waitUntil(lambda: not panel.busy, timeout=5000)


def titles(panel: SessionsPanel) -> list[str]:
    return [panel.model.record(row).shown_name for row in range(panel.model.rowCount())]


def choose(panel: SessionsPanel, *sessions: int) -> None:
    panel.table.clearSelection()
    panel.choose(set(sessions))


def test_without_a_session_it_says_what_to_do_first(qtbot: QtBot, store: Store) -> None:
    panel = SessionsPanel(Lab(store=store).context)
    qtbot.addWidget(panel)
    panel.show()
    settled(qtbot, panel)
    assert panel.empty.isVisible()
    assert "Tune" in panel.empty.text()
    for button in (panel.open, panel.resume, panel.copy, panel.export, panel.delete, panel.favourite):
        assert not button.isEnabled()
    panel.shutdown()


def test_a_session_that_is_damaged_is_named_in_the_banner(qtbot: QtBot, store: Store) -> None:
    session = keep(store, "gemm")
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("UPDATE measurements SET measured = '{broken' WHERE row < 2")
    db.close()
    lab, faults = Lab(store=store), list[events.EngineFault]()
    lab.bridge.subscribe(events.EngineFault, faults.append)
    panel = SessionsPanel(lab.context)
    qtbot.addWidget(panel)
    settled(qtbot, panel)
    qtbot.waitUntil(lambda: bool(faults), timeout=5000)
    assert f"session {session} is damaged: 2 of its 6 measurements cannot be read" in faults[0].what
    assert titles(panel) == ["gemm"], "it is listed all the same"
    panel.shutdown()


def test_searching_finds_names_tags_notes_and_boards(qtbot: QtBot, panel: SessionsPanel, store: Store) -> None:
    assert titles(panel) == ["dot", "stencil", "gemm"], "newest first"
    store.label(2, Label("the good one", ("paper",), "before lunch"))
    panel.refresh()
    settled(qtbot, panel)
    for typed, found in (
        ("gem", ["gemm"]),
        ("good PAPER", ["the good one"]),
        ("lunch", ["the good one"]),
        ("stencil", ["the good one"]),
        ("test gpu", ["dot", "the good one", "gemm"]),
        ("nowhere", []),
    ):
        panel.search.setText(typed)
        assert titles(panel) == found, typed
    assert panel.table.isVisible(), "there are sessions, though none matches"
    panel.search.clear()
    panel.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert titles(panel) == ["gemm", "the good one", "dot"]


def test_a_name_tags_and_notes_are_written_when_they_are_left(qtbot: QtBot, panel: SessionsPanel, store: Store) -> None:
    choose(panel, 1)
    assert panel.label.name.placeholderText() == "gemm"
    panel.label.name.setFocus()
    qtbot.keyClicks(panel.label.name, "best of May")
    qtbot.keyClick(panel.label.name, Qt.Key.Key_Return)
    panel.label.tags.setText("a100,  nightly, a100")
    panel.label.notes.setPlainText("fan was loud")
    choose(panel, 2)
    settled(qtbot, panel)
    assert store.session(1).label == Label("best of May", ("a100", "nightly"), "fan was loud")
    assert store.session(2).label == Label()
    assert "best of May" in titles(panel)


def test_while_a_name_is_typed_the_list_may_change_and_the_field_keeps_the_focus(
    qtbot: QtBot, panel: SessionsPanel, store: Store
) -> None:
    """It is read again whenever a session is stored, also by Return in this very field."""
    choose(panel, 2)
    panel.activateWindow()
    panel.label.name.setFocus()
    qtbot.waitUntil(panel.label.name.hasFocus, timeout=5000)
    qtbot.keyClicks(panel.label.name, "best")
    keep(store, "scan")
    panel.refresh()
    settled(qtbot, panel)
    assert titles(panel)[0] == "scan"
    assert panel.label.name.hasFocus()
    qtbot.keyClicks(panel.label.name, " of May")
    qtbot.keyClick(panel.label.name, Qt.Key.Key_Return)
    settled(qtbot, panel)
    assert panel.label.name.hasFocus()
    assert store.session(2).label.name == "best of May"


def test_what_is_selected_stays_so_when_the_list_is_sorted_or_searched(panel: SessionsPanel) -> None:
    choose(panel, 1, 3)
    panel.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert {record.id for record in panel.chosen()} == {1, 3}
    panel.search.setText("gemm")
    assert {record.id for record in panel.chosen()} == {1}


def test_the_newest_is_selected_at_first_and_without_a_choice_nothing_is_said_of_one(
    qtbot: QtBot, panel: SessionsPanel, store: Store
) -> None:
    assert [record.shown_name for record in panel.chosen()] == ["dot"]
    assert panel.open.isEnabled()
    panel.table.clearSelection()
    keep(store, "scan")
    panel.refresh()
    settled(qtbot, panel)
    assert panel.chosen() == [], "what the user left stays"
    assert panel.front.accessibleName() == "No session"


@pytest.mark.parametrize(("width", "beside"), [(900, False), (1700, True)])
def test_the_details_stand_beside_the_list_where_there_is_width(panel: SessionsPanel, width: int, beside: bool) -> None:
    panel.resize(width, 700)
    QApplication.processEvents()
    places = [each.mapTo(panel, each.rect().topLeft()) for each in (panel.front, panel.label)]
    right = panel.table.mapTo(panel, panel.table.rect().bottomRight())
    assert all((place.x() > right.x()) == beside and (place.y() > right.y()) != beside for place in places)


def test_names_and_tags_have_the_width_that_the_other_columns_leave(panel: SessionsPanel) -> None:
    narrow = [panel.table.columnWidth(column) for column in (NAME, TAGS)]
    panel.resize(1800, 700)
    QApplication.processEvents()
    wide = [panel.table.columnWidth(column) for column in (NAME, TAGS)]
    assert all(after > before for after, before in zip(wide, narrow, strict=True))
    assert panel.table.horizontalHeader().length() <= panel.table.viewport().width(), "and all are in sight"
    panel.table.setColumnWidth(NAME, 500)
    panel.resize(1700, 700)
    QApplication.processEvents()
    assert panel.table.columnWidth(NAME) == 500, "as the user wants it"


def test_a_star_is_set_by_click_and_by_button(qtbot: QtBot, panel: SessionsPanel, store: Store) -> None:
    panel.table.clicked.emit(panel.model.index(0, 0))
    settled(qtbot, panel)
    assert store.session(3).label.favourite
    choose(panel, 1)
    panel.favourite.click()
    settled(qtbot, panel)
    assert store.session(1).label.favourite
    assert panel.favourite.isChecked(), "what was chosen stays chosen"
    panel.search.setText("favourite")
    assert titles(panel) == ["dot", "gemm"]


def test_deleting_can_be_undone(qtbot: QtBot, panel: SessionsPanel, store: Store) -> None:
    choose(panel, 1, 3)
    assert not panel.open.isEnabled(), "only one can be looked at"
    place = panel.delete.pos()
    panel.delete.click()
    settled(qtbot, panel)
    assert panel.delete.pos() == place, "nothing moves under the pointer"
    assert titles(panel) == ["stencil"]
    assert panel.undo.isVisible()
    panel.undo.click()
    settled(qtbot, panel)
    assert titles(panel) == ["dot", "stencil", "gemm"]
    assert not panel.undo.isVisible()
    assert len(store.load(1).table) == 6


def test_one_that_runs_is_neither_deleted_nor_resumed(qtbot: QtBot, panel: SessionsPanel, store: Store) -> None:
    running = store.create_session(plan_for(SPACE, OBJECTIVE, title="now"))
    panel.refresh()
    settled(qtbot, panel)
    choose(panel, running)
    assert panel.open.isEnabled()
    for button in (panel.delete, panel.resume):
        assert not button.isEnabled()
        assert button.toolTip() == "It is running: stop it first"
    choose(panel, 1)
    assert panel.resume.isEnabled()
    assert panel.resume.toolTip() == "Continue it where it ended"
    assert panel.compare.toolTip() == "Select two sessions or more, with Ctrl or Shift"


def test_a_copy_is_listed_and_chosen(qtbot: QtBot, panel: SessionsPanel, store: Store) -> None:
    choose(panel, 2)
    panel.copy.click()
    settled(qtbot, panel)
    assert titles(panel)[0] == "stencil (copy)"
    assert [record.id for record in panel.chosen()] == [4]
    assert len(store.load(4).table) == 6


def test_opening_and_going_on_are_asked_for(qtbot: QtBot, panel: SessionsPanel) -> None:
    choose(panel, 2)
    with qtbot.waitSignal(panel.open_asked) as opened:
        panel.open.click()
    assert opened.args == [2]
    with qtbot.waitSignal(panel.resume_asked) as resumed:
        panel.resume.click()
    assert resumed.args == [2]
    with qtbot.waitSignal(panel.open_asked) as opened:
        panel.table.activated.emit(panel.model.index(0, 1))
    assert opened.args == [3]


def test_a_number_and_a_count_each_have_their_word(panel: SessionsPanel, store: Store, qtbot: QtBot) -> None:
    space = grid_space(4, 4)
    beyond = store.create_session(plan_for(space, OBJECTIVE, title="beyond", max_evaluations=3))
    store.append(beyond, [measured(space, row) for row in range(5)])
    store.finish(beyond, SessionState.DONE)
    panel.refresh()
    settled(qtbot, panel)
    model = panel.model
    shown = [[model.index(row, column).data() for column in (1, 3)] for row in range(2)]
    assert shown == [["Session 4 · beyond", "5 measured"], ["Session 3 · dot", "6 of 32 measured"]]


def test_several_are_compared_or_reported_with_the_topmost_first(
    qtbot: QtBot, panel: SessionsPanel, tmp_path: Path
) -> None:
    choose(panel, 2)
    assert not panel.compare.isEnabled()
    assert panel.report.isEnabled()
    choose(panel, 1, 3)
    with qtbot.waitSignal(panel.compare_asked) as compared:
        panel.compare.click()
    assert compared.args == [(3, 1)]
    panel.report.click()
    dialog = panel.findChild(QFileDialog)
    with qtbot.waitSignal(panel.report_asked) as reported:
        dialog.fileSelected.emit(str(tmp_path / "two.html"))
    assert reported.args == [(3, 1), tmp_path / "two.html"]
    dialog.close()


def test_a_session_without_a_measurement_is_neither_compared_nor_reported(
    qtbot: QtBot, panel: SessionsPanel, store: Store
) -> None:
    empty = keep(store, "nothing", rows=0)
    panel.refresh()
    settled(qtbot, panel)
    choose(panel, 1, empty)
    assert not panel.compare.isEnabled()
    assert not panel.report.isEnabled()


def test_a_session_is_exported_and_comes_back(qtbot: QtBot, panel: SessionsPanel, store: Store, tmp_path: Path) -> None:
    choose(panel, 1)
    panel.export_chosen(tmp_path / "out")
    settled(qtbot, panel)
    cache = next((tmp_path / "out").glob("*/*-cache.json"))
    assert str(tmp_path / "out") in panel.message.text()
    with qtbot.waitSignal(panel.open_asked, timeout=5000) as opened:
        panel.import_files([cache])
    settled(qtbot, panel)
    assert len(store.load(opened.args[0]).table) == 6
    assert [record.id for record in panel.chosen()] == opened.args


def test_a_file_that_is_none_of_ours_is_one_line(qtbot: QtBot, store: Store, tmp_path: Path) -> None:
    lab = Lab(store=store)
    panel = SessionsPanel(lab.context)
    qtbot.addWidget(panel)
    path = tmp_path / "notes.csv"
    path.write_text("no,header\nof,ours\n")
    with qtbot.waitSignal(lab.bridge.signal(events.EngineFault), timeout=5000) as fault:
        panel.import_files([path])
    assert "notes.csv" in fault.args[0].what
    panel.shutdown()


# --- in the window ----------------------------------------------------------------------------------------------------


def drop(window: MainWindow, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    action, button, modifier = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(QPoint(50, 50), action, data, button, modifier))


def test_dropped_files_become_a_session_and_a_draft(qtbot: QtBot, open_program: OpenProgram, tmp_path: Path) -> None:
    from app.engine.report.export import export_session

    table = filled(SPACE)
    cache, _ = export_session(plan_for(SPACE, OBJECTIVE), table, None, None, tmp_path, ["cache"])
    window = ready(qtbot, open_program())
    with qtbot.waitSignal(window.bridge.signal(events.SessionChanged), timeout=20_000) as changed:
        drop(window, cache)
    assert changed.args[0].progress.state is SessionState.DONE
    shown = window.result.table
    assert shown is not None
    assert len(shown) == len(table)
    assert window.panels["table"].results.results.rowCount() == len(table)
    with qtbot.waitSignal(window.reports.written, timeout=20_000) as written:
        window.reports.write(tmp_path / "report.html")
    report = written.args[0].read_text()
    assert report.startswith("<!DOCTYPE html>")
    assert "Test GPU" in report
    with qtbot.waitSignal(window.panels["tune"].file_opened, timeout=20_000) as opened:
        drop(window, resources() / "examples" / "copy.toml")
    assert opened.args[0].name == "copy.toml"
    assert not window.notices.problems


def test_results_of_a_service_that_are_dropped_together_are_one_sheet_with_the_power_of_their_log(
    qtbot: QtBot, open_program: OpenProgram, tmp_path: Path
) -> None:
    for rate in ("1", "8"):
        file = f"result-short-rate{rate}.json"
        shutil.copy(Path(__file__).parents[2] / "engine/formats/serving" / file, tmp_path)
    power = tmp_path / "power.csv"
    readings = [f"2026/04/27 {10 + m // 60}:{m % 60:02d}:00, 250.00 W" for m in range(180)]
    power.write_text("\n".join(["timestamp, power.draw [W]", *readings, ""]))
    window = ready(qtbot, open_program())
    drop(window, tmp_path / "result-short-rate1.json", power, tmp_path / "result-short-rate8.json")
    qtbot.waitUntil(lambda: "table" in window.side_windows.by_name, timeout=20_000)
    sheet = window.side_windows.by_name["table"]
    qtbot.waitUntil(sheet.keep.isEnabled, timeout=20_000)
    assert "power is that of 1 board: power" in sheet.message.text()
    assert "Best for min:energy_j: request_rate 8.0" in sheet.message.text()
    with qtbot.waitSignal(window.bridge.signal(events.SessionChanged), timeout=20_000) as changed:
        sheet.keep.click()
    assert changed.args[0].progress.state is SessionState.DONE
    assert window.result.table is not None
    assert set(window.result.table.values("power_w")) == {250.0}
    assert not (tmp_path / "wattridge-roles.json").exists(), "nothing was said of a column"


def test_what_is_opened_while_dropped_files_are_read_is_not_replaced_by_them(
    qtbot: QtBot, open_program: OpenProgram, tmp_path: Path
) -> None:
    from app.engine.report.export import export_session

    window = ready(qtbot, open_program())
    tune, sessions = window.panels["tune"], window.panels["sessions"]
    caches = []
    for name in ("first", "second"):
        plan = plan_for(SPACE, OBJECTIVE, title=name)
        caches += export_session(plan, filled(SPACE), None, None, tmp_path / name, ["cache"])[:1]
    drop(window, *caches, resources() / "examples" / "stencil.toml")
    with qtbot.waitSignal(tune.file_opened, timeout=20_000):
        window.open_specification(resources() / "examples" / "copy.toml")
    qtbot.waitUntil(lambda: sessions.model.total == 2 and not sessions.busy, timeout=20_000)
    qtbot.waitUntil(lambda: tune.draft is not None, timeout=20_000)
    assert tune.draft.path.name == "copy.toml"
    assert window.result.session is None, "they are kept, and not shown"
    assert "stencil.toml" in sessions.message.text()
    with qtbot.waitSignal(window.bridge.signal(events.SessionChanged), timeout=20_000):
        sessions.open.click()  # by hand they are
    assert window.result.session is not None
    with qtbot.waitSignal(tune.file_opened, timeout=20_000) as opened:
        drop(window, resources() / "examples" / "stencil.toml")  # the next one is opened again
    assert opened.args[0].name == "stencil.toml"


def test_a_log_of_clocks_that_is_dropped_goes_to_the_model(
    qtbot: QtBot, open_program: OpenProgram, tmp_path: Path
) -> None:
    log = tmp_path / "clocks.csv"
    rows = [f"{mhz}, {80 + mhz * 0.1:.1f}" for mhz in range(300, 1500, 100)]
    log.write_text("\n".join(["graphics_clock_mhz, power_w", *rows]) + "\n")
    window = ready(qtbot, open_program())
    drop(window, log)
    qtbot.waitUntil(lambda: bool(window.panels.has("model") and window.panels["model"].list.entries), timeout=20_000)
    assert window.workspaces.current.spec.name == "understand"
    assert not window.notices.problems


def test_a_log_of_power_that_is_dropped_is_shown_in_a_window_of_its_own_and_watched_from_there(
    qtbot: QtBot, open_program: OpenProgram, tmp_path: Path
) -> None:
    log = tmp_path / "power.csv"
    log.write_text("timestamp,power\n" + "".join(f"{1.7e9 + n / 10:.1f},{100 + n % 7}\n" for n in range(200)))
    window = ready(qtbot, open_program())
    drop(window, log)
    qtbot.waitUntil(lambda: "log" in window.side_windows.by_name, timeout=20_000)
    shown = window.side_windows.by_name["log"]
    qtbot.waitUntil(lambda: "energy by trapezoid" in shown.words.toPlainText(), timeout=20_000)
    shown.watch.click()
    qtbot.waitUntil(lambda: window.board.gpu.info.uuid == f"recorded:{log}", timeout=20_000)
    qtbot.waitUntil(lambda: len(window.board.trace) > 3, timeout=20_000)
    assert not window.notices.problems


def test_a_table_that_is_dropped_becomes_a_session_once_its_columns_are_chosen(
    qtbot: QtBot, open_program: OpenProgram, tmp_path: Path
) -> None:
    table = tmp_path / "sweep.csv"
    table.write_text(
        "clock_mhz,cap,time_s,energy_j\n" + "".join(f"{c},{p},{9e3 / c},{c + p}\n" for c in (900, 1200) for p in (1, 2))
    )
    window = ready(qtbot, open_program())
    drop(window, table)
    qtbot.waitUntil(lambda: "table" in window.side_windows.by_name, timeout=20_000)
    shown = window.side_windows.by_name["table"]
    qtbot.waitUntil(shown.keep.isEnabled, timeout=20_000)
    with qtbot.waitSignal(window.bridge.signal(events.SessionChanged), timeout=20_000):
        shown.keep.click()
    assert window.result.table is not None
    assert (len(window.result.table), window.result.table.space.names) == (4, ("graphics_clock_mhz", "cap"))
    assert not window.notices.problems


def test_selected_sessions_are_compared_and_their_report_opens(
    qtbot: QtBot, open_program: OpenProgram, store: Store, desktop: Any, tmp_path: Path
) -> None:
    for title in ("gemm", "stencil", "dot"):
        keep(store, title)
    window = ready(qtbot, open_program(FakeGpu(working)))
    sessions, compare = window.panels["sessions"], window.panels["compare"]
    qtbot.waitUntil(lambda: sessions.model.total == 3, timeout=20_000)
    choose(sessions, 1, 3)
    sessions.compare.click()
    qtbot.waitUntil(lambda: compare.result is not None, timeout=20_000)
    assert compare.ticked() == [3, 1]
    choose(sessions, 2, 3)
    sessions.compare.click()
    qtbot.waitUntil(lambda: compare.ticked() == [3, 2], timeout=20_000)
    report = tmp_path / "two.html"
    sessions.report_asked.emit((3, 2), report)
    qtbot.waitUntil(lambda: desktop.opened == [report], timeout=20_000)
    text = report.read_text()
    assert "dot on Test GPU" in text
    assert "session 2" in text
    assert not window.notices.problems


_CUT_OFF = """
import os, sys
sys.path[:0] = sys.argv[1:]
from fixtures.lab import OBJECTIVE, grid_space, measured, plan_for
from app.engine.store.database import Store
space = grid_space(4, 4)
store = Store()
session = store.create_session(plan_for(space, OBJECTIVE, title="cut off", gpu="Fake A100", source="simulated"))
store.append(session, [measured(space, row) for row in range(5)])
os._exit(9)
"""


def test_a_session_that_a_crash_cut_off_is_offered_once(qtbot: QtBot, open_program: OpenProgram) -> None:
    here = Path(__file__).resolve()
    subprocess.run(
        [sys.executable, "-c", _CUT_OFF, str(here.parents[3]), str(here.parents[2])], check=False, timeout=60
    )
    window = ready(qtbot, open_program(FakeGpu(working)))
    assert "Session 1, cut off, was running when the program ended: 5 of 32 measured" in window.banner.text
    assert window.banner.offered.text() == "Resume"
    asked: list[int] = []
    window.panels["tune"].open_session = lambda session, **_: asked.append(session)
    window.banner.offered.click()
    assert asked == [1]
    assert window.banner.text == ""
    window.close()
    again = ready(qtbot, open_program(FakeGpu(working)))
    assert again.banner.text == "", "it is in the list; it is offered once"
    assert again.panels["sessions"].model.total >= 0


@pytest.mark.parametrize("gpu", [FakeGpu(working, name="Another"), FakeGpu(working, source="nvml")])
def test_one_of_another_board_can_be_looked_at(qtbot: QtBot, open_program: OpenProgram, gpu: FakeGpu) -> None:
    here = Path(__file__).resolve()
    subprocess.run(
        [sys.executable, "-c", _CUT_OFF, str(here.parents[3]), str(here.parents[2])], check=False, timeout=60
    )
    window = ready(qtbot, open_program(gpu))
    assert window.banner.offered.text() == "Open"
    submitted: list[Any] = []
    window.bridge.submit = submitted.append
    window.banner.offered.click()
    assert submitted == [events.Open(1)]


def test_the_history_of_an_energy_test_is_listed_opened_and_deleted(qtbot: QtBot, open_program: OpenProgram) -> None:
    blocks = tuple(Block("AB"[at % 2], at, at + 1.0, 1.0, 5.0, math.nan, 1) for at in range(60))
    for before, commit, change in (("first", "aaaa", 0.001), ("aaaa", "bbbb", 0.02), ("bbbb", "cccc", 0.0)):
        units = np.random.default_rng(1).normal(change, 0.002, 30)
        result = replace(compare_in_turns(blocks), units=units)
        keep_comparison(
            Checked("A", "B", "NVIDIA H200", "nvml", "run", result, blocks), "repo", "b.py", (before, commit)
        )
    window = ready(qtbot, open_program(FakeGpu(working)))
    sessions = window.panels["sessions"]
    window.workspaces.go_to("sessions")
    qtbot.waitUntil(lambda: sessions.model.total == 1 and not sessions.busy, timeout=60_000)
    row = sessions.model.record(0)
    cells = [sessions.model.index(0, column).data() for column in (1, 2, 3, 5)]
    assert cells == ["b.py", "energy test", "3 comparisons", "NVIDIA H200"]
    sessions.choose({row.id})
    sessions.open.click()
    assert sessions.history.isVisible()
    table = sessions.history.table
    assert [table.item(place, 6).text() for place in range(table.rowCount())] == ["", "change point", ""]
    sessions.history.close()
    sessions.delete.click()
    qtbot.waitUntil(lambda: sessions.model.total == 0 and not sessions.busy, timeout=60_000)
    assert "the energy test b.py" in sessions.message.text()
    assert kept_histories() == []
    sessions.undo.click()
    qtbot.waitUntil(lambda: sessions.model.total == 1 and not sessions.busy, timeout=60_000)
