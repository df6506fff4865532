"""Choices against the board's own state, and what a lock costs by itself: on tables whose truth is written down."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from app.base.records import as_json
from app.engine.analysis.analysis_document import document_of
from app.engine.analysis.costs import costs_of
from app.engine.analysis.describe_analysis import describe_analysis
from app.engine.analysis.own_state import OwnState, own_state
from app.engine.analysis.session_analysis import analyse
from app.engine.results.measurement import Configuration, Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.results.settings import UNTOUCHED
from app.engine.space.result_table import DECIDED_ON, ResultTable
from app.engine.space.search_space import Parameter, SearchSpace
from app.sensors.event_reasons import EventReason

SETTINGS = ("graphics_clock_mhz", "memory_clock_mhz", "power_limit_w", "workload_power_profile")
MEMORY_MHZ = 14001.0  # that the board has untouched
Truth = Callable[[Configuration], tuple[float, float]]  # time in s and power in W
Capped = Callable[[Configuration], bool]


def never(_configuration: Configuration) -> bool:
    return False


def measured(
    truth: Truth, half: float = 0.0, highest: float = 2000.0, capped: Capped = never, **values: tuple[object, ...]
) -> ResultTable:
    """Everything of a space, measured; `half`: of the interval of each time, a share.

    Untouched, the board runs at `highest` MHz; `capped`: which configurations a power limit holds back.
    """
    parameters = tuple(Parameter(name, listed, name in SETTINGS) for name, listed in values.items())  # type: ignore[arg-type]
    codes = np.array(list(itertools.product(*(range(len(listed)) for listed in values.values()))), dtype=np.uint8)
    table = ResultTable(SearchSpace(parameters, codes, len(codes)))
    for row in range(len(codes)):
        configuration = table.space.configuration(row)
        time_s, power_w = truth(configuration)
        figures = {"time_s": time_s, "energy_j": time_s * power_w, "power_w": power_w}
        intervals = {"time_s": (time_s * (1 - half), time_s * (1 + half))} if half else {}
        seen = {name: configuration.get(name, UNTOUCHED) for name in ("graphics_clock_mhz", "memory_clock_mhz")}
        graphics, memory = (
            top if seen[name] == UNTOUCHED else float(seen[name])
            for name, top in (("graphics_clock_mhz", highest), ("memory_clock_mhz", MEMORY_MHZ))
        )
        figures |= {"observed_clock_mhz": graphics, "observed_memory_clock_mhz": memory}
        reasons = int(EventReason.POWER_CAP) if capped(configuration) else 0
        table.append(
            Measurement(
                row,
                configuration,
                State.OK,
                figures,
                intervals,
                source="simulated",
                observed_clock_mhz=graphics,
                event_reasons=reasons,
            )
        )
    return table


def blackwell(configuration: Configuration) -> tuple[float, float]:
    """384.0 frames a second with the memory clock as the board has it, 343.9 with it locked, at whatever value."""
    rate = 384.0 if configuration["memory_clock_mhz"] == "untouched" else 343.9
    return 1 / rate / float(configuration.get("block", 1)), 500.0


def state_of(table: ResultTable) -> OwnState:
    costs = costs_of(table)
    state = own_state(table, costs, int(np.nanargmin(costs.energy_j)))
    assert state is not None
    return state


def test_a_lock_at_the_highest_clock_is_not_the_boards_own_state() -> None:
    table = measured(blackwell, memory_clock_mhz=(7001, 14001, "untouched"), block=(1, 2))
    state = state_of(table)
    assert state.untouched
    assert (
        table.measurement(int(np.nanargmin(costs_of(table).energy_j))).configuration["memory_clock_mhz"] == "untouched"
    )
    [lock] = state.locks
    assert lock.settings == (("memory_clock_mhz", 14001.0),)
    assert lock.speed_change == pytest.approx(343.9 / 384.0 - 1)
    assert lock.pairs == 2
    assert lock.words == "locking the memory clock at 14001 MHz costs 10 % of the speed here: leave it untouched"


def test_a_saving_is_against_the_untouched_level_and_not_the_highest_clock() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        clock = configuration["graphics_clock_mhz"]
        return (1.0, 400.0) if clock == "untouched" else (1.2 * 2000 / float(clock), 380.0 * float(clock) / 2000)

    table = measured(truth, graphics_clock_mhz=(1000, 2000, "untouched"))
    least = state_of(table)  # 456 J at any lock, 400 J untouched
    assert least.gain is None
    assert least.words == "measured at the board's own state"
    locked = own_state(table, costs_of(table), 1)
    assert locked is not None
    assert locked.gain is not None
    assert locked.gain.energy_change == pytest.approx(456 / 400 - 1)
    assert locked.words == "14 % more energy and 20 % more time, against the board's own state"


def test_without_that_level_the_highest_stands_for_it_and_is_named_so() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        return 2000 / float(configuration["graphics_clock_mhz"]), 100 + float(configuration["graphics_clock_mhz"]) / 10

    table = measured(truth, graphics_clock_mhz=(1000, 1500, 2000))
    state = own_state(table, costs_of(table), 1)
    assert state is not None
    assert not state.untouched
    assert state.locks == ()
    assert state.gain is not None
    assert state.words.endswith("against the highest measured clock, which may not be the board's own state")


def test_a_difference_within_its_interval_is_no_cost_of_a_lock() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        return (1.0 if configuration["memory_clock_mhz"] == "untouched" else 1.02), 500.0

    values = {"memory_clock_mhz": (14001, "untouched")}
    assert state_of(measured(truth, half=0.03, **values)).locks == ()
    [lock] = state_of(measured(truth, half=0.005, **values)).locks
    low, high = lock.speed_interval
    assert low < 1 / 1.02 - 1 < high < 0


def test_a_lock_that_saves_energy_is_named_and_not_advised_against() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        return (1.0, 556.7) if configuration["memory_clock_mhz"] == "untouched" else (1.0 / 0.8357, 414.6)

    [lock] = state_of(measured(truth, memory_clock_mhz=(14001, "untouched"))).locks
    assert lock.words == "locking the memory clock at 14001 MHz costs 16 % of the speed here"


def test_several_settings_that_were_left_alone_together_are_compared_as_they_were() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        alone = configuration["memory_clock_mhz"] == configuration["graphics_clock_mhz"] == "untouched"
        return (1.0 if alone else 1.25), 300.0

    table = measured(truth, graphics_clock_mhz=(1500, 2000, "untouched"), memory_clock_mhz=(14001, "untouched"))
    state = state_of(table)
    assert [dict(lock.settings) for lock in state.locks] == [
        {"graphics_clock_mhz": 2000.0},
        {"memory_clock_mhz": 14001.0},
        {"graphics_clock_mhz": 2000.0, "memory_clock_mhz": 14001.0},
    ]
    assert all(lock.speed_change == pytest.approx(-0.2) for lock in state.locks)


def test_a_session_without_settings_has_no_state_to_compare_with() -> None:
    table = measured(lambda c: (1.0 / float(c["block"]), 100.0), block=(1, 2))
    assert own_state(table, costs_of(table), 0) is None
    pinned = measured(lambda c: (1.0 / float(c["block"]), 100.0), block=(1, 2), graphics_clock_mhz=(1500,))
    assert own_state(pinned, costs_of(pinned), 0) is None


def test_analysis_and_its_document_name_what_a_gain_is_against() -> None:
    table = measured(blackwell, memory_clock_mhz=(7001, 14001, "untouched"), block=(1, 2))
    analysis = analyse(table, Objective(Goal("energy_j", maximise=False)))
    document = as_json(document_of(analysis))
    assert document["own_state"]["baseline"] == "the board's own state"
    assert document["own_state"]["untouched"] is True
    assert document["own_state"]["locks"][0]["settings"] == {"memory_clock_mhz": 14001.0}
    [choices, *_] = describe_analysis(analysis)
    assert "locking the memory clock at 14001 MHz costs 10 % of the speed here: leave it untouched" in choices.remarks


def test_a_clock_with_an_untouched_level_stays_a_number_for_correlations() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        clock = (
            1410.0 if configuration["graphics_clock_mhz"] == "untouched" else float(configuration["graphics_clock_mhz"])
        )
        return 1e3 / clock + 0.1 * float(configuration["block"]), 100.0 + clock / 10

    clocks = (900, 1005, 1110, 1200, 1305, 1410)
    objective = Objective(Goal("energy_j", maximise=False))
    with_level, without = (
        next(one for one in analyse(table, objective).correlations if one.name == "graphics_clock_mhz")
        for table in (
            measured(truth, graphics_clock_mhz=(*clocks, "untouched"), block=(1, 2, 3)),
            measured(truth, graphics_clock_mhz=clocks, block=(1, 2, 3)),
        )
    )
    assert with_level == without


def slower_below(mhz: float) -> Truth:
    def truth(configuration: Configuration) -> tuple[float, float]:
        clock = configuration.get("graphics_clock_mhz", UNTOUCHED)
        return mhz / (mhz if clock == UNTOUCHED else float(clock)), 300.0

    return truth


def test_a_clock_that_is_only_lower_than_the_boards_own_is_no_cost_of_a_lock() -> None:
    """A session that went up to 1200 of 2000 MHz says nothing of locking: its clock is another one."""
    assert state_of(measured(slower_below(2000), graphics_clock_mhz=(1000, 1200, "untouched"))).locks == ()
    assert state_of(measured(slower_below(2000), graphics_clock_mhz=(1200, 2000, "untouched"))).locks == ()


def test_what_a_power_limit_costs_is_not_laid_on_a_locked_clock() -> None:
    """At the highest of the limits that were tried, which is below the board's own, the memory clock did not matter."""

    def truth(configuration: Configuration) -> tuple[float, float]:
        return (1.0 if configuration["power_limit_w"] == "untouched" else 1.4), 250.0

    values = {"memory_clock_mhz": (14001, "untouched"), "power_limit_w": (200, 250, "untouched")}

    def held_back(configuration: Configuration) -> bool:
        return configuration["power_limit_w"] != "untouched"

    assert state_of(measured(truth, capped=held_back, **values)).locks == ()


