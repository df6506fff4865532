"""One result at a time: every view shows the same one under its own name, and what is exported is what is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.lab import SGEMM, OneBoard
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.engine_thread import Tuner
from app.engine.specification.examples import examples
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.sensors.trace.trace import Trace
from app.views.front.convergence_panel import ConvergencePanel
from app.views.front.front_panel import FrontPanel
from app.views.front.table_panel import TablePanel
from app.views.inspector.inspector_panel import InspectorPanel
from app.views.shared.bridge import EngineBridge
from app.views.shared.context import Context
from app.views.shared.current_result import CurrentResult
from app.views.shell.header import ResultBar
from app.views.tune.tune_panel import TunePanel
from app.views.understand.analysis_panel import AnalysisPanel
from app.views.understand.roofline_panel import RooflinePanel


def specification(folder: Path) -> Path:
    (folder / "sgemm.cu").write_text("// the simulated board costs it by its profile\n")
    path = folder / "sgemm.toml"
    path.write_text(SGEMM)
    return path


def cache(folder: Path) -> Path:
    """A recording of another board."""
    entries = {str(x): {"x": x, "time": 1.0 + x, "GFLOP/s": 100.0 / (1 + x)} for x in range(8)}
    document = {
        "device_name": "RTX 4000 Ada",
        "kernel_name": "stencil",
        "tune_params_keys": ["x"],
        "tune_params": {"x": list(range(8))},
        "objective": "GFLOP/s",
        "cache": entries,
    }
    path = folder / "ada.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


class Desk:
    """Every view that shows results, over the real engine and store and a simulated A100."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot, self.store = qtbot, Store()
        self.gpu = SimulatedGpu(load_twin("a100"), seed=1, clock=VirtualClock())
        self.bridge = EngineBridge(lambda on_event: Tuner(self.store, on_event))
        self.result = CurrentResult(self.bridge)
        self.faults: list[events.EngineFault] = []
        self.bridge.subscribe(events.EngineFault, self.faults.append)
        boards: Any = OneBoard(self.bridge, self.gpu, Trace(self.gpu.channels))
        context = Context(self.bridge, boards, self.store, self.result)
        self.tune, self.front = TunePanel(context), FrontPanel(context)
        self.table, self.convergence = TablePanel(context), ConvergencePanel(context)
        self.analysis, self.inspector = AnalysisPanel(context), InspectorPanel(context)
        self.roofline = RooflinePanel(context)
        self.bar = ResultBar(self.result, self.bridge, lambda: None, lambda: None)
        self.views: tuple[QWidget, ...] = (
            *(self.tune, self.table, self.front, self.convergence),
            *(self.analysis, self.inspector),
        )
        for view in (*self.views, self.roofline, self.bar):
            qtbot.addWidget(view)
            view.resize(700, 900)
            view.show()

    @property
    def caption(self) -> str:
        """What the bar over every view calls the result that they show."""
        return self.bar.caption.text().removeprefix("Result: ")

    def shown(self) -> dict[str, object]:
        """What is seen of the result, view by view."""
        tune, points = self.tune, self.front.points
        assert points is not None
        return {
            "caption": self.caption,
            "rows": self.table.results.results.rowCount(),
            "progress": (tune.progress.bar.format(), tune.progress.bar.value(), tune.progress.best.text()),
            "failed": tune.progress.failed.text(),
            "steps": list(self.convergence.history.improvements) if self.convergence.history else [],
            "chosen": self.inspector.measurement and self.inspector.measurement.configuration,
            "front": (len(points), len(points.front), self.front.figures.titles),
            "analysis": self.analysis.state.text(),
            "state": tune.state,
        }

    def tune_to_the_end(self, path: Path) -> None:
        self.tune.open(path, start=True)
        with self.qtbot.waitSignal(
            self.bridge.signal(events.FiguresRestated), timeout=30_000
        ):  # for one condition, at the end
            self.qtbot.waitUntil(lambda: self.tune.state is SessionState.DONE, timeout=30_000)
        self.qtbot.waitUntil(self.steps_are_of_the_result, timeout=10_000)
        self.wait_for_analysis()

    def steps_are_of_the_result(self) -> bool:
        """Convergence has its turn after the event."""
        history = self.convergence.history
        return history is not None and history.table is self.result.table

    def wait_for_analysis(self) -> None:
        self.qtbot.waitUntil(lambda: "measurements of" in self.analysis.state.text(), timeout=20_000)

    def exported(self, folder: Path) -> dict[str, Any]:
        """The JSON that Export writes."""
        export = self.inspector.answer.export
        export.export_into(folder)
        with self.qtbot.waitSignal(export.written, timeout=10_000) as signal:
            export.kinds["json"].trigger()
        read: dict[str, Any] = json.loads(signal.args[0][0].read_text())
        return read

    def close(self) -> None:
        for view in (*self.views, self.roofline):
            if hasattr(view, "shutdown"):
                view.shutdown()
        self.bridge.close()
        self.store.close()
        self.gpu.close()


@pytest.fixture
def desk(qtbot: QtBot) -> Iterator[Desk]:
    made = Desk(qtbot)
    yield made
    made.close()


