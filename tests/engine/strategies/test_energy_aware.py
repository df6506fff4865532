"""The energy-aware search measures the energy of few and finds what measuring them all finds."""

from __future__ import annotations

import json
import re
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.energy_tables import Table, model_of, search, twin_table
from fixtures.engine_fakes import Listener
from hypothesis import given
from hypothesis import strategies as st

from app.base.paths import resources
from app.engine.analysis.charts import Analysed, k_over_rounds, predicted_energies
from app.engine.analysis.session_analysis import analyse
from app.engine.results.chart import Chart
from app.engine.results.measurement import Depth
from app.engine.results.objectives import parse_goal
from app.engine.results.pareto import front, hypervolume, reference_point
from app.engine.session.describe_session import describe_session
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.strategies.energy_log import EnergyLog
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

EVERYTHING = {"least_k": 1}


@pytest.fixture(scope="module")
def table() -> Table:
    return twin_table("n_body", "h200")


def test_far_fewer_measurements_find_as_little_energy_as_all_of_them(table: Table) -> None:
    few = [search(table, seed) for seed in range(2)]
    all_of_them = [search(table, seed, EVERYTHING) for seed in range(2)]
    assert np.median([found.regret for found in few]) <= 0.01
    assert sum(len(found.measured) for found in few) <= 0.4 * sum(len(found.measured) for found in all_of_them)


def test_the_same_seed_gives_the_same_search(table: Table) -> None:
    one, other = (search(table, 3) for _ in range(2))
    assert one.timed == other.timed
    assert list(one.measured) == list(other.measured)
    assert search(table, 4).timed != one.timed


def test_whatever_is_measured_in_the_first_round_all_arms_time_the_same() -> None:
    table = twin_table("gemm", "a100")
    arms = [search(table, 2, {"first_generation": 40, **each}) for each in ({}, EVERYTHING, {"aim": "time"})]
    assert arms[0].timed[:40] == arms[1].timed[:40] == arms[2].timed[:40]


def test_a_search_by_time_alone_measures_the_energy_of_hardly_anything() -> None:
    table = twin_table("gemm", "a100")
    found = search(table, 1, {"aim": "time"})
    assert len(found.measured) <= 6
    assert found.slowdown <= 0.02
    assert found.regret > 0.02  # the fastest is not the one that needs least energy here


def test_it_says_how_well_it_predicts_what_k_became_and_what_that_saves() -> None:
    found = search(twin_table("gemm", "a100"), 1, {"first_generation": 64, "fastest": 16})
    said = [remark for remark in found.remarks if remark.startswith("Round")]
    assert said
    pattern = (
        r"Round \d+: predicted energies were off by [\d.]+ %, k is now (\d\.\d\d); (\d+) of (\d+) energy measurements"
    )
    figures = [match.groups() for remark in said if (match := re.match(pattern, remark))]
    assert len(figures) == len(said)
    ks = [float(k) for k, _, _ in figures]
    assert ks[-1] < ks[0] <= 1.0
    assert min(ks) >= 0.12
    assert all(int(saved) <= int(offered) for _, saved, offered in figures)


def test_k_grows_back_where_predictions_are_wrong() -> None:
    """Energies that nothing explains: measuring fewer would be guessing. It starts with a third, and ends with all."""
    real = twin_table("gemm", "h200")
    luck = np.exp(np.random.default_rng(1).normal(0, 1, real.space.size))
    said = [remark for remark in search(replace(real, energy_j=luck), 1).remarks if remark.startswith("Round")]
    ks = [float(re.findall(r"k is now ([\d.]+)", remark)[0]) for remark in said]
    assert ks == sorted(ks)
    assert len(ks) > 3
    assert ks[2:] == [1.0] * len(ks[2:])


SHORT = {"first_generation": 48, "generation": 16, "fastest": 12, "rounds": 1}


def measured_in_second_round(table: Table, options: dict[str, float]) -> list[int]:
    return list(search(table, 1, {**SHORT, **options}).measured)[12:]


def test_few_are_measured_from_the_second_round_on_and_some_of_them_by_chance(table: Table) -> None:
    everything = measured_in_second_round(table, {"least_k": 1})
    predicted = measured_in_second_round(table, {"drawn": 0})
    chosen = measured_in_second_round(table, {})
    assert len(everything) == 12
    assert len(predicted) == len(chosen) == 5  # 0.35 of 12
    assert chosen[:3] == predicted[:3]
    assert not set(chosen[3:]) & set(predicted)
    assert set(chosen) | set(predicted) <= set(everything)  # of the round's fastest


