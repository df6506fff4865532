"""The analysis of a session, figure by figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures.lab import OBJECTIVE, Lab, cache_session, filled, grid_space, measured, plan_for
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from app.engine.analysis.charts import CHARTS, Analysed
from app.engine.formats.read import read_recording
from app.engine.results.measurement import Measurement, State
from app.engine.session.planning import plan_replay
from app.engine.space.result_table import ResultTable
from app.views.library.table_window import TableWindow
from app.views.plots.plot_export import curves_of
from app.views.understand.analysis_panel import AnalysisPanel

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> AnalysisPanel:
    made = AnalysisPanel(lab.context)
    qtbot.addWidget(made, before_close_func=lambda widget: widget.shutdown())
    made.resize(492, 560)
    made.show()
    qtbot.waitExposed(made)
    return made


def show(lab: Lab, panel: AnalysisPanel, qtbot: QtBot, table: ResultTable) -> Analysed:
    lab.session(table, plan_for(table.space, OBJECTIVE))
    qtbot.waitUntil(lambda: panel.session is not None, timeout=20_000)
    assert panel.session is not None
    return panel.session


def choose(panel: AnalysisPanel, name: str) -> None:
    panel.which.setCurrentIndex(panel.which.findData(name))


def test_before_a_session_it_says_what_to_do_first(panel: AnalysisPanel) -> None:
    asked: list[None] = []
    panel.session_asked.connect(lambda: asked.append(None))
    for place in range(panel.which.count()):
        panel.which.setCurrentIndex(place)
        assert panel.needs.isVisible()
        assert "run one, or open one in Library" in panel.needs.words.text()
        assert not panel.first.isVisible()
    panel.needs.button.click()
    assert asked == [None]


def test_every_figure_of_a_real_session_is_drawn_with_units_or_says_why_not(
    lab: Lab, panel: AnalysisPanel, qtbot: QtBot, shared_data: Path
) -> None:
    table, plan = cache_session(shared_data / PS3)
    lab.session(table, plan)
    assert panel.figure.note == "Analysing …"  # not computed on Qt's thread
    qtbot.waitUntil(lambda: panel.session is not None, timeout=30_000)
    for figure in CHARTS:
        choose(panel, figure.name)
        QApplication.processEvents()
        if figure.name == "drift":
            assert "no reference kernel" in panel.figure.note
            continue
        if figure.name in ("k", "predicted"):
            assert "did not predict energies" in panel.figure.note
            continue
        if figure.name == "over_load":
            assert "No load was varied" in panel.figure.note
            continue
        if figure.name == "counters":
            assert "No configuration of this session was profiled" in panel.figure.note
            continue
        drawn = panel.figure.chart
        assert drawn is not None, figure.name
        assert drawn.x_title
        assert drawn.caption
        assert panel.figure.plot.isVisible()
    choose(panel, "effect")
    drawn = panel.figure.chart
    assert drawn is not None
    assert drawn.y_title == "Time (ms)"
    choose(panel, "hypervolume")
    assert "73.898 in the end" in panel.figure.caption.text()


def test_a_figure_is_fitted_to_what_height_there_is(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    area = QScrollArea()
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(panel)
    area.resize(880, 420)
    area.show()
    show(lab, panel, qtbot, filled(grid_space()))
    choose(panel, "correlations")
    QApplication.processEvents()
    assert panel.figure.caption.isVisible()
    assert panel.height() == area.viewport().height()
    area.takeWidget()


def test_the_movers_stand_out_and_the_split_names_them_first(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    show(lab, panel, qtbot, filled(grid_space()))
    choose(panel, "correlations")
    drawn = panel.figure.chart
    assert drawn is not None
    assert "Graphics clock" in drawn.marked  # faster at high clocks, not more efficient
    assert "tile" not in drawn.marked
    strengths = drawn.series[0].y
    assert (np.diff(strengths) >= 0).all()
    choose(panel, "split")
    assert panel.first.itemText(0).startswith("◆")
    panel.first.setCurrentIndex(panel.first.findData("graphics_clock_mhz"))
    drawn = panel.figure.chart
    assert drawn is not None
    assert [len(series.y) for series in drawn.series] == [75, 75]
    assert "1170 MHz" in drawn.series[0].label
    assert "more speed" in drawn.caption
    assert "less efficiency" in drawn.caption


def test_a_main_effect_is_chosen_by_figure_and_parameter(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    show(lab, panel, qtbot, filled(grid_space()))
    choose(panel, "effect")
    panel.first.setCurrentIndex(panel.first.findData("energy_j"))
    panel.second.setCurrentIndex(panel.second.findData("tile"))
    drawn = panel.figure.chart
    assert drawn is not None
    assert drawn.x_title == "tile"
    assert drawn.y_title == "Energy (J)"
    assert drawn.ticks == ("1", "2", "4", "8", "16", "32", "64", "128")
    assert (np.diff(drawn.series[0].y) < 0).all()  # larger tiles take less
    assert "10 failed" in drawn.caption
    choose(panel, "best")
    assert not panel.first.isVisible()
    choose(panel, "effect")
    assert panel.first.isVisible()


def test_failures_are_shown_by_kind_and_place(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    show(lab, panel, qtbot, filled(grid_space()))
    choose(panel, "failures")
    drawn = panel.figure.chart
    assert drawn is not None
    assert drawn.names == ("compile",)
    assert list(drawn.series[0].y) == [10]
    panel.first.setCurrentIndex(panel.first.findData("compile"))
    drawn = panel.figure.chart
    assert drawn is not None
    assert "tile = 128" in drawn.names
    assert "too many registers" in drawn.caption


def test_a_session_that_grows_is_analysed_again(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    space = grid_space()
    table = filled(space, 40)
    first = show(lab, panel, qtbot, table)
    table.extend(measured(space, row) for row in range(40, 80))
    lab.grow(table)
    qtbot.waitUntil(lambda: panel.session is not first, timeout=20_000)
    assert "80 measurements" in panel.state.text()


def test_a_session_of_nothing_but_failures_says_so(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    space = grid_space()
    table = ResultTable(space)
    table.extend(
        Measurement.failed(row, space.configuration(row), State.RUNTIME, "illegal address", source="simulated")
        for row in range(6)
    )
    show(lab, panel, qtbot, table)
    for figure in CHARTS:
        choose(panel, figure.name)
        if figure.name == "failures":
            assert panel.figure.chart is not None
        else:
            assert panel.figure.note, figure.name


def test_another_session_takes_the_place_of_the_first(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    first = show(lab, panel, qtbot, filled(grid_space()))
    other = filled(grid_space(4, 4))
    lab.session(other, plan_for(other.space, OBJECTIVE))
    assert panel.session is None
    qtbot.waitUntil(lambda: panel.session is not None, timeout=20_000)
    assert panel.session is not first


def test_bars_are_copied_with_their_names_and_points_with_their_series(
    lab: Lab, panel: AnalysisPanel, qtbot: QtBot
) -> None:
    show(lab, panel, qtbot, filled(grid_space()))
    choose(panel, "importance")
    drawn = panel.figure.chart
    assert drawn is not None
    copied = {curve.name: curve.x[0] for curve in curves_of(panel.figure.plot)}
    assert set(copied) == {f"{series.label}: {name}" for series in drawn.series for name in drawn.names}
    assert copied[f"over the whole space: {drawn.names[0]}"] == drawn.series[0].y[0]
    choose(panel, "effect")
    assert {curve.name for curve in curves_of(panel.figure.plot)} == {"median", "best"}


def test_every_figure_is_drawn_of_what_was_analysed_while_the_session_goes_on(
    lab: Lab, panel: AnalysisPanel, qtbot: QtBot
) -> None:
    space = grid_space()
    table = filled(space, 100)
    session = show(lab, panel, qtbot, table)
    every = [(chart, [choices(session)[0][0] for choices in chart.choices]) for chart in CHARTS]
    before = [chart.draw(session, *chosen) for chart, chosen in every]
    table.extend(measured(space, row) for row in range(100, space.size))
    for (chart, chosen), drawn in zip(every, before, strict=True):
        again = chart.draw(session, *chosen)
        assert isinstance(again, str) is isinstance(drawn, str), chart.name


def test_neither_half_of_a_split_cloud_hides_the_other(lab: Lab, panel: AnalysisPanel, qtbot: QtBot) -> None:
    show(lab, panel, qtbot, filled(grid_space()))
    choose(panel, "split")
    style = panel.figure.cloud.styles
    assert len(style) == 150
    first = style[:20]
    assert len(set(first)) == 2  # drawn in turns
    key = panel.figure.caption.text()
    assert "■" in key
    assert "●" in key
    choose(panel, "best")
    assert not len(panel.figure.cloud)


def test_a_table_of_several_kernels_says_that_its_figures_are_over_all_of_them(
    lab: Lab, panel: AnalysisPanel, qtbot: QtBot, tmp_path: Path
) -> None:
    file = tmp_path / "kernels.csv"
    rows = [f"{kernel},{n},{s * (1 + n / 64)}" for kernel, s in (("gemm", 3.0), ("copy", 1.0)) for n in (16, 32, 64)]
    file.write_text("\n".join(["kernel,block,time_ms", *rows]))
    plan = plan_replay(file)
    table = read_recording(file).table()
    lab.session(table, plan)
    qtbot.waitUntil(lambda: panel.session is not None, timeout=20_000)
    assert "6 measurements" in panel.state.text()
    assert "different kernels (gemm, copy): a best or a mean" in panel.state.text()
    assert lab.result.caption.endswith("recorded in kernels.csv · different kernels")
    assert "different kernels (gemm, copy)" in lab.result.caveats
    window = TableWindow()
    qtbot.addWidget(window, before_close_func=lambda widget: widget.shutdown())
    window.open(file)
    qtbot.waitUntil(window.keep.isEnabled, timeout=20_000)
    assert "2 kernels, each with a best of its own" in window.message.text()
