"""The inspector: the chosen configuration's figures, its own power trace, its message, its kernel's source."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.fakes import FakeGpu, filled_trace, working
from fixtures.lab import OBJECTIVE, Lab, cache_session, filled, grid_space, measured, plan_for
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.engine.analysis.quantities import quantities_of
from app.engine.metering.condition import Condition
from app.engine.metering.thermal import ThermalModel
from app.engine.results.evidence import Evidence
from app.engine.results.measurement import Measurement, State
from app.engine.runner.stating import Statement
from app.engine.session.load import load_specification
from app.engine.space.result_table import ResultTable
from app.engine.store.database import Store
from app.engine.workloads.source_kernel import SourceKernel
from app.sensors.event_reasons import EventReason
from app.sensors.limits import limits_of
from app.sensors.trace.trace import Trace
from app.views.inspector.inspector_panel import InspectorPanel, SourceView
from app.views.shared import theme
from app.views.watch.own_trace_plot import OwnTracePlot

SPACE = grid_space()
COMPILED = {"registers_per_thread": 40.0, "shared_memory_byte": 8192.0, "local_memory_byte": 16.0, "occupancy": 0.75}
SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
compiler_options = ["-use_fast_math"]
[constants]
n = 1024
[parameters]
tile = [1, 2, 4, 8, 16, 32, 64, 128]
layout = ["row", "column"]
[device_settings]
graphics_clock_mhz = [900, 960]
"""
SOURCE = "// scales\n__global__ void scale(float *a) {\n    a[threadIdx.x * tile] *= 2.0f;\n}\n"

Panel = tuple[Lab, InspectorPanel]
Shows = Callable[..., InspectorPanel]


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu(working)


@pytest.fixture
def trace(gpu: FakeGpu) -> Trace:
    """Thirty seconds, the newest reading now."""
    return filled_trace(gpu, 30.0)


@pytest.fixture
def store(own_data_folder: Path) -> Iterator[Store]:
    with Store() as made:
        yield made


@pytest.fixture
def lab(gpu: FakeGpu, trace: Trace, store: Store) -> Lab:
    return Lab(gpu, store, trace=trace)


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[InspectorPanel]:
    made = InspectorPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(340, 640)
    made.show()
    yield made
    made.shutdown()


@pytest.fixture
def shows(lab: Lab, panel: InspectorPanel) -> Shows:
    """A session of these measurements, the first of them selected."""

    def show(*measurements: Measurement, **plan: Any) -> InspectorPanel:
        table = ResultTable(SPACE)
        table.extend(measurements)
        lab.session(table, plan_for(SPACE, OBJECTIVE, **plan))
        lab.result.select(0)
        return panel

    return show


def live(row: int = 4, **changed: Any) -> Measurement:
    """Measured on a real board just now."""
    return dataclasses.replace(measured(SPACE, row), source="nvml", timestamp_s=time.time() + 0.01, **changed)


def in_window(trace: Trace, before_s: float = 8.0, length_s: float = 1.5, **changed: Any) -> Measurement:
    """One whose window opened that long before the newest reading."""
    start_ns = trace.last_ns - int(before_s * 1e9)
    window_ns = (start_ns, start_ns + int(length_s * 1e9))
    power_w = trace.statistics(trace.power_name, *window_ns).mean
    values = {**measured(SPACE, 4).values, "power_w": power_w}
    return live(window_ns=window_ns, values=values, intervals={"power_w": (power_w - 1, power_w + 1)}, **changed)


def written(folder: Path, text: str = SPECIFICATION) -> dict[str, str]:
    """A specification on disk with its kernel; the origin of its plan."""
    (folder / "scale.toml").write_text(text)
    (folder / "scale.cu").write_text(SOURCE)
    return {"kind": "specification", "file": str(folder / "scale.toml")}


# --- before anything is selected --------------------------------------------------------------------------------------


def test_it_says_what_to_do_first(lab: Lab, panel: InspectorPanel, shows: Shows) -> None:
    assert "Start" in panel.empty.text()
    assert panel.empty.isVisible()
    shows(live())
    assert not panel.empty.isVisible()
    lab.result.select(-1)
    assert "Select a measurement" in panel.empty.text()
    assert panel.empty.isVisible()


