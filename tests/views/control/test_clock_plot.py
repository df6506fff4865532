"""Control as an instrument: clock and limit are dragged in the model's plot, with the effect predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, progress, ready
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.models.fit.frequency import FrequencyFit, fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.fit_documents import save_fit
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.store.database import Store
from app.sensors.channel import Reading
from app.sensors.select import open_gpu
from app.sensors.trace.trace import Trace
from app.views.control.clock_plot import CLOCK, LIMIT
from app.views.control.control_panel import ControlPanel
from app.views.shared.watched_boards import beat


def fitted(gpu: str, *, speed: bool = True, **beside: Any) -> FrequencyFit:
    clock = np.linspace(705.0, 1410.0, 8)
    power = 40 + 0.06 * clock * np.maximum(1.0, 1 + 1.5e-3 * (clock - 1000)) ** 2
    return fit_frequency_model(Points(clock, power, rate=clock if speed else None, gpu=gpu, simulated=True, **beside))


class Page:
    """The page Control of a simulated A100, with a store that may know its model."""

    def __init__(self, store: Store, gpu: Any, qtbot: QtBot) -> None:
        self.qtbot, self.store = qtbot, store
        self.lab = Lab(gpu, store, Trace(gpu.channels))
        self.gpu, self.trace = gpu, self.lab.context.boards.current.trace
        self.panel = ControlPanel(self.lab.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(1280, 900)

    def show(self) -> None:
        self.panel.show()
        self.qtbot.waitUntil(lambda: self.panel.rows is not None, timeout=20_000)

    def show_model(self, fit: FrequencyFit) -> None:
        save_fit(self.store, fit, "sweep of 8 clocks, simulated", uuid=self.gpu.info.uuid)
        self.show()
        self.qtbot.waitUntil(lambda: self.panel.model.known is not None, timeout=20_000)

    @property
    def plot(self) -> Any:
        return self.panel.plot

    @property
    def words(self) -> str:
        return str(self.panel.prediction.words.text())

    def reads(self, **values: float) -> None:
        """The board has reported this for two seconds."""
        start_ns = max(self.trace.last_ns, 1_000_000_000)
        for step in range(1, 21):
            row = tuple(values.get(channel.name, math.nan) for channel in self.gpu.channels)
            self.trace.append(Reading(start_ns + 100_000_000 * step, row))
        for _ in range(5):
            beat().strike()

    def drag(self, line: Any, to: tuple[float, float]) -> None:
        """Press on a line's marker, and move the mouse with the button held."""
        QApplication.processEvents()  # the axes of a model that has just been found have their places
        box, viewport = self.plot.getViewBox(), self.plot.viewport()
        (x0, x1), (y0, y1) = box.viewRange()
        upright = line.angle == 90
        start = (line.value(), (y0 + y1) / 2) if upright else ((x0 + x1) / 2, line.value())
        places = [
            self.plot.mapFromScene(box.mapViewToScene(QPointF(*start) + share * (QPointF(*to) - QPointF(*start))))
            for share in (0.0, 0.3, 0.6, 1.0)
        ]
        button, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
        moved, pressed = QEvent.Type.MouseMove, QEvent.Type.MouseButtonPress
        released = QEvent.Type.MouseButtonRelease
        steps = [(moved, places[0], none, none), (pressed, places[0], button, button)]
        steps += [(moved, place, none, button) for place in places[1:]]
        for kind, place, changed, held in [*steps, (released, places[-1], button, none)]:
            here = QPointF(place)
            QApplication.sendEvent(
                viewport,
                QMouseEvent(kind, here, viewport.mapToGlobal(here), changed, held, Qt.KeyboardModifier.NoModifier),
            )
            QApplication.processEvents()


