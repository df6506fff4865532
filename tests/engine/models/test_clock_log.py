"""Logs of readings over time: plateaus under load become points; ramps, idle stretches and other logs do not."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError
from app.base.paths import resources
from app.cli import main
from app.engine.models.describe_fits import describe_fit
from app.engine.models.fit.frequency import fit_points
from app.engine.models.fit.points import Points, choose
from app.engine.models.series import read_series
from app.engine.models.tables import read_table
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.truth import truth
from app.sensors.simulated.twin import load_twin

CLOCKS = tuple(range(285, 1411, 75))
CHANNELS = {
    "clocks.current.graphics [MHz]": "graphics_clock_mhz",
    "power.draw [W]": "power_instant_w",
    "clocks.current.memory [MHz]": "memory_clock_mhz",
    "utilization.gpu [%]": "utilisation_percent",
}
Rows = list[tuple[float, list[float]]]


def readings(
    clocks: Sequence[int],
    *,
    dwell_s: float = 6.0,
    rest_s: float = 3.0,
    period_s: float = 0.1,
    unlocked_at_rest: bool = True,
    passes: int = 1,
) -> Rows:
    """What a simulated A100 reports while the user locks one clock after the other, resting in between."""
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    places = [[channel.name for channel in gpu.channels].index(name) for name in CHANNELS.values()]
    rows: Rows = []

    def read(seconds: float) -> None:
        for _ in range(round(seconds / period_s)):
            gpu.clock.wait(period_s)
            reading = gpu.read()
            rows.append((reading.time_ns / 1e9, [reading.values[place] for place in places]))

    for _ in range(passes):
        for clock in clocks:
            read(rest_s)
            gpu.lock_graphics_clock(clock)
            gpu.begin(full_load())
            read(dwell_s)
            gpu.end()
            if unlocked_at_rest:
                gpu.lock_graphics_clock(None)
    read(rest_s)
    return rows


def write(path: Path, rows: Rows, columns: int = 4, *, units: bool = False, header: str = "timestamp") -> Path:
    names = list(CHANNELS)[:columns]
    begin = datetime(2026, 4, 19, 23, 59, 30, tzinfo=UTC)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([header, *names])
        for seconds, values in rows:
            stamp = begin + timedelta(seconds=seconds - rows[0][0])
            time = stamp.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3] if header == "timestamp" else f"{seconds:.3f}"
            cells = [f"{value:.2f}" for value in values[:columns]]
            if units:
                cells = [f"{cell} {name.split('[')[1][:-1]}" for cell, name in zip(cells, names, strict=True)]
            writer.writerow([time, *cells])
    return path


def true_powers() -> dict[float, float]:
    """Power under full load by clock, W, once the board is warm."""
    return {row["clock_mhz"]: row["power_w"] for row in truth(load_twin("a100"), "full_load")}  # type: ignore[misc]


def check(points: Points, clocks: Sequence[int] = CLOCKS) -> None:
    """One point for each clock, with the power of the load."""
    true = true_powers()
    assert points.clock_mhz.tolist() == list(clocks)
    for clock, power, plateau in zip(points.clock_mhz, points.power_w, points.plateaus, strict=True):
        assert power == pytest.approx(true[clock], rel=0.03), f"at {clock} MHz"
        assert 0 < plateau.scatter_w < 0.02 * power


@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("unlocked_at_rest", [True, False])
@pytest.mark.parametrize("passes", [1, 2])
def test_every_locked_clock_becomes_one_point(
    tmp_path: Path, columns: int, unlocked_at_rest: bool, passes: int
) -> None:
    """Whether or not the log says at what memory clock and how busy the board was."""
    rows = readings(CLOCKS, unlocked_at_rest=unlocked_at_rest, passes=passes)
    check(choose(read_series(write(tmp_path / "log.csv", rows, columns))))


def test_a_load_that_never_rests_and_a_log_with_units(tmp_path: Path) -> None:
    check(choose(read_series(write(tmp_path / "log.csv", readings(CLOCKS, rest_s=0.0), 2, units=True))))


@pytest.mark.parametrize("header", ["time_s", "elapsed [s]"])
def test_times_may_be_seconds(tmp_path: Path, header: str) -> None:
    check(choose(read_series(write(tmp_path / "log.csv", readings(CLOCKS), header=header))))


def test_the_model_of_a_log_is_that_of_the_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.csv", readings(CLOCKS))
    assert main(["fit", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["points"] == len(CLOCKS)
    assert document["recommended_clock_mhz"] == pytest.approx(1035, abs=30)
    assert set(document["plateaus"][0]) == {"clock_mhz", "power_w", "scatter_w", "readings", "seconds"}
    assert "ramps and idle stretches left out" in " ".join(document["reasons"])
    assert main(["fit", str(path)]) == 0
    assert "Plateaus of the log" in capsys.readouterr().out


def test_a_log_of_thirty_thousand_readings_is_read_at_once(tmp_path: Path) -> None:
    """Some 0.3 s of computing; 280 s were not enough before. The bound is loose, for a busy machine."""
    one = readings(CLOCKS)
    span = one[-1][0] - one[0][0] + 0.1
    rows = [(seconds + turn * span, values) for turn in range(22) for seconds, values in one]
    assert len(rows) > 30_000
    path = write(tmp_path / "log.csv", rows)
    begin = time.process_time()
    fit_points(points := choose(read_series(path)))
    assert time.process_time() - begin < 20
    check(points)


def test_boards_in_one_log_are_separated(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    rows = write(tmp_path / "one.csv", readings(CLOCKS), 2).read_text().splitlines()
    path.write_text("\n".join([f"{rows[0]},index", *(f"{row},{board}" for row in rows[1:] for board in (0, 1))]))
    found = read_series(path)
    assert [points.series for points in found] == ["index=0", "index=1"]
    for points in found:
        check(points)


def test_a_power_limit_that_held_the_board_is_seen(tmp_path: Path) -> None:
    """At the limit the clock wanders over its steps while the power stands."""
    rng = np.random.default_rng(0)
    rows: Rows = []
    for clock in range(900, 1351, 75):
        rows += [(len(rows) * 0.1 + index / 10, [clock, clock / 10 + rng.normal(0, 0.2)]) for index in range(60)]
    for _ in range(200):
        rows.append((rows[-1][0] + 0.1, [float(rng.choice([1365, 1380, 1395])), 139 + rng.normal(0, 0.3)]))
    points = choose(read_series(write(tmp_path / "log.csv", rows, 2)))
    assert points.limit_w == pytest.approx(139, rel=0.01)
    assert choose(read_series(write(tmp_path / "free.csv", rows[:-200], 2))).limit_w is None


# --- logs that hold no sweep, and tables that are no logs -------------------------------------------------------------


@pytest.mark.parametrize("name", ["nvidia_smi_nounits.csv", "nvidia_smi_units.csv", "nvidia_smi_dmon.txt"])
def test_a_log_without_a_sweep_is_refused_in_one_line(shared_data: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"a log of .* the clock") as caught:
        read_series(shared_data / "logs" / name)
    assert "lock one clock after the other" in caught.value.remedy
    if "csv" in name:
        assert "2743 readings over 302 s" in caught.value.what


@pytest.mark.parametrize("command", ["export", "report", "replay", "fit", "roofline", "score", "tune"])
@pytest.mark.parametrize("name", ["nvidia_smi_nounits.csv", "nvidia_smi_units.csv", "nvidia_smi_dmon.txt"])
def test_every_command_but_analyse_refuses_a_log_in_one_line(
    shared_data: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    assert main([command, str(shared_data / "logs" / name)]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert name in said
    assert said.endswith(")"), "the remedy"


def test_a_recording_of_this_program_is_a_log_too() -> None:
    path = resources() / "recordings" / "h200-gemm.csv.gz"
    with pytest.raises(InputError, match="a log of 1001 readings over 20 s"):
        read_series(path)


def test_clocks_that_drift_are_no_plateaus(tmp_path: Path) -> None:
    rows: Rows = [(index / 10, [900 + 15 * (index % 30), 100 + index % 30]) for index in range(3000)]
    with pytest.raises(InputError, match="never stood still"):
        read_series(write(tmp_path / "log.csv", rows, 2))


def test_a_long_table_of_measurements_is_no_log(tmp_path: Path) -> None:
    """A time of its own in each row, or a few rows only, are a table, stamps or not."""
    path = tmp_path / "table.csv"
    lines = [
        f"2026/04/19 17:{index // 60:02}:{index % 60:02},{900 + 15 * (index % 20)},{index % 20 + 90},0.5"
        for index in range(200)
    ]
    path.write_text("\n".join(["timestamp,clock_mhz,power_w,runtime_s", *lines]))
    assert not choose(read_series(path)).plateaus
    path.write_text("\n".join(["timestamp,clock_mhz,power_w", *(line.rpartition(",")[0] for line in lines[:20])]))
    assert not choose(read_series(path)).plateaus


def test_a_descending_sweep_sorted_by_clock_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    clocks = np.repeat(np.arange(1410, 285, -15), 3)
    path.write_text("\n".join(["clock_mhz,power_w,time_s", *(f"{c},{c / 10},{1000 / c:.4f}" for c in clocks)]))
    assert choose(read_series(path)).rate is not None


def test_a_table_of_very_many_rows_is_fitted_by_its_medians(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    clock = rng.choice(np.arange(210, 1411, 15), 30_894).astype(float)
    power = (32 + 0.0444 * clock * np.maximum(1, 1 + 0.0012 * (clock - 1095)) ** 2) * rng.normal(1, 0.01, len(clock))
    path = tmp_path / "table.csv"
    rows = zip(clock, power, 1 / clock, strict=True)
    path.write_text("\n".join(["clock_mhz,power_w,time_s", *(f"{c:.0f},{p:.3f},{t:.6f}" for c, p, t in rows)]))
    begin = time.process_time()
    fit = fit_points(choose(read_series(path)))
    assert time.process_time() - begin < 20
    assert fit.points == 81
    assert any("30894 rows" in reason and "scatters by 1.0 %" in reason for reason in fit.reasons)
    assert fit.recommended_clock_mhz == pytest.approx(1095, abs=30)


@pytest.mark.parametrize(("factor", "offset_mhz", "settable"), [(1.0, -0.2, True), (1.0013, 0.0, False)])
def test_a_mean_of_readings_is_not_called_a_clock_that_can_be_set(
    tmp_path: Path, factor: float, offset_mhz: float, settable: bool
) -> None:
    """Near the board's grid the grid's own clock is recommended; else the description says what the figure is."""
    rows = [(at, [factor * clock + offset_mhz, *others]) for at, (clock, *others) in readings(CLOCKS)]
    fit = fit_points(choose(read_series(write(tmp_path / "log.csv", rows))))
    described = next(figure for figure in describe_fit(fit).figures if figure.label == "Recommended clock")
    assert fit.recommended_clock_mhz is not None
    assert (fit.recommended_clock_mhz % 15 == 0) is settable
    assert described.meaning.startswith("can be set" if settable else "a mean of readings, between clocks")


# --- dmon -------------------------------------------------------------------------------------------------------------


def test_dmon_is_read_with_the_names_of_the_channels(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    lines = (
        "#Date       Time        gpu   pwr gtemp    sm  mclk  pclk",
        "#YYYYMMDD   HH:MM:SS    Idx     W     C     %   MHz   MHz",
        " 20260419   17:05:55      0    10    46     0  7001   525",
        " 20260419   17:05:56      0    11     -     3  7001   540",
        " 2026",
    )
    path.write_text("\n".join(lines))
    columns = read_table(path)
    assert columns.numbers("timestamp_s").tolist() == [0, 1]
    assert columns.numbers("power_average_w").tolist() == [10, 11]
    assert columns.numbers("graphics_clock_mhz").tolist() == [525, 540]
    rows = ("    0    10   525", "    1    50   900", "    0    11   540", "    1    51   915")
    path.write_text("\n".join(("# gpu   pwr  pclk", "# Idx     W   MHz", *rows)))
    columns = read_table(path)
    assert columns.numbers("reading").tolist() == [0, 0, 1, 1]
    assert columns.cells["gpu"] == ["GPU 0", "GPU 1", "GPU 0", "GPU 1"]