def test_while_nothing_is_selected_the_best_by_the_objective_is_shown_and_said_to_be(
    lab: Lab, panel: InspectorPanel, qtbot: QtBot
) -> None:
    table = filled(SPACE)
    lab.session(table, plan_for(SPACE, OBJECTIVE))
    best = int(np.nanargmax(table.values("GFLOPS/W")))
    lab.grow(table, best=best)
    assert panel.measurement == table.measurement(best)
    qtbot.waitUntil(lambda: f"Measurement {best + 1}" in panel.title.text(), timeout=5_000)
    assert "tile" in panel.facts.toPlainText()
    lab.result.select(3)
    assert "Measurement 4<" in panel.title.text()


def test_it_makes_nothing_ready_while_out_of_sight(lab: Lab, panel: InspectorPanel, shows: Shows) -> None:
    panel.hide()
    shows(live())
    assert panel.facts.toPlainText() == ""
    panel.show()
    assert "tile" in panel.facts.toPlainText()


# --- figures ----------------------------------------------------------------------------------------------------------


def test_repeats_are_a_section_of_their_own(trace: Trace, shows: Shows) -> None:
    once = in_window(trace)
    assert "Repeats" not in shows(once).facts.toPlainText()
    spread = {"min_time_s": 0.0101, "max_time_s": 0.0103, "std_time_s": 0.0001}
    words = shows(dataclasses.replace(once, values={**once.values, **spread})).facts.toPlainText()
    assert "Repeats: range, deviation" in words
    assert "10.1–10.3, 0.1 ms" in words
    assert "Min time" not in words


def test_the_configuration_and_every_figure_stand_there_with_units(trace: Trace, shows: Shows) -> None:
    measurement = in_window(trace, event_reasons=int(EventReason.POWER_CAP), power_source="driver's buffer")
    words = shows(measurement).facts.toPlainText()
    configuration = measurement.configuration
    for expected in (
        *("tile", str(configuration["tile"]), "layout", str(configuration["layout"])),
        *("Device settings", f"{configuration['graphics_clock_mhz']} MHz"),
        *("95 %", "GFLOPS/W", "power cap", "driver's buffer", "1.5 s"),
    ):
        assert expected in words
    power = measurement.values["power_w"]
    assert f"{power:.4g} W ({power - 1:.4g}–{power + 1:.4g})" in words


@pytest.mark.parametrize("width", [280, 340, 420])
def test_what_the_compiler_made_of_it_is_told_at_any_width(panel: InspectorPanel, shows: Shows, width: int) -> None:
    panel.resize(width, 640)
    words = shows(live(values={**measured(SPACE, 4).values, **COMPILED})).facts.toPlainText()
    for expected in ("Registers per thread", "40", "8192 B per block", "16 B per thread", "75 %"):
        assert expected in words
    assert "registers_per_thread" not in words, "each figure once"
    assert "not known" not in words


@pytest.mark.parametrize("width", [280, 340, 420])
@pytest.mark.parametrize("height", [600, 720, 1000])
def test_what_can_be_done_is_in_sight_at_every_size(
    panel: InspectorPanel, shows: Shows, width: int, height: int
) -> None:
    panel.resize(width, height)
    shows(live(values={**measured(SPACE, 4).values, **COMPILED}))
    panel.chooser.choose_by("at_most_slower")
    QApplication.processEvents()
    assert panel.size() == QSize(width, height)
    answer, chooser = panel.answer, panel.chooser
    row = (answer.apply, answer.export, answer.report)
    for each in (*row, answer.said, chooser.choose_button, chooser.limit, chooser.words):
        place = QRect(each.mapTo(panel, QPoint()), each.size())
        assert panel.rect().contains(place), each
        assert not each.visibleRegion().isEmpty(), each
    assert len({each.y() for each in row}) == 1, "one row"
    assert all(each.width() >= each.minimumSizeHint().width() for each in row)
    assert panel.facts.viewport().height() > 100


def test_a_scroll_area_around_it_never_scrolls_the_buttons_out_of_sight(
    lab: Lab, panel: InspectorPanel, shows: Shows
) -> None:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setWidget(panel)
    area.resize(300, 580)
    area.show()
    shows(live(values={**measured(SPACE, 4).values, **COMPILED}))
    QApplication.processEvents()
    assert panel.height() <= 580
    assert not panel.answer.said.visibleRegion().isEmpty()
    area.takeWidget()
    area.deleteLater()


