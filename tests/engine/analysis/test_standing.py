"""Where a choice stands: its rank, and differences that are called such only where the intervals can tell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.analysis.difference import Difference, difference
from app.engine.analysis.standing import Standing, standing
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import Parameter, SearchSpace

LEAST_ENERGY = Objective(Goal("energy_j", False))
POSITIVE = st.floats(1e-3, 1e3)


def table_of(*figures: tuple[float, float], half: float | None = 0.01, settings: bool = False) -> ResultTable:
    """A measurement for each (time in s, energy in J); the last is of the untouched board where `settings`."""
    clocks: tuple[object, ...] = tuple(range(1000, 1000 + len(figures)))
    if settings:
        clocks = (*clocks[:-1], "untouched")
    parameter = Parameter("graphics_clock_mhz", clocks, settings)  # type: ignore[arg-type]
    table = ResultTable(SearchSpace((parameter,), np.arange(len(figures), dtype=np.uint8)[:, None], len(figures)))
    for row, (time_s, energy_j) in enumerate(figures):
        values = {"time_s": time_s, "energy_j": energy_j}
        ends = {name: (v * (1 - half), v * (1 + half)) for name, v in values.items()} if half is not None else {}
        table.append(Measurement(row, table.space.configuration(row), State.OK, values, ends, source="simulated"))
    return table


def of(table: ResultTable, index: int, objective: Objective = LEAST_ENERGY) -> Standing:
    return standing(table, objective, index)


def test_rank_and_cost_against_the_fastest() -> None:
    stands = of(table_of((1.0, 100.0), (1.04, 82.0), (2.0, 150.0)), 1)
    assert (stands.measurement, stands.rank, stands.of) == (2, 1, 3)
    assert stands.against_fastest is not None
    assert stands.against_fastest.measurement == 1
    assert stands.against_fastest.energy.change == pytest.approx(-0.18)
    assert stands.against_fastest.energy.half_width == pytest.approx(0.82 * math.hypot(0.01, 0.01))
    assert stands.against_fastest.words == "18 ± 1.2 % less energy, 4 ± 1.5 % more time"
    assert stands.own_state is None
    assert stands.short == ("vs fastest: 18 ± 1.2 % less energy, 4 ± 1.5 % more time",)


@pytest.mark.parametrize(("share", "fastest"), [(0.0, 3), (0.95, 1)])
def test_times_of_a_few_launches_are_not_set_against_those_at_the_power_limit(share: float, fastest: int) -> None:
    """A row that was only timed seemed 10 % faster than the others, which the limit held back in their windows."""
    clocks = Parameter("block_size_x", (32, 64, 128))
    table = ResultTable(SearchSpace((clocks,), np.arange(3, dtype=np.uint8)[:, None], 3))
    figures = ({"time_s": 1.0, "energy_j": 700.0}, {"time_s": 1.04, "energy_j": 690.0}, {"time_s": 0.9})
    for row, values in enumerate(figures):
        more, depth = ({"throttled_power_share": share}, Depth.ENERGY) if row < 2 else ({}, Depth.TIME)
        table.append(Measurement(row, table.space.configuration(row), State.OK, {**values, **more}, depth=depth))
    stands = of(table, 1)
    assert stands.against_fastest is not None
    assert stands.against_fastest.measurement == fastest


def test_what_the_intervals_cannot_tell_apart_is_said_to_be_so() -> None:
    stands = of(table_of((1.0, 100.0), (1.005, 80.0)), 1)
    assert stands.against_fastest is not None
    assert stands.against_fastest.time.distinguishable is False
    assert stands.against_fastest.words == "20 ± 1.1 % less energy, time not distinguishable (0.5 ± 1.4 %)"


def test_an_unknown_interval_is_said() -> None:
    stands = of(table_of((1.0, 100.0), (1.04, 82.0), half=None), 1)
    assert stands.against_fastest is not None
    assert stands.against_fastest.energy.distinguishable is None
    assert stands.against_fastest.words == "18 % less energy, 4 % more time (intervals unknown)"
    assert Difference(0.04, math.nan).words("time") == "4 % more time (interval unknown)"
    assert Difference(math.nan, math.nan).words("energy") == "energy unknown"


def test_the_fastest_is_named_so_and_the_untouched_board_is_compared() -> None:
    table = table_of((1.0, 100.0), (1.5, 70.0), (1.2, 110.0), settings=True)
    fastest = of(table, 0)
    assert fastest.is_fastest
    assert fastest.against_own_state is not None
    assert fastest.short == ("fastest", "vs untouched: 9.1 ± 1.3 % less energy, 17 ± 1.2 % less time")
    assert fastest.sentences[1].startswith("Against the board's own state (measurement 3): ")
    assert of(table, 2).short[-1] == "untouched"
    assert of(table, 2).sentences[-1] == "Measured at the board's own state."


def test_a_choice_over_a_limit_or_that_failed_has_no_rank() -> None:
    limited = Objective(Goal("energy_j", False), limits=(Limit("time_s", True, 1.2),))
    table = table_of((1.0, 100.0), (1.5, 70.0))
    assert of(table, 1, limited).rank_words == "no rank of 1"
    assert of(table, 0, limited).rank_words == "rank 1 of 1"
    failed = ResultTable(table.space)
    failed.append(table.measurement(0))
    failed.append(Measurement(1, table.space.configuration(1), State.RUNTIME, error="no"))
    stands = of(failed, 1)
    assert (stands.rank, stands.against_fastest, stands.of) == (None, None, 1)
    assert stands.sentences == ("What it costs and gains against the fastest is not known.",)


def test_repeats_are_compared_by_their_mean_and_keep_the_number_of_the_chosen_one() -> None:
    parameters = (Parameter("block", (32, 64)), Parameter("repeat", (0, 1)))
    codes = np.array(list(itertools.product(range(2), range(2))), dtype=np.uint8)
    table = ResultTable(SearchSpace(parameters, codes, 4))
    for row, (time_s, energy_j) in enumerate(((1.0, 100.0), (1.02, 102.0), (2.0, 60.0), (2.1, 62.0))):
        figures = {"time_s": time_s, "energy_j": energy_j}
        table.append(Measurement(row, table.space.configuration(row), State.OK, figures, source="simulated"))
    stands = of(table, 3)
    assert (stands.measurement, stands.rank, stands.of) == (4, 1, 2)
    assert stands.against_fastest is not None
    assert stands.against_fastest.measurement == 1
    assert stands.against_fastest.energy.change == pytest.approx(61 / 101 - 1)
    assert stands.against_fastest.energy.distinguishable, "by the scatter of the repeats"


@given(POSITIVE, POSITIVE, st.floats(0, 0.3), st.floats(0, 0.3))
def test_a_difference_is_told_apart_where_its_interval_leaves_out_zero(
    before: float, after: float, half: float, other: float
) -> None:
    made = difference(before, after, math.hypot(half, other))
    assert made.interval is not None
    low, high = made.interval
    assert made.distinguishable == (not low <= 0 <= high)
    assert made.half_width == pytest.approx(after / before * math.sqrt(half**2 + other**2))
    assert ("not distinguishable" in made.words("time")) == (low <= 0 <= high)