@pytest.fixture
def page(tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setitem(pg.CONFIG_OPTIONS, "mouseRateLimit", -1)  # else moves within 10 ms of another are passed over
    with Store(tmp_path / "store.db") as store, closing(open_gpu("simulated:a100")) as gpu:
        made = Page(store, gpu, qtbot)
        yield made
        made.panel.shutdown()


def test_a_clock_is_dragged_to_a_supported_one_and_its_effect_predicted_while_nothing_is_set(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name))
    page.lab.engine.tell(events.ControlChanged(page.gpu.info.uuid, True, None))
    page.drag(page.plot.clock_line, (1003.0, 100.0))
    clock = page.panel.rows.high.value()
    assert clock in page.gpu.graphics_clocks_mhz()
    assert clock == pytest.approx(1003, abs=15)
    assert page.plot.clock_line.value() == clock
    assert page.panel.rows.settings() == {"graphics_clock_mhz": (210.0, float(clock))}
    assert "Predicted (simulated)" in page.words
    assert "W</b>" in page.words
    assert page.words.count("95 %") == 1
    assert "Time per work" in page.words
    assert "Joules per work" in page.words
    assert page.lab.engine.commands == [], "nothing is set before Apply"
    page.panel.apply.click()
    assert [type(command) for command in page.lab.engine.commands] == [events.Apply]


def test_a_limit_is_dragged_and_its_effect_named(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name))
    page.drag(page.plot.limit_line, (800.0, 210.0))
    limit = page.panel.rows.limit.value()
    assert limit == pytest.approx(210, abs=3)
    assert set(page.panel.rows.settings()) == {"power_limit_w"}
    assert "may bind" not in page.words
    page.plot.dragged.emit(CLOCK, 900.0)
    assert f"A limit of {limit:.0f} W cannot bind: this load draws 94 W" in page.words
    page.plot.dragged.emit(CLOCK, 1410.0)
    page.plot.dragged.emit(LIMIT, 160.0)
    assert "The limit of 160 W holds this load at about 1195 MHz." in page.words
    page.plot.dragged.emit(LIMIT, 20.0)
    assert page.panel.rows.limit.value() == 150, "the lowest that can be set"
    assert page.lab.engine.commands == []


def test_arrow_keys_move_clock_and_limit_by_the_steps_of_the_fields(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name))
    rows = page.panel.rows
    for key, expected in (
        (Qt.Key.Key_Left, (1395, 250.0)),
        (Qt.Key.Key_PageDown, (1245, 250.0)),
        (Qt.Key.Key_Right, (1260, 250.0)),
        (Qt.Key.Key_Down, (1260, 245.0)),
        (Qt.Key.Key_Up, (1260, 250.0)),
    ):
        page.qtbot.keyClick(page.plot, key)
        assert (rows.high.value(), rows.limit.value()) == expected
    assert page.plot.clock_line.value() == 1260
    assert "1260 MHz" in page.plot.accessibleDescription()
    page.plot.setFocus()
    border = page.plot.getViewBox().border.widthF()
    page.panel.apply.setFocus()
    rows.high.setFocus()
    assert page.plot.getViewBox().border.widthF() < border, "its focus can be seen"


def test_nothing_is_predicted_beyond_what_was_measured_nor_of_another_memory_clock(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name))
    page.plot.dragged.emit(CLOCK, 300.0)
    assert page.words == "No prediction at 300 MHz: the model is of 705 to 1410 MHz."
    page.plot.dragged.emit(CLOCK, 900.0)
    page.panel.rows.boxes["memory_clock_mhz"].setChecked(True)
    assert "memory clock" in page.words
    page.panel.rows.boxes["memory_clock_mhz"].setChecked(False)
    page.panel.rows.boxes["graphics_clock_mhz"].setChecked(False)
    assert page.words.startswith("Drag the clock or the limit")


def test_without_a_measured_speed_only_watts_are_predicted(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name, speed=False))
    page.plot.dragged.emit(CLOCK, 900.0)
    assert "W</b>" in page.words
    assert "No speed was measured: only watts are predicted." in page.words
    assert "per work" not in page.words


