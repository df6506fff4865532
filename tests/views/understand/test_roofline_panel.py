"""The roofline's panel: a simulated H200's sweep by the real engine, a public sweep of A100 and L40, kernels placed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for
from fixtures.tuning_lab import TuningLab
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.base.formatting import percent
from app.base.paths import resources
from app.cli import main
from app.engine.models.roofline.fit import RooflinePoints
from app.engine.models.roofline.points import PlacedKernel, fit_points, kernel_of, read_points, sweep_of_points
from app.engine.results.description import NOT_IDENTIFIABLE
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.planning import plan_of
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.plots.plot import log_ticks
from app.views.shared import theme
from app.views.understand.roofline_panel import RooflinePanel
from app.views.understand.roofline_plot import point_words


class Window(TuningLab):
    """A panel with the real engine and store behind it, on a simulated board."""

    def __init__(self, qtbot: QtBot, gpu: SimulatedGpu) -> None:
        super().__init__(gpu)
        self.qtbot = qtbot
        self.panel = self.new_panel()

    def new_panel(self) -> RooflinePanel:
        panel = RooflinePanel(self.context)
        self.qtbot.addWidget(panel)
        panel.resize(900, 620)
        panel.show()
        return panel

    def measure(self, precision: str) -> None:
        self.panel.precisions.setCurrentText(precision.upper())
        before = len(self.panel.list.entries)
        self.panel.measure.click()
        self.qtbot.waitUntil(lambda: self.panel.measuring.possible, timeout=30_000)
        self.qtbot.waitUntil(lambda: not self.panel.measuring.fitting, timeout=5_000)
        assert len(self.panel.list.entries) > before

    def close(self) -> None:
        self.panel.shutdown()
        super().close()
        self.gpu.close()


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[Window]:
    made = Window(qtbot, SimulatedGpu(load_twin("h200"), seed=1, clock=VirtualClock()))
    yield made
    made.close()


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Store() as store:
        yield Lab(gpu=SimulatedGpu(load_twin("h200"), clock=VirtualClock()), store=store)


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[RooflinePanel]:
    made = RooflinePanel(lab.context)
    qtbot.addWidget(made)
    made.resize(900, 620)
    made.show()
    yield made
    made.shutdown()


@pytest.fixture
def public(shared_data: Path) -> Path:
    return shared_data / "roofline" / "fp32_intensity_sweep_a100_l40.csv"


def figure(panel: RooflinePanel, name: str, column: int = 0) -> str:
    """A cell of the table of fits."""
    table = panel.table
    row = next(r for r in range(table.rowCount()) if table.verticalHeaderItem(r).text().startswith(name))
    return str(table.item(row, column).text())


def labels(panel: RooflinePanel) -> list[str]:
    """The words at the lines of all three plots."""
    return [
        item.label.toPlainText()
        for plot in panel.plot.plots
        for item in plot.items
        if isinstance(item, pg.InfiniteLine) and hasattr(item, "label")
    ] + [item.toPlainText() for item in panel.plot.scene().items() if isinstance(item, pg.InfLineLabel)]


def curves(panel: RooflinePanel, at: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [tuple(map(np.asarray, c.getData())) for c in panel.plot.plots[at].items if isinstance(c, pg.PlotCurveItem)]


def test_before_a_sweep_it_says_what_to_do(panel: RooflinePanel) -> None:
    assert panel.needs.isVisible()
    assert "it takes microbenchmarks" in panel.needs.words.text()
    assert panel.needs.button.text() == "Measure this board"
    assert panel.measure.isEnabled()
    assert not panel.remove.isEnabled()
    assert not panel.table.isVisible()
    assert "simulated" in panel.measure.toolTip()


def test_a_board_is_measured_fitted_drawn_and_can_be_added_again(window: Window, tmp_path: Path) -> None:
    window.measure("fp32")
    panel, sweep = window.panel, window.panel.list.entries[0]
    true = load_twin("h200").energy
    assert sweep.fit is not None
    assert sweep.fit.relative.eps_flop_pj == pytest.approx(true.eps_flop_pj["fp32"], rel=0.03)
    assert "simulated" in sweep.label
    assert "simulated" in panel.table.horizontalHeaderItem(0).text()
    assert figure(panel, "ε_flop").startswith(f"{sweep.fit.relative.eps_flop_pj:.4g} ± ")
    assert figure(panel, "Points fitted") == str(sweep.fit.points)
    assert sweep.fit.per_flop is not None
    assert f"eq. 6]: {sweep.fit.per_flop.pi_0_w:.4g}" in panel.table.item(2, 0).toolTip()
    words = " ".join(labels(panel))
    for balance in (sweep.fit.model.time_balance, sweep.fit.model.energy_balance):
        assert f"{balance:.4g}" in words
    assert "Effective B" in words
    assert "power limit 700 W" in words
    roofline, archline, powerline = (curves(panel, index)[0] for index in range(3))
    for (x, y), line in zip(
        (roofline, archline, powerline),
        (sweep.fit.model.roofline, sweep.fit.model.archline, sweep.fit.model.powerline),
        strict=True,
    ):
        assert 10**y == pytest.approx(line(10**x))
    capped = 10 ** curves(panel, 2)[1][1]
    assert capped[np.isfinite(capped)] == pytest.approx(700.0), "under the limit the board draws what it may"
    # every point that has an intensity, and the flop kernels in the margin; copies only where their power is shown
    kinds = sweep.points.kind
    assert len(panel.plot.scatters[0].points()) == kinds.count("roofline") + kinds.count("flop")
    assert len(panel.plot.scatters[2].points()) == len(sweep.points) - kinds.count("baseline")
    assert panel.plot.coding is not None
    assert panel.plot.coding.values == (64.0, 256.0, 512.0, 2048.0)
    assert panel.key.isVisible()
    assert any(isinstance(item, pg.ErrorBarItem) for item in panel.plot.plots[2].items)
    assert window.faults == []

    again = window.new_panel()
    window.qtbot.waitUntil(lambda: len(again.list.entries) == 1, timeout=5_000)
    assert again.list.entries[0].fit == sweep.fit, "what was measured is there the next time"
    again.remove.click()
    with window.qtbot.waitSignal(again.past.listed, timeout=5_000):
        again.add.menu().aboutToShow.emit()
    offered = [action for action in again.add.menu().actions() if isinstance(action.data(), int)]
    assert ["FP32" in action.text() and "simulated" in action.text() for action in offered] == [True]
    offered[0].trigger()
    window.qtbot.waitUntil(lambda: len(again.list.entries) == 1, timeout=5_000)
    assert again.list.entries[0].fit == sweep.fit
    assert window.result.table is None, "a roofline is nobody's tuning result"
    stored = window.store.sessions()[0].id
    with window.qtbot.waitSignal(again.session_opened, timeout=5_000):
        window.bridge.submit(events.Open(stored))
    window.qtbot.waitUntil(lambda: not again.reading, timeout=5_000)
    assert len(again.list.entries) == 1, "the same session is no second sweep"
    assert window.result.table is None
    # what was simulated says so in every file too
    assert main(["export", str(stored), "--out", str(tmp_path)]) == 0
    again.open(next(tmp_path.glob("*session.csv")))
    window.qtbot.waitUntil(lambda: len(again.list.entries) == 2, timeout=5_000)
    assert "simulated" in again.list.entries[1].label
    again.remove.click()
    # a measured configuration is placed by its own work and traffic, its measured figures beside the expected ones
    loaded = window.store.load(stored)
    kernels = replace(plan_of(loaded), origin={})  # as if they had been tuned
    window.bridge.deliver(events.SessionStarted(stored, kernels, loaded.table, running=False))
    window.result.select(int(np.nanargmin(np.abs(sweep.intensity() - 1.0))))
    again.placer.take.click()
    rows = again.placer.table
    assert rows.item(rows.rowCount() - 1, 0).text() == f"measured · {window.gpu.info.name}"
    expected, measured = (float(rows.item(row, 2).text()) for row in range(2))
    assert expected == pytest.approx(measured, rel=0.02)
    again.shutdown()


@pytest.mark.parametrize("width", [880, 970])  # at 1280 and 1366, beside the Inspector
def test_the_values_of_the_first_sweep_are_whole_on_a_small_screen(
    panel: RooflinePanel, qtbot: QtBot, width: int
) -> None:
    panel.resize(width, 420)
    panel.add_recorded()
    qtbot.waitUntil(lambda: len(panel.list.entries) == 4, timeout=10_000)
    QApplication.processEvents()
    table = panel.table
    assert table.columnWidth(0) > 100
    assert table.columnViewportPosition(0) + table.columnWidth(0) <= table.viewport().width()
    heading = table.verticalHeader()
    assert heading.width() > 100
    assert table.verticalHeaderItem(0).toolTip(), "a heading that is cut is whole there"


def test_a_real_board_can_be_looked_at_without_one(panel: RooflinePanel, qtbot: QtBot) -> None:
    panel.add.menu().aboutToShow.emit()
    next(action for action in panel.add.menu().actions() if action.data() == "recorded").trigger()
    qtbot.waitUntil(lambda: len(panel.list.entries) == 4, timeout=10_000)
    assert {sweep.label for sweep in panel.list.entries} == {
        f"NVIDIA H200 · {precision} (recorded)" for precision in ("FP32", "FP64", "FP16 tensor", "BF16 tensor")
    }
    assert all(sweep.model is not None for sweep in panel.list.entries)
    assert "held at 695 W" in labels(panel), "the file holds the power at the limit, not the limit"


def test_a_measurement_can_be_stopped_and_what_it_has_stays(window: Window) -> None:
    panel = window.panel
    panel.precisions.setCurrentIndex(0)
    panel.measure.click()
    assert not panel.measure.isEnabled()
    window.qtbot.waitUntil(lambda: panel.progress.value() >= 10, timeout=20_000)
    assert panel.stop.isVisible()
    panel.stop.click()
    window.qtbot.waitUntil(lambda: panel.measuring.possible, timeout=20_000)
    window.qtbot.waitUntil(lambda: not panel.measuring.fitting, timeout=5_000)
    assert [sweep.points.precision for sweep in panel.list.entries] == ["fp32"], "the second precision is not begun"
    assert len(window.store.sessions()) == 1
    assert not panel.progress.isVisible()
    [stopped] = window.store.sessions()
    panel.measuring.resume(stopped.id, "fp32")
    window.qtbot.waitUntil(lambda: panel.measuring.possible, timeout=30_000)
    [resumed] = window.store.sessions()
    assert (resumed.id, resumed.state) == (stopped.id, SessionState.DONE)
    assert resumed.evaluated > stopped.evaluated
    assert window.result.table is None


def test_public_boards_are_overlaid_and_a_throttled_one_is_no_number(
    panel: RooflinePanel, public: Path, qtbot: QtBot
) -> None:
    panel.open(public)
    qtbot.waitUntil(lambda: len(panel.list.entries) == 10, timeout=10_000)
    assert panel.table.columnCount() == 10
    for column, sweep in enumerate(panel.list.entries):
        a100 = sweep.points.gpu.startswith("A100")
        assert (figure(panel, "ε_flop", column) == NOT_IDENTIFIABLE) != a100
        assert (figure(panel, "B_ε", column) == NOT_IDENTIFIABLE) != a100
        assert "recorded" in sweep.label
    assert len(curves(panel, 0)) == 8, "what is not identifiable has no line"
    assert not panel.key.isVisible(), "the file does not tell occupancies"
    panel.list.setCurrentRow(9)
    assert "not identifiable" in panel.reasons.text()
    assert "condition number 3361" in panel.reasons.text()
    throttled = [spot for spot in panel.plot.scatters[2].points() if spot.data()[0] == len(panel.list.shown) - 1]
    hollow = [spot for spot in throttled if spot.brush().color().name() == theme.colours().base]
    assert len(hollow) == int((~panel.list.entries[9].points.at_peak()).sum())


def test_a_double_click_shows_everything_again(panel: RooflinePanel, public: Path) -> None:
    panel.list.put([sweep_of_points(read_points(public)[0], "recorded", "file")])
    view = panel.plot.plots[0].getViewBox()
    before = view.viewRange()
    view.setRange(xRange=(0.5, 0.6), yRange=(12.0, 12.1), padding=0)
    assert panel.plot.plots[2].getViewBox().viewRange()[0] == pytest.approx([0.5, 0.6]), "one axis of intensity"

    class DoubleClick:
        def double(self) -> bool:
            return True

    panel.plot.scene().sigMouseClicked.emit(DoubleClick())
    assert np.allclose(view.viewRange(), before)


def choose(panel: RooflinePanel, words: str) -> None:
    """A line of the menu of published boards."""
    panel.add.menu().aboutToShow.emit()
    menu = next(m for a in panel.add.menu().actions() if (m := QMenu.menuInAction(a)) is not None)
    next(a for a in menu.actions() if a.text() == words).trigger()


def test_published_boards_are_lines_without_points_that_cite_their_source(panel: RooflinePanel, qtbot: QtBot) -> None:
    choose(panel, "GH200 · FP64")
    [sweep] = panel.list.entries
    assert "GH200 · FP64 (published), J. Holtmann" in panel.list.item(0).text()
    assert "nothing was measured here" in panel.reasons.text()
    assert [len(scatter.points()) for scatter in panel.plot.scatters] == [0, 0, 0]
    x, y = curves(panel, 1)[0]
    assert sweep.published is not None
    assert 10**y == pytest.approx(sweep.published.archline(10**x))
    assert figure(panel, "η_flop") == "70.01"
    assert figure(panel, "π_flop") == "397.1"
    assert figure(panel, "ε_mop") == "713.8"
    heads = [panel.table.verticalHeaderItem(row).text() for row in range(panel.table.rowCount())]
    assert not any(head.startswith(("R²", "Points", "Of peak")) for head in heads), "nothing was measured"
    qtbot.keyClicks(panel.placer.work, "1e12")
    qtbot.keyClicks(panel.placer.traffic, "1e9")
    assert panel.placer.table.item(0, 1).text() == f"{1e12 / 34e12 * 1e3:.4g}"
    choose(panel, "All of them")
    assert len(panel.list.entries) == 10  # the one that was there is not there twice


def test_the_table_lists_powers_words_and_shares_of_the_theoretical_peak(panel: RooflinePanel, qtbot: QtBot) -> None:
    panel.open(resources() / "recordings" / "h200-roofline-fp64.json.gz")
    qtbot.waitUntil(lambda: bool(panel.list.entries))
    fit = panel.list.entries[0].fit
    assert fit is not None
    assert figure(panel, "π_mem") == f"{fit.model.pi_mem_w:.4g}"
    assert figure(panel, "Of bandwidth, copy") == percent(fit.highest["copy"][1] / 4.8e12)
    assert figure(panel, "Of peak, flop kernel") == percent(fit.highest["flop"][0] / 34e12)
    assert float(figure(panel, "R², throttled points")) == pytest.approx(fit.r2_with_throttled, abs=1e-5)


def test_sweeps_are_hidden_shown_and_removed(panel: RooflinePanel, public: Path, qtbot: QtBot) -> None:
    panel.open(public)
    qtbot.waitUntil(lambda: len(panel.list.entries) == 10, timeout=10_000)
    for row in range(1, 10):
        panel.list.item(row).setCheckState(Qt.CheckState.Unchecked)
    assert panel.table.columnCount() == 1
    assert len(curves(panel, 1)) == 1
    panel.list.item(0).setCheckState(Qt.CheckState.Unchecked)
    assert "ticked" in panel.plot.note
    panel.list.setCurrentRow(0)
    for _ in range(10):
        panel.remove.click()
    assert panel.list.entries == ()
    assert panel.needs.isVisible()


def test_a_kernel_of_known_work_is_placed_and_expected_on_each_board(
    panel: RooflinePanel, public: Path, qtbot: QtBot
) -> None:
    panel.open(public)
    qtbot.waitUntil(lambda: len(panel.list.entries) == 10, timeout=10_000)
    for field, text in ((panel.placer.work, "1e12"), (panel.placer.traffic, "1e9")):
        field.clear()
        qtbot.keyClicks(field, text)
    rows = panel.placer.table
    assert rows.rowCount() == 10
    first = panel.list.entries[0]
    assert first.model is not None
    time_s, energy_j, power_w = first.model.predict(1e12, 1e9)
    figures = [float(rows.item(0, column).text()) for column in (1, 2, 3)]
    assert figures == pytest.approx([time_s * 1e3, power_w, energy_j], rel=1e-3)
    assert rows.item(9, 1).text() == NOT_IDENTIFIABLE
    qtbot.keyClicks(panel.placer.traffic, "x")
    assert panel.placer.kernel is None
    assert "numbers above zero" in panel.placer.message.text()
    assert rows.rowCount() == 0


def test_a_configuration_tells_its_work_and_traffic_or_is_not_offered(lab: Lab, panel: RooflinePanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    lab.result.select(0)
    assert not panel.placer.take.isEnabled(), "speed alone is no place on the axis of intensity"
    measurement = table.measurement(0)
    values = {**measurement.values, "GFLOP/s": 2000.0, "GB/s": 500.0, "time_s": 0.5}
    kernel = kernel_of(dataclasses.replace(measurement, values=values), "gemm")
    assert kernel == PlacedKernel(1e12, 2.5e11, "gemm", "", 0.5, values["power_w"], values["energy_j"])


def test_a_session_without_work_or_traffic_and_a_bad_file_are_one_clear_line(
    lab: Lab, panel: RooflinePanel, qtbot: QtBot, tmp_path: Path
) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    panel.add_session_shown()
    qtbot.waitUntil(panel.message.isVisible, timeout=5_000)
    assert "no GB/s" in panel.message.text()
    bad = tmp_path / "sweep.csv"
    bad.write_text("a,b\n1,2\n")
    panel.open(bad)
    assert not panel.message.isVisible()
    qtbot.waitUntil(panel.message.isVisible, timeout=5_000)
    assert "no column with the rate" in panel.message.text()
    assert "name one of" in panel.message.text()


def test_a_board_that_its_limit_holds_has_the_limit_under_its_roofs_and_lists_what_it_held(qtbot: QtBot) -> None:
    made = Window(qtbot, SimulatedGpu(load_twin("a4000"), seed=1, clock=VirtualClock()))
    try:
        made.measure("fp32")
        panel, sweep = made.panel, made.panel.list.entries[0]
        held = [int(at) for at in sweep.held() if sweep.points.bytes_per_s[at] > 0]
        assert len(held) > 10
        roof, limit = curves(panel, 0)
        x, speed = np.log10(sweep.intensity()[held]), np.log10(sweep.points.flops[held])
        assert np.interp(x, *limit) == pytest.approx(speed, abs=0.04), "within 10 % of what was measured"
        assert (np.interp(x, *roof) >= np.interp(x, *limit) - 1e-9).all()
        assert panel.tabs.isTabVisible(panel.tabs.indexOf(panel.held))
        assert panel.held.rowCount() == len(sweep.held())
        assert "a limit held" in panel.reasons.text()
        assert "held by a limit: fitted with its clock" in point_words(sweep, held[0])
    finally:
        made.close()


def test_nothing_is_measured_while_another_session_runs(lab: Lab, panel: RooflinePanel) -> None:
    table = filled(grid_space())
    lab.session(table, plan_for(table.space, OBJECTIVE))
    assert not panel.measure.isEnabled()


def test_points_that_cannot_be_fitted_are_shown_with_the_reason(panel: RooflinePanel, public: Path) -> None:
    points = read_points(public)[0]
    limited = dataclasses.replace(points, limited=np.ones(len(points), dtype=bool))
    panel.list.put([sweep_of_points(limited, "nvml", "test", 300.0)])
    assert figure(panel, "ε_flop") == "no fit"
    assert "lower, locked clock" in panel.reasons.text()
    assert len(panel.plot.scatters[0].points()) > 0
    assert curves(panel, 0) == []
    panel.list.put([sweep_of_points(points, "nvml", "test", 300.0)])
    assert len(panel.list.entries) == 1, "a later sweep of the same origin takes the place"
    assert panel.list.entries[0].fit == fit_points(points)


def test_a_point_says_what_it_is(public: Path) -> None:
    sweep = sweep_of_points(read_points(public)[0], "recorded", "file")
    words = point_words(sweep, 0)
    for expected in ("A100-40GB 0", "recorded", "0.25", "GB/s", "1372", "227.0", "1410 MHz"):
        assert expected in words


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_follow_the_theme(panel: RooflinePanel, public: Path, mode: theme.Mode) -> None:
    panel.list.put([sweep_of_points(read_points(public)[0], "recorded", "file")])
    theme.set_mode(mode)
    assert panel.plot.backgroundBrush().color().name() == theme.colours().base
    theme.set_mode("system")


@pytest.mark.parametrize(
    ("low", "high", "base"), [(0.2, 160.0, 2), (250.0, 420.0, 10), (1e-3, 1e5, 10), (190.0, 1000.0, 10), (1.0, 1.01, 2)]
)
def test_marks_of_a_logarithmic_axis_lie_within_it_and_are_few(low: float, high: float, base: int) -> None:
    for at_most in (2, 4, 12):
        ticks = log_ticks(low, high, at_most, base)
        assert 1 <= len(ticks) <= at_most
        assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in ticks)
        assert ticks == sorted(set(ticks))


def test_an_axis_without_a_span_has_no_marks() -> None:
    assert log_ticks(5.0, 5.0, 10) == []
    assert log_ticks(0.0, 5.0, 10) == []
    assert log_ticks(1.0, math.inf, 10) == []


def test_a_sweep_of_nothing_but_copies_is_drawn(panel: RooflinePanel) -> None:
    some = np.full(7, 1e12)
    nothing = np.full(7, math.nan)
    points = RooflinePoints(
        gpu="Board",
        precision="fp32",
        flops=0 * some,
        bytes_per_s=some,
        power_w=np.full(7, 200.0),
        clock_mhz=nothing,
        limited=np.zeros(7, dtype=bool),
        threads=nothing,
        power_error_w=nothing,
    )
    panel.list.put([sweep_of_points(points, "nvml", "test")])
    assert len(panel.plot.scatters[2].points()) == 7
    assert figure(panel, "Peak") == "no fit"
