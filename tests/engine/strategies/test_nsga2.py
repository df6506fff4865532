"""NSGA-II: fronts, crowding and the order that follows."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.strategies.population import crowded_order, crowding, ranks

clouds = st.integers(1, 3).flatmap(
    lambda goals: st.lists(
        st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf])] * goals), min_size=1, max_size=15
    ).map(np.array)
)


@settings(deadline=None)
@given(clouds)
def test_a_rank_is_the_length_of_the_longest_chain_of_better_points(costs: np.ndarray) -> None:
    def beats(one: int, other: int) -> bool:
        return bool((costs[one] <= costs[other]).all() and (costs[one] < costs[other]).any())

    @cache
    def chain(point: int) -> int:
        return max((1 + chain(other) for other in range(len(costs)) if beats(other, point)), default=0)

    assert ranks(costs).tolist() == [chain(point) for point in range(len(costs))]


@settings(deadline=None)
@given(clouds)
def test_the_order_goes_front_by_front_and_holds_every_point(costs: np.ndarray) -> None:
    order = crowded_order(costs)
    assert sorted(order.tolist()) == list(range(len(costs)))
    assert (np.diff(ranks(costs)[order]) >= 0).all()


def test_the_ends_of_a_front_come_first_then_those_that_stand_alone() -> None:
    costs = np.array([[0.0, 10.0], [1.0, 9.0], [2.0, 8.0], [6.0, 4.0], [10.0, 0.0]])
    distance = crowding(costs, ranks(costs))
    assert np.isinf(distance[[0, 4]]).all()
    assert distance[1:4].tolist() == [0.4, 1.0, 1.6]
    assert crowded_order(costs)[2:].tolist() == [3, 2, 1]
