"""The workspace Program in the window: keys, files that are opened or dropped, the Library's rows, the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from fixtures.profiles import TRACE, small_profile
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.cli import main
from app.engine.profile.kept_profile import keep_profile, kept_profiles, save_profile
from app.engine.profile.program_profile import NextStep
from app.views.library.file_rows import FileRow

OpenProgram = Callable[..., Any]
LIMIT_MS = 60_000


@pytest.fixture
def window(qtbot: QtBot, open_program: OpenProgram) -> Any:
    return ready(qtbot, open_program(FakeGpu(working)))


def test_ctrl_1_to_7_show_the_seven_workspaces_in_the_order_of_the_rail(window: Any) -> None:
    names = ["home", "watch", "tune", "program", "understand", "control", "library"]
    assert list(window.workspaces.rail.buttons) == names
    for number, name in enumerate(names, 1):
        QTest.keyClick(window, getattr(Qt.Key, f"Key_{number}"), Qt.KeyboardModifier.ControlModifier)
        assert window.workspaces.current.spec.name == name


def test_a_dropped_profile_is_shown_and_a_dropped_trace_asks_for_its_power(
    window: Any, qtbot: QtBot, tmp_path: Path
) -> None:
    path = save_profile(tmp_path / "dropped.wprofile", *small_profile())
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, none))
    qtbot.waitUntil(lambda: window.panels["program"].opened is not None, timeout=LIMIT_MS)
    assert window.workspaces.current.spec.name == "program"
    assert path in window.settings.recent
    window.file_opener.open(TRACE)
    qtbot.waitUntil(lambda: window.panels["program"].power.isVisible(), timeout=LIMIT_MS)
    assert "Choose the power" in window.panels["program"].message.text()


def test_the_library_lists_profiles_opens_deletes_and_puts_them_back(window: Any, qtbot: QtBot) -> None:
    path = keep_profile(*small_profile())
    sessions = window.panels["sessions"]
    window.workspaces.go_to("sessions")
    qtbot.waitUntil(lambda: sessions.model.total == 1 and not sessions.busy, timeout=LIMIT_MS)
    row = sessions.model.record(0)
    assert isinstance(row, FileRow)
    assert sessions.model.index(0, 2).data() == "profile"
    for typed, shown in (("h200 profile", 1), ("nothing", 0), ("", 1)):
        sessions.search.setText(typed)
        assert sessions.model.rowCount() == shown
    for column in range(9):
        sessions.model.sort(column)
        assert sessions.model.rowCount() == 1
    sessions.choose({row.id})
    assert sessions.open.isEnabled()
    assert not any(
        button.isEnabled() for button in (sessions.copy, sessions.export, sessions.favourite, sessions.resume)
    )
    sessions.delete.click()
    qtbot.waitUntil(lambda: sessions.model.total == 0 and not sessions.busy, timeout=LIMIT_MS)
    assert kept_profiles() == []
    sessions.undo.click()
    qtbot.waitUntil(lambda: sessions.model.total == 1 and not sessions.busy, timeout=LIMIT_MS)
    assert [each.path for each in kept_profiles()] == [path]
    sessions.choose({row.id})
    sessions.open.click()
    qtbot.waitUntil(lambda: window.panels["program"].opened is not None, timeout=LIMIT_MS)
    assert window.panels["program"].opened.path == path


def test_the_focus_goes_through_the_views_in_the_order_in_which_they_stand(window: Any, qtbot: QtBot) -> None:
    steps = [
        NextStep("gemm", 0.3, "tune it", "its shape is known", f"wattridge tune mm:1,{n},{n},{n}") for n in (64, 128)
    ]
    profile, attributed = small_profile()
    window.open_program(keep_profile(replace(profile, next_steps=tuple(steps)), attributed))
    panel = window.panels["program"]
    qtbot.waitUntil(lambda: panel.opened is not None and not panel.busy, timeout=LIMIT_MS)
    panel.open_file.setFocus()
    met = []
    for _ in range(16):
        met.append(QApplication.focusWidget())
        QTest.keyClick(met[-1], Qt.Key.Key_Tab)
    order = [panel.open_file, panel.others, panel.zoom, panel.report, panel.timeline, panel.icicle, panel.table.search,
             panel.table.table, panel.words]  # fmt: skip
    assert [met.index(widget) for widget in order] == sorted(met.index(widget) for widget in order)
    panel.tabs.setCurrentIndex(1)
    panel.tabs.tabBar().setFocus()
    for row in panel._steps.rows:
        for widget in (row.command, row.copy):
            QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
            assert QApplication.focusWidget() is widget
    panel._steps.rows[1].copy.click()
    assert QGuiApplication.clipboard().text() == steps[1].command


def test_the_window_and_the_command_write_a_report_of_a_profile(
    window: Any, qtbot: QtBot, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep_profile(*small_profile())
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(kept), "--out", "by-command.html"]) == 0
    assert "by-command.html" in capsys.readouterr().out
    window.panels["program"].report_asked.emit(small_profile()[0], tmp_path / "by-window.html")
    qtbot.waitUntil((tmp_path / "by-window.html").exists, timeout=LIMIT_MS)
    for name in ("by-command.html", "by-window.html"):
        text = (tmp_path / name).read_text()
        for words in ("Joules of train-trace on NVIDIA H200", "backward", "gaps: nothing runs", "95 %"):
            assert words in text
        assert "<script" not in text


def test_a_click_beside_every_slice_chooses_nothing(window: Any, qtbot: QtBot) -> None:
    window.open_program(keep_profile(*small_profile()))
    panel = window.panels["program"]
    qtbot.waitUntil(lambda: panel.timeline is not None and not panel.busy, timeout=LIMIT_MS)
    QTest.mouseClick(
        panel.timeline, Qt.MouseButton.LeftButton, pos=QPoint(panel.timeline.width() // 2, panel.timeline.height() - 60)
    )
    assert panel.timeline.chosen is None
    assert "board busy" in panel.words.toPlainText()