def test_a_roofline_leaves_the_tuning_session_where_it_is(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    desk.tune_to_the_end(specification(tmp_path))
    before = desk.shown()
    assert before["caption"] == "sgemm · NVIDIA A100-PCIE-40GB · session 1 · simulated"

    seen: list[dict[str, object]] = []
    desk.bridge.subscribe(events.MeasurementsAdded, lambda _event: seen.append(desk.shown()), roofline=True)
    desk.roofline.measuring.start(("fp32",))
    qtbot.waitUntil(lambda: desk.bridge.activity.title == "Roofline FP32", timeout=20_000)
    assert desk.bar.what.text() == "Roofline FP32"
    assert not desk.tune.start.isEnabled()
    assert not desk.tune.stop.isEnabled(), "Tune stops its own session; the bar stops whatever runs"
    qtbot.waitUntil(lambda: desk.roofline.measuring.possible, timeout=60_000)
    qtbot.waitUntil(lambda: not desk.roofline.measuring.fitting, timeout=10_000)
    assert len(desk.roofline.list.entries) == 1

    assert seen, "the roofline was measured"
    assert [each for each in (*seen, desk.shown()) if each != before] == []
    assert desk.tune.start.isEnabled()
    assert desk.exported(tmp_path / "after")["kernel"] == "sgemm"

    assert desk.faults == []


def test_a_stored_roofline_is_opened_as_a_roofline(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    desk.roofline.measuring.start(("fp32",))
    qtbot.waitUntil(lambda: desk.bridge.activity.busy, timeout=20_000)
    qtbot.waitUntil(lambda: desk.roofline.measuring.possible, timeout=60_000)
    with qtbot.waitSignal(desk.tune.past.listed, timeout=5_000):
        desk.tune.stored.menu().aboutToShow.emit()
    assert next(action.text() for action in desk.tune.stored.menu().actions()) == "none yet", (
        "it enters no menu of Tune"
    )
    desk.tune_to_the_end(specification(tmp_path))
    before = desk.shown()
    with qtbot.waitSignal(desk.roofline.session_opened, timeout=10_000):
        desk.bridge.submit(events.Open(1))
    assert desk.shown() == before
    desk.tune.open_session(1)
    qtbot.waitUntil(lambda: bool(desk.faults), timeout=10_000)
    assert "roofline" in desk.faults[0].what


def test_what_is_set_up_does_not_stand_over_what_is_shown(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    desk.tune_to_the_end(specification(tmp_path))
    simulated = "sgemm · NVIDIA A100-PCIE-40GB · session 1 · simulated"
    desk.inspector.chooser.choose_by("fastest")
    qtbot.wait(50)
    assert desk.result.way == "fastest", "no view that follows takes it for a click of its own"
    desk.result.select(-1)
    before = desk.shown()

    desk.tune.open(next(path for path in examples() if path.stem == "copy"))
    qtbot.waitUntil(lambda: desk.tune.draft is not None, timeout=20_000)
    assert desk.tune.header.text().startswith("Set up to run: copy on NVIDIA A100-PCIE-40GB")
    assert desk.shown() == before, "a specification that is merely opened changes nothing that is shown"
    assert desk.exported(tmp_path / "first")["gpu"] == "NVIDIA A100-PCIE-40GB"

    desk.tune.open(cache(tmp_path))
    qtbot.waitUntil(lambda: desk.result.plan is not None and desk.result.plan.gpu == "RTX 4000 Ada", timeout=20_000)
    qtbot.waitUntil(lambda: desk.tune.state is SessionState.DONE, timeout=20_000)
    desk.wait_for_analysis()
    assert desk.caption == "stencil · RTX 4000 Ada · recorded in ada.json.gz"
    assert desk.exported(tmp_path / "whole")["gpu"] == "RTX 4000 Ada"

    desk.result.select(2)
    desk.tune.start.click()
    qtbot.waitUntil(lambda: desk.result.session == 2 and desk.tune.state is SessionState.DONE, timeout=20_000)
    desk.wait_for_analysis()
    assert desk.caption == "stencil · RTX 4000 Ada · session 2 · recorded in ada.json.gz"
    shown = desk.shown()
    assert shown["rows"] == 8
    assert shown["front"] != before["front"]
    assert shown["analysis"] == "8 measurements of stencil"
    assert desk.result.index == -1, "nothing of the former result is selected"
    assert shown["chosen"] == {"x": 0}, "the best of the one that is shown"
    second = desk.exported(tmp_path / "second")
    assert (second["kernel"], second["gpu"]) == ("stencil", "RTX 4000 Ada")

    desk.bridge.submit(events.Open(1))
    qtbot.waitUntil(lambda: desk.result.session == 1 and desk.tune.state is SessionState.DONE, timeout=10_000)
    desk.wait_for_analysis()
    assert desk.caption == simulated
    assert desk.shown()["chosen"] == before["chosen"], "a session that is reopened has its best again"
    assert desk.result.rule == "max:GFLOPS/W", "and nothing is selected"
    assert desk.inspector.answer.export.isEnabled()
    assert desk.inspector.answer.report.isEnabled()
    assert desk.exported(tmp_path / "third")["gpu"] == "NVIDIA A100-PCIE-40GB"