def test_where_there_is_height_the_figures_stand_above_the_power_trace(panel: InspectorPanel, shows: Shows) -> None:
    panel.resize(340, 600)
    shows(live())
    assert shown_tabs(panel) == ["*Figures", "Power", "Source"]
    panel.resize(340, 1000)
    assert shown_tabs(panel) == ["*Power", "Source"]
    assert panel.facts.isVisible()
    panel.tabs.setCurrentWidget(panel.source)
    panel.resize(340, 600)
    assert shown_tabs(panel) == ["Figures", "Power", "*Source"]


@pytest.mark.parametrize("heights", [(600,), (1000,), (1000, 600)], ids=["low", "tall", "tall, then low"])
def test_tab_finds_the_figures_where_they_stand(panel: InspectorPanel, shows: Shows, heights: tuple[int, ...]) -> None:
    shows(live())
    for height in heights:
        panel.resize(340, height)
    tabs = panel.tabs.tabBar()
    panel.tabs.setCurrentIndex(0)
    first, second = (tabs, panel.facts) if heights[-1] == 600 else (panel.facts, tabs)
    first.setFocus()
    assert panel.focusNextChild()
    assert panel.focusWidget() is second


def test_no_spills_are_none(shows: Shows) -> None:
    assert "none" in shows(live(values={**COMPILED, "local_memory_byte": 0.0})).facts.toPlainText()


@pytest.mark.parametrize(
    ("source", "state", "why"),
    [
        ("simulated", State.OK, "simulated"),
        ("recorded", State.OK, "replayed"),
        ("nvml", State.COMPILE, "did not compile"),
        ("nvml", State.CONSTRAINTS, "refused"),
    ],
)
def test_what_is_not_known_of_the_compiled_kernel_says_why(shows: Shows, source: str, state: State, why: str) -> None:
    panel = shows(dataclasses.replace(live(), source=source, state=state), source=source)
    words = panel.facts.toPlainText()
    assert "not known" in words
    assert why in words


@pytest.mark.parametrize(("source", "word"), [("simulated", "simulated"), ("recorded", "replayed"), ("nvml", "")])
def test_the_title_tells_number_state_and_source(shows: Shows, source: str, word: str) -> None:
    title = shows(dataclasses.replace(live(), source=source)).title.text()
    assert "Measurement 1" in title
    assert "ok" in title
    assert word in title
    assert ("simulated" in title or "replayed" in title) == bool(word)


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_is_whole_in_a_fixed_font_and_can_be_copied(shows: Shows) -> None:
    said = "\n".join(f'scale.cu({line}): error: identifier "x{line}" is undefined <tag> & more' for line in range(300))
    panel = shows(live(state=State.COMPILE, values={}, error=said))
    assert shown_tabs(panel) == ["Figures", "*Message", "Source"]
    assert panel.message.isVisible()
    assert panel.message.text.toPlainText() == said
    assert panel.message.text.font().family() == theme.fixed_font().family()
    panel.message.copy.click()
    assert QGuiApplication.clipboard().text() == said
    assert "failed: compile" in panel.title.text()


def shown_tabs(panel: InspectorPanel) -> list[str]:
    """With a star before the current one."""
    tabs = panel.tabs
    shown = [index for index in range(tabs.count()) if tabs.isTabVisible(index)]
    return [("*" if at == tabs.currentIndex() else "") + tabs.tabText(at) for at in shown]


def test_what_the_compiler_said_of_a_kernel_that_works_has_a_tab_of_its_own(shows: Shows) -> None:
    said = "kernel.cu(3): warning #177-D: variable 'unused' was declared but never referenced"
    panel = shows(live(message=said))
    assert shown_tabs(panel) == ["*Figures", "Power", "Message", "Source"]
    assert panel.message.whole == said
    assert "though it works" in panel.message.title.text()
    panel.tabs.setCurrentWidget(panel.message)
    assert shown_tabs(shows(live(message=said))) == ["Figures", "Power", "*Message", "Source"]
    assert shown_tabs(shows(live())) == ["*Figures", "Power", "Source"]


