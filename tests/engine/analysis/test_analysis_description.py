"""Analyses and comparisons described: the same figures for the terminal, the report and the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.engine.analysis.compare import Compared, compare_sessions
from app.engine.analysis.describe_analysis import MOST_POINTS, describe_analysis, describe_comparison
from app.engine.analysis.session_analysis import analyse
from app.engine.formats.read import read_recording
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
FRONT = (Goal("TOP/s", True), Goal("TOP/J", True))


def table_of(top_s: list[float], top_j: list[float]) -> ResultTable:
    """One parameter; the work of each measurement is one TOP."""
    table = ResultTable(space_of_table({"n": list(range(len(top_s)))}, [(row,) for row in range(len(top_s))]))
    for row, (speed, efficiency) in enumerate(zip(top_s, top_j, strict=True)):
        values = {"time_s": 1 / speed, "energy_j": 1 / efficiency, "TOP/s": speed, "TOP/J": efficiency}
        table.append(Measurement(row, table.space.configuration(row), State.OK, values))
    return table


def test_a_session_is_described_from_the_choices_to_the_failures(shared_data: Path) -> None:
    recording = read_recording(shared_data / PS3)
    described = describe_analysis(analyse(recording.table(), Objective(Goal("TFLOPS/J", True))))
    assert [each.title.partition(" ")[0] for each in described] == [
        *("Choices,", "Front", "Correlation", "The", "Importance", "Importance", "Difficulty:", "430")
    ]
    choices, front = described[0].listings[0], described[1]
    assert choices.header[:5] == ("choice", "ms", "J", "W", "in words")
    assert ["Least energy", "11 % less energy for 27 % more time"] in [[row[0], row[4]] for row in choices.rows]
    assert front.figures[0].text == "13 of 4690"
    assert front.figures[1].text == "73.898, reference 0, 0"
    assert front.listings[1].title == "The front"
    assert len(front.listings[1].rows) == 13
    assert described[-1].title == "430 failed (runtime)"
    assert described[-1].origin == "8.4 % of what was measured"


def test_a_long_front_is_cut_and_says_so() -> None:
    speed = np.linspace(1.0, 2.0, 100)
    found = analyse(table_of(speed.tolist(), (3 - speed).tolist()), Objective(FRONT[0], FRONT))
    front = next(each for each in describe_analysis(found) if each.title.startswith("Front over")).listings[1]
    assert front.title == f"The front: the first {MOST_POINTS} of 100"
    assert len(front.rows) == MOST_POINTS


def test_where_nothing_worked_that_is_said() -> None:
    table = ResultTable(space_of_table({"n": [1, 2]}, [(1,), (2,)]))
    table.append(Measurement.failed(0, table.space.configuration(0), State.RUNTIME, "illegal address", source="nvml"))
    described = describe_analysis(analyse(table, Objective(FRONT[0], FRONT)))
    assert [each.title for each in described] == ["No configuration worked", "1 failed (runtime)"]
    assert described[1].listings[0].rows == [[1, "illegal address"]]


def test_a_comparison_names_units_boards_and_what_carries_over() -> None:
    one, other = table_of([10.0, 8.0], [5.0, 6.0]), table_of([20.0, 10.0], [5.0, 7.5])
    found = compare_sessions([Compared("a", "A100", "nvml", one), Compared("b", "V100", "simulated", other)])
    described = describe_comparison(found, {"TOP/J": "", "TOP/s": "tera"})
    gains, fronts, carried = described.listings
    assert (gains.header[3], gains.header[6]) == ("TOP/J", "TOP/s (tera)")
    assert [row[0] for row in gains.rows] == ["A100", "V100 (simulated)"]
    assert [(row[5], row[8]) for row in gains.rows] == [("+20.0 %", "-20.0 %"), ("+50.0 %", "-50.0 %")]
    assert fronts.title == "Fronts over max:TOP/s and max:TOP/J"
    assert carried.rows[0] == ["A100, a", "time", "V100 (simulated), b", "+0.0 %", "+50.0 %", "n=0"]
    assert described.remarks[0].startswith("mean ± standard deviation over 2 sessions on 2 boards, 1 of them simulated")
