"""*What can I save?*: the card on Home leads to a window that tries the levers on the shown board."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.lab import ready
from pytestqt.qtbot import QtBot

from app.sensors.select import open_gpu
from app.views.library.savings_window import SavingsWindow

OpenProgram = Callable[..., Any]
COPY = "copy:block_size_x=256,items_per_thread=4,vector_width=4,loop_unroll_factor=1"


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[SavingsWindow]:
    gpu = open_gpu("simulated:h200", speed=math.inf)
    made = SavingsWindow(gpu)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.shutdown()
    gpu.close()


def tried(qtbot: QtBot, window: SavingsWindow, target: str) -> None:
    window.target.setText(target)
    window.start.click()
    assert not window.start.isEnabled()
    assert window.end.isEnabled()
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    assert window.start.isEnabled()


def test_table_points_and_the_answer(qtbot: QtBot, window: SavingsWindow) -> None:
    said: list[str] = []
    window._said.connect(said.append)
    tried(qtbot, window, COPY)
    assert said[0].startswith("about ")  # the time comes first
    assert window.found is not None
    assert window.said.text() == window.found.words
    text = window.words.toPlainText()
    assert "How to make it permanent" in text
    assert "simulated" in text
    labels = [series.label for series in window.chart.chart.series]  # type: ignore[union-attr]
    assert labels[:2] == ["first look", "untouched"]
    assert "lever that helps" in labels


def test_what_makes_no_sense_is_said_with_the_remedy(qtbot: QtBot, window: SavingsWindow) -> None:
    tried(qtbot, window, "no-such-program-x")
    assert "there is no program 'no-such-program-x'" in window.said.text()
    assert "give its name or its path" in window.said.text()
    assert window.found is None


def test_the_card_on_home_opens_it_for_the_shown_board(qtbot: QtBot, open_program: OpenProgram) -> None:
    main = ready(qtbot, open_program())
    main.panels["home"].savings.click()
    opened = main.side_windows.by_name["savings"]
    assert opened.isVisible()
    assert opened._gpu is main.boards.current.gpu
