"""Sessions side by side: what tuning for energy gains, averaged over kernels and boards."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.analysis.across_boards import (
    describe_kernels_by_boards,
    describe_machines,
    kernels_by_boards,
    over_machines,
)
from app.engine.analysis.compare import Compared, MeanChange, compare_sessions
from app.engine.analysis.describe_analysis import describe_comparison
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Limit
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import Parameter, SearchSpace, space_of_table

# [Schoonhoven2024, table 6.2]: board -> per cent gained in efficiency and in speed, kernel by kernel.
TABLE_6_2 = {
    "A100": [(58.6, -26.5), (63.1, -26.2), (49.1, -24.6), (61.3, -26.4), (84.6, -8.9), (113.8, -12.0)],
    "RTX A4000": [(38.6, -25.8), (44.9, -8.1), (44.3, -19.2), (33.0, -22.2), (6.2, -3.6), (20.6, -4.2)],
    "Titan RTX": [(24.2, -37.2), (35.4, -39.7), (50.2, -45.4), (50.7, -40.0), (49.1, -32.6), (51.6, -43.4)],
    "V100": [(23.6, -18.0), (20.2, -19.9), (18.1, -19.2), (34.9, -37.8), (15.6, -18.9), (16.3, -23.5)],
}


def session(
    name: str, gpu: str, efficiency: float, speed: float, source: str = "recorded", kernel: str = "", board: str = ""
) -> Compared:
    """Two clocks: the fastest, and the one of least energy with these changes in per cent."""
    table = ResultTable(space_of_table({"clock": [1, 2]}, [(1,), (2,)]))
    for row, (top_s, gops_w) in enumerate(((10.0, 50.0), (10.0 * (1 + speed / 100), 50.0 * (1 + efficiency / 100)))):
        values = {"time_s": 1 / top_s, "energy_j": 1 / gops_w, "TOP/s": top_s, "GOPS/W": gops_w}
        table.append(Measurement(row, table.space.configuration(row), State.OK, values))
    return Compared(name, gpu, source, table, kernel, board)


def test_the_means_over_kernels_and_boards_are_those_of_s1_table_6_2() -> None:
    sessions = [
        session(f"kernel {index}", gpu, *changes)
        for gpu, kernels in TABLE_6_2.items()
        for index, changes in enumerate(kernels)
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


def test_two_boards_of_a_model_are_two_boards() -> None:
    sides = [session(name, "A100", 20, -10, "simulated", board=f"simulated:a100#{name}") for name in "12"]
    assert compare_sessions(sides).over == "2 sessions on 2 boards, all simulated"
    assert compare_sessions([sides[0], sides[0]]).over == "2 sessions on 1 board, all simulated"


def test_where_figures_come_from_stands_beside_what_is_carried_over() -> None:
    carried = compare_sessions([session(name, "A100", 20, -10, "simulated") for name in "ab"]).carried
    assert {each.origin for each in carried} == {"A100 (simulated), a", "A100 (simulated), b"}


def test_what_breaks_a_limit_of_its_session_is_not_compared() -> None:
    limited = replace(session("a", "A100", 20, -10), limits=(Limit("energy_j", True, 0.018),))
    found = compare_sessions([limited, session("b", "A100", 20, -10)])
    one, other = found.sides
    assert one.fastest.configuration == one.frugal.configuration == {"clock": 2}, "clock 1 needs 0.02 J"
    assert other.fastest.configuration == {"clock": 1}
    assert (len(one.front_x), len(other.front_x)) == (1, 2)
    assert one.limits == ("energy_j <= 0.018",)
    assert any("left out: a energy_j <= 0.018" in remark for remark in describe_comparison(found).remarks)


def test_a_session_in_which_nothing_keeps_its_limits_is_said_to_be() -> None:
    limited = replace(session("a", "A100", 20, -10), limits=(Limit("energy_j", True, 0.001),))
    with pytest.raises(InputError, match=r"no configuration of a keeps its limits \(energy_j <= 0.001\)"):
        compare_sessions([limited, session("b", "A100", 20, -10)])


def test_the_mean_of_repeats_keeps_a_limit_not_the_first_of_them() -> None:
    """0.021 and 0.017 J: 0.019 in the mean, within 0.02 J."""
    space = space_of_table({"clock": [1, 2], "repeat": [0, 1]}, [(1, 0), (1, 1), (2, 0), (2, 1)])
    table = ResultTable(space)
    for row, (time_s, energy_j) in enumerate(((0.1, 0.021), (0.1, 0.017), (0.2, 0.016), (0.2, 0.016))):
        values = {"time_s": time_s, "energy_j": energy_j, "TOP/s": 1 / time_s, "GOPS/W": 1 / energy_j}
        table.append(Measurement(row, space.configuration(row), State.OK, values))
    repeated = Compared("a", "A100", "nvml", table, limits=(Limit("energy_j", True, 0.02),))
    side = compare_sessions([repeated, session("b", "A100", 20, -10)]).sides[0]
    assert (side.fastest.configuration, side.measured) == ({"clock": 1}, 2)
    assert side.fastest.efficiency == pytest.approx((1 / 0.021 + 1 / 0.017) / 2)


def tiles_by_clocks(name: str, rows: dict[tuple[int, int], tuple[float, float]]) -> Compared:
    """(tile, clock) -> time in s, energy in J."""
    codes = np.array([[tile, clock] for tile in range(2) for clock in range(2)], dtype=np.uint16)
    parameters = (Parameter("tile", (0, 1)), Parameter("clock", (0, 1), device_setting=True))
    table = ResultTable(SearchSpace(parameters, codes, cartesian=4))
    for (tile, clock), (time_s, energy_j) in rows.items():
        values = {"time_s": time_s, "energy_j": energy_j, "GFLOP/s": 1 / time_s, "GFLOPS/W": 1 / energy_j}
        configuration = {"tile": tile, "clock": clock}
        table.append(Measurement(2 * tile + clock, configuration, State.OK, values))
    return Compared(name, name, "recorded", table, "k")


def test_what_was_carried_to_fewer_clocks_costs_at_most_what_is_shown() -> None:
    """Tile 1 was measured at the slow clock alone there: nothing says that it is slower at the fast one."""
    one = tiles_by_clocks("one", {(1, 0): (2.0, 2.0), (1, 1): (1.0, 3.0)})
    there = {(0, 0): (2.2, 2.0), (0, 1): (1.1, 3.0), (1, 0): (2.1, 1.9)}
    found = compare_sessions([one, tiles_by_clocks("other", there)])
    [fastest] = [each for each in found.carried if each.origin.startswith("one") and each.chosen_for == "time"]
    assert (fastest.time_ratio, fastest.at_most) == (pytest.approx(2.1 / 1.1), True)
    described = describe_comparison(found)
    row = next(row for row in described.listings[-1].rows if row[:2] == [fastest.origin, "time"])
    assert row[3] == "≤ +90.9 %"
    assert row[4] == "+0.0 %", "no more than the least there is exact"
    assert any(remark.startswith("≤") for remark in described.remarks)
    whole = compare_sessions([one, tiles_by_clocks("other", {**there, (1, 1): (1.2, 3.1)})])
    assert not any(each.at_most for each in whole.carried if each.on.startswith("other"))


def test_changes_that_are_not_known_do_not_count() -> None:
    some = MeanChange.over([0.1, math.nan, 0.3, math.inf, 0.2, 0.2, 0.2])
    assert (some.mean, some.count) == (pytest.approx(0.2), 5)
    assert some.deviation == pytest.approx(math.sqrt(0.005))
    assert MeanChange.over([math.nan]).words == "–"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_fewer_than_five_sessions_have_no_mean_change(count: int) -> None:
    few = MeanChange.over([0.1, 0.2, 0.3, 0.4][:count])
    assert math.isnan(few.mean)
    assert math.isnan(few.deviation)
    assert (few.count, few.words) == (count, "too few")


def test_two_sessions_have_no_mean_in_the_comparison_nor_in_the_table_of_kernels_by_boards() -> None:
    same = [session(name, "A100", gain, -10, kernel="k") for name, gain in (("a", 20), ("b", 30))]
    sessions = [*same, session("v", "V100", 5, -20, kernel="k")]
    found = compare_sessions(sessions)
    (means, *_) = describe_comparison(found).remarks
    assert means.endswith("over 3 sessions on 2 boards: efficiency too few, speed too few, and at least 5 are needed")
    table = kernels_by_boards(found)
    assert table is not None
    [[pair, single]] = table.cells
    assert pair is not None
    assert single is not None
    assert math.isnan(pair.efficiency_change.mean)
    assert math.isnan(pair.efficiency), "the mean of two"
    assert 100 * single.efficiency_change.mean == pytest.approx(5), "of one session, which is no mean"
    [described] = describe_kernels_by_boards(table)
    [row, margins] = described.listings[0].rows
    assert row == ["k", "too few (2)", "+5.0 %, -20.0 %", "too few"]
    assert margins[1:] == ["too few"] * 3


# --- kernels by boards ------------------------------------------------------------------------------------------------


def table_6_2() -> list[Compared]:
    return [
        session(f"{gpu}, kernel {index}", gpu, *changes, kernel=f"kernel {index}")
        for gpu, kernels in TABLE_6_2.items()
        for index, changes in enumerate(kernels)
    ]


def test_the_table_of_kernels_by_boards_is_that_of_s1_with_its_means() -> None:
    table = kernels_by_boards(compare_sessions(table_6_2()))
    assert table is not None
    assert table.boards == tuple(TABLE_6_2)
    assert table.kernels == tuple(f"kernel {index}" for index in range(6))
    for row, cells in enumerate(table.cells):
        for column, cell in enumerate(cells):
            expected = TABLE_6_2[table.boards[column]][row]
            assert cell is not None
            assert (100 * cell.efficiency_change.mean, 100 * cell.speed_change.mean) == pytest.approx(expected)
    gains = [gain for gain, _ in TABLE_6_2["Titan RTX"]]
    titan = table.of_boards[table.boards.index("Titan RTX")].efficiency
    assert (100 * titan.mean, 100 * titan.deviation) == pytest.approx((mean(gains), stdev(gains)))
    assert table.of_kernels[5].words == "too few", "four boards"
    assert (table.of_all.efficiency.words, table.of_all.speed.words) == ("+42.0 ± 24.1 %", "-24.3 ± 12.1 %")
    [described] = describe_kernels_by_boards(table)
    assert described.listings[0].rows[0][1] == "+58.6 %, -26.5 %"
    assert described.listings[0].rows[-1][-1] == "+42.0 ± 24.1 %, -24.3 ± 12.1 %"


def test_many_boards_of_a_model_weigh_no_more_than_one_of_another() -> None:
    sessions = [session(f"a {index}", "A100", 40 + index, -10, kernel="k") for index in range(5)]
    table = kernels_by_boards(compare_sessions([*sessions, session("v", "V100", 20, -20, kernel="k")]))
    assert table is not None
    [[of_a100, of_v100]] = table.cells
    assert of_a100 is not None
    assert of_v100 is not None
    assert (of_a100.sessions, 100 * of_a100.efficiency_change.mean) == (5, pytest.approx(42))
    assert 100 * of_a100.efficiency_change.deviation == pytest.approx(stdev(range(5)))
    others = [session(gpu, gpu, 20, -20, kernel="k") for gpu in ("V100", "A4000", "H100", "L40")]
    table = kernels_by_boards(compare_sessions([*sessions, *others]))
    assert table is not None
    assert 100 * table.of_all.efficiency.mean == pytest.approx((42 + 4 * 20) / 5)


def test_what_was_not_tuned_is_a_dash_and_one_kernel_on_one_model_has_no_table() -> None:
    some = [s for s in table_6_2() if (s.gpu, s.kernel) != ("V100", "kernel 2")]
    table = kernels_by_boards(compare_sessions(some))
    assert table is not None
    assert table.cells[2][3] is None
    [described] = describe_kernels_by_boards(table)
    assert described.listings[0].rows[2][4] == "–"
    same = [session(name, "A100", 20, -10, kernel="k") for name in "ab"]
    assert kernels_by_boards(compare_sessions(same)) is None


def test_what_is_best_is_not_carried_to_another_kernel_whose_parameters_are_called_alike() -> None:
    sessions = [session(gpu, gpu, 20, -10, kernel=kernel) for gpu in ("A100", "V100") for kernel in ("x", "y")]
    carried = compare_sessions(sessions).carried
    assert len(carried) == 2 * 2 * 2, "of each kernel each way, for time and for energy"


# --- averages over machines -------------------------------------------------------------------------------------------


def test_configurations_are_averaged_over_machines_with_their_deviations() -> None:
    gains = (20.0, 24.0, 31.0)
    sessions = [session(f"s{index}", "A100", g, -10, kernel="k", board=f"GPU-{index}") for index, g in enumerate(gains)]
    [found] = over_machines([*sessions, session("v", "V100", 20, -10, kernel="k"), session("o", "A100", 1, 1)])
    assert (found.kernel, found.gpu, found.sessions, found.boards) == ("k", "A100", ("s0", "s1", "s2"), 3)
    best = found.points[0]
    assert best.configuration == {"clock": 2}
    energies = [1 / (50 * (1 + gain / 100)) for gain in gains]
    energy = best.figures["energy_j"]
    assert (energy.mean, energy.deviation, energy.count) == pytest.approx((mean(energies), stdev(energies), 3))
    assert energy.interval is not None
    half = 4.302653 * stdev(energies) / math.sqrt(3)  # Student's t, 2 degrees of freedom
    assert energy.interval == pytest.approx((energy.mean - half, energy.mean + half))
    assert best.figures["time_s"].deviation == pytest.approx(0.0)
    [described] = describe_machines(found)
    assert described.title == "k: averages over 3 sessions on 3 boards"
    assert {figure.value for figure in described.figures} == {"too few configurations"}, "a median over two"
    assert "± " in str(described.listings[0].rows[0][1])


def test_what_only_one_machine_measured_has_no_average() -> None:
    one, other = (session(name, "A100", 20, -10, kernel="k") for name in "ab")
    other.table.append(Measurement(0, {"clock": 1}, State.TIMEOUT, error="too long"))
    assert [point.figures["energy_j"].count for point in over_machines([one, other])[0].points] == [2, 2]
    assert over_machines([one]) == ()


def test_sessions_of_another_problem_size_are_another_kernel() -> None:
    """Their times differ by the work, which is no scatter of boards."""
    small, large = (replace(session("a", "A100", 20, -10, kernel="gemm"), work=work) for work in ("2048", "4096"))
    assert over_machines([small, large]) == ()
    crossed = kernels_by_boards(compare_sessions([small, large]))
    assert crossed is not None
    assert crossed.kernels == ("gemm (2048)", "gemm (4096)")
    (found,) = over_machines([small, large, replace(large, name="b")])
    assert (found.kernel, len(found.sessions)) == ("gemm (4096)", 2)
    (alike,) = over_machines([large, replace(large, name="b")])
    assert alike.kernel == "gemm"


def test_one_board_is_not_called_machines() -> None:
    sides = [session(name, "A100", 20, -10, kernel="gemm", board="GPU-1") for name in "ab"]
    (found,) = over_machines(sides)
    labels = [figure.label for machine in describe_machines(found) for figure in machine.figures]
    assert labels
    assert all(label.startswith("Sessions differ") for label in labels)


def test_energies_for_different_conditions_are_said_to_be() -> None:
    cold, hot = (replace(session(c, "A100", 20, -10), condition=c) for c in ("33 °C, 70 W", "70 °C, 200 W"))
    said = describe_comparison(compare_sessions([cold, hot])).remarks
    assert any("different thermal conditions: 33 °C, 70 W; 70 °C, 200 W" in each for each in said)
    assert not any("conditions" in remark for remark in describe_comparison(compare_sessions([hot, hot])).remarks)
