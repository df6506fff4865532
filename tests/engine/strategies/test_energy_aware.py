"""The energy-aware search measures the energy of few and finds what measuring them all finds."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from energy_tables import Table, model_of, search, twin_table

from app.engine.models.energy_cost import MISSING_LIBRARY
from app.engine.pareto import front, hypervolume, reference_point

pytest.importorskip("xgboost", reason="the model's library is not installed")
EVERYTHING = {"least_k": 1}


@pytest.fixture(scope="module")
def table() -> Table:
    return twin_table("stencil", "h200")


def test_half_the_measurements_find_as_little_energy_as_all_of_them(table: Table) -> None:
    few = [search(table, seed) for seed in range(2)]
    all_of_them = [search(table, seed, EVERYTHING) for seed in range(2)]
    assert np.median([found.regret for found in few]) <= 0.01
    assert sum(len(found.measured) for found in few) <= 0.5 * sum(len(found.measured) for found in all_of_them)


def test_the_same_seed_gives_the_same_search(table: Table) -> None:
    one, other = (search(table, 3) for _ in range(2))
    assert one.timed == other.timed
    assert list(one.measured) == list(other.measured)
    assert search(table, 4).timed != one.timed


def test_whatever_is_measured_in_the_first_round_all_arms_time_the_same() -> None:
    table = twin_table("gemm", "a100")
    arms = [search(table, 2, options) for options in ({}, EVERYTHING, {"aim": "time"})]
    assert arms[0].timed[:128] == arms[1].timed[:128] == arms[2].timed[:128]


def test_a_search_by_time_alone_measures_the_energy_of_hardly_anything() -> None:
    table = twin_table("gemm", "a100")
    found = search(table, 1, {"aim": "time"})
    assert len(found.measured) <= 6
    assert found.slowdown <= 0.02
    assert found.regret > 0.02  # the fastest is not the one that needs least energy here


def test_it_says_how_well_it_predicts_what_k_became_and_what_that_saves() -> None:
    said = [remark for remark in search(twin_table("gemm", "a100"), 1).remarks if remark.startswith("Round")]
    assert said
    pattern = r"Round \d+: predicted energies were off by [\d.]+ %, k is (\d\.\d\d); (\d+) of (\d+) energy measurements"
    figures = [match.groups() for remark in said if (match := re.match(pattern, remark))]
    assert len(figures) == len(said)
    ks = [float(k) for k, _, _ in figures]
    assert ks[-1] < ks[0] <= 1.0
    assert min(ks) >= 0.12
    assert all(int(saved) <= int(offered) for _, saved, offered in figures)


def test_k_grows_back_where_predictions_are_wrong() -> None:
    """Energies that nothing explains: measuring fewer would be guessing."""
    real = twin_table("gemm", "h200")
    luck = np.exp(np.random.default_rng(1).normal(0, 1, real.space.size))
    said = [remark for remark in search(replace(real, energy_j=luck), 1).remarks if remark.startswith("Round")]
    assert all("k is 1.00" in remark for remark in said)


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
    prior = model_of(twin_table("stencil", "a4000"), 256)
    alone, helped = search(table, 1), search(table, 1, prior=prior)
    assert any("it is used" in remark for remark in helped.remarks)
    assert len(helped.measured) < 0.9 * len(alone.measured)
    assert helped.regret <= 0.01


def test_a_prior_that_misleads_is_dropped_and_all_is_as_without_it() -> None:
    table = twin_table("gemm", "a100")
    luck = replace(table, energy_j=table.energy_j * np.exp(np.random.default_rng(1).normal(0, 1, table.space.size)))
    misled = search(table, 0, prior=model_of(luck, 256))
    assert any("it is dropped" in remark for remark in misled.remarks)
    assert misled.regret <= search(table, 0).regret + 0.02


def test_without_the_library_it_searches_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("models.energy_cost", "strategies.energy_aware"):
        monkeypatch.setattr(f"app.engine.{module}.library", lambda: None)
    found = search(twin_table("gemm", "h200"), 1)
    assert found.remarks[0] == MISSING_LIBRARY
    assert found.regret <= 0.02