def test_the_outcome_is_shown_unless_the_source_is(shows: Shows) -> None:
    panel = shows(live(state=State.CORRECTNESS, values={}, error="y: 3 values are wrong", message="warning: z"))
    assert shown_tabs(panel) == ["Figures", "*Message", "Source"]
    assert panel.message.whole == "y: 3 values are wrong\n\nwarning: z"
    assert shown_tabs(shows(live(message="warning: z"))) == ["*Figures", "Power", "Message", "Source"]
    panel.tabs.setCurrentWidget(panel.source)
    for measurement in (live(), live(state=State.TIMEOUT, values={})):
        assert shown_tabs(shows(measurement))[-1] == "*Source"


def test_a_failure_without_words_says_that_there_are_none(shows: Shows) -> None:
    panel = shows(live(state=State.TIMEOUT, values={}))
    assert "no message" in panel.message.whole


# --- its own power ----------------------------------------------------------------------------------------------------


def test_its_own_power_and_clock_are_cut_out_of_the_trace_with_a_margin(trace: Trace, shows: Shows) -> None:
    measurement = in_window(trace, length_s=1.5)
    plot = shows(measurement).trace
    assert not plot.note.isVisible()
    time_s, power_w = plot.plots.power.getData()
    assert time_s[0] == pytest.approx(-0.6, abs=0.05)
    assert time_s[-1] == pytest.approx(2.1, abs=0.05)
    inside = (time_s > 0) & (time_s <= 1.5)
    assert float(np.mean(power_w[inside])) == pytest.approx(measurement.values["power_w"], rel=0.01)
    assert plot.plots.clock.getData()[1].min() >= 200
    for window in plot.plots.windows:
        assert window.getRegion() == pytest.approx((0.0, 1.5))


def test_the_mean_and_its_interval_are_drawn_within_the_window(trace: Trace, shows: Shows) -> None:
    measurement = in_window(trace)
    plot = shows(measurement).trace
    power = measurement.values["power_w"]
    assert plot.plots.mean.getData()[0].tolist() == [0.0, 1.5]
    assert plot.plots.mean.getData()[1] == pytest.approx([power, power])
    assert plot.plots.low.getData()[1][0] == pytest.approx(power - 1)
    assert plot.plots.high.getData()[1][0] == pytest.approx(power + 1)
    assert f"{power:.4g} W" in plot.legend.text()


def test_readings_of_after_the_window_are_drawn_as_they_come(
    qtbot: QtBot, gpu: FakeGpu, trace: Trace, shows: Shows
) -> None:
    plot = shows(in_window(trace, before_s=1.0, length_s=1.0)).trace
    newest = float(plot.plots.power.getData()[0][-1])
    assert newest == pytest.approx(1.0, abs=0.03)
    for step in range(1, 40):
        trace.append(gpu.reading(30.0 + step * 0.02, trace.last_ns + 20_000_000))
    qtbot.waitUntil(lambda: float(plot.plots.power.getData()[0][-1]) > 1.3, timeout=3000)


def test_a_board_that_tells_no_clock_has_only_the_power_drawn(qtbot: QtBot, store: Store) -> None:
    gpu = FakeGpu(working, missing={"graphics_clock_mhz": "not told"})
    trace = filled_trace(gpu, 20.0)
    lab = Lab(gpu, store, trace=trace)
    panel = InspectorPanel(lab.context)
    qtbot.addWidget(panel)
    panel.show()
    table = ResultTable(SPACE)
    table.append(in_window(trace))
    lab.session(table, plan_for(SPACE, OBJECTIVE))
    lab.result.select(0)
    assert panel.trace.plots.power_plot.isVisible()
    assert not panel.trace.plots.clock_plot.isVisible()
    panel.shutdown()


def test_a_trace_that_is_not_there_says_why(trace: Trace, shows: Shows) -> None:
    gone = (trace.first_ns - 5_000_000_000, trace.first_ns - 4_000_000_000)
    for measurement, why in (
        (live(window_ns=gone), "no longer holds"),
        (dataclasses.replace(in_window(trace), timestamp_s=time.time() - 3600), "Stored"),
        (dataclasses.replace(live(), source="recorded"), "Replayed"),
        (live(), "no time window"),
        (live(window_ns=(trace.last_ns + 10, trace.last_ns + 20)), "yet"),
    ):
        panel = shows(measurement)
        panel.tabs.setCurrentWidget(panel.trace)
        plot = panel.trace
        assert plot.note.isVisible()
        assert plot.plots.isHidden()
        assert why in plot.note.text()


