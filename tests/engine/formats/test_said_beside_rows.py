"""What a file says beside its rows: sums of them in JSON, the boards of each run, and units in columns and remarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.engine.formats.any_table import read_table
from app.engine.formats.recording import Recording

ROWS = [
    {"clock_mhz": 600, "time_ms": 20.0, "energy_mj": 2500.0},
    {"clock_mhz": 900, "time_ms": 14.0, "energy_mj": 2800.0},
    {"clock_mhz": 1400, "time_ms": 10.0, "energy_mj": 4000.0},
]
MEASURED = [(600, 0.020, 2.5), (900, 0.014, 2.8), (1400, 0.010, 4.0)]


def read(tmp_path: Path, document: object, name: str = "results.json") -> Recording:
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return read_table(path)


def measured(recording: Recording, setting: str = "graphics_clock_mhz") -> list[tuple[object, ...]]:
    figures = ("time_s", "energy_j")
    rows = recording.in_file_order()
    return [(row.configuration[setting], *(pytest.approx(row.values[name]) for name in figures)) for row in rows]


def settings(recording: Recording) -> list[str]:
    return [*next(recording.in_file_order()).configuration]


# --- sums of the rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "beside",
    [
        {"best": ROWS[1], "mean": {"time_ms": 14.7, "energy_mj": 3100.0}},
        {"baseline": {"clock_mhz": 1500, "time_ms": 9.5, "energy_mj": 4500.0}},
        {"best_config": {**ROWS[0], "place": 1, "time_saved_pct": 45.0}},
        {"summary": {"best_clock_mhz": 600, "max_power_w": 400.0, "avg_power_w": 300.0, "duration_s": 411.5}},
        {"metadata": {"gpu": "A100", "total_energy_j": 99999, "total_time_s": 400}},
        {"total_time_s": 500.0, "total_energy_j": 120000.0},
        {"statistics": {"time_ms": {"mean": 14.7, "std": 4.1}}},
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_sums_up_the_rows_of_a_list_is_in_none_of_them(
    tmp_path: Path, beside: dict[str, Any], first: bool
) -> None:
    document = {**beside, "results": ROWS} if first else {"results": ROWS, **beside}
    recording = read(tmp_path, document)
    assert measured(recording) == MEASURED
    assert "repeat" not in settings(recording)


def test_what_is_said_once_for_all_rows_stays_with_each(tmp_path: Path) -> None:
    document = {
        "device": {"name": "A100"},
        "power_w": 250.0,
        "results": [{"tile": n, "time_s": 64 / n} for n in (8, 16)],
    }
    recording = read(tmp_path, document)
    assert [row.values["energy_j"] for row in recording.in_file_order()] == [2000.0, 1000.0]


def test_the_figures_of_a_run_stay_beside_the_list_of_its_parts(tmp_path: Path) -> None:
    runs = [
        {"tile": n, "summary": {"energy_j": 100.0 + n}, "parts": [{"time_s": n}, {"time_s": 2 * n}]} for n in (8, 16)
    ]
    recording = read(tmp_path, runs)
    assert {row.values["energy_j"] for row in recording.in_file_order()} == {108.0, 116.0}


def test_a_last_line_that_is_called_a_summary_is_no_configuration(tmp_path: Path) -> None:
    lines = [{"type": "run", **row} for row in ROWS]
    lines.append({"type": "summary", "clock_mhz": None, "time_ms": 44.0, "energy_mj": 9300.0})
    assert measured(read(tmp_path, "\n".join(map(json.dumps, lines)), "runs.jsonl")) == MEASURED


# --- the boards of a run ----------------------------------------------------------------------------------------------


def test_boards_in_a_list_of_each_run_draw_together(tmp_path: Path) -> None:
    energies = {600: (1200.0, 1300.0), 1400: (2200.0, 1800.0)}
    runs = [
        {
            "clock_mhz": clock,
            "gpus": [{"id": n, "energy_j": joules} for n, joules in enumerate(each)],
            "time_s": 6000 / clock,
        }
        for clock, each in energies.items()
    ]
    recording = read(tmp_path, {"runs": runs})
    assert measured(recording) == [(600, 10.0, 2500.0), (1400, pytest.approx(6000 / 1400), 4000.0)]


def test_boards_with_times_of_their_own_are_compared(tmp_path: Path) -> None:
    runs = [
        {"tile": tile, "gpus": [{"model": name, "time_ms": tile * n, "energy_j": 1.5 * n} for n, name in boards]}
        for tile in (8, 16)
        for boards in [((1, "A100"), (2, "H100"))]
    ]
    assert len(list(read(tmp_path, runs).in_file_order())) == 4


# --- units ------------------------------------------------------------------------------------------------------------


def test_units_of_json_stand_beside_each_value_or_once_for_all(tmp_path: Path) -> None:
    each = [
        {
            "clock_mhz": row["clock_mhz"],
            "latency": {"value": 1000 * row["time_ms"], "unit": "us"},
            "energy": {"mean": row["energy_mj"], "std": 3.0, "unit": "mJ"},
        }
        for row in ROWS
    ]
    assert measured(read(tmp_path, each)) == MEASURED
    plain = [{"clock": row["clock_mhz"], "time": 1000 * row["time_ms"], "energy": row["energy_mj"]} for row in ROWS]
    recording = read(tmp_path, {"units": {"time": "us", "energy": "mJ", "clock": "MHz"}, "data": plain})
    assert measured(recording) == MEASURED
    assert not any("names no unit" in note for note in recording.notes)


def test_columns_of_units_may_differ_from_row_to_row(tmp_path: Path) -> None:
    text = "clock_mhz,time,unit,energy,energy_unit\n600,0.02,s,2500,mJ\n900,14,ms,0.0028,kJ\n1400,10,ms,4,J\n"
    recording = read(tmp_path, text, "table.csv")
    assert measured(recording) == MEASURED
    assert settings(recording) == ["graphics_clock_mhz"]


def test_one_quantity_in_several_units_is_one_column(tmp_path: Path) -> None:
    recording = read(tmp_path, "tile,time,unit\n8,0.02,s\n16,14.0,ms\n32,10.0,ms\n", "table.csv")
    assert [row.values["time_s"] for row in recording.in_file_order()] == pytest.approx([0.02, 0.014, 0.01])


def test_a_column_called_unit_that_holds_none_is_a_choice(tmp_path: Path) -> None:
    recording = read(tmp_path, "unit,tile,time_ms\nsm,8,1.5\ntensor,8,1.0\nsm,16,1.25\ntensor,16,0.75\n", "table.csv")
    assert len(settings(recording)) == 2


@pytest.mark.parametrize(
    ("header", "numbers"),
    [
        (
            "# time in microseconds, energy in millijoules\nclock_mhz,time,energy",
            (20000, 2500, 14000, 2800, 10000, 4000),
        ),
        ("clock_mhz,time (x10^-3 s),energy (x10^3 mJ)", (20, 2.5, 14, 2.8, 10, 4)),
        ("clock_mhz,time [1e-2 s],energy [10^-3 kJ]", (2, 2.5, 1.4, 2.8, 1, 4)),
    ],
)
def test_units_of_remarks_and_powers_of_ten_are_read(tmp_path: Path, header: str, numbers: tuple[float, ...]) -> None:
    lines = (f"{clock},{numbers[2 * n]},{numbers[2 * n + 1]}" for n, clock in enumerate((600, 900, 1400)))
    recording = read(tmp_path, "\n".join([header, *lines, ""]), "table.csv")
    assert measured(recording) == MEASURED
    assert not any("names no unit" in note for note in recording.notes)
    assert any("power of ten in its heading: it is not certain" in note for note in recording.notes) == ("^" in header)


def test_days_are_a_unit(tmp_path: Path) -> None:
    recording = read(tmp_path, "clock_mhz,Time (days),Energy (kWh)\n600,2.5,30.5\n900,1.75,35.25\n", "table.csv")
    assert measured(recording)[0] == (600, 216_000.0, 30.5 * 3.6e6)
