"""Correlations, effects, convergence, difficulty, drift and failures: by hand, against plain definitions, real data."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.base.records import as_json
from app.engine.analysis.analysis_document import document_of
from app.engine.analysis.convergence import best_so_far, hypervolume_so_far, steps
from app.engine.analysis.correlations import Observed, above_mean, correlation, correlations, split_by_mean
from app.engine.analysis.difficulty import Flow, difficulty
from app.engine.analysis.drift import drift_of, drifts_of
from app.engine.analysis.failures import failures_of
from app.engine.analysis.importance import importances, interactions
from app.engine.analysis.session_analysis import analyse
from app.engine.formats.read import read_recording
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.results.pareto import hypervolume
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import SearchSpace, space_of_table

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
FRONT = (Goal("TFLOPS", True), Goal("TFLOPS/J", True))


def grid(**lists: list) -> SearchSpace:
    """Every combination of the values."""
    from itertools import product

    return space_of_table(lists, list(product(*lists.values())))


def table_of(space: SearchSpace, rows: dict[int, dict[str, float] | State]) -> ResultTable:
    table = ResultTable(space)
    for row, outcome in rows.items():
        state = outcome if isinstance(outcome, State) else State.OK
        values = {} if isinstance(outcome, State) else outcome
        error = "" if state is State.OK else f"  {state.value} went wrong\nsecond line"
        table.append(Measurement(row, space.configuration(row), state, values, error=error))
    return table


# --- correlations -----------------------------------------------------------------------------------------------------


def test_coefficients_against_scipy_with_ties_and_unknowns() -> None:
    from scipy.stats import pearsonr, spearmanr

    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 5, 80).astype(float), rng.normal(size=80)
    b += a
    a[7] = b[11] = np.nan
    known = np.isfinite(a) & np.isfinite(b)
    result = correlation(a, b)
    assert result.linear == pytest.approx(pearsonr(a[known], b[known]).statistic)
    assert result.rank == pytest.approx(spearmanr(a[known], b[known]).statistic)
    assert result.pairs == 78


def test_what_does_not_vary_or_is_too_little_says_nothing() -> None:
    assert math.isnan(correlation(np.ones(9), np.arange(9.0)).linear)
    assert math.isnan(correlation(np.arange(4.0), np.arange(4.0)).linear)
    assert math.isnan(correlation(np.full(9, np.nan), np.arange(9.0)).rank)


def test_movers_words_and_order() -> None:
    n = 400
    rng = np.random.default_rng(1)
    for_speed, for_both, code = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    speed = 50 + 2 * for_speed + 2 * for_both + np.array([0.0, 4.0, 0.0])[code.astype(int)]
    efficiency = 20 - 2 * for_speed + 2 * for_both
    observed = [
        Observed("both", for_both),
        Observed("speed only", for_speed),
        Observed("word", code, categorical=True, parameter=True),
        Observed("still", np.ones(n)),
    ]
    result = {one.name: one for one in correlations(observed, speed, efficiency)}
    assert set(result) == {"both", "speed only", "word"}
    assert result["speed only"].mover
    assert result["speed only"].moves == pytest.approx(
        result["speed only"].efficiency.linear - result["speed only"].speed.linear
    )
    assert not result["both"].mover
    # words: neither order nor sign; the share of the variance between the three means
    groups = [speed[code == each] for each in (0, 1, 2)]
    between = sum(len(g) * (g.mean() - speed.mean()) ** 2 for g in groups)
    assert result["word"].speed.ratio == pytest.approx(math.sqrt(between / (n * speed.var())))
    assert math.isnan(result["word"].speed.linear)
    ordered = [one.speed.strength for one in correlations(observed, speed, efficiency)]
    assert ordered == sorted(ordered)


def test_the_cloud_split_at_the_mean() -> None:
    values = np.array([1.0, 2.0, 3.0, 10.0, np.nan])
    among = np.array([True, True, True, True, True])
    assert above_mean(values, among).tolist() == [False, False, False, True, False]
    values = np.array([1.0, 2, 3, 1, 3, 20, 20, 20, 20, 20, 20, np.nan])
    speed = np.array([1.0, 2, 3, 1, 3, 9, 9, 9, 9, 9, 15, 5])
    efficiency = np.array([4.0, 4, 1, 3, 3, 2, 2, 2, 2, 2, 2, np.nan])
    split = split_by_mean(Observed("x", values), speed, efficiency)
    assert split is not None
    assert (split.mean, split.above.count, split.below.count) == (pytest.approx(130 / 11), 6, 5)
    assert (split.above.speed, split.below.speed, split.below.best_efficiency) == (10.0, 2.0, 4.0)
    assert split_by_mean(Observed("x", values, categorical=True), values, values) is None


# --- importance -------------------------------------------------------------------------------------------------------


def test_main_effects_and_interactions_of_a_known_law() -> None:
    space = grid(a=[1, 2, 3, 4], b=[f"word {n}" for n in range(30)], c=[0, 1], d=[0, 1], still=[5])
    code = space.codes.astype(int)
    names = list(space.names)
    a, c, d = (code[:, names.index(name)] for name in "acd")
    # logarithms: a explains 5/4 of variance units, c and d only together 1/4
    figure = np.exp(a + 0.5 * np.where(c == d, 1, -1))
    result = {one.name: one for one in importances(space, np.arange(space.size), figure, maximise=False)}
    whole = 1.25 + 0.25
    assert list(result) == ["a", "b", "c", "d"], "what does not vary is left out"
    assert result["a"].over_all == pytest.approx(1.25 / whole, abs=0.02)
    assert max(result[name].over_all for name in "bcd") == 0
    assert result["a"].near_best > 0.99
    [pair] = interactions(space, np.arange(space.size), figure)
    assert pair.names == ("c", "d")
    assert pair.share == pytest.approx(0.25 / whole, abs=0.03)


def test_levels_tell_what_each_value_came_to() -> None:
    space = grid(a=[1, 2], b=[1, 2, 3, 4, 5, 6])
    figure = np.array([4.0, 2.0, np.nan, 3.0, 3.0, 3.0, 8.0, 6.0, 7.0, 7.0, 7.0, 7.0])
    result = {one.name: one for one in importances(space, np.arange(12), figure, maximise=True)}
    low, high = result["a"].levels
    assert (low.value, low.count, low.failed, low.mean, low.median, low.best) == (1, 5, 1, 3.0, 3.0, 4.0)
    assert (high.count, high.failed, high.mean, high.median, high.best) == (6, 0, 7.0, 7.0, 8.0)
    assert math.isnan(result["a"].near_best), "eleven measurements are too few for shares"
    assert all(math.isnan(level.mean) and level.best > 0 for level in result["b"].levels), "one or two of each"
    nothing = importances(space, np.arange(12), np.full(12, np.nan), maximise=True)
    assert all(math.isnan(one.over_all) for one in nothing)


def test_chance_alone_is_not_important() -> None:
    space = grid(a=list(range(8)), b=list(range(8)), c=list(range(4)))
    shares = [
        importances(space, np.arange(space.size), np.random.default_rng(seed).lognormal(size=space.size), maximise=True)
        for seed in range(20)
    ]
    assert np.mean([one.over_all for result in shares for one in result]) < 0.02


# --- convergence ------------------------------------------------------------------------------------------------------


@given(
    arrays(np.float64, st.tuples(st.integers(0, 12), st.just(2)), elements=st.sampled_from([*range(6), np.nan])),
    st.tuples(st.booleans(), st.booleans()),
)
def test_hypervolume_after_each_evaluation(values: np.ndarray, maximise: tuple[bool, bool]) -> None:
    reference = [0.0 if up else 5.0 for up in maximise]
    result = hypervolume_so_far(values, maximise, reference)
    assert result.tolist() == pytest.approx(
        [hypervolume(values[: count + 1], maximise, reference) for count in range(len(values))]
    )


def test_hypervolume_of_a_long_session() -> None:
    rng = np.random.default_rng(4)
    values = rng.random((5000, 2)) * (1 + np.arange(5000)[:, None] / 5000)
    values[rng.random(5000) < 0.1] = np.nan
    result = hypervolume_so_far(values, (True, False), (0.0, 2.0))
    for count in (1, 1000, 1024, 1025, 3000, 5000):
        assert result[count - 1] == pytest.approx(hypervolume(values[:count], (True, False), (0.0, 2.0)))


def test_best_so_far_and_its_steps() -> None:
    figure = np.array([np.nan, 3.0, 5.0, np.nan, 2.0, 2.0])
    assert best_so_far(figure, maximise=False)[1:].tolist() == [3, 3, 3, 2, 2]
    assert math.isnan(best_so_far(figure, maximise=True)[0])
    at, best = steps(best_so_far(figure, maximise=False))
    assert (at.tolist(), best.tolist()) == ([2, 5], [3.0, 2.0])
    assert steps(np.full(3, np.nan))[0].tolist() == []
    assert len(best_so_far(np.empty(0), maximise=True)) == 0


# --- difficulty -------------------------------------------------------------------------------------------------------


def google_matrix_rank(cost: np.ndarray, neighbours: list[list[int]]) -> np.ndarray:
    """PageRank by its definition: the stationary distribution of the random surfer."""
    n = len(cost)
    chain = np.full((n, n), 1 / n)
    for i in range(n):
        better = [j for j in neighbours[i] if cost[j] < cost[i]]
        if better:
            chain[:, i] = 0.15 / n
            chain[better, i] += 0.85 / len(better)
    values, vectors = np.linalg.eig(chain)
    rank = np.real(vectors[:, np.argmax(np.real(values))])
    return rank / rank.sum()


@settings(max_examples=40)
@given(st.lists(st.one_of(st.integers(1, 9).map(float), st.just(math.nan)), min_size=12, max_size=12), st.data())
def test_centrality_is_page_rank_of_the_fitness_flow_graph(figures: list[float], data: st.DataObject) -> None:
    space = grid(a=[1, 2, 4], b=["x", "y"], c=[0, 1])
    rows = np.array(data.draw(st.lists(st.integers(0, 11), min_size=1, max_size=12, unique=True)))
    cost = np.array(figures)[: len(rows)]
    found = difficulty(Flow.of(space, rows), cost)
    assert (found is None) == np.isnan(cost).all()
    assume(found is not None)
    codes = space.codes[rows].astype(int)
    near = [[j for j in range(len(rows)) if (codes[i] != codes[j]).sum() == 1] for i in range(len(rows))]
    fitness = np.where(np.isnan(cost), np.inf, cost)
    rank = google_matrix_rank(fitness, near)
    minima = [i for i in range(len(rows)) if not any(fitness[j] < fitness[i] for j in near[i])]
    assert sorted(found.minima.tolist()) == minima
    assert found.centrality == pytest.approx(rank[found.minima], abs=1e-9)
    least = np.nanmin(cost)
    for p in (1.0, 1.5, 2.0, 10.0):
        good = [i for i in minima if fitness[i] <= p * least]
        assert float(found.proportion(p)) == pytest.approx(rank[good].sum() / rank[minima].sum(), abs=1e-9)


def test_one_valley_is_easy_and_a_wall_is_not() -> None:
    space = grid(x=list(range(1, 8)), y=list(range(1, 8)))
    x, y = (space.column(name).astype(float) for name in "xy")
    flow = Flow.of(space, np.arange(space.size))
    easy = difficulty(flow, 1 + (x - 4) ** 2 + (y - 4) ** 2)
    assert easy is not None
    assert len(easy.minima) == 1
    assert easy.proportion([1.0, 2.0]).tolist() == [1.0, 1.0]
    # a second valley on the other diagonal, out of reach of any single change
    hard = difficulty(flow, np.where(x == y, 2 + abs(x - 2), np.where(x + y == 8, 1 + abs(x - 6), 50.0)))
    assert hard is not None
    assert len(hard.minima) > 1
    curve = hard.proportion([1.0, 2.0, 100.0])
    assert 0 < curve[0] < 1
    assert curve[-1] == pytest.approx(1)
    assert (np.diff(curve) >= 0).all()


# --- drift ------------------------------------------------------------------------------------------------------------


def test_drift_of_a_reference_load() -> None:
    when = np.arange(0, 7200, 120.0)
    rng = np.random.default_rng(2)
    steady = drift_of("reference_power_w", when, 300 * (1 + 0.003 * rng.normal(size=60)))
    assert steady is not None
    assert not steady.drifts
    warming = drift_of("reference_power_w", when, 300 * (1 + 0.01 * when / 3600 + 0.003 * rng.normal(size=60)))
    assert warming is not None
    assert warming.drifts
    assert warming.per_hour == pytest.approx(0.01, rel=0.2)
    assert warming.over_session == pytest.approx(0.0197, rel=0.2)
    assert drift_of("x", range(4), range(1, 5)) is None, "too few"
    assert drift_of("x", range(5), range(1, 6)) is not None
    assert drift_of("x", [0] * 5, range(1, 6)) is None


def test_drift_of_a_session_counts_only_its_looks() -> None:
    space = grid(a=list(range(40)))
    table = ResultTable(space)
    for row in range(40):
        values = {"time_s": 1.0} | ({"reference_time_s": 1.0 + row / 1000} if row % 5 == 0 else {})
        table.append(Measurement(row, space.configuration(row), State.OK, values, timestamp_s=1e9 + 90 * row))
    [result] = drifts_of(table)
    assert (result.name, len(result.values), result.drifts) == ("reference_time_s", 8, True)
    assert result.per_hour == pytest.approx(0.04 / 1.0175, rel=1e-3)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_failures_by_kind_and_where_they_lie() -> None:
    space = grid(tile=[1, 2, 4, 8], unroll=[0, 1], size=list(range(10)))
    tile, size = space.column("tile"), space.column("size")
    outcome: dict[int, dict[str, float] | State] = {row: {"time_s": 1.0} for row in range(space.size)}
    for row in np.flatnonzero((tile == 8) & (size < 8)).tolist():
        outcome[row] = State.COMPILE
    outcome[0] = State.TIMEOUT
    compile_failed, timeout = failures_of(table_of(space, outcome))
    assert (compile_failed.kind, compile_failed.count, compile_failed.share) == ("compile", 16, 0.2)
    assert compile_failed.messages == (("compile went wrong", 16),)
    [where] = compile_failed.concentrated
    assert (where.parameter, where.value, where.failed, where.measured) == ("tile", 8, 16, 20)
    assert (where.share, where.elsewhere) == (0.8, 0.0)
    assert where.p_value == pytest.approx(14 * math.comb(20, 16) * math.comb(60, 0) / math.comb(80, 16), rel=1e-6), (
        "Fisher's exact test, times the values looked at"
    )
    assert (timeout.kind, timeout.concentrated) == ("timeout", ())


# --- a whole session --------------------------------------------------------------------------------------------------


def test_the_published_gemm_cache_whole(shared_data: Path) -> None:
    table = read_recording(shared_data / PS3).table()
    result = as_json(document_of(analyse(table, Objective(FRONT[1], FRONT))))
    json.dumps(result, allow_nan=False)
    assert len(result["front"]) == 13
    assert result["hypervolume"] == pytest.approx(73.898, abs=5e-4)
    assert result["reference"] == [0.0, 0.0]
    assert list(result["choosers"]["fastest"]["configuration"].values()) == [1815, 32, 1, 2, 64, 64, 2]
    assert list(result["choosers"]["least_energy"]["configuration"].values()) == [1485, 32, 2, 2, 64, 128, 2]
    assert result["choosers"]["least_energy"]["words"] == "11 % less energy for 27 % more time"
    assert result["weights"][0]["index"] == result["choosers"]["least_energy"]["index"]
    assert result["weights"][-1]["index"] == result["choosers"]["fastest"]["index"]
    middle = next(one for one in result["weights"] if one["a_from"] <= 0.5 <= one["a_to"])
    assert middle["index"] == result["choosers"]["weighted"]["index"]
    assert {one["index"] for one in result["weights"]} <= {point["index"] for point in result["front"]}
    cut = result["quadrants"]
    assert sum(cut[name]["count"] for name in ("both", "x_only", "y_only", "neither")) == 4690
    assert cut["x_line"] == pytest.approx(63.176, abs=5e-4)
    assert cut["y_line"] == pytest.approx(0.8264, abs=5e-5)
    assert result["failed"] == {"runtime": 430}
    assert result["convergence"]["hypervolume"]["values"][-1] == pytest.approx(73.898, abs=5e-4)
    # the clock, that the speed rises and the efficiency falls with, is a mover
    clock = next(one for one in result["correlations"] if one["name"] == "nvml_gr_clock")
    assert clock["mover"]
    assert clock["speed"]["linear"] > 0 > clock["efficiency"]["linear"]
    assert set(result["difficulty"]) == {"time", "energy", "time at the highest clock"}
    for curve in result["difficulty"].values():
        assert curve["proportion_of_centrality"] == sorted(curve["proportion_of_centrality"])
    [failed] = result["failures"]
    assert {(one["parameter"], one["value"]) for one in failed["concentrated"]} >= {("block_size_y", 16)}


def test_a_cache_of_times_only_tells_what_it_can(shared_data: Path) -> None:
    table = read_recording(shared_data / "kernel-tuner/kt_vector_add_RTX4000Ada_PowerSensor3_15.json").table()
    times = ResultTable(table.space)
    for index in range(len(table)):
        m = table.measurement(index)
        times.append(Measurement(m.row, m.configuration, m.state, {"time_s": m.values["time_s"]}))
    result = as_json(document_of(analyse(times, Objective(Goal("time_s", False)))))
    json.dumps(result, allow_nan=False)
    assert result["front"] == []
    assert result["hypervolume"] is None
    assert result["choosers"]["fastest"] is not None
    assert result["choosers"]["least_energy"] is None
    assert set(result["difficulty"]) == {"time"}


def test_a_session_without_any_result_is_told_as_such() -> None:
    space = grid(a=[1, 2, 3])
    for table in (ResultTable(space), table_of(space, dict.fromkeys(range(3), State.COMPILE))):
        result = as_json(document_of(analyse(table, Objective(Goal("time_s", False), FRONT))))
        json.dumps(result, allow_nan=False)
        assert result["front"] == []
        assert all(choice is None for choice in result["choosers"].values())


@pytest.mark.parametrize(("readings", "chosen"), [((0.021, 0.017), 1), ((0.019, 0.023), 2)], ids=["keeps", "breaks"])
def test_repeats_keep_a_limit_in_the_mean_or_not_at_all(readings: tuple[float, float], chosen: int) -> None:
    """The first reading of clock 1 lies on the other side of 0.02 J than their mean: what is chosen is the mean."""
    space = space_of_table({"clock": [1, 2], "repeat": [0, 1]}, [(1, 0), (1, 1), (2, 0), (2, 1)])
    table = ResultTable(space)
    for row, (time_s, energy_j) in enumerate(((0.1, readings[0]), (0.1, readings[1]), (0.2, 0.016), (0.2, 0.016))):
        values = {"time_s": time_s, "energy_j": energy_j}
        table.append(Measurement(row, space.configuration(row), State.OK, values))
    goals = (Goal("time_s", False), Goal("energy_j", False))
    found = analyse(table, Objective(goals[0], goals, (Limit("energy_j", True, 0.02),)), with_difficulty=False)
    fastest = next(choice for choice in found.choices if choice.name == "fastest")
    assert fastest.index is not None
    assert table.measurement(fastest.index).configuration["clock"] == chosen
    assert found.broken.tolist() == [chosen == 2] * 2 + [False] * 2
