"""Spans of a recording: their energy is what was drawn, the intervals cover it, and what is not known says why."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest

from app.engine.metering.recorded_spans import span_difference, span_figures
from app.sensors.channel import CHANNELS
from app.sensors.gpu import PowerLimit
from app.sensors.recorded.columns import ColumnsFile
from app.sensors.recorded.header import Facts, recorded_info
from app.sensors.timeline.converted import open_timelines
from app.sensors.timeline.stored import Stored, open_stored

S = 1_000_000_000


def recording(path: Path, seconds: float, seed: int = 0, *, buffered: bool = True, gap: bool = False) -> Stored:
    """200 W, and 300 W from half of it on, with 10 W of noise on each sample."""
    limit = PowerLimit(None, None, None, None)
    channels = (CHANNELS["power_instant_w"], CHANNELS["graphics_clock_mhz"])
    facts = Facts("made", recorded_info("Made", limit, "", compute_capability=(9, 0)), "nvml", (), (), channels)
    count = round(seconds * 50)
    times = np.arange(count, dtype=np.int64) * 20_000_000
    watts = np.where(np.arange(count) < count // 2, 200.0, 300.0) + np.random.default_rng(seed).normal(0, 10, count)
    if not buffered:
        watts = np.repeat(watts[::5], 5)[:count]  # a new value every 0.1 s
    kept = (times < S) | (times > 4 * S) if gap else np.ones(count, np.bool_)
    with path.open("w+b") as file:
        form = ColumnsFile(file, facts)
        form.add(b"r", times[kept], np.stack([watts, watts])[:, kept].astype(np.float32))
        if buffered:
            form.add(b"p", times[kept], watts[None, kept].astype(np.float32))
        form.flush()
    return open_stored(path)


@pytest.mark.parametrize("buffered", [True, False])
def test_mean_power_energy_and_difference_are_those_that_were_drawn(tmp_path: Path, buffered: bool) -> None:
    board = recording(tmp_path / "r.wrec", 40, buffered=buffered)
    low, high = span_figures(board, (5 * S, 15 * S)), span_figures(board, (25 * S, 35 * S))
    assert low.mean_power_w == pytest.approx(200, rel=0.01)
    assert low.energy_j == pytest.approx(2000, rel=0.01)
    assert low.power_interval_w is not None
    more = span_difference(low, high)
    assert more.power_w == pytest.approx(100, rel=0.05)
    assert more.power_interval_w is not None
    assert more.energy_interval_j is not None
    assert more.power_interval_w[0] < 100 < more.power_interval_w[1]
    assert more.energy_interval_j[0] < 1000 < more.energy_interval_j[1]
    assert more.distinguishable


def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says(tmp_path: Path) -> None:
    covered = 0
    for seed in range(100):
        board = recording(tmp_path / f"{seed}.wrec", 20, seed)
        more = span_difference(span_figures(board, (1 * S, 3 * S)), span_figures(board, (5 * S, 8 * S)))
        assert more.power_interval_w is not None
        covered += more.power_interval_w[0] <= 0 <= more.power_interval_w[1]
    assert covered >= 90


def test_a_long_span_in_pieces_is_the_same_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = recording(tmp_path / "r.wrec", 200)
    whole = span_figures(board, (0, 90 * S))
    monkeypatch.setattr("app.engine.metering.recorded_spans._PIECE", 1000)
    pieces = span_figures(board, (0, 90 * S))
    assert pieces.energy_j == pytest.approx(whole.energy_j, rel=1e-3)
    assert pieces.half_w == pytest.approx(whole.half_w, rel=0.3)


def test_overlapping_spans_have_no_interval_of_their_difference(tmp_path: Path) -> None:
    board = recording(tmp_path / "r.wrec", 20)
    more = span_difference(span_figures(board, (S, 3 * S)), span_figures(board, (2 * S, 4 * S)))
    assert more.power_interval_w is None
    assert "overlap" in more.unknown
    assert more.distinguishable is None


def test_a_span_in_a_gap_or_too_short_says_why(tmp_path: Path) -> None:
    board = recording(tmp_path / "r.wrec", 20, gap=True)
    in_gap = span_figures(board, (2 * S, 3 * S))
    assert math.isnan(in_gap.energy_j)
    assert "no power was recorded" in in_gap.unknown
    over = span_figures(board, (0, 8 * S))
    assert over.energy_interval_j is None
    assert "of it were read" in over.unknown
    assert span_figures(board, (5 * S, 5 * S + 1000)).power_interval_w is None


def test_of_another_tools_log_no_interval_is_known(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("timestamp,power\n" + "".join(f"{1.7e9 + n / 10:.1f},100\n" for n in range(200)))
    board = open_timelines(path, None, lambda _: None, threading.Event()).boards[0]
    figures = span_figures(board, (5 * S, 10 * S))
    assert figures.energy_j == pytest.approx(500)
    assert figures.energy_interval_j is None
    assert "what its power averages over" in figures.unknown
