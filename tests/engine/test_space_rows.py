"""Moving about in a search space: rows by configuration, neighbours, samples, the nearest row, subsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.space.build import build_space, space_of_table
from app.engine.space.search_space import SearchSpace
from app.sensors.device_limits import limits_of


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return build_space(
        {"a": [4, 1, 2], "b": [1, 2, 3, 4], "mode": ["slow", "fast"]}, ["a * b <= 8"], {}, limits_of((8, 0))
    )


def test_a_row_is_found_by_its_configuration(space: SearchSpace) -> None:
    for row in range(space.size):
        assert space.row_of(space.configuration(row)) == row
    assert space.row_of({"a": 4, "b": 4, "mode": "slow"}) is None  # restricted
    assert space.row_of({"a": 9, "b": 1, "mode": "slow"}) is None  # no such value
    assert space.row_of({"a": 4}) is None


def test_many_rows_are_found_at_once(space: SearchSpace) -> None:
    rows = np.arange(space.size)
    assert np.array_equal(space.rows_of_codes(space.codes[rows]), rows)
    outside = np.array([[0, 3, 0], [-1, 0, 0], [3, 0, 0], [0, 0, 2], [0, 0, 0]])
    assert space.rows_of_codes(outside).tolist() == [-1, -1, -1, -1, 0]


def test_hamming_neighbours_differ_in_one_parameter(space: SearchSpace) -> None:
    for row in range(space.size):
        own = space.codes[row]
        expected = [r for r in range(space.size) if int((space.codes[r] != own).sum()) == 1]
        assert sorted(space.neighbours(row).tolist()) == expected


def test_adjacent_neighbours_are_one_step_away_in_value_order(space: SearchSpace) -> None:
    row = space.row_of({"a": 2, "b": 2, "mode": "slow"})
    assert row is not None
    near = [space.configuration(r) for r in space.neighbours(row, "adjacent").tolist()]
    expected = [(1, 2, "slow"), (4, 2, "slow"), (2, 1, "slow"), (2, 3, "slow"), (2, 2, "fast")]
    assert sorted(tuple(c.values()) for c in near) == sorted(expected)


def test_samples_are_different_valid_rows(space: SearchSpace) -> None:
    rng = np.random.default_rng(1)
    assert sorted(space.sample(rng, 10**6).tolist()) == list(range(space.size))
    big = build_space({"a": list(range(1000)), "b": list(range(1000))}, [], {}, limits_of((8, 0)))
    sample = big.sample(rng, 5000)
    assert len(set(sample.tolist())) == 5000
    share = np.bincount(big.codes[sample, 0] // 250, minlength=4) / 5000
    assert np.all(np.abs(share - 0.25) < 0.04)  # uniform: 6 standard deviations


def test_the_nearest_row_is_the_nearest(space: SearchSpace) -> None:
    rng = np.random.default_rng(2)
    span = np.array([2, 3, 1])
    for _ in range(50):
        point = rng.uniform(-1, 4, size=3)
        distance = (((space.codes - point) / span) ** 2).sum(axis=1)
        assert distance[space.nearest(point)] == pytest.approx(distance.min(), rel=1e-5)
        assert distance[space.nearest(point, rng)] == pytest.approx(distance.min(), rel=1e-5)


def test_columns_hold_values_not_codes(space: SearchSpace) -> None:
    assert space.column("a").tolist() == [space.configuration(r)["a"] for r in range(space.size)]
    assert space.column_of_rows("mode", np.array([0, 1])).tolist() == ["slow", "fast"]


def test_a_subset_keeps_order_and_drops_values_nobody_takes(space: SearchSpace) -> None:
    rows = [5, 1, 3]
    part = space.subset(rows)
    assert [part.configuration(r) for r in range(3)] == [space.configuration(r) for r in sorted(rows)]
    assert all(len(p.values) == len(set(part.column(p.name).tolist())) for p in part.parameters)
    assert part.cartesian == space.cartesian


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 70), st.integers(1, 40), st.randoms(use_true_random=False))
def test_any_table_finds_its_rows(width: int, length: int, random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    rows = [tuple(row) for row in rng.integers(0, 12, size=(length, width)).tolist()]
    space = space_of_table({f"p{i}": list(range(12)) for i in range(width)}, rows)
    assert space.size == len(set(rows))
    assert {space.row_of(dict(zip(space.names, row, strict=True))) for row in rows} == set(range(space.size))
    other = tuple(rng.integers(0, 12, size=width).tolist())
    assert (space.row_of(dict(zip(space.names, other, strict=True))) is not None) == (other in set(rows))
