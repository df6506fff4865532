"""Sessions side by side: what tuning for energy gains, averaged over kernels and boards."""

from __future__ import annotations

import math

import pytest

from app.engine.analysis.compare import Compared, MeanChange, compare_sessions
from app.engine.measurement import Measurement, State
from app.engine.space.build import space_of_table
from app.engine.space.result_table import ResultTable

# [Schoonhoven2024, table 6.2]: board -> per cent gained in efficiency and in speed, kernel by kernel.
TABLE_6_2 = {
    "A100": [(58.6, -26.5), (63.1, -26.2), (49.1, -24.6), (61.3, -26.4), (84.6, -8.9), (113.8, -12.0)],
    "RTX A4000": [(38.6, -25.8), (44.9, -8.1), (44.3, -19.2), (33.0, -22.2), (6.2, -3.6), (20.6, -4.2)],
    "Titan RTX": [(24.2, -37.2), (35.4, -39.7), (50.2, -45.4), (50.7, -40.0), (49.1, -32.6), (51.6, -43.4)],
    "V100": [(23.6, -18.0), (20.2, -19.9), (18.1, -19.2), (34.9, -37.8), (15.6, -18.9), (16.3, -23.5)],
}


def session(name: str, gpu: str, efficiency: float, speed: float, source: str = "recorded") -> Compared:
    """Two clocks: the fastest, and the one of least energy with these changes in per cent."""
    table = ResultTable(space_of_table({"clock": [1, 2]}, [(1,), (2,)]))
    for row, (top_s, gops_w) in enumerate(((10.0, 50.0), (10.0 * (1 + speed / 100), 50.0 * (1 + efficiency / 100)))):
        values = {"time_s": 1 / top_s, "energy_j": 1 / gops_w, "TOP/s": top_s, "GOPS/W": gops_w}
        table.append(Measurement(row, table.space.configuration(row), State.OK, values))
    return Compared(name, gpu, source, table)


def test_the_means_over_kernels_and_boards_are_those_of_s1_table_6_2() -> None:
    sessions = [
        session(f"kernel {at}", gpu, *changes)
        for gpu, kernels in TABLE_6_2.items()
        for at, changes in enumerate(kernels)
    ]
    found = compare_sessions(sessions)
    assert found.mean_efficiency_change.words == "+42.0 ± 24.1 %"
    assert found.mean_speed_change.words == "-24.3 ± 12.1 %"
    assert found.mean_speed_change.count == 24
    assert found.over == "24 sessions on 4 boards"


def test_a_simulated_board_among_them_is_said() -> None:
    sides = [session("a", "A100", 20, -10), session("b", "A100", 30, -20, "simulated")]
    assert compare_sessions(sides).over == "2 sessions on 2 boards, 1 of them simulated"
    assert compare_sessions([sides[1], sides[1]]).over == "2 sessions on 1 board, all simulated"


def test_changes_that_are_not_known_do_not_count() -> None:
    some = MeanChange.over([0.1, math.nan, 0.3, math.inf])
    assert (some.mean, some.count) == (pytest.approx(0.2), 2)
    assert some.deviation == pytest.approx(math.sqrt(0.02))
    assert MeanChange.over([0.1, math.nan]).words == "+10.0 ± – %"
    assert MeanChange.over([math.nan]).words == "–"
