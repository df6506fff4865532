"""The frequency model's panel."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.engine import events
from app.engine.models.frequency import FrequencyFit, fit_frequency_model
from app.views.model import ModelPanel


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> ModelPanel:
    made = ModelPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(900, 500)
    made.show()
    return made


@pytest.fixture(scope="module")
def h200(shared_data: Path) -> FrequencyFit:
    """The model of a real H200 under FP64 GEMM, its cap binding at the highest clocks."""
    with (shared_data / "clock-sweeps" / "h200_fp64_gemm_clock_sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    clock, power, rate = (np.asarray([float(r[n]) for r in rows]) for n in ("clock_mhz_locked", "power_w", "dgflops"))
    return fit_frequency_model(clock, power, rate=rate, gpu="H200", series="fp64_gemm")


def finish(lab: Lab, fit: FrequencyFit, source: str = "sweep of 14 clocks") -> None:
    lab.engine.tell(events.FitFinished(fit, source))


def test_before_a_fit_it_says_what_to_do_and_cannot_steer(panel: ModelPanel) -> None:
    assert "clock sweep" in panel.plot._note.text()
    assert panel.sweep.isEnabled()
    assert not panel.session.isEnabled()
    assert not panel.steer.isEnabled()


def test_a_sweep_is_asked_for_and_its_progress_shown(lab: Lab, panel: ModelPanel) -> None:
    panel.sweep.click()
    assert lab.engine.commands == [events.Fit(sweep=True, points=10)]
    assert not panel.sweep.isEnabled()
    lab.engine.tell(events.FitProgress(4, 10))
    assert (panel.progress.value(), panel.progress.maximum()) == (4, 10)
    assert panel.progress.isVisible()


def test_the_session_s_measurements_can_be_fitted_once_there_are_some(lab: Lab, panel: ModelPanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    panel.session.click()
    assert lab.engine.commands == [events.Fit(sweep=False)]


def test_a_fit_is_drawn_with_its_points_ridge_range_and_recommended_clock(
    lab: Lab, panel: ModelPanel, h200: FrequencyFit
) -> None:
    finish(lab, h200)
    plot = panel.plot
    assert not plot._note.isVisible()
    assert len(plot._used.getData()[0]) == int(h200.used.sum())
    assert len(plot._unused.getData()[0]) == int((~h200.used).sum())
    assert plot._ridge.value() == pytest.approx(969, abs=40)
    assert plot._best.value() == 975
    assert plot._range.getRegion() == pytest.approx(h200.range_mhz)
    clock, power = plot._power.getData()
    assert np.allclose(power, h200.power(clock))
    _, energy = plot._energy.getData()
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
    assert not panel.plot._ridge.isVisible()
    assert panel.facts.toPlainText().count("not bracketed") == 2
    assert not panel.steer.isEnabled(), "a range around an edge is no place to search"


def test_what_is_not_identifiable_is_no_number_and_no_curve(lab: Lab, panel: ModelPanel, h200: FrequencyFit) -> None:
    points = h200.clock_mhz, h200.power_w, h200.used
    unknown = FrequencyFit("H200", "fp64_gemm", 3, *points, best_measured_mhz=975.0)
    finish(lab, unknown)
    assert not panel.plot._power.isVisible()
    assert not panel.plot._best.isVisible()
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
    with qtbot.waitSignal(lab.selection.steered):
        panel.steer.click()
    assert lab.selection.clocks_mhz == h200.range_mhz
    assert panel.steering.isVisible()
    panel.steer.click()
    assert lab.selection.clocks_mhz is None
    assert not panel.steering.isVisible()


def test_a_fit_that_fails_gives_the_buttons_back(lab: Lab, panel: ModelPanel) -> None:
    panel.sweep.click()
    lab.engine.tell(events.EngineFault("too few clocks"))
    assert panel.sweep.isEnabled()
    assert not panel.progress.isVisible()


def test_the_words_stand_beside_the_plot_where_there_is_room_and_else_below(panel: ModelPanel) -> None:
    panel.resize(1000, 500)
    assert panel._splitter.orientation() is Qt.Orientation.Horizontal
    panel.resize(420, 600)
    assert panel._splitter.orientation() is Qt.Orientation.Vertical
