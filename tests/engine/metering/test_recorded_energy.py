"""The energy of a span of a recording: trapezoid and counter side by side, and what the sampling resolves."""

from __future__ import annotations

import csv
import math
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.metering.recorded_energy import recorded_energy, sampling_of
from app.sensors.channel import CHANNELS
from app.sensors.gpu import PowerLimit
from app.sensors.recorded.header import recorded_info
from app.sensors.recorded.logs.read import read_log
from app.sensors.recorded.recording import Recording

COUNTED = """\
#Entity         POWER             TOTEC
ID              W                 mJ
GPU 0           100.0             5000000
GPU 0           200.0             5150000
GPU 0           200.0             5350000
GPU 0           100.0             50000
"""


def recording(tmp_path: Path, times_s: list[float], powers: list[float]) -> Recording:
    path = tmp_path / "log.csv"
    rows = (f"{1.7e9 + time:.6f},{power!r}\n" for time, power in zip(times_s, powers, strict=True))
    path.write_text("timestamp,power_instant_w\n" + "".join(rows))
    return read_log(path).boards[0]


def recording_of(times_s: np.ndarray, powers: np.ndarray) -> Recording:
    return Recording(
        title="made",
        info=recorded_info("GPU", PowerLimit(None, None, None, None), ""),
        recorded_from="",
        graphics_clocks_mhz=(),
        memory_clocks_mhz=(),
        channels=(CHANNELS["power_instant_w"],),
        time_ns=np.rint(times_s * 1e9).astype(np.int64),
        values=powers,
        sample_ns=np.empty(0, np.int64),
        sample_w=np.empty(0),
    )


def test_a_straight_ramp_has_the_energy_of_its_area_over_any_span(tmp_path: Path) -> None:
    ramp = recording(tmp_path, [n / 10 for n in range(101)], [float(n) for n in range(101)])
    for start, end in ((0.0, 10.0), (2.0, 3.0), (2.05, 7.33), (4.01, 4.02)):
        found = recorded_energy(ramp, (start, end)).trapezoid
        assert found is not None
        assert found.energy_j == pytest.approx(5 * (end**2 - start**2), rel=1e-6)  # power is 10 W/s x t
        assert found.mean_power_w == pytest.approx(5 * (start + end), rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=3, unique=True))
def test_the_energies_of_the_parts_add_up_to_that_of_the_whole(cuts: list[float]) -> None:
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.uniform(0.01, 0.2, 200))
    made = recording_of(times - times[0], rng.uniform(50, 300, (200, 1)))
    whole = recorded_energy(made)
    edges = [0.0, *sorted(cut * whole.recording_s for cut in cuts), whole.recording_s]
    parts = [recorded_energy(made, span).sources[0].energy_j for span in pairwise(edges)]
    assert math.fsum(parts) == pytest.approx(whole.sources[0].energy_j, rel=1e-9)


def test_a_counter_stands_beside_the_trapezoid_and_survives_a_reset(tmp_path: Path) -> None:
    path = tmp_path / "dcgm.txt"
    path.write_text(COUNTED)
    found = recorded_energy(read_log(path).boards[0], (0.0, 2.0))
    assert (found.trapezoid.energy_j, found.counter.energy_j) == (350.0, 350.0)  # type: ignore[union-attr]
    assert found.difference == 0.0
    whole = recorded_energy(read_log(path).boards[0])
    assert whole.counter is not None
    assert whole.counter.energy_j == 350.0  # what was counted before the reset; the last second is not known
    assert any("differ" in remark for remark in whole.remarks)


def test_gaps_and_repeated_readings_are_found(tmp_path: Path) -> None:
    times = [n * 0.1 for n in range(50)] + [20 + n * 0.1 for n in range(50)]
    powers = [100.0 + n // 4 % 2 * 50 for n in range(100)]  # the sensor refreshes every 0.4 s
    found = recorded_energy(recording(tmp_path, times, powers)).trapezoid
    assert found is not None
    ((start, end),) = found.sampling.gaps_s
    assert (start, end) == pytest.approx((4.9, 20.0))
    assert found.gap_j == pytest.approx((powers[49] + powers[50]) / 2 * 15.1, rel=1e-5)
    assert found.sampling.repeated == pytest.approx(75 / 99, abs=0.01)
    assert found.sampling.refresh_s == pytest.approx(0.4, rel=1e-3)
    assert found.sampling.shortest_event_s == pytest.approx(0.8, rel=1e-3)


def test_a_span_of_the_length_that_is_named_is_right_to_one_per_cent(tmp_path: Path) -> None:
    """A square wave read at its own steps: any two spans that differ by less than one step at their ends agree."""
    times = np.arange(4000) * 0.05
    powers = np.where(np.arange(4000) // 20 % 2 == 0, 100.0, 300.0)
    named = sampling_of(times, powers).span_for_1_percent_s
    square = recording(tmp_path, times.tolist(), powers.tolist())
    for start in (0.0, 0.3, 0.97, 1.42):
        one, other = (
            recorded_energy(square, (start + shift, start + shift + named)).sources[0].energy_j for shift in (0, 0.049)
        )
        assert one == pytest.approx(other, rel=0.01)


@pytest.mark.parametrize("name", ["nvidia_smi_units.csv", "nvidia_smi_nounits.csv"])
def test_the_sample_of_nvidia_smi_has_its_published_figures(shared_data: Path, name: str) -> None:
    """2743 readings, 302.3 s, 4169.1 J, at most 14.56 W; the energy as a loop over the file's cells gives it."""
    path = shared_data / "logs" / name
    board = read_log(path).boards[0]
    found = recorded_energy(board).trapezoid
    assert found is not None
    assert (found.sampling.readings, found.peak_power_w) == (2743, 14.56)
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    times = [datetime.strptime(row[0], "%Y/%m/%d %H:%M:%S.%f").timestamp() for row in rows]
    powers = [float(row[1].strip().removesuffix(" W")) for row in rows]
    by_hand = sum((times[n + 1] - times[n]) * (powers[n + 1] + powers[n]) / 2 for n in range(len(rows) - 1))
    assert found.energy_j == pytest.approx(by_hand, rel=1e-9)
    assert found.energy_j == pytest.approx(4169.1, abs=0.05)


def test_the_sample_traces_have_their_published_energies(shared_data: Path) -> None:
    dmon = read_log(shared_data / "logs/nvidia_smi_dmon.txt", interval_s=302.3 / 304).boards[0]
    assert recorded_energy(dmon).sources[0].energy_j == pytest.approx(4169.1, rel=0.02)  # whole watts, every ninth row
    trace = recorded_energy(read_log(shared_data / "traces/rtx4000ada_nvml_instant_average.log").boards[0])
    assert [round(each.energy_j, 1) for each in trace.sources] == [1849.4, 1863.0]
