"""The window of a log: its trace, the energy of the span that is looked at, and the ways from there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.views.library.log_window import LogWindow, thinned


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[LogWindow]:
    made = LogWindow()
    qtbot.addWidget(made)
    made.show()
    yield made
    made.shutdown()


def write_log(path: Path) -> Path:
    """20 s at 100 W, then 20 s at 200 W, ten readings a second."""
    path.write_text("timestamp,power\n" + "".join(f"{1.7e9 + n / 10:.1f},{100 + n // 200 * 100}\n" for n in range(400)))
    return path


def said(window: LogWindow, words: str) -> bool:
    return words in window.words.toPlainText()


def test_the_energy_is_that_of_the_whole_log_then_of_the_span_that_is_dragged(
    window: LogWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window.open(write_log(tmp_path / "power.csv"))
    qtbot.waitUntil(lambda: said(window, "energy by trapezoid"), timeout=20_000)
    assert window.span_s == (0.0, 39.9)
    window.plot.region.setRegion((5.0, 15.0))
    qtbot.waitUntil(lambda: said(window, "5.000–15.000"), timeout=20_000)
    assert said(window, "1000")
    assert window.span_s == (5.0, 15.0)
    window.whole.click()
    qtbot.waitUntil(lambda: not said(window, "5.000–15.000"), timeout=20_000)


def test_a_log_without_times_shows_the_step_that_is_assumed_and_takes_another(
    window: LogWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("# gpu   pwr\n# Idx     W\n" + "".join(f"  {n % 2}  {50 + n}\n" for n in range(40)))
    window.open(path)
    qtbot.waitUntil(lambda: window.log is not None, timeout=20_000)
    assert (window.boards.count(), window.step.value(), window.span_s[1]) == (2, 1.0, 19.0)
    asked: list[str] = []
    window.watch_asked.connect(asked.append)
    window.boards.setCurrentIndex(1)
    window.watch.click()
    assert asked == [f"recorded:{path}#1@1"]
    window.step.setValue(0.5)
    window.step.editingFinished.emit()
    qtbot.waitUntil(lambda: window.span_s[1] == 9.5, timeout=20_000)


def test_what_is_no_log_is_one_line_with_the_remedy(window: LogWindow, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear all,\nnothing was measured.\n")
    window.open(path)
    qtbot.waitUntil(lambda: "no log of power" in window.message.text(), timeout=20_000)
    assert "nvidia-smi" in window.message.text()


def test_a_long_trace_is_drawn_by_its_extremes_and_broken_where_nothing_was_read() -> None:
    times = np.concatenate((np.arange(50_000) / 100, 600 + np.arange(50_000) / 100))
    values = np.full(100_000, 100.0)
    values[12_345], values[77_777] = 300.0, 5.0
    drawn_s, drawn = thinned(times, values, 0.0, 2000.0)
    assert len(drawn) < 5000
    assert (np.nanmax(drawn), np.nanmin(drawn)) == (300.0, 5.0)
    assert np.isnan(drawn[(drawn_s > 500) & (drawn_s < 600)]).any()
    near_s, near = thinned(times, values, 123.0, 124.0)
    assert near.max() == 300.0
    assert near_s[near.argmax()] == 123.45
