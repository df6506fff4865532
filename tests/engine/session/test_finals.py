"""The turns at a session's end: who takes part, what they say, and that the figures and the choice follow them."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.paths import resources
from app.base.records import as_json
from app.engine.analysis.finals import KEY, SAME, Beaten, Finals, Round, finals_of, in_proportion
from app.engine.analysis.iso_lines import Role
from app.engine.analysis.session_analysis import analyse
from app.engine.analysis.standing import ratio
from app.engine.report.content import gather
from app.engine.report.page import report_html
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal
from app.engine.session.describe_session import describe_session
from app.engine.session.events import Event, SessionRemark
from app.engine.session.finals import LEAST_S, MOST, SHARE, contenders
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.session.summary import session_summary
from app.engine.space.result_table import ResultTable
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.strategies.bayesian_optimisation import SURE_OF_END
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.clock import VirtualClock
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

TWIN = load_twin("h200")
SPECIFICATION = load_specification(resources() / "examples" / "gemm.toml")
MIDDLE_C = 50.0
NS = 1_000_000_000


CONTENDERS = (1290, 1314, 1050)  # rows that need the same within 0.3 %, less than all others of those that are measured
MEASURED = 60


def planned(gpu: SimulatedGpu, **options: object) -> SessionPlan:
    """A plan over the contenders and some other rows, in an order that chance decides: no search is part of it."""
    asked = SearchOptions(**{"strategy": "random_sample", "seed": 4, **options})  # type: ignore[arg-type]
    plan = plan_specification(SPECIFICATION, gpu, asked)
    others = np.random.default_rng(4).permutation(plan.space.size)[: MEASURED - len(CONTENDERS)]
    return replace(plan, space=plan.space.subset(np.unique([*CONTENDERS, *others.tolist()])))


def session(stop_at: str = "", **options: object) -> tuple[SessionResult, ResultTable, list[str]]:
    """A session of the simulated H200, as it is found stored; what it remarked."""
    said: list[str] = []
    stop = threading.Event()

    def hear(event: Event) -> None:
        if isinstance(event, SessionRemark):
            said.append(event.text)
            if stop_at and stop_at in event.text:
                stop.set()

    gpu = SimulatedGpu(TWIN, seed=4, clock=VirtualClock())
    with Store() as store:
        result = run_session(planned(gpu, **options), store, hear, stop)
        return result, store.load(result.session).table, said


def joules(plan: SessionPlan, row: int) -> float:
    """Of a launch, by the laws of the twin alone, on a die of MIDDLE_C."""
    configuration = plan.space.configuration(row)
    load, memory_mhz = ProfiledKernel.of(SPECIFICATION, TWIN.limits).prepare(configuration), TWIN.clocks.memory_mhz[-1]
    point = laws.under_load(TWIN, load, int(configuration["graphics_clock_mhz"]), memory_mhz)
    return laws.power_w(TWIN, point, MIDDLE_C) * point.launch_s


def in_turn(row: int, turn: int, energy_j: float, *, second: bool, time_s: float = 0.01) -> Measurement:
    start_ns = turn * NS + second * NS // 2
    values = {"energy_j": energy_j, "time_s": time_s}
    return Measurement(row, {}, State.OK, values, {}, "simulated", window_ns=(start_ns, start_ns + NS // 4))


def turns_of(energies_j: Mapping[int, float], count: int, *, wander: float = 0.002, drift: float = 0.0) -> list[Round]:
    """Rounds in which every row draws what is given, but for noise and what the board drifts by."""
    rng = np.random.default_rng(1)
    rounds = []
    for turn in range(count):
        turn_of = {}
        for place, row in enumerate(rng.permutation(list(energies_j)).tolist()):
            factor = math.exp(drift * turn + wander * rng.standard_normal())
            turn_of[row] = in_turn(row, turn, energies_j[row] * factor, second=bool(place))
        rounds.append(turn_of)
    return rounds


# --- of a session -----------------------------------------------------------------------------------------------------


@pytest.fixture
def played() -> tuple[SessionResult, ResultTable, list[str]]:
    return session()


def test_what_one_window_cannot_tell_apart_is_measured_in_turns_and_their_intervals_hold(
    played: tuple[SessionResult, ResultTable, list[str]],
) -> None:
    result, table, said = played
    finals = Finals.of_origin(table.origin)
    assert finals is not None
    assert "in turns, until it is known" in said[-2]
    assert said[-1].startswith("Against the best, measured in turns: ")
    assert said[-1].count("energy") == len(finals.others)
    assert 2 <= len(finals.rows) <= MOST
    for beaten in finals.others:
        low, high = beaten.of(Role.ENERGY).interval or (math.nan, math.nan)
        true = joules(result.plan, beaten.row) / joules(result.plan, finals.winner) - 1
        assert low <= true <= high
        assert high - low < 2 * 0.012


def test_the_choice_and_every_figure_follow_the_turns(played: tuple[SessionResult, ResultTable, list[str]]) -> None:
    result, table, _ = played
    finals = Finals.of_origin(table.origin)
    assert finals is not None
    best = result.progress.best_index
    assert best is not None
    assert result.table.measurement(best).row == finals.winner
    by_row = {table.measurement(index).row: index for index in range(len(table))}
    for beaten in finals.others:
        other, winner = (table.measurement(by_row[row]).values for row in (beaten.row, finals.winner))
        assert other["energy_j"] / winner["energy_j"] - 1 == pytest.approx(beaten.energy)
        assert other["GFLOPS/W"] / winner["GFLOPS/W"] == pytest.approx(1 / (1 + beaten.energy)), "metrics, too"
        assert "energy_j" in table.measurement(by_row[beaten.row]).as_measured, "what its window said is kept"
        apart = ratio(
            table,
            (np.array([by_row[finals.winner]]), np.array([by_row[beaten.row]])),
            (winner["energy_j"], other["energy_j"]),
            "energy_j",
            Role.ENERGY,
        )
        assert apart == beaten.of(Role.ENERGY)
    kept = {row: table.measurement(index).as_measured.get("energy_j") for row, index in by_row.items()}
    factors = [table.measurement(by_row[row]).values["energy_j"] / (kept[row] or math.nan) for row in finals.rows]
    assert math.prod(factors) ** (1 / len(factors)) == pytest.approx(1.0, abs=0.02), "and their level stays"


def test_they_are_shown_and_are_in_the_document(played: tuple[SessionResult, ResultTable, list[str]]) -> None:
    result, table, _ = played
    listing = next(
        each for each in describe_session(result.plan, table).listings if each.title.startswith("Measured in turns")
    )
    finals = Finals.of_origin(table.origin)
    assert finals is not None
    assert len(listing.rows) == len(finals.others)
    document = as_json(session_summary(table, result.plan)["finals"])
    assert document["winner"] == result.plan.space.configuration(finals.winner)
    assert document["others"][0]["energy"]["interval_95"] == pytest.approx(finals.others[0].of(Role.ENERGY).interval)
    assert document["seconds"] == finals.seconds > 0
    with Store() as store:
        page = report_html(gather(result.plan, analyse(table, result.plan.objective), store))
    assert listing.title in page
    assert all(str(row[0]) in page for row in listing.rows)


def test_they_take_a_share_of_the_session_and_a_session_of_few_rows_has_none() -> None:
    _, table, said = session(max_evaluations=8)
    assert Finals.of_origin(table.origin) is None
    assert not any("in turns" in text for text in said)
    _, table, _ = session()
    finals = Finals.of_origin(table.origin)
    assert finals is not None
    windows = [table.measurement(index).window_ns or (0, 0) for index in range(len(table))]
    assert finals.seconds < 2.2 * max(LEAST_S, SHARE * sum(end - start for start, end in windows) / NS)


def test_a_session_that_is_stopped_meanwhile_keeps_its_figures_as_they_were() -> None:
    result, table, said = session(stop_at="in turns, until")
    assert said[-1].startswith("The turns were broken off")
    assert KEY not in table.origin
    assert result.progress.best_index is not None


def test_as_few_as_the_default_search_ends_with_leave_time_for_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "MEASURED", SURE_OF_END[0])
    _, table, _ = session()
    assert np.isfinite(table.values("energy_j")).sum() == SURE_OF_END[0]
    assert KEY in table.origin


def test_a_session_that_is_resumed_is_open_again() -> None:
    gpu = SimulatedGpu(TWIN, seed=4, clock=VirtualClock())
    with Store() as store:
        first = run_session(planned(gpu), store, lambda _: None, threading.Event())
        assert KEY in store.session(first.session).origin
        assert KEY not in plan_resume(store, first.session, gpu=gpu).origin


def test_no_time_is_taken_that_the_user_did_not_give() -> None:
    result, table, said = session(max_seconds=0.05)
    assert result.reason == "the time is used up"
    assert KEY not in table.origin
    assert not any("in turns" in text for text in said)


@pytest.mark.parametrize("goal", [Goal("time_s", maximise=False), Goal("GFLOP/s", maximise=True)])
def test_a_search_for_speed_has_nothing_to_tell_apart(goal: Goal) -> None:
    _, table, said = session(objective=goal)
    assert not any("in turns" in text for text in said)
    assert KEY not in table.origin


def test_who_is_told_apart_by_its_own_windows_takes_no_part(
    played: tuple[SessionResult, ResultTable, list[str]],
) -> None:
    result, table, _ = played
    unplayed = table.restated(
        [table.measurement(index) for index in range(len(table))],
        {name: text for name, text in table.origin.items() if name != KEY},
    )
    found = contenders(unplayed, result.plan.objective)
    values = unplayed.values("energy_j")
    assert found[0] == min(range(len(table)), key=lambda index: values[index] if values[index] > 0 else math.inf)
    assert 2 <= len(found) <= MOST
    assert values[found].tolist() == sorted(values[found].tolist())
    assert values[found[-1]] / values[found[0]] < 1.05
    others = {int(table.rows()[index]) for index in found[1:]}
    assert not {*found[1:]} & {*contenders(unplayed, result.plan.objective, others)}, "measured elsewhere, say"


# --- what turns say ---------------------------------------------------------------------------------------------------


def test_turns_find_what_is_less_by_half_a_per_cent_while_the_board_drifts() -> None:
    found = finals_of(turns_of({7: 1.0, 3: 0.995, 9: 1.2}, 20, drift=0.002), "energy_j")
    assert found.winner == 3
    assert [beaten.row for beaten in found.others] == [7, 9]
    near, far = found.others
    assert near.settled
    assert far.settled
    low, high = near.of(Role.ENERGY).interval or (math.nan, math.nan)
    assert low <= 1 / 0.995 - 1 <= high
    assert high - low < 0.008


def test_few_turns_claim_nothing() -> None:
    found = finals_of(turns_of({1: 1.0, 2: 1.3}, 3), "energy_j")
    assert found.others[0].of(Role.ENERGY).interval is None
    assert not found.others[0].settled


def test_alike_ones_are_settled_once_they_are_known_to_be_alike() -> None:
    rounds = turns_of({1: 1.0, 2: 1.0001}, 30, wander=0.001)
    fewest = next(count for count in range(2, 31) if finals_of(rounds[:count], "energy_j").others[0].settled)
    interval = finals_of(rounds[:fewest], "energy_j").others[0].of(Role.ENERGY).interval or (math.nan, math.nan)
    assert 7 <= fewest < 30
    assert max(map(abs, interval)) <= SAME


def test_the_delay_counts_where_the_goal_has_it() -> None:
    rounds = [
        {1: in_turn(1, turn, 1.0, second=False, time_s=0.02), 2: in_turn(2, turn, 1.1, second=True, time_s=0.01)}
        for turn in range(8)
    ]
    assert finals_of(rounds, "energy_j").winner == 1
    assert finals_of(rounds, "edp").winner == 2


def test_the_other_way_round_is_the_inverse_and_what_was_not_compared_has_no_ratio() -> None:
    finals = Finals(5, (Beaten(6, 0.25, 0.05, 0.0, 0.01, 9), Beaten(8, 0.5, math.nan, 0.0, math.nan, 2)), 4.0)
    assert finals.ratio(5, 6, Role.ENERGY) == finals.others[0].of(Role.ENERGY)
    back = finals.ratio(6, 5, Role.ENERGY)
    assert back is not None
    assert back.interval == pytest.approx((1 / 1.3 - 1, 1 / 1.2 - 1))
    assert finals.ratio(5, 6, Role.EFFICIENCY) == back
    assert finals.ratio(6, 8, Role.ENERGY) is None, "neither is the winner"
    assert finals.ratio(5, 6, Role.POWER) is None
    unknown = finals.ratio(8, 5, Role.ENERGY)
    assert unknown is not None
    assert unknown.interval is None


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.0, 2.0)), min_size=1, max_size=5), st.floats(0.1, 10))
def test_in_proportion_the_ratios_are_those_of_the_turns_and_the_mean_stays(
    others: list[tuple[float, float]], of_winner: float
) -> None:
    beaten = tuple(Beaten(row, more, 0.01, 0.0, 0.01, 9) for row, (_, more) in enumerate(others, 1))
    energies = {0: of_winner, **{row: energy for row, (energy, _) in enumerate(others, 1)}}
    factors = in_proportion(Finals(0, beaten, 1.0), energies)
    stated = {row: energies[row] * factor for row, factor in factors.items()}
    for each in beaten:
        assert stated[each.row] / stated[0] - 1 == pytest.approx(each.energy, abs=1e-9)
    assert sum(map(math.log, factors.values())) == pytest.approx(0.0, abs=1e-9)


def test_what_is_kept_reads_back_and_what_is_damaged_is_as_if_there_were_none() -> None:
    finals = Finals(5, (Beaten(6, 0.25, 0.05, 0.0, 0.01, 9), Beaten(8, 0.5, math.nan, 0.0, math.nan, 2)), 4.0)
    kept = finals.to_origin()
    again = Finals.of_origin(kept)
    assert again is not None
    assert as_json(again) == as_json(finals)
    assert math.isnan(again.others[1].energy_half)
    for text in ("[", "{}", "null", json.dumps({"winner": "x", "others": [], "seconds": 1}), "[" * 100_000):
        assert Finals.of_origin({KEY: text}) is None
    assert Finals.of_origin({}) is None
