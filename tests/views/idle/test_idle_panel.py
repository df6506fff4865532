"""The panel of the idle board: a look on demand, off Qt's thread, and nothing set on a real board."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab
from pytestqt.qtbot import QtBot

from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.idle.panel import IdlePanel


@pytest.fixture
def lab(qtbot: QtBot) -> Lab:
    return Lab(SimulatedGpu(load_twin("rtx5090"), seed=1, clock=VirtualClock()))


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> Iterator[IdlePanel]:
    made = IdlePanel(lab.context)
    qtbot.addWidget(made)
    yield made
    made.shutdown()


def test_a_look_shows_every_condition_and_what_may_lower_it(panel: IdlePanel, qtbot: QtBot) -> None:
    assert "Nothing is set" in panel.note.text()
    panel.start()
    qtbot.waitUntil(lambda: panel.study is not None, timeout=30_000)
    text = panel.found.toPlainText()
    for words in ("nothing of ours on it", "no CUDA contexts", "14001", "kWh a year", "CUDA_DISABLE_PERF_BOOST"):
        assert words in text
    assert panel.look.isEnabled()
    assert not panel.end.isEnabled()


def test_a_command_that_makes_no_sense_is_one_line_and_nothing_starts(panel: IdlePanel, lab: Lab) -> None:
    panel.program.setText("an 'open quote")
    panel.start()
    assert panel.study is None
    assert panel.look.isEnabled()
