"""The chip says which measurement is chosen, how, and what that costs and saves; and what is exported says the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.lab import Lab, filled_session
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from app.views.inspector.answer_bar import ExportButton
from app.views.inspector.chooser_bar import ChooserBar
from app.views.shared.panel import end_all
from app.views.shared.settings import Settings
from app.views.shell.header import ResultBar


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def bar(lab: Lab, qtbot: QtBot, asked: list[str]) -> Iterator[ResultBar]:
    window = QMainWindow()
    qtbot.addWidget(window)
    made = ResultBar(lab.result, lab.bridge, lambda: None, lambda: asked.append("inspector"))
    window.addToolBar(made)
    window.resize(1280, 200)
    window.show()
    yield made
    window.close()


@pytest.fixture
def chooser(lab: Lab, qtbot: QtBot) -> Iterator[ChooserBar]:
    made = ChooserBar(lab.context, Settings())
    qtbot.addWidget(made)
    yield made
    end_all(made)


def settled(qtbot: QtBot, bar: ResultBar) -> str:
    """What the chip says once it has looked where the choice stands."""
    qtbot.waitUntil(lambda: "rank" in bar.chip.text(), timeout=5000)
    return bar.chip.text()


def test_before_a_session_there_is_no_chip_and_before_a_best_nothing_is_chosen(lab: Lab, bar: ResultBar) -> None:
    assert not bar.chip.isVisible()
    filled_session(lab)
    assert bar.chip.isVisible()
    assert bar.chip.text() == "Nothing chosen yet"
    assert not bar.chip.isEnabled()


def test_it_says_measurement_rule_rank_and_what_the_choice_costs_and_saves(
    lab: Lab, bar: ResultBar, chooser: ChooserBar, qtbot: QtBot
) -> None:
    lab.grow(filled_session(lab), best=9)
    assert settled(qtbot, bar).startswith("Measurement 10 · max:GFLOPS/W · rank ")
    lab.result.select(20)
    assert settled(qtbot, bar).startswith("Measurement 21 · by hand · rank ")
    assert re.search(r"rank \d+ of 150 · vs fastest: .* energy, .* time", bar.chip.text())
    assert "· vs highest settings: " in bar.chip.text()
    assert bar.chip.accessibleName() == f"Choice: {bar.chip.text()}"
    assert "Measurement 21, chosen by hand: rank" in bar.chip.toolTip()
    chooser.choose_by("fastest")
    assert " · fastest · rank" in settled(qtbot, bar)


@pytest.mark.parametrize("way", ["by hand", "least_energy", "objective", "at_most_slower"])
def test_every_receipt_says_what_the_chip_says(
    lab: Lab, bar: ResultBar, chooser: ChooserBar, qtbot: QtBot, tmp_path: Path, way: str
) -> None:
    export = ExportButton(lab.context, Settings())
    qtbot.addWidget(export)
    export.export_into(tmp_path)
    lab.grow(filled_session(lab), best=9)
    if way == "by hand":
        lab.result.select(20)
    else:
        chooser.choose_by(way)
    number, rule, rank, *_ = settled(qtbot, bar).split(" · ")
    with qtbot.waitSignal(export.written, timeout=10_000) as signal:
        export.click()
    receipt = json.loads(signal.args[0][-1].read_text())
    stands = receipt["standing"]
    assert f"Measurement {receipt['measurement']}" == number
    assert receipt["rule"] == rule
    assert f"rank {stands['rank']} of {stands['of']}" == rank
    header = " ".join(next(path for path in signal.args[0] if path.suffix == ".h").read_text().split())
    assert f"chosen {'' if way == 'by hand' else 'for '}{rule}, {rank} for max:GFLOPS/W" in header
    end_all(export)


def test_a_choice_is_undone_by_ctrl_z_on_the_chip_and_by_the_button_beside_it(
    lab: Lab, bar: ResultBar, qtbot: QtBot
) -> None:
    of_the_window = QAction(bar.window())
    of_the_window.setShortcut(QKeySequence.StandardKey.Undo)
    undone: list[bool] = []
    of_the_window.triggered.connect(undone.append)
    bar.window().addAction(of_the_window)
    lab.grow(filled_session(lab), best=9)
    assert not bar.chip.undo.isEnabled()
    lab.result.select(3, "fastest")
    lab.result.select(5)
    bar.window().activateWindow()
    bar.chip.setFocus()
    qtbot.keyClick(bar.chip, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert (lab.result.index, lab.result.rule, undone) == (3, "fastest", [])
    bar.chip.undo.click()
    assert (lab.result.index, lab.result.chosen, lab.result.rule) == (-1, 9, "max:GFLOPS/W")
    assert not bar.chip.undo.isEnabled()
    for index in range(150):
        lab.result.select(index)
    for _ in range(200):
        lab.result.undo()
    assert lab.result.index == 49, "the last hundred choices are kept"


def test_enter_space_and_a_click_open_the_inspector(lab: Lab, bar: ResultBar, qtbot: QtBot, asked: list[str]) -> None:
    lab.grow(filled_session(lab), best=9)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space):
        qtbot.keyClick(bar.chip, key)
    qtbot.mouseClick(bar.chip, Qt.MouseButton.LeftButton)
    assert asked == ["inspector"] * 3
    assert lab.result.index == -1


def test_it_gives_way_on_a_narrow_screen_also_while_a_session_runs(lab: Lab, bar: ResultBar, qtbot: QtBot) -> None:
    lab.grow(filled_session(lab), best=9)
    lab.result.select(20)
    settled(qtbot, bar)
    bar.window().resize(1280, 200)
    qtbot.waitUntil(lambda: bar.chip.geometry().right() > 0 and bar.width() <= 1280)
    assert bar.window().width() == 1280, "it does not make the window wider"
    assert bar.stop.isVisible()
    assert bar.stop.geometry().right() <= 1280
    least = bar.chip.minimumSizeHint().width()
    qtbot.waitUntil(lambda: bar.chip.width() >= least, timeout=10_000)  # laid out with its new words
    assert bar.chip.width() < bar.chip.sizeHint().width(), "it is cut, and whole in its tip and name"
