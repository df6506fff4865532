"""The front in sight, beside a scripted engine."""

from __future__ import annotations

import pytest
from fixtures.lab import Lab
from pytestqt.qtbot import QtBot

from app.views.front.front_panel import FrontPanel


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def panel(lab: Lab, qtbot: QtBot) -> FrontPanel:
    made = FrontPanel(lab.context)
    qtbot.addWidget(made)
    made.resize(900, 720)
    made.show()
    qtbot.waitExposed(made)
    return made
