"""Apply, export and report what is chosen: what came of it, and why it cannot be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, measured, plan_for, progress
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocumentFragment
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import SearchSpace
from app.views.inspector.answer_bar import AnswerBar
from app.views.inspector.inspector_panel import InspectorPanel
from app.views.shared.panel import end_all
from app.views.shared.settings import Settings

GPU = "Fake A100"


@pytest.fixture
def lab() -> Lab:
    return Lab(FakeGpu(working, source="nvml", name=GPU))


@pytest.fixture
def bar(lab: Lab, qtbot: QtBot) -> Iterator[AnswerBar]:
    made = AnswerBar(lab.context, Settings())
    qtbot.addWidget(made)
    made.show()
    yield made
    end_all(made)


def finished(lab: Lab, best: int | None = 9, source: str = "nvml", gpu: str = GPU) -> ResultTable:
    """A session that has ended, as one that is opened."""
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE, source=source, gpu=gpu))
    lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE, best)))
    return table


def said(bar: AnswerBar) -> str:
    return QTextDocumentFragment.fromHtml(bar.said.text()).toPlainText()


def test_without_a_session_nothing_can_be_done_and_all_three_say_so(bar: AnswerBar) -> None:
    for button in (bar.apply, bar.export, bar.report):
        assert not button.isEnabled()
        assert "There is no session yet" in button.toolTip()
    assert "There is no session yet" in said(bar)


def test_a_finished_session_is_exported_and_applied_at_once(lab: Lab, bar: AnswerBar) -> None:
    table = finished(lab)
    assert bar.export.isEnabled()
    assert bar.report.isEnabled()
    assert not bar.apply.isEnabled()
    assert "read-only" in said(bar)
    lab.engine.tell(events.ControlChanged("fake:0", True, 1))
    assert bar.apply.isEnabled()
    assert said(bar) == ""
    bar.apply.click()
    clock = table.measurement(9).configuration["graphics_clock_mhz"]
    assert lab.engine.commands == [events.Apply("fake:0", {"graphics_clock_mhz": float(clock)}, confirm_s=10.0)]
    lab.result.select(30)
    bar.apply.click()
    clock = table.measurement(30).configuration["graphics_clock_mhz"]
    assert lab.engine.commands[-1] == events.Apply("fake:0", {"graphics_clock_mhz": float(clock)}, confirm_s=10.0)


def test_whose_figures_are_applied_is_said_where_they_are_of_another_board_of_the_model(
    lab: Lab, bar: AnswerBar
) -> None:
    table = filled(grid_space())
    lab.engine.tell(events.ControlChanged("fake:0", True, 1))
    for uuid, words in (("fake:1", f"Measured on another {GPU}, and set on {GPU}"), ("fake:0", "")):
        lab.session(table, plan_for(table.space, OBJECTIVE, source="nvml", gpu=GPU, origin={"gpu": uuid}))
        lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE, 9)))
        assert bar.apply.isEnabled()
        assert said(bar).startswith(words)
        assert bool(said(bar)) == bool(words)


def test_one_click_exports_a_finished_session(lab: Lab, bar: AnswerBar, qtbot: QtBot, own_data_folder: Path) -> None:
    finished(lab)
    with qtbot.waitSignal(bar.export.written, timeout=10_000):
        qtbot.mouseClick(bar.export, Qt.MouseButton.LeftButton)
    (folder,) = (own_data_folder / "exports").iterdir()
    assert re.fullmatch(r"gemm-fake-a100-1-\d{8}-1", folder.name)
    assert said(bar).endswith(f"files to {folder.name}.")
    first = (folder / "gemm.h").read_text()
    assert "measurement 10, session 1, chosen for max:GFLOPS/W" in " ".join(first.split())
    with qtbot.waitSignal(bar.export.written, timeout=10_000):
        qtbot.mouseClick(bar.export, Qt.MouseButton.LeftButton)
    assert (folder / "gemm.h").read_text() == first
    assert (folder.with_name(f"{folder.name[:-1]}2") / "gemm.h").is_file(), "in a folder of its own"


def test_where_nothing_is_chosen_it_says_so(lab: Lab, bar: AnswerBar) -> None:
    finished(lab, best=None)
    assert "Nothing is chosen" in bar.apply.toolTip()
    assert "Nothing is chosen" in said(bar)
    assert bar.report.isEnabled(), "the session can be reported all the same"


def test_a_failed_configuration_says_so(lab: Lab, bar: AnswerBar) -> None:
    table = finished(lab)
    lab.result.select(next(i for i in range(len(table)) if table.measurement(i).error))
    assert "failed (compile)" in bar.apply.toolTip()
    assert "failed (compile)" in said(bar)


def test_replayed_data_is_not_applied_and_says_why(lab: Lab, bar: AnswerBar) -> None:
    finished(lab, source="recorded")
    lab.engine.tell(events.ControlChanged("fake:0", True, 1))
    assert bar.export.isEnabled()
    assert not bar.apply.isEnabled()
    assert "Replayed data cannot be applied" in bar.apply.toolTip()
    assert "Replayed data cannot be applied" in said(bar)


def test_another_board_than_the_one_that_was_measured_is_named(lab: Lab, bar: AnswerBar) -> None:
    finished(lab, gpu="NVIDIA H200")
    assert said(bar).startswith(f"Measured on NVIDIA H200, but {GPU} is shown")
    assert not bar.apply.isEnabled()


def test_a_configuration_without_a_setting_has_nothing_to_apply(lab: Lab, bar: AnswerBar) -> None:
    space = grid_space()
    plain = SearchSpace(space.parameters[1:], space.codes[:16, 1:], cartesian=16)
    table = ResultTable(plain)
    for row in range(16):
        table.append(replace(measured(space, row), configuration=plain.configuration(row)))
    lab.session(table, plan_for(plain, OBJECTIVE, source="nvml", gpu=GPU))
    lab.result.select(0)
    assert "No clock and no power limit is part of this configuration" in said(bar)


def test_what_was_exported_is_linked_until_another_configuration_is_chosen(
    lab: Lab, bar: AnswerBar, qtbot: QtBot, tmp_path: Path
) -> None:
    finished(lab)
    bar.export.export_into(tmp_path / "<away>")
    with qtbot.waitSignal(bar.export.written, timeout=10_000):
        bar.export.kinds["header"].trigger()
    (folder,) = (tmp_path / "<away>").iterdir()
    assert said(bar) == f"Exported gemm.h to {folder.name}."
    assert bar.said.text().count("<a href=") == 2
    assert str(folder / "gemm.h") in bar.said.toolTip().replace("&lt;", "<").replace("&gt;", ">")
    lab.result.select(3)
    assert "Exported" not in said(bar)


def test_a_report_is_asked_for_and_said_to_be_written(lab: Lab, bar: AnswerBar, qtbot: QtBot, tmp_path: Path) -> None:
    finished(lab)
    with qtbot.waitSignal(bar.report_asked, timeout=1000):
        bar.report.click()
    bar.report_started("Writing gemm-report.html …")
    assert said(bar) == "Writing gemm-report.html …"
    bar.report_written(tmp_path / "gemm-report.html")
    assert said(bar) == "Report written: gemm-report.html."
    bar.report_failed("the disk is full", "make room")
    assert said(bar) == "the disk is full (make room)"


def test_the_buttons_stay_where_they_are_whatever_is_said(lab: Lab, bar: AnswerBar) -> None:
    bar.resize(280, bar.sizeHint().height())
    before = bar.export.geometry()
    finished(lab)
    lab.engine.tell(events.ControlChanged("fake:0", True, 1))
    bar.report_started("Writing gemm-report.html …")
    QApplication.processEvents()
    assert bar.export.geometry() == before


def test_by_the_keyboard_alone_from_a_finished_session_to_an_exported_file(
    lab: Lab, qtbot: QtBot, own_data_folder: Path
) -> None:
    panel = InspectorPanel(lab.context)
    qtbot.addWidget(panel)
    panel.resize(280, 600)
    panel.show()
    panel.activateWindow()
    finished(lab)
    panel.chooser.choose_button.setFocus()
    for _ in range(20):
        focus = panel.focusWidget()
        assert focus is not None
        if focus is panel.answer.export:
            break
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    assert panel.focusWidget() is panel.answer.export
    with qtbot.waitSignal(panel.answer.export.written, timeout=10_000):
        qtbot.keyClick(panel.answer.export, Qt.Key.Key_Space)
    assert len(list((own_data_folder / "exports").glob("*/*"))) == 7
    panel.shutdown()
