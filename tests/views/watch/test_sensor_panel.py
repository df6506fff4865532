"""The window of a board's power sensors: what is known of them, or what to run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.quick_look import quick_look
from app.engine.metering.characterisation.sensor_figures import PARTS
from app.engine.metering.characterisation.store import save_characterisation
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.watch.sensor_panel import SensorWindow, step_shares


@pytest.fixture
def gpu() -> SimulatedGpu:
    return SimulatedGpu(load_twin("h200"), clock=VirtualClock())


def test_without_a_characterisation_it_says_what_to_run(qtbot: QtBot, gpu: SimulatedGpu) -> None:
    window = SensorWindow(gpu.info)
    qtbot.addWidget(window)
    assert "wattridge characterise --gpu simulated:h200" in window.text.text()
    assert "first tuning session" not in window.text.text(), "which looks at the sensors of real boards alone"
    real = SensorWindow(replace(gpu.info, source="nvml"))
    qtbot.addWidget(real)
    assert "The first tuning session does so" in real.text.text()
    assert not window.plot.isVisibleTo(window)


def test_after_a_quick_look_it_says_what_is_left_and_offers_the_rest(qtbot: QtBot, gpu: SimulatedGpu) -> None:
    found = quick_look(gpu, wave_loads(gpu))
    assert found is not None
    save_characterisation(found)
    window = SensorWindow(gpu.info)
    qtbot.addWidget(window)
    assert "after a quick look" in window.text.text()
    assert "not looked at yet: steps, wave, aftereffect" in window.text.text()
    assert "--gpu simulated:h200 --when-idle" in window.text.text()
    assert window.plot.isVisibleTo(window)
    save_characterisation(replace(found, uuid="GPU-another", parts=PARTS))
    other = SensorWindow(replace(gpu.info, uuid="GPU-a third one"))
    qtbot.addWidget(other)
    assert "another GPU of the same model" in other.text.text()
    assert "--when-idle" in other.text.text()


def test_it_shows_the_figures_and_each_sources_answer(qtbot: QtBot, gpu: SimulatedGpu) -> None:
    window = SensorWindow(gpu.info)
    qtbot.addWidget(window)
    found = characterise(gpu, wave_loads(gpu), patience_s=20.0)
    assert found is not None
    save_characterisation(found)
    window.look_again()
    text = window.text.text()
    assert "--when-idle" not in text
    assert "driver buffer" in text
    assert "simulated" in text
    assert window.plot.isVisibleTo(window)
    assert len(window.plot.listDataItems()) == 8  # points and a curve of four sources
    for name, figures in found.sources.items():
        assert figures is not None
        time_s, share = step_shares(figures)
        late = time_s > figures.settle_ms / 1e3
        assert share[late] == pytest.approx(1.0, abs=0.06), name
        assert share[time_s < 0] == pytest.approx(0.0, abs=0.06), name
        # the board's own rise (clocks from rest) stands between the step and the figures
        assert np.median(np.abs(share - figures.expected_share(time_s))) < 0.03, name
