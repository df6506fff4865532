"""The window of the strategies' scores: chosen caches are scored in the background, drawn, and can be stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from pytestqt.qtbot import QtBot

from app.views.plots import theme
from app.views.score.window import ScoreWindow


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[ScoreWindow]:
    made = ScoreWindow(jobs=None)
    qtbot.addWidget(made)
    for action in made.strategies.menu().actions():
        action.setChecked(action.data() in ("greedy_ils", "random_sample"))
    made.repeats.setValue(5)
    made.show()
    yield made
    made.shutdown()


def write_cache(path: Path, *, size: int = 12) -> Path:
    """A bowl of size x size configurations."""
    entries = {
        f"{x},{y}": {"x": x, "y": y, "time": 1.0 + (x - 4) ** 2 + (y - 7) ** 2, "benchmark_time": 5.0 + x}
        for x in range(size)
        for y in range(size)
    }
    axes = {"x": list(range(size)), "y": list(range(size))}
    header = {"kernel_name": "bowl", "tune_params_keys": ["x", "y"], "tune_params": axes, "objective": "time"}
    path.write_text(json.dumps({**header, "cache": entries}))
    return path


def curves(window: ScoreWindow) -> dict[str, np.ndarray]:
    named = [item for item in window.curves.getPlotItem().items if isinstance(item, pg.PlotCurveItem) and item.name()]
    return {item.name(): item.getData()[1] for item in named}


def test_nothing_can_start_before_a_cache_is_chosen(window: ScoreWindow, tmp_path: Path) -> None:
    assert not window.start.isEnabled()
    window.set_caches([write_cache(tmp_path / "bowl.json")])
    assert window.start.isEnabled()
    assert "bowl.json" in window.named.text()


def test_scores_are_computed_and_drawn(window: ScoreWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.set_caches([write_cache(tmp_path / "one.json"), write_cache(tmp_path / "two.json", size=15)])
    window.start.click()
    assert window.start.text() == "&Stop"
    assert window.progress.isVisible()
    qtbot.waitUntil(lambda: window.scores is not None, timeout=60_000)
    scores = window.scores
    assert scores is not None
    assert not window.progress.isVisible()
    assert set(curves(window)) == {"Greedy iterated local search", "Random sampling"}
    assert np.allclose(curves(window)["Greedy iterated local search"], scores.overall_curve("greedy_ils")[0])
    window.space.setCurrentIndex(window.space.findData("two"))
    assert np.allclose(curves(window)["Random sampling"], scores.curve("two", "random_sample")[0])
    bars = [item for item in window.bars.getPlotItem().items if isinstance(item, pg.BarGraphItem)]
    assert [list(item.opts["height"]) for item in bars] == [
        [pytest.approx(scores.score(space, name).mean) for space in ("one", "two")]
        for name in ("greedy_ils", "random_sample")
    ]
    assert window.wins.rowCount() == 2
    assert window.wins.verticalHeaderItem(0).text() == "1 Greedy iterated local search"
    assert window.wins.item(0, 2).text() == str(scores.wins["greedy_ils"]["random_sample"])
    theme.set_mode("dark")
    theme.set_mode("light")
    assert len(curves(window)) == 2, "redrawn in other colours"
    theme.set_mode("system")


def test_it_can_be_stopped_and_closed_while_it_runs(window: ScoreWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.set_caches([write_cache(tmp_path / "bowl.json")])
    window.repeats.setValue(1000)
    window.start.click()
    window.start.click()
    assert window.start.text() == "&Start"
    assert window.scores is None
    window.start.click()
    window.close()
    assert window.start.text() == "&Start"


def test_a_file_that_is_no_cache_is_one_line(window: ScoreWindow, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "odd.json").write_text("{}")
    window.set_caches([tmp_path / "odd.json"])
    window.start.click()
    qtbot.waitUntil(lambda: "odd.json" in window.message.text(), timeout=20_000)
    assert window.start.text() == "&Start"


def test_over_time_needs_costs(window: ScoreWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.set_caches([write_cache(tmp_path / "bowl.json")])
    window.over.setCurrentIndex(1)
    window.start.click()
    qtbot.waitUntil(lambda: window.scores is not None, timeout=60_000)
    assert window.scores is not None
    assert window.scores.unit == "s"
    assert "(s)" in window.curves.getAxis("bottom").labelText


def test_fewer_than_five_repeats_are_drawn_without_intervals(window: ScoreWindow, tmp_path: Path, qtbot: QtBot) -> None:
    def bands() -> int:
        return sum(isinstance(item, pg.FillBetweenItem) for item in window.curves.getPlotItem().items)

    window.set_caches([write_cache(tmp_path / "one.json")])
    for repeats, said, drawn in ((2, "95 % interval too few", 0), (5, " to ", 2)):
        window.scores = None
        window.repeats.setValue(repeats)
        window.start.click()
        qtbot.waitUntil(lambda: window.scores is not None, timeout=60_000)
        item = window.wins.item(0, 0)
        assert item is not None
        assert said in item.toolTip()
        assert bands() == drawn
        assert len(curves(window)) == 2