def test_a_front_is_found_where_one_is_asked_for() -> None:
    table = twin_table("gemm", "a100")
    truth = np.column_stack([table.time_s, table.energy_j])
    near = truth[(truth <= 1.5 * truth.min(axis=0)).all(axis=1)]  # the slow ones would hide every difference
    reference = reference_point(near, [False, False])

    def share(rows: list[int]) -> float:
        kept = truth[rows]
        kept = kept[(kept <= reference).all(axis=1)]
        whole = near[front(near, [False, False])]
        return hypervolume(kept, [False, False], reference) / hypervolume(whole, [False, False], reference)

    found = search(table, 1, {"aim": "front"})
    assert share(list(found.measured)) > 0.97


def test_a_prior_of_another_board_saves_first_measurements(table: Table) -> None:
    prior = model_of(twin_table("n_body", "a100"), 256)
    alone, helped = search(table, 1), search(table, 1, prior=prior)
    assert any("it is used" in remark for remark in helped.remarks)
    assert helped.before[2] <= 0.5 * alone.before[2]
    assert helped.regret <= 0.01


def test_a_prior_that_misleads_is_not_used_and_all_is_as_without_it() -> None:
    table = twin_table("gemm", "a100")
    luck = replace(table, energy_j=table.energy_j * np.exp(np.random.default_rng(1).normal(0, 1, table.space.size)))
    misled = search(table, 0, prior=model_of(luck, 256))
    assert any("it is not used" in remark for remark in misled.remarks)
    assert misled.regret <= search(table, 0).regret + 0.02


def test_it_ends_after_as_many_rounds_as_were_asked_for() -> None:
    found = search(twin_table("gemm", "a100"), 1, {"rounds": 3, "first_generation": 40, "generation": 24, "fastest": 8})
    assert len(found.before) == 1 + 3  # generations that were timed


def test_a_session_keeps_how_the_search_went_and_its_charts_and_figures_show_it(tmp_path: Path) -> None:
    spec = load_specification(resources() / "examples" / "gemm.toml")
    gpu = SimulatedGpu(load_twin("a100"), seed=1, clock=VirtualClock())
    options = SearchOptions(
        strategy="energy_aware",
        strategy_options={"first_generation": 40, "generation": 24, "fastest": 12, "patience": 2},
        objective=parse_goal("min:energy_j"),
        max_evaluations=80,
    )
    plan = plan_specification(replace(spec, device_settings={}), gpu, options)
    with closing(Store(tmp_path / "sessions.sqlite")) as store:
        heard = Listener()
        run_session(plan, store, heard, threading.Event())
        kept = store.load(1)
    log = EnergyLog.of_origin(kept.record.origin)
    assert log is not None
    energies = np.array([kept.table.measurement(index).depth is Depth.ENERGY for index in range(len(kept.table))])
    assert log.measured == energies.sum()
    assert log.saved > 0
    assert np.median(np.abs(np.array(log.predicted_j) / log.measured_j - 1)) < 0.1
    shown = Analysed(analyse(kept.table, plan.objective, with_difficulty=False), kept.record)
    rounds = k_over_rounds(shown)
    assert isinstance(rounds, Chart)
    assert rounds.series[0].y[0] == 1.0
    assert isinstance(predicted_energies(shown), Chart)
    figures = {figure.label: figure.value for figure in describe_session(plan_of(kept), kept.table).figures}
    assert figures["Energies measured"] == f"{log.measured} of {log.offered} candidates, {log.saved} saved"
    assert "the fastest" in str(figures["It gained"])
    predictions = set(log.predicted_j)
    everything = {value for index in range(len(kept.table)) for value in kept.table.measurement(index).values.values()}
    assert not predictions & everything  # a prediction never appears as a measurement


ANYTHING = st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.lists(st.floats(), max_size=3)
ROUND = st.fixed_dictionaries({}, optional=dict.fromkeys(("k", "offered", "measured", "off"), ANYTHING))
LISTS = {"rounds": st.lists(ROUND | ANYTHING, max_size=3), "predicted_j": ANYTHING, "measured_j": ANYTHING}


@given(ANYTHING | st.fixed_dictionaries({}, optional=LISTS))
def test_a_damaged_log_is_none(document: object) -> None:
    log = EnergyLog.of_origin({"energy_search": json.dumps(document)})
    assert log is None or log.saved == log.offered - log.measured