def kept(level_w: float, row: int, **changed: Any) -> Measurement:
    """A measurement of a session of yesterday, whose samples scatter around a power; a cap acts in its second half."""
    readings = [(20_000_000 * place, 1410.0 - row, 4.0 if place > 5 else 0.0) for place in range(1, 11)]
    times_s = 0.01 + 0.02 * np.arange(9)
    evidence = Evidence.of([(0, 200_000_000)], times_s, level_w + np.arange(9) - 4.0, readings)
    values = {**measured(SPACE, row).values, "power_w": level_w}
    rest = {"window_ns": (0, 200_000_000), "values": values, "evidence": evidence.pack(), **changed}
    return dataclasses.replace(live(row, **rest), timestamp_s=time.time() - 86_400)


def stored(store: Store, lab: Lab, *measurements: Measurement) -> None:
    plan = plan_for(SPACE, OBJECTIVE, source="nvml")
    session = store.create_session(plan)
    store.append(session, measurements)
    assert session == 1, "the number that the scripted engine gives"
    lab.session(store.load(session).table, plan)
    lab.result.select(0)


def test_a_measurement_of_a_stored_session_shows_its_samples(
    lab: Lab, store: Store, panel: InspectorPanel, qtbot: QtBot
) -> None:
    stored(store, lab, kept(300.0, 4))
    plot = panel.trace
    qtbot.waitUntil(lambda: plot.note.isHidden(), timeout=5_000)
    time_s, power_w = plot.plots.power.getData()
    assert time_s.tolist() == pytest.approx((0.01 + 0.02 * np.arange(9)).tolist())
    assert power_w.tolist() == pytest.approx((300.0 + np.arange(9) - 4.0).tolist())
    assert plot.plots.clock.getData()[1].tolist() == pytest.approx([1406.0] * 10)
    assert plot.plots.mean.getData()[1] == pytest.approx([300.0, 300.0])
    assert plot.plots.reasons.getData()[0].tolist() == pytest.approx([0.1, 0.2])
    assert "power cap, 100 ms" in plot.legend.text()
    assert store.chosen == {1: 4}, "the samples of what is chosen do not give way"


def laid_over(plot: OwnTracePlot) -> int:
    """The samples that are drawn of another measurement."""
    times_s = plot.plots.other_power.getData()[0]
    return 0 if times_s is None else len(times_s)


def test_two_stored_measurements_are_laid_over_one_another(
    lab: Lab, store: Store, panel: InspectorPanel, qtbot: QtBot
) -> None:
    stored(store, lab, kept(300.0, 4), kept(350.0, 6))
    plot = panel.trace
    assert not plot.others.isVisible(), "there is nothing to choose from"
    lab.result.pin(1)
    panel.tabs.setCurrentWidget(plot)
    qtbot.waitUntil(lambda: plot.others.isVisible() and plot.note.isHidden(), timeout=5_000)
    assert laid_over(plot) == 0
    assert plot.others.itemText(1) == "Over it: A · #2"
    plot.others.setCurrentIndex(1)
    plot.others.activated.emit(1)
    qtbot.waitUntil(lambda: laid_over(plot) > 0, timeout=5_000)
    assert plot.plots.other_power.getData()[1].mean() == pytest.approx(350.0)
    assert plot.plots.power.getData()[1].mean() == pytest.approx(300.0)
    low, high = plot.plots.power_plot.viewRange()[1]
    assert low < 296 < 354 < high, "both are in sight"
    assert "Over it: A · #2, mean 350 W" in plot.legend.text()
    lab.result.select(1)
    qtbot.waitUntil(lambda: plot.plots.power.getData()[1].mean() == pytest.approx(350.0), timeout=5_000)
    assert laid_over(plot) == 0, "it is not laid over itself"


def test_a_stored_measurement_without_samples_says_why(
    lab: Lab, store: Store, panel: InspectorPanel, qtbot: QtBot
) -> None:
    store.evidence_byte = 0
    stored(store, lab, kept(300.0, 4))
    qtbot.waitUntil(lambda: "to do without" in panel.trace.note.text(), timeout=5_000)