def test_a_limit_that_held_nothing_back_leaves_the_lock_to_be_seen() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        return (1.0 if configuration["memory_clock_mhz"] == "untouched" else 1.25), 250.0

    table = measured(truth, memory_clock_mhz=(14001, "untouched"), power_limit_w=(600, "untouched"))
    [lock] = state_of(table).locks
    assert lock.speed_change == pytest.approx(-0.2)


def test_a_profile_is_no_state_of_the_board_in_which_a_lock_shows() -> None:
    def truth(configuration: Configuration) -> tuple[float, float]:
        return (1.5 if configuration["workload_power_profile"] == 6 else 1.0), 300.0

    values = {"memory_clock_mhz": (14001, "untouched"), "workload_power_profile": (-1, 6, "untouched")}
    assert state_of(measured(truth, **values)).locks == ()


def test_boards_that_shared_a_session_are_never_compared_with_one_another() -> None:
    table = measured(slower_below(2000), graphics_clock_mhz=(1000, 2000, "untouched"))
    shared = ResultTable(table.space)
    shared.origin = {DECIDED_ON: "one"}
    for row in range(len(table)):
        measurement = table.measurement(row)
        untouched = measurement.configuration["graphics_clock_mhz"] == "untouched"
        shared.append(dataclasses.replace(measurement, board="another" if untouched else "one"))
    state = own_state(shared, costs_of(shared), 0)
    assert state is not None
    assert not state.untouched
    assert state.index == 1, "the highest clock of the same board"
    assert own_state(shared, costs_of(shared), 2) is None or own_state(shared, costs_of(shared), 2).gain is None


def test_what_was_not_measured_is_said_in_a_sentence() -> None:
    table = measured(slower_below(2000), graphics_clock_mhz=(1000, 2000), block=(1, 2))
    few = ResultTable(table.space)
    few.append(table.measurement(0))  # 1000 MHz of the first block, and of the second 2000
    few.append(table.measurement(3))
    state = own_state(few, costs_of(few), 0)
    assert state is not None
    assert state.sentences == ("Not measured at the highest measured clock, which may not be the board's own state.",)
