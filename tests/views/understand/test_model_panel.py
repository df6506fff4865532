"""The frequency model's panel."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QTextDocumentFragment
from pytestqt.qtbot import QtBot

from app.engine.metering.limit_effect import LimitEffect
from app.engine.models.clock_fits import ClockFit, caps_of_sweep, fit_of_sweep
from app.engine.models.compare_methods import methods_of_table
from app.engine.models.fit.frequency import FrequencyFit, fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.fit_documents import save_fit
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.space.result_table import ResultTable
from app.engine.store.database import Store
from app.sensors.select import open_gpu
from app.views.plots.model_plot import explained
from app.views.shared import theme
from app.views.understand.model_panel import ModelPanel


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Store(tmp_path / "store.db") as store, closing(open_gpu("simulated:h200")) as gpu:
        yield Lab(gpu=gpu, store=store)


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[ModelPanel]:
    made = ModelPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(900, 500)
    made.show()
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def h200(shared_data: Path) -> FrequencyFit:
    """The model of a real H200 under FP64 GEMM, its cap binding at the highest clocks."""
    with (shared_data / "clock-sweeps" / "h200_fp64_gemm_clock_sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    clock, power, rate = (np.asarray([float(r[n]) for r in rows]) for n in ("clock_mhz_locked", "power_w", "dgflops"))
    return fit_frequency_model(Points(clock, power, rate=rate, gpu="H200", series="fp64_gemm"))


def test_an_empty_plot_has_no_axis_in_any_theme(panel: ModelPanel) -> None:
    mode = theme.notifier().mode
    for each in ("dark", "light"):
        theme.set_mode(each)  # type: ignore[arg-type]
        assert [name for name in ("bottom", "left", "right") if panel.plot.getAxis(name).isVisible()] == []
    theme.set_mode(mode)


def finish(lab: Lab, fit: FrequencyFit, source: str = "sweep of 14 clocks") -> None:
    lab.engine.tell(events.FitFinished(fit, source))


def test_before_a_fit_it_states_what_it_takes_and_cannot_steer(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    assert panel.needs.isVisible()
    assert "it takes a session over the clocks, or a sweep of them" in panel.needs.words.text()
    sweep = panel.needs.button
    assert sweep.isEnabled()
    assert panel.sweep.isEnabled()
    assert not panel.steer.isEnabled()
    sweep.click()
    assert lab.engine.commands == [events.Fit(board=lab.context.gpu.info.uuid, points=10)]
    assert not sweep.isEnabled(), "one is under way"
    finish(lab, h200)
    assert not panel.needs.isVisible()
    panel.list.remove_chosen()
    assert panel.needs.isVisible()


def test_a_sweep_is_asked_for_and_its_progress_shown(lab: Lab, panel: ModelPanel) -> None:
    panel.sweep.click()
    assert lab.engine.commands == [events.Fit(board=lab.context.gpu.info.uuid, points=10)]
    assert not panel.sweep.isEnabled()
    lab.engine.tell(events.FitProgress(4, 10))
    assert (panel.progress.value(), panel.progress.maximum()) == (4, 10)
    assert panel.progress.isVisible()


def over(lab: Lab, table: ResultTable, state: SessionState = SessionState.DONE) -> None:
    """The session ends."""
    lab.engine.tell(events.SessionChanged(progress(table, state)))


def test_a_session_over_the_clocks_is_fitted_at_its_end_without_a_button(
    lab: Lab, panel: ModelPanel, qtbot: QtBot
) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert "has ended" in panel.needs.words.text()
    over(lab, table)
    qtbot.waitUntil(lambda: panel.fit is not None, timeout=20_000)
    assert panel.fit is not None
    assert panel.fit.identifiable
    assert panel.list.entries[0].words == ("1",), "the command that gives the same"
    assert lab.engine.commands == []
    lab.session(table, plan_for(table.space, OBJECTIVE, title="another"))
    assert panel.list.entries == (), "the model of another session is not shown as this one's"


def test_a_session_at_one_clock_states_what_a_model_takes(lab: Lab, panel: ModelPanel, qtbot: QtBot) -> None:
    table = filled(grid_space(clocks=1))
    lab.session(table, plan_for(table.space, OBJECTIVE))
    over(lab, table)
    qtbot.waitUntil(lambda: "at least 5" in panel.needs.words.text(), timeout=20_000)
    assert panel.needs.isVisible()
    assert panel.needs.button.isEnabled()


def test_a_fit_is_drawn_with_its_points_ridge_range_and_recommended_clock(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit
) -> None:
    finish(lab, h200)
    plot = panel.plot
    assert plot.note == ""
    assert len(plot.used_points.getData()[0]) == int(h200.used.sum())
    assert len(plot.unused_points.getData()[0]) == int((~h200.used).sum())
    assert plot.ridge_line.value() == pytest.approx(969, abs=40)
    assert plot.recommended_line.value() == 975
    assert plot.range_region.getRegion() == pytest.approx(h200.range_mhz)
    clock, power = plot.power_curve.getData()
    assert np.allclose(power, h200.power(clock))
    _, energy = plot.energy_curve.getData()
    assert energy.min() == pytest.approx(1.0, abs=0.01)


def test_the_words_hold_the_parameters_with_their_errors_and_the_reasons(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit
) -> None:
    finish(lab, h200)
    words = panel.facts.toPlainText()
    for expected in ("H200", "sweep of 14 clocks", "975 MHz", "ridge", "±", "R²", f"{int(h200.used.sum())} used"):
        assert expected in words
    for reason in h200.reasons:
        assert reason in words


def test_a_ridge_that_is_not_bracketed_is_no_line_and_says_so(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, dataclasses.replace(h200, ridge_bracketed=False, optimum_bracketed=False))
    assert not panel.plot.ridge_line.isVisible()
    assert panel.facts.toPlainText().count("not bracketed") == 2
    assert not panel.steer.isEnabled(), "a range around an edge is no place to search"


def test_what_is_not_identifiable_is_no_number_and_no_curve(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    points = {"clock_mhz": h200.clock_mhz, "power_w": h200.power_w, "used": h200.used, "rate": h200.rate}
    unknown = FrequencyFit(gpu="H200", series="fp64_gemm", **points, best_measured_mhz=975.0)
    finish(lab, unknown)
    assert not panel.plot.power_curve.isVisible()
    assert not panel.plot.recommended_line.isVisible()
    assert "not identifiable" in panel.facts.toPlainText()
    assert not panel.steer.isEnabled()


def test_simulated_points_say_so(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, dataclasses.replace(h200, simulated=True), "sweep of 10 clocks, full load, simulated")
    assert "simulated" in panel.legend.text()
    assert "simulated" in panel.facts.toPlainText()


def test_steer_keeps_the_next_session_to_the_range_until_it_is_taken_back(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit, qtbot: QtBot
) -> None:
    finish(lab, h200)
    with qtbot.waitSignal(lab.result.steered):
        panel.steer.click()
    assert lab.result.clocks_mhz == h200.range_mhz
    assert panel.steering.isVisible()
    panel.steer.click()
    assert lab.result.clocks_mhz is None
    assert not panel.steering.isVisible()


def test_a_fit_that_fails_gives_the_buttons_back(lab: Lab, panel: ModelPanel) -> None:
    panel.sweep.click()
    lab.engine.tell(events.EngineFault("too few clocks"))
    assert panel.sweep.isEnabled()
    assert not panel.progress.isVisible()


def test_the_words_stand_beside_the_plot_where_there_is_room_and_else_below(panel: ModelPanel) -> None:
    panel.resize(1000, 500)
    assert panel.splitter.orientation() is Qt.Orientation.Horizontal
    panel.resize(420, 600)
    assert panel.splitter.orientation() is Qt.Orientation.Vertical


# --- several fits, and what else there is to see of one ---------------------------------------------------------------


def simulated(name: str, power_limits: bool = False) -> ClockFit:
    """A sweep of a simulated board."""
    with closing(open_gpu(f"simulated:{name}", speed=float("inf"))) as gpu:
        fit, source = fit_of_sweep(gpu)
        return ClockFit(fit, caps_of_sweep(gpu) if power_limits else None, source)


@pytest.fixture(scope="module")
def a4000() -> ClockFit:
    return simulated("a4000", power_limits=True)


def test_another_board_is_overlaid_and_the_chosen_one_is_shown_in_full(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit, a4000: ClockFit
) -> None:
    finish(lab, h200)
    assert a4000.fit is not None
    lab.engine.tell(events.FitFinished(a4000.fit, a4000.origin))
    assert panel.list.count() == 2
    assert panel.plot.recommended_line.value() == a4000.fit.recommended_clock_mhz
    assert len(panel.plot.behind) == 3, "points, power and energy of the other"
    panel.list.setCurrentRow(0)
    assert panel.plot.recommended_line.value() == 975
    assert "H200" in panel.facts.toPlainText()
    panel.list.item(1).setCheckState(Qt.CheckState.Unchecked)
    assert not panel.plot.behind
    panel.remove.click()
    assert panel.list.count() == 1


def test_a_new_fit_to_the_same_takes_the_place_of_the_old(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, h200)
    finish(lab, dataclasses.replace(h200, recommended_clock_mhz=990.0))
    assert panel.list.count() == 1
    assert panel.plot.recommended_line.value() == 990


def test_the_band_lies_around_the_curve(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, h200)
    (clock, low), (_, high) = (edge.getData() for edge in panel.plot.band_edges)
    inside = h200.power(clock)
    assert (low < high).all()
    assert ((low < inside) & (inside < high)).mean() > 0.8


def test_measured_energy_stands_beside_the_model_s(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, h200)
    clock, energy = panel.plot.energy_points.getData()
    assert len(clock) == int(h200.used.sum())
    assert energy == pytest.approx(h200.energy(clock), rel=0.05)


def test_a_measured_voltage_lies_on_the_fitted_one_with_both_ridges(panel: ModelPanel, a4000: ClockFit) -> None:
    panel.show_fits([a4000])
    panel.tabs.setCurrentWidget(panel.voltage)
    assert a4000.fit is not None
    [points] = [item for item in panel.voltage.items() if isinstance(item, pg.ScatterPlotItem)]
    clock, relative = points.getData()
    assert relative == pytest.approx(a4000.fit.relative_voltage(clock), abs=0.05)
    lines = [item for item in panel.voltage.items() if isinstance(item, pg.InfiniteLine) and hasattr(item, "label")]
    words = [line.label.format for line in lines]
    assert any("ridge by power" in word for word in words)
    assert any("ridge by voltage" in word for word in words)
    assert panel.voltage.getAxis("right").isVisible(), "mV, as they were measured"


def test_a_board_that_tells_no_voltage_says_so(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, h200)
    panel.tabs.setCurrentWidget(panel.voltage)
    assert "reports no voltage" in panel.legend.text().replace("&nbsp;", " ")
    assert not panel.voltage.getAxis("right").isVisible()


def test_power_limits_stand_against_clocks(panel: ModelPanel, a4000: ClockFit) -> None:
    panel.show_fits([a4000])
    panel.tabs.setCurrentWidget(panel.caps)
    assert a4000.caps is not None
    words = panel.facts.toPlainText()
    for expected in ("Best power limit", "locked clock", "power limit", "less energy than"):
        assert expected in words
    drawn = [item for item in panel.caps.over_speed.items if isinstance(item, pg.ScatterPlotItem)]
    assert sorted(len(item.getData()[0]) for item in drawn) == sorted((len(a4000.caps.limit_w), a4000.fit.points))


def test_limits_that_the_load_cannot_reach_are_drawn_open_and_named(panel: ModelPanel, a4000: ClockFit) -> None:
    assert a4000.caps is not None
    panel.show_fits([a4000])
    panel.tabs.setCurrentWidget(panel.caps)
    assert "cannot reach" not in panel.legend.text().replace("&nbsp;", " ")
    limits = a4000.caps.limit_w.tolist()
    effects = tuple(LimitEffect(limit, 0.94 * limits[-2], 0.0) for limit in limits)  # the highest two are spared
    panel.show_fits([dataclasses.replace(a4000, caps=dataclasses.replace(a4000.caps, effects=effects))])
    assert "without effect: the load cannot reach it" in panel.legend.text().replace("&nbsp;", " ")
    assert f"limits from {limits[-2]:.0f} W on are without effect" in panel.facts.toPlainText()
    over_limit = panel.caps.getItem(0, 0)
    [dots] = [item for item in over_limit.items if isinstance(item, pg.ScatterPlotItem)]
    filled = [point.brush().color() != QColor(theme.colours().base) for point in dots.points()]
    assert filled == [limit < limits[-2] for limit in limits]


def test_without_power_limits_the_panel_says_how_to_get_them(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    finish(lab, h200)
    panel.tabs.setCurrentWidget(panel.caps)
    assert "Power limits too" in panel.legend.text()
    panel.with_limits.setChecked(True)
    panel.sweep.click()
    assert lab.engine.commands == [events.Fit(board=lab.context.gpu.info.uuid, points=10, power_limits=True)]


def test_the_newest_fit_of_the_board_is_there_the_next_time(lab: Lab, h200: FrequencyFit, qtbot: QtBot) -> None:
    save_fit(lab.context.store, dataclasses.replace(h200, gpu="another"), "another board")
    save_fit(lab.context.store, dataclasses.replace(h200, gpu=lab.context.gpu.info.name), "a sweep of yesterday")
    again = ModelPanel(lab.context)
    qtbot.addWidget(again)
    qtbot.waitUntil(lambda: again.list.count() == 1, timeout=5_000)
    assert "a sweep of yesterday" in again.facts.toPlainText()
    assert again.fit is not None
    assert again.fit.power(900.0) == pytest.approx(h200.power(900.0))
    again.shutdown()


def test_a_file_is_added_and_a_bad_one_says_why(panel: ModelPanel, shared_data: Path, qtbot: QtBot) -> None:
    panel.add.open(shared_data / "clock-sweeps" / "a100_synthetic_fp32_10_clocks.json")
    qtbot.waitUntil(lambda: panel.list.count() == 1, timeout=20_000)
    assert panel.fit is not None
    assert "A100" in panel.fit.gpu
    panel.add.open(shared_data / "README.md")
    qtbot.waitUntil(panel.message.isVisible, timeout=20_000)
    assert panel.list.count() == 1


def test_the_methods_are_bars_and_a_table(panel: ModelPanel) -> None:
    panel.tabs.setCurrentWidget(panel.methods)
    assert "brute_force" in panel.methods.message.text()
    space = grid_space()
    methods = methods_of_table(filled(space), gpu="Test GPU", title="gemm", source="simulated", base_mhz=1020.0)
    panel.methods.show_methods(methods)
    assert panel.methods.table.rowCount() == len(methods.results)
    assert "simulated" in panel.methods.title.text()
    bars = [item for item in panel.methods.bars.items() if isinstance(item, pg.BarGraphItem)]
    heights = sorted(bar.opts["height"] for bar in bars)
    expected = sorted(
        [100 * getattr(result, name) for result in methods.results] for name in ("efficiency_change", "speed_change")
    )
    assert heights == expected


def test_a_session_that_measured_too_little_says_what_to_do(lab: Lab, panel: ModelPanel, qtbot: QtBot) -> None:
    table = filled(grid_space(), rows=20)
    lab.session(table, plan_for(table.space, OBJECTIVE))
    panel.methods.compare_session()
    qtbot.waitUntil(lambda: "not measured" in panel.methods.message.text(), timeout=20_000)
    assert "brute_force" in panel.methods.message.text()
    assert panel.methods.methods is None


def lines_of(fit: FrequencyFit) -> dict[str, tuple[str, str]]:
    return {line.name: (line.value, line.meaning) for line in explained(fit)}


def test_minimum_ridge_optimum_interval_and_recommendation_are_explained_in_a_line_each(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit
) -> None:
    assert not panel.explanation.isVisible()
    finish(lab, h200)
    assert panel.explanation.isVisible()
    lines = lines_of(h200)
    assert list(lines) == ["Curve minimum", "Ridge", "Optimum", "Interval", "Recommendation"]
    assert h200.ridge_mhz is not None
    assert h200.optimum_mhz is not None
    low, high = h200.optimum_interval_mhz or (0, 0)
    assert lines["Ridge"][0] == f"{h200.ridge_mhz:.0f} MHz"
    assert lines["Optimum"][0] == f"{h200.optimum_mhz:.0f} MHz"
    assert lines["Interval"][0] == f"{low:.0f}–{high:.0f} MHz"
    assert lines["Recommendation"][0] == "975 MHz"
    minimum = float(lines["Curve minimum"][0].removesuffix(" MHz"))
    assert h200.energy(minimum) == pytest.approx(1.0, abs=0.001)
    shown = QTextDocumentFragment.fromHtml(panel.explanation.text()).toPlainText()
    for name, (value, meaning) in lines.items():
        assert name in shown
        assert value in shown.replace("\N{NO-BREAK SPACE}", " ")
        assert meaning in shown
    panel.tabs.setCurrentWidget(panel.voltage)
    assert not panel.explanation.isVisible(), "it is of the curve"
    panel.tabs.setCurrentWidget(panel.plot)
    panel.resize(900, 300)
    assert not panel.explanation.isVisible(), "the plot keeps the room there is"


def test_what_the_points_do_not_determine_is_explained_as_such(h200: FrequencyFit) -> None:
    edge = lines_of(dataclasses.replace(h200, ridge_bracketed=False, optimum_bracketed=False))
    assert edge["Ridge"][0] == edge["Optimum"][0] == "not bracketed"
    assert "measure beyond it" in edge["Optimum"][1]
    assert edge["Interval"][0] == "not known"
    points = {"clock_mhz": h200.clock_mhz, "power_w": h200.power_w, "used": h200.used, "rate": h200.rate}
    unknown = lines_of(FrequencyFit(gpu="H200", series="fp64_gemm", **points))
    assert [value for value, _ in unknown.values()] == [*["not known"] * 4, "none"]
    falling = lines_of(dataclasses.replace(h200, used=h200.clock_mhz < 800))
    assert "may lie beyond" in falling["Curve minimum"][1]


def test_without_a_speed_no_energy_is_named(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    """Power over clock is no energy unless the work goes in proportion to the clock."""
    fit = fit_frequency_model(Points(h200.clock_mhz, h200.power_w))
    lines = lines_of(fit)
    assert "of least power per clock" in lines["Optimum"][1]
    assert "the least power per clock to expect" in lines["Recommendation"][1]
    assert not any("energy" in meaning for _, meaning in lines.values())
    finish(lab, fit)
    assert "power per clock (right axis)" in panel.legend.text().replace("&nbsp;", " ")
    assert panel.plot.getAxis("right").labelText == "Power per clock (lowest of the model = 1)"
    finish(lab, h200)
    assert panel.plot.getAxis("right").labelText == "Energy per work (lowest of the model = 1)"


def test_the_recommended_clock_is_applied_to_the_board_that_was_measured(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit
) -> None:
    assert panel.apply.text() == "&Apply"
    assert "no model yet" in panel.apply.toolTip()
    finish(lab, h200)
    assert panel.apply.text() == "&Apply 975 MHz"
    assert "Measured on H200" in panel.why_not.text(), "a real one; a simulated one is shown"
    finish(lab, dataclasses.replace(h200, gpu=lab.context.gpu.info.name, simulated=True))
    assert "read-only" in panel.why_not.text()
    assert not panel.apply.isEnabled()
    lab.engine.tell(events.ControlChanged(lab.context.gpu.info.uuid, True, None))
    assert panel.apply.isEnabled()
    assert not panel.why_not.isVisible()
    panel.apply.click()
    uuid = lab.context.gpu.info.uuid
    assert lab.engine.commands == [events.Apply(uuid, {"graphics_clock_mhz": 975.0}, confirm_s=10.0)]


def test_a_sweep_of_the_shown_board_gives_a_clock_that_can_be_applied_to_it(lab: Lab, panel: ModelPanel) -> None:
    with closing(open_gpu("simulated:h200", speed=math.inf)) as gpu:
        fit, source = fit_of_sweep(gpu, points=8)
    lab.engine.tell(events.ControlChanged(lab.context.gpu.info.uuid, True, None))
    finish(lab, fit, source)
    assert panel.apply.isEnabled(), panel.apply.why_not
