"""Two or three pinned configurations, and the table of what they differ in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.fakes import FakeGpu, filled_trace, working
from fixtures.lab import OBJECTIVE, Lab, cache_session, filled, grid_space, plan_for
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableWidget
from pytestqt.qtbot import QtBot

from app.engine.results.description import aligned
from app.engine.results.measurement import Measurement, State
from app.engine.space.result_table import ResultTable
from app.sensors.event_reasons import EventReason
from app.views.inspector.differences import describe_pinned, in_words
from app.views.inspector.inspector_panel import InspectorPanel

SPACE = grid_space()
PLAN = plan_for(SPACE, OBJECTIVE)
PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


@pytest.fixture
def lab() -> Lab:
    gpu = FakeGpu(working)
    return Lab(gpu, trace=filled_trace(gpu, 5.0))


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[InspectorPanel]:
    made = InspectorPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(420, 640)
    made.show()
    yield made
    made.shutdown()


def tabs(panel: InspectorPanel) -> list[str]:
    return [panel.tabs.tabText(index) for index in range(panel.tabs.count()) if panel.tabs.isTabVisible(index)]


def shown(table: QTableWidget) -> dict[str, list[str]]:
    """The cells by the heading of their row."""
    rows: dict[str, list[str]] = {}
    for row in range(table.rowCount()):
        head = table.verticalHeaderItem(row)
        cells = [table.item(row, column) for column in range(table.columnCount())]
        assert head is not None
        rows[head.text()] = [cell.text() for cell in cells if cell is not None]
    return rows


def one(row: int, **rest: object) -> Measurement:
    return dataclasses.replace(
        Measurement(row, SPACE.configuration(row), State.OK, {"time_s": 0.010, "energy_j": 2.0, "power_w": 200.0}),
        **rest,  # type: ignore[arg-type]
    )


def test_the_table_lists_only_what_differs_and_how_much(lab: Lab, panel: InspectorPanel) -> None:
    lab.session(filled(SPACE), PLAN)
    lab.result.select(3)
    assert not any(name.startswith("Pinned") for name in tabs(panel))
    panel.pin.click()
    assert "Pin one or two more" in panel.pinned.words.text()
    lab.result.select(19)  # the same tile and layout at the next clock
    assert not panel.pin.isChecked()
    panel.pin.click()
    assert tabs(panel)[-1] == "Pinned (2)"
    rows = shown(panel.pinned.table)
    assert rows["Graphics clock (MHz)"] == ["900", "960"]
    assert "tile" not in rows
    assert "layout" not in rows
    first, second = (lab.result.table.measurement(index) for index in (3, 19))  # type: ignore[union-attr]
    change = 100 * (second.values["time_s"] / first.values["time_s"] - 1)
    assert rows["Time (ms)"][1].endswith(f", {change:+.1f} %".replace("-", "\u2212"))
    assert "," not in rows["Time (ms)"][0]
    assert "B against A: " in panel.pinned.words.text()
    assert "Graphics clock (900 → 960)" in panel.pinned.words.text()


def test_compiled_figures_clock_and_event_reasons_are_compared_where_they_differ() -> None:
    a = one(0, values={"time_s": 0.010, "energy_j": 2.0, "registers_per_thread": 40.0, "occupancy": 0.5})
    b = one(2, values={"time_s": 0.008, "energy_j": 2.2, "registers_per_thread": 64.0, "occupancy": 0.5})
    a = dataclasses.replace(a, observed_clock_mhz=1410.0, window_ns=(0, 10))
    b = dataclasses.replace(b, observed_clock_mhz=1300.0, window_ns=(0, 10), event_reasons=int(EventReason.POWER_CAP))
    described = describe_pinned([a, b], [0, 2], PLAN)
    cells = {row[0].label: [figure.cell for figure in row] for row in aligned(described)}
    assert cells["Registers per thread"] == ["40", "64"]
    assert "Theoretical occupancy" not in cells
    assert cells["Observed clock"][0] == "1410"
    assert cells["Clock events"][0] == "none"
    assert "power" in cells["Clock events"][1]
    assert "20 % less time for 10 % more energy" in in_words([a, b], PLAN)
    assert "tile (1 → 2)" in in_words([a, b], PLAN)


def test_a_figure_under_a_second_name_is_listed_once(lab: Lab, panel: InspectorPanel, shared_data: Path) -> None:
    table, plan = cache_session(shared_data / PS3)
    lab.session(table, plan)
    lab.result.pin(5)
    lab.result.pin(700)
    energy = [f"{table.measurement(5).values['energy_j']:.4g}"]
    rows = shown(panel.pinned.table)
    assert sum(cells[0] in energy for cells in rows.values()) == 1


def test_a_fourth_takes_the_place_of_the_third_and_a_second_press_unpins(lab: Lab) -> None:
    lab.session(filled(SPACE), PLAN)
    for index in (1, 2, 3, 4):
        lab.result.pin(index)
    assert lab.result.pins == (1, 2, 4)
    lab.result.pin(1)
    assert lab.result.pins == (2, 4)
    lab.result.pin(-1)
    lab.result.pin(10_000)
    assert lab.result.pins == (2, 4)


def test_pins_are_shown_where_nothing_is_selected_and_go_with_their_session(
    lab: Lab, panel: InspectorPanel, qtbot: QtBot
) -> None:
    lab.session(filled(SPACE), PLAN)
    lab.result.pin(1)
    lab.result.pin(2)
    lab.result.select(-1)
    assert not panel.empty.isVisible()
    assert tabs(panel) == ["Pinned (2)"]
    assert panel.pinned.table.isVisible()
    lab.result.select(1)
    assert tabs(panel) == ["Figures", "Power", "Source", "Pinned (2)"]
    qtbot.mouseClick(panel.pinned.clear, Qt.MouseButton.LeftButton)
    assert lab.result.pins == ()
    assert tabs(panel) == ["Figures", "Power", "Source"]
    lab.result.pin(1)
    lab.session(ResultTable(SPACE), PLAN)
    assert lab.result.pins == ()
    assert panel.empty.isVisible()


def test_a_failed_configuration_can_be_compared_too() -> None:
    failed = Measurement.failed(1, SPACE.configuration(1), State.COMPILE, "too many registers", source="nvml")
    described = describe_pinned([one(0), failed], [0, 1], PLAN)
    cells = {row[0].label: [figure.cell for figure in row] for row in aligned(described)}
    assert cells["State"] == ["ok", "compile"]
    assert cells["Time"][1] == "–"
    assert "no common figure" in in_words([one(0), failed], PLAN)
