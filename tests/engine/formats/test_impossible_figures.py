"""A figure that cannot be is said and left out, in every format that is read; nothing is computed from it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.cli import main
from app.engine.formats.csv_table import write_csv
from app.engine.formats.kernel_tuner import write_cache
from app.engine.formats.own import About
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.t4 import write_t4
from app.engine.models.fit.points import choose
from app.engine.models.series import read_series
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.sensors.recorded.gpu import read_any

Figures = list[dict[str, float]]
NAMES = ("time_s", "energy_j", "power_w", "gpu_utilisation_percent")


def of_session(write: Callable[..., Path], name: str) -> Callable[[Path, Figures], Recording]:
    """A session of ours, with those figures, read back."""

    def read(folder: Path, rows: Figures) -> Recording:
        table = ResultTable(space_of_table({"x": ()}, [(position,) for position in range(len(rows))]))
        for index, values in enumerate(rows):
            table.append(
                Measurement(index, {"x": index}, State.OK, values, {"power_w": (59.0, 61.0)}, source="recorded")
            )
        about = About("board", "kernel", Objective(Goal("energy_j", False)), "recorded")
        return read_recording(write(table, folder / name, about, overwrite=True))

    return read


def of_foreign_cache(folder: Path, rows: Figures) -> Recording:
    entries = {str(index): {"x": index, **values} for index, values in enumerate(rows)}
    document: dict[str, Any] = {"device_name": "A", "kernel_name": "k", "tune_params_keys": ["x"], "cache": entries}
    (folder / "foreign.json").write_text(json.dumps(document))
    return read_recording(folder / "foreign.json")


def of_table(folder: Path, rows: Figures) -> Recording:
    lines = [
        ",".join(["x", *NAMES]),
        *(",".join([str(index), *(repr(row[name]) for name in NAMES)]) for index, row in enumerate(rows)),
    ]
    (folder / "table.csv").write_text("\n".join(lines))
    return read_recording(folder / "table.csv")


READERS = {
    "cache": of_session(write_cache, "cache.json"),
    "t4": of_session(write_t4, "t4.json"),
    "csv": of_session(write_csv, "session.csv"),
    "foreign cache": of_foreign_cache,
    "table": of_table,
}
GOOD = {"time_s": 0.01, "energy_j": 0.6, "power_w": 60.0, "gpu_utilisation_percent": 97.0}


@pytest.mark.parametrize("kind", READERS)
def test_a_negative_power_and_an_interval_without_its_figure_are_said_and_not_used(tmp_path: Path, kind: str) -> None:
    wrong = GOOD | {"energy_j": -0.5079, "power_w": -50.79}
    read = READERS[kind](tmp_path, [GOOD, wrong, GOOD | {"power_w": 75.0, "gpu_utilisation_percent": 131.0}])
    good, negative, outside = read.in_file_order()
    assert good.values.items() >= GOOD.items()
    assert "power_w" not in negative.values
    assert "energy_j" not in negative.values
    assert "power_w" not in negative.intervals
    assert negative.values["time_s"] == 0.01
    assert "gpu_utilisation_percent" not in outside.values
    assert "power_w" not in outside.intervals
    (said,) = [note for note in read.notes if "cannot be" in note]
    assert "power_w of -50.79" in said
    assert "gpu_utilisation_percent of 131" in said
    if "power_w" in good.intervals:
        assert "the interval of power_w, which does not hold it" in said


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(list(READERS)),
    rows=st.lists(
        st.fixed_dictionaries({name: st.floats(-200, 200).filter(lambda v: v == 0 or abs(v) > 1e-6) for name in NAMES}),
        min_size=2,
        max_size=6,
    ),
)
def test_no_figure_that_cannot_be_is_read(tmp_path: Path, kind: str, rows: Figures) -> None:
    read = READERS[kind](tmp_path, rows)
    for given_values, measurement in zip(rows, read.in_file_order(), strict=True):
        values = measurement.values
        assert all(values.get(name, 1.0) > 0 for name in ("time_s", "energy_j", "power_w"))
        assert values.get("gpu_utilisation_percent", 0.0) <= 100
        assert (measurement.state is State.OK) == (given_values["time_s"] > 0)
        for name, (low, high) in measurement.intervals.items():
            assert low <= values[name] * (1 + 1e-6)
            assert high >= values[name] * (1 - 1e-6)
        if measurement.state is State.OK and min(given_values["energy_j"], given_values["power_w"]) <= 0:
            assert any("cannot be" in note for note in read.notes)


def test_readings_of_a_log_that_no_board_gives_are_said_and_left_out(tmp_path: Path) -> None:
    lines = ["timestamp,power.draw [W],utilization.gpu [%],temperature.gpu"]
    lines += [f"2026/04/19 17:05:{s:02d}.000,{-50.79 if s == 5 else 100},{135 if s == 8 else 50},-3" for s in range(30)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    log = read_any(path)
    (board,) = log.boards
    by_name = {channel.name: board.values[:, index] for index, channel in enumerate(board.channels)}
    assert math.isnan(by_name["power_average_w"][5])
    assert math.isnan(by_name["utilisation_percent"][8])
    assert set(by_name["temperature_c"]) == {-3}
    assert any("cannot be" in note and "-50.79 W" in note for note in log.notes)
    assert any("cannot be" in note and "135 %" in note for note in log.notes)


def test_rows_of_a_sweep_that_cannot_be_are_said_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.csv"
    rows = [
        f"{500 + 60 * index},{-50 if index == 3 else 60 + 8 * index},{-1 if index == 5 else 3 - 0.15 * index}"
        for index in range(12)
    ]
    path.write_text("\n".join(["clock_mhz,power_w,time_s", *rows]))
    points = choose(read_series(path))
    assert len(points.clock_mhz) == 10
    assert main(["fit", str(path)]) == 0
    assert "2 rows with a power, energy or time that cannot be" in capsys.readouterr().out
