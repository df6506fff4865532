"""Sessions side by side in the window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.engine.specification.plan import SessionPlan
from app.engine.store.database import Store
from app.views.understand.compare_panel import ComparePanel

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
VECTOR_ADD = "kernel-tuner/kt_vector_add_RTX4000Ada_PowerSensor3_15.json"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "sessions.sqlite") as opened:
        yield opened


@pytest.fixture
def panel(store: Store, qtbot: QtBot) -> ComparePanel:
    made = ComparePanel(Lab(store=store).context)
    qtbot.addWidget(made, before_close_func=lambda widget: widget.shutdown())
    made.resize(492, 560)
    return made


def keep(store: Store, name: str, gpu: str, clocks: int) -> SessionPlan:
    """A stored session of one kernel that has ended, under a name of the user's."""
    from app.engine.results.state import SessionState
    from app.engine.store.record import Label

    table = filled(grid_space(clocks))
    plan = plan_for(table.space, OBJECTIVE, title="gemm", gpu=gpu)
    session = store.create_session(plan)
    store.append(session, [table.measurement(i) for i in range(len(table))])
    store.finish(session, SessionState.DONE)
    store.label(session, Label(name))
    return plan


def tick(panel: ComparePanel, place: int, on: bool = True) -> None:
    panel.list.item(place).setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)


def test_without_sessions_it_says_what_to_do_first(panel: ComparePanel, qtbot: QtBot) -> None:
    panel.show()
    qtbot.waitExposed(panel)
    assert "start one in Tune" in panel.needs.words.text()
    assert "file" in panel.needs.button.text()
    assert not panel.tabs.isVisible()


def test_one_button_compares_the_newest_two(panel: ComparePanel, store: Store, qtbot: QtBot) -> None:
    for name in ("oldest", "older", "newest"):
        keep(store, name, "Board A", 5)
    panel.show()
    qtbot.waitUntil(lambda: panel.list.count() == 3, timeout=5000)
    panel.needs.button.click()
    qtbot.waitUntil(lambda: panel.result is not None, timeout=5000)
    assert panel.ticked() == [3, 2]
    assert panel.tabs.isVisible()
    assert not panel.needs.isVisible()


def test_two_ticked_sessions_are_overlaid_with_what_tuning_for_energy_gains(
    panel: ComparePanel, store: Store, qtbot: QtBot
) -> None:
    keep(store, "gemm", "Board A", 10)
    keep(store, "gemm, fewer clocks", "Board B", 5)
    panel.show()
    qtbot.waitUntil(lambda: panel.list.count() == 2, timeout=5000)
    assert "Tick two" in panel.needs.words.text()
    panel.list.setCurrentRow(0)
    for _ in range(2):  # by the keyboard alone
        qtbot.keyClick(panel.list, Qt.Key.Key_Space)
        qtbot.keyClick(panel.list, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: panel.result is not None, timeout=10_000)
    drawn = panel.figure.chart
    assert drawn is not None
    assert (drawn.x_title, drawn.y_title) == ("GFLOP/s", "GFLOPS/W")
    assert {series.label for series in drawn.series} == {
        "gemm (session 1), Board A (recorded)",
        "gemm, fewer clocks (session 2), Board B (recorded)",
    }
    assert "points of gemm (session 1)" in panel.figure.caption.text(), "counts and session numbers have words"
    assert len({series.symbol for series in drawn.series}) == 2  # not by colour alone
    assert panel.tabs.isTabVisible(1)
    assert panel.gains.rowCount() == 2
    heads = [panel.gains.horizontalHeaderItem(c).text() for c in range(panel.gains.columnCount())]
    efficiency, speed = (column for column, head in enumerate(heads) if head == "gained")
    assert heads[efficiency - 2] == "GFLOPS/W"
    assert panel.gains.item(0, efficiency).text().startswith("+")
    assert heads[speed - 2] == "GFLOP/s"
    assert panel.gains.item(0, speed).text().startswith("−")
    assert [panel.fronts.item(row, 1).text() for row in (0, 1)] == [side.name for side in panel.result.found.sides]
    assert "over 2 sessions on 2 boards: efficiency too few, speed too few" in panel.means.text()
    assert panel.tabs.isTabVisible(2)
    assert panel.carried.rowCount() == 4
    tick(panel, 1, on=False)
    assert panel.result is None
    assert not panel.tabs.isTabVisible(1)


def test_files_are_compared_without_being_kept(panel: ComparePanel, shared_data: Path, qtbot: QtBot) -> None:
    panel.show()
    panel.add_files([shared_data / PS3, shared_data / VECTOR_ADD])
    qtbot.waitUntil(lambda: panel.result is not None, timeout=20_000)
    assert panel.result is not None
    assert [side.measured for side in panel.result.found.sides] == [5120, 15]
    assert "on the front of all together" in panel.figure.caption.text()
    panel.none.click()
    assert panel.ticked() == []


def test_tables_that_name_no_kernel_are_of_one(panel: ComparePanel, tmp_path: Path, qtbot: QtBot) -> None:
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, seconds in zip(files, (1.0, 2.0), strict=True):
        file.write_text(f"gpu,block,time_s,energy_j\nA,16,{seconds},50\nA,32,{2 * seconds},40\n")
    panel.show()
    panel.add_files(files)
    qtbot.waitUntil(lambda: panel.result is not None, timeout=20_000)
    assert panel.result is not None
    assert [side.kernel for side in panel.result.found.sides] == ["", ""]
    assert panel.result.found.carried, "the configurations of one were measured in the other too"


def test_a_file_that_is_no_recording_is_reported_in_one_line(panel: ComparePanel, tmp_path: Path, qtbot: QtBot) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    panel.show()
    panel.add_files([tmp_path / "a.json", tmp_path / "b.json"])
    qtbot.waitUntil(lambda: "a.json" in panel.figure.note, timeout=5000)
    assert panel.result is None