def test_the_board_s_point_moves_and_what_runs_is_compared_with(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name, untouched_energy=0.13, untouched_rate=1410.0))
    page.plot.dragged.emit(CLOCK, 900.0)
    page.reads(graphics_clock_mhz=1200.0, power_instant_w=160.0, power_samples_w=160.0, utilisation_percent=99.0)
    point = page.plot.now.points()[0].pos()
    assert (point.x(), point.y()) == pytest.approx((1200.0, 160.0), rel=0.01)
    assert "against untouched" in page.words
    assert "against now, 1200 MHz" in page.words
    page.reads(graphics_clock_mhz=1200.0, power_instant_w=70.0, power_samples_w=70.0, utilisation_percent=99.0)
    assert page.plot.now.points()[0].pos().y() == pytest.approx(70.0, rel=0.01)
    assert "against now" not in page.words
    assert "What runs now draws 70 W" in page.words


def test_without_a_model_one_line_and_a_button_measure_one(page: Page) -> None:
    page.show()
    box = page.panel.prediction
    page.qtbot.waitUntil(lambda: page.words == "No model yet.", timeout=20_000)
    assert box.button.text() == "Measure 8 clocks (40 s)"
    page.plot.dragged.emit(CLOCK, 900.0)
    assert page.panel.rows.high.value() == 900, "the lines can be dragged all the same"
    box.button.click()
    assert page.lab.engine.commands == [events.Fit(board=page.gpu.info.uuid, points=8)]
    page.lab.engine.tell(events.FitProgress(3, 8))
    assert page.words == "Measuring clocks: 3 of 8 …"
    assert not box.button.isVisible()
    fit = fitted(page.gpu.info.name)
    save_fit(page.store, fit, "sweep", uuid=page.gpu.info.uuid)
    page.lab.engine.tell(events.FitFinished(fit, "sweep"))
    page.qtbot.waitUntil(lambda: "Predicted (simulated)" in page.words, timeout=20_000)
    assert page.panel.source.text() == "Model: sweep"


def test_a_fit_that_is_not_identifiable_predicts_nothing_and_gives_the_reason(page: Page) -> None:
    clock = np.linspace(705.0, 1410.0, 3)
    fit = fit_frequency_model(Points(clock, clock / 10, gpu=page.gpu.info.name, simulated=True))
    page.show_model(fit)
    page.plot.dragged.emit(CLOCK, 900.0)
    assert page.words.startswith("No model: 3 different clocks below any limit")
    assert page.panel.prediction.button.isVisible()
    assert not page.plot.power_curve.isVisible()


def test_the_result_that_is_opened_gives_the_model_if_it_is_of_this_board(page: Page) -> None:
    page.show_model(fitted(page.gpu.info.name))
    table = filled(grid_space())
    for uuid, source in ((page.gpu.info.uuid, "Model: session of gemm"), ("GPU-other", "Model: sweep of 8 clocks")):
        plan = plan_for(table.space, OBJECTIVE, source="simulated", gpu=page.gpu.info.name, origin={"gpu": uuid})
        page.lab.engine.tell(events.SessionStarted(1, plan, table, running=False))
        page.lab.engine.tell(events.SessionChanged(progress(table, SessionState.DONE)))
        page.qtbot.waitUntil(lambda source=source: page.panel.source.text().startswith(source), timeout=20_000)


def test_five_actions_lead_from_home_to_a_dragged_and_kept_clock(
    qtbot: QtBot, open_program: Callable[..., Any]
) -> None:
    window = ready(qtbot, open_program())
    gpu = window.board.gpu
    window.workspaces.bring("control")  # 1
    panel = window.panels["control"]
    qtbot.waitUntil(lambda: panel.rows is not None, timeout=20_000)
    panel.plot.dragged.emit(CLOCK, 1005.0)  # 2
    requested = [channel.name for channel in gpu.channels].index("requested_graphics_clock_mhz")
    before = gpu.read().values[requested]
    panel.switch.click()  # 3
    qtbot.waitUntil(panel.apply.isEnabled, timeout=20_000)
    assert gpu.read().values[requested] == pytest.approx(before, nan_ok=True), "nothing is set before Apply"
    panel.apply.click()  # 4
    qtbot.waitUntil(panel.keep.isEnabled, timeout=20_000)
    panel.keep.click()  # 5
    qtbot.waitUntil(lambda: not window.board.countdown.waits, timeout=20_000)
    assert gpu.read().values[requested] == 1005