def test_the_figures_begin_at_their_top(shows: Shows, lab: Lab, panel: InspectorPanel, qtbot: QtBot) -> None:
    """Also where Qt scrolled to their end before they had any room."""
    panel.resize(300, 900)
    qtbot.waitUntil(panel.empty.isVisible, timeout=5_000)
    many = {**live().values, **{f"figure {number}": float(number) for number in range(40)}}
    shows(live(values=many), live(5, values=many))
    at = panel.facts.verticalScrollBar()
    qtbot.waitUntil(lambda: panel.facts.height() > 100 and at.maximum() > 0, timeout=5_000)
    assert at.value() == 0
    at.setValue(5)
    lab.result.select(1)
    assert at.value() == 5, "figures are compared line by line"
    panel.facts.setMaximumHeight(0)
    qtbot.waitUntil(lambda: panel.facts.viewport().height() <= 0, timeout=5_000)
    lab.result.select(0)
    assert at.value() == 0


def test_a_real_cache_is_shown_as_replayed(shared_data: Path, lab: Lab, panel: InspectorPanel) -> None:
    table, plan = cache_session(shared_data / "kernel-tuner" / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
    lab.session(table, plan)
    good = int(np.flatnonzero(table.states() == 0)[0])
    lab.result.select(good)
    words = panel.facts.toPlainText()
    assert all(described.label in words for described in quantities_of(plan).values())
    assert "replayed" in words
    assert "Replayed" in panel.trace.note.text()


# --- source -----------------------------------------------------------------------------------------------------------


def test_the_source_has_the_configuration_s_defines_in_front_as_the_compiler_gets_them(
    qtbot: QtBot, shows: Shows, lab: Lab, tmp_path: Path
) -> None:
    panel = shows(live(4), live(7), origin=written(tmp_path))
    qtbot.waitUntil(lambda: "scale" in panel.source.whole, timeout=5000)
    kernel = SourceKernel.of(load_specification(tmp_path / "scale.toml"), limits_of((8, 0)))
    for index in (0, 1):
        lab.result.select(index)
        configuration = panel.measurement.configuration  # type: ignore[union-attr]
        compiled = kernel.prepare(configuration).build.text.split("#include")[0]
        shown = panel.source.text.toPlainText()
        assert shown == panel.source.whole
        assert shown.startswith(compiled)
        assert shown.endswith(SOURCE)
        assert f"#define tile {configuration['tile']}\n" in shown
    assert "graphics_clock_mhz" not in panel.source.whole, "a setting of the device is no part of the text"
    assert "scale.cu" in panel.source.title.text()
    assert "-use_fast_math" in panel.source.title.text()
    panel.source.copy.click()
    assert QGuiApplication.clipboard().text() == panel.source.whole


def test_a_source_that_changed_after_the_measurement_says_so(qtbot: QtBot, shows: Shows, tmp_path: Path) -> None:
    origin = written(tmp_path)
    panel = shows(dataclasses.replace(live(), timestamp_s=time.time() - 600), origin=origin)
    qtbot.waitUntil(lambda: "scale" in panel.source.whole, timeout=5000)
    assert "changed on disk" in panel.source.title.text()


def test_a_command_shows_its_line_and_compiles_nothing(qtbot: QtBot, shows: Shows, tmp_path: Path) -> None:
    origin = written(
        tmp_path, '[command]\nrun = "sleep {tile}"\n[parameters]\ntile = [1, 2]\nlayout = ["row", "column"]\n'
    )
    measurement = live(4)
    panel = shows(measurement, origin=origin)
    qtbot.waitUntil(lambda: "sleep" in panel.source.whole, timeout=5000)
    assert panel.source.whole.strip().endswith(f"sleep {measurement.configuration['tile']}")
    assert "Compiled kernel" not in panel.facts.toPlainText()


def test_where_there_is_no_source_it_says_why(qtbot: QtBot, shows: Shows, tmp_path: Path) -> None:
    for origin, why in (
        ({"kind": "replay", "file": "cache.json"}, "Replayed"),
        ({}, "no kernel source"),
        ({"kind": "specification", "file": str(tmp_path / "gone.toml")}, "no such file"),
    ):
        panel = shows(live(), origin=origin)
        qtbot.waitUntil(lambda panel=panel, why=why: why in panel.source.title.text(), timeout=5000)
        assert panel.source.whole == ""
        assert not panel.source.copy.isEnabled()


@pytest.mark.parametrize("path", sorted((resources() / "examples").glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_s_source_can_be_read(qtbot: QtBot, shows: Shows, path: Path) -> None:
    panel = shows(live(), origin={"kind": "specification", "file": str(path)})
    kernel = load_specification(path).kernel
    assert kernel is not None
    if kernel.generator:  # which is not run for that
        qtbot.waitUntil(lambda: kernel.generator in panel.source.title.text(), timeout=5000)
    else:
        qtbot.waitUntil(lambda: kernel.name in panel.source.whole, timeout=5000)


# --- the view of the source -------------------------------------------------------------------------------------------


@pytest.fixture
def source_view(qtbot: QtBot) -> SourceView:
    made = SourceView()
    qtbot.addWidget(made)
    made.show()
    return made


def colours_of(view: SourceView, line: int) -> dict[str, str]:
    """Text -> colour, of what is coloured in a line."""
    block = view.text.document().findBlockByNumber(line)
    return {
        block.text()[each.start : each.start + each.length]: each.format.foreground().color().name()
        for each in block.layout().formats()
    }


def test_code_is_coloured_and_the_session_s_parameters_stand_out(source_view: SourceView) -> None:
    text = '__shared__ float a[tile]; // tile\n/* one\nint tile */ int b = 0x1F + tiles;\nputs("tile");\n'
    source_view.show_source("", "#define tile 4\n", text, ["tile"])
    colours = theme.colours()
    assert colours_of(source_view, 0) == {"#define": colours.purple, "tile": colours.accent, "4": colours.orange}
    first = colours_of(source_view, 1)
    assert first["__shared__"] == colours.vermillion
    assert first["float"] == colours.blue
    assert first["tile"] == colours.accent
    assert first["// tile"] == colours.muted
    assert colours_of(source_view, 2) == {"/* one": colours.muted}
    second = colours_of(source_view, 3)
    assert second["int tile */"] == colours.muted
    assert second["0x1F"] == colours.orange
    assert "tiles" not in second
    assert colours_of(source_view, 4) == {'"tile"': colours.green}


def test_a_long_source_comes_in_pieces_and_is_whole_in_the_end(qtbot: QtBot, source_view: SourceView) -> None:
    text = "".join(f"int line_{line} = {line}; // ä𝛼\n" for line in range(2000))
    source_view.show_source("", "#define a 1\n", text, ["a"])
    assert len(source_view.text.toPlainText()) < len(text), "not all of it in one turn of the event loop"
    source_view.show_source("", "#define a 22 // 𝛼\n", text, ["a"])
    assert source_view.whole == "#define a 22 // 𝛼\n" + text
    source_view.show_source("", "#define a 333\n", text, ["a"])
    qtbot.waitUntil(lambda: source_view.text.toPlainText() == "#define a 333\n" + text, timeout=5000)


def test_another_theme_colours_the_source_anew(source_view: SourceView) -> None:
    source_view.show_source("", "", "int a;\n", [])
    theme.set_mode("dark")
    assert colours_of(source_view, 0) == {"int": theme.DARK.blue}
    theme.set_mode("light")
    assert colours_of(source_view, 0) == {"int": theme.LIGHT.blue}
    theme.set_mode("system")


def test_a_stated_energy_says_for_which_condition_and_how_far_it_holds_in_three_figures(shows: Shows) -> None:
    once = measured(SPACE, 4)
    stated = {"thermal_correction": 1.02, "thermal_uncertainty": 0.015, "energy_raw_j": once.values["energy_j"] / 1.02}
    origin = Statement(Condition(gpu_c=55.0, slow_w=300.0), ThermalModel()).to_origin()
    panel = shows(dataclasses.replace(once, values={**once.values, **stated}), origin=origin)
    said = panel.facts.toPlainText()
    for words in ("55 °C, 300 W", "Repeatability", "Reproducibility", "Gain of the sensor", "needs a meter", "+2.00 %"):
        assert words in said
    assert "Repeatability" not in shows(once, origin=origin).facts.toPlainText(), "as it was drawn"
