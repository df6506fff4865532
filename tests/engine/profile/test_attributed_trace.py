"""Joules of a trace, through a sensor that nobody described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from app.engine.profile.aligned_power import align
from app.engine.profile.attributed import attribute_trace
from app.engine.profile.chrome_trace import read_chrome_trace
from app.sensors.recorded.gpu import read_any
from tests.fixtures.pytorch_traces import BASE_NS, kernel, write_trace

STEP_S = 2.5e-4
WATTS = {"light": 400.0, "heavy": 650.0}


@pytest.mark.parametrize("low_pass", [False, True])
def test_bursts_of_milliseconds_are_told_apart_through_a_mean_and_through_a_low_pass(
    tmp_path: Path, low_pass: bool
) -> None:
    """Taken for a mean, a low-pass of 13 ms makes both draw nearly alike."""
    rng, steps = np.random.default_rng(4), round(20.0 / STEP_S)
    which = np.repeat(rng.integers(0, 2, steps // 8), rng.integers(4, 24, steps // 8))[:steps]
    edges = np.flatnonzero(np.diff(which, prepend=1 - which[0], append=1 - which[-1]))
    names = [list(WATTS)[which[first]] for first in edges[:-1]]
    slices = [
        kernel(name, 1e6 * STEP_S * first, 1e6 * STEP_S * (last - first))
        for name, first, last in zip(names, edges, edges[1:], strict=False)
    ]
    trace = read_chrome_trace(write_trace(tmp_path / "trace.json", slices))
    rest = np.full(round(2.0 / STEP_S), 120.0)
    drawn_w = np.concatenate([rest, np.array(list(WATTS.values()))[which], rest])
    if low_pass:
        kept = np.exp(-STEP_S / 0.013)
        shown_w = lfilter([1 - kept], [1, -kept], drawn_w - 120.0) + 120.0
    else:
        shown_w = np.convolve(drawn_w, np.full(80, 1 / 80))[: len(drawn_w)]
    at = np.arange(80, len(shown_w), 80)
    stamps = BASE_NS / 1e9 + (at + 1) * STEP_S - 2.0 + 0.004
    watts = shown_w[at] + rng.normal(0, 2, len(at))
    rows = (f"{stamp:.6f},{watt:.2f}" for stamp, watt in zip(stamps.tolist(), watts.tolist(), strict=True))
    log = tmp_path / "power.csv"
    log.write_text("timestamp,power_w\n" + "\n".join(rows) + "\n")
    power = align(trace, read_any(log).boards, str(log), reach_s=0.2)
    profile, _ = attribute_trace(trace, replace(power, source="buffer"))
    found = {family.name: family for family in profile.families}
    assert ("low-pass of 1" in profile.power_source) == low_pass
    for name, true_w in WATTS.items():
        assert found[name].power_w == pytest.approx(true_w, rel=0.02)
        assert found[name].group is None
