"""The Pareto front and its hypervolume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.engine.formats.read import read_recording
from app.engine.results.pareto import best, front, hypervolume, reference_point

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


def test_front_and_hypervolume_of_the_published_gemm_cache(shared_data: Path) -> None:
    table = read_recording(shared_data / PS3).table()
    values = np.column_stack([table.values("TFLOPS"), table.values("TFLOPS/J")])
    chosen = front(values, [True, True])
    assert len(chosen) == 13
    assert hypervolume(values, [True, True], (0.0, 0.0)) == pytest.approx(73.898, abs=5e-4)
    most_efficient, fastest = table.measurement(int(chosen[0])), table.measurement(int(chosen[-1]))
    assert list(fastest.configuration.values()) == [1815, 32, 1, 2, 64, 64, 2]
    assert fastest.values["TFLOPS"] == pytest.approx(80.435, abs=5e-4)
    assert list(most_efficient.configuration.values()) == [1485, 32, 2, 2, 64, 128, 2]
    assert most_efficient.values["TFLOPS/J"] == pytest.approx(0.9315, abs=5e-5)


points = st.integers(1, 3).flatmap(
    lambda goals: st.tuples(
        arrays(
            np.float64,
            st.tuples(st.integers(0, 30), st.just(goals)),
            elements=st.sampled_from([*range(6), np.nan, np.inf]),
        ),
        st.lists(st.booleans(), min_size=goals, max_size=goals),
    )
)


@given(points)
def test_front_holds_exactly_what_nothing_beats(case: tuple[np.ndarray, list[bool]]) -> None:
    values, maximise = case
    chosen = front(values, maximise)
    cost = np.where(maximise, -values, values)
    known = [i for i in range(len(cost)) if not np.isnan(cost[i]).any()]

    def beaten(i: int) -> bool:
        return any((cost[j] <= cost[i]).all() and (cost[j] < cost[i]).any() for j in known)

    expected = {tuple(cost[i]) for i in known if not beaten(i)}
    assert {tuple(cost[i]) for i in chosen} == expected
    assert len(chosen) == len(expected), "of equal points one stays"
    first = cost[chosen, 0]
    assert (first[1:] <= first[:-1]).all(), "sorted from the worst to the best in the first goal"


@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.just(2)), elements=st.integers(0, 8).map(float)))
def test_hypervolume_counts_the_dominated_cells(values: np.ndarray) -> None:
    counted = sum(1 for x in range(8) for y in range(8) if ((values[:, 0] > x) & (values[:, 1] > y)).any())
    assert hypervolume(values, [True, True], (0.0, 0.0)) == counted


def test_reference_is_zero_where_larger_is_better_and_the_worst_where_smaller_is() -> None:
    values = [[1.0, 5.0], [3.0, 9.0], [np.nan, 7.0]]
    assert reference_point(values, [True, False]) == (0.0, 9.0)


def test_best_ignores_what_is_unknown() -> None:
    assert best([np.nan, 2.0, 1.0, 2.0], maximise=True) == 1
    assert best([np.nan, 2.0, 1.0], maximise=False) == 2
    assert best([np.nan], maximise=True) is None
    assert best([], maximise=True) is None


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        front([[1.0, 2.0]], [True])
    with pytest.raises(ValueError, match="two goals"):
        hypervolume([[1.0, 2.0, 3.0]], [True, True, True], (0, 0, 0))


def test_a_front_of_a_hundred_thousand_points_is_found_without_comparing_them_pairwise() -> None:
    on_it = np.arange(100_000.0)
    values = np.column_stack([np.append(on_it, on_it - 0.5), np.append(on_it, on_it)])  # pairs would take hours
    order = np.random.default_rng(1).permutation(len(values))
    chosen = front(values[order], [True, False])
    assert values[order][chosen].tolist() == values[:100_000].tolist()
