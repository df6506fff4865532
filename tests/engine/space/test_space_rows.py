"""Moving about in a search space: rows by configuration, neighbours, samples, the nearest row, subsets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.space import search_space
from app.engine.space.build import build_space
from app.engine.space.search_space import Neighbourhood, SearchSpace, space_of_table
from app.sensors.limits import limits_of


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


def test_strictly_adjacent_neighbours_are_at_most_one_step_away_everywhere(space: SearchSpace) -> None:
    place = {"a": {1: 0, 2: 1, 4: 2}, "b": {1: 0, 2: 1, 3: 2, 4: 3}, "mode": {"slow": 0, "fast": 1}}
    every = [space.configuration(row) for row in range(space.size)]
    steps = np.array([[place[name][value] for name, value in one.items()] for one in every])
    for row in range(space.size):
        expected = np.flatnonzero((np.abs(steps - steps[row]) <= 1).all(axis=1))
        near = space.neighbours(row, "strictly_adjacent")
        assert sorted(near.tolist()) == [r for r in expected.tolist() if r != row]


@pytest.mark.parametrize("kind", ["hamming", "adjacent", "strictly_adjacent"])
@pytest.mark.parametrize("width", [6, 70])
def test_neighbours_of_many_rows_are_those_of_each(
    kind: Neighbourhood, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one integer is too small for a key (70 parameters), and over several chunks of candidates."""
    monkeypatch.setattr(search_space, "_CANDIDATES", 2000)
    rng = np.random.default_rng(3)
    table = rng.integers(0, 4, size=(300, width))
    table[:, 6:] = table[:1, 6:]
    table[::7, -1] = (table[::7, -1] + 1) % 4
    space = space_of_table({f"p{j}": [2, 0, 1, 3] for j in range(width)}, [tuple(row) for row in table.tolist()])
    rows = rng.permutation(space.size)[:200]
    at, near = space.neighbours_of(rows, kind)
    assert (np.diff(at) >= 0).all()
    for position, row in enumerate(rows.tolist()):
        assert near[at == position].tolist() == space.neighbours(row, kind).tolist()
    assert len(near) > 50
    assert [side.tolist() for side in space.neighbours_of([], kind)] == [[], []]


def test_the_nearest_row_is_the_nearest(space: SearchSpace) -> None:
    rng = np.random.default_rng(2)
    span = np.array([2, 3, 1])
    for _ in range(50):
        point = rng.uniform(-1, 4, size=3)
        distance = (((space.codes - point) / span) ** 2).sum(axis=1)
        assert distance[space.nearest_rows(point[None])] == pytest.approx(distance.min(), rel=1e-5)
        assert distance[space.nearest_rows(point[None], rng)] == pytest.approx(distance.min(), rel=1e-5)


@pytest.mark.parametrize("few", [1, 8])
def test_many_points_snap_to_their_nearest_rows(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether blocks of rows are looked at one by one or several at once, with more of them than are sorted."""
    monkeypatch.setattr(search_space, "_FIRST", few)
    monkeypatch.setattr(search_space, "_SORTED", 5)
    parameters = {"a": list(range(9)), "b": list(range(7)), "c": list(range(5)), "one": [1], "d": list(range(6))}
    space = build_space(parameters, ["a * b == c * d", "(a + d) % 3 == 1"], {}, limits_of((8, 0)))
    rng = np.random.default_rng(4)
    points = rng.uniform(-1, 9, size=(300, 5))
    span = np.maximum(1, np.array(space.axis_sizes) - 1)
    distance = (((points[:, None, :] - space.codes) / span) ** 2).sum(axis=2)
    for rows in (space.nearest_rows(points), space.nearest_rows(points, rng)):
        assert distance[np.arange(300), rows] == pytest.approx(distance.min(axis=1), abs=1e-3)
    assert np.array_equal(space.nearest_rows(points), space.nearest_rows(points))
    assert space.nearest_rows(points[:0]).tolist() == []


def test_ties_fall_to_chance_only_when_asked() -> None:
    space = space_of_table({"a": [0, 1, 2], "b": [0, 1, 2]}, [(0, 1), (1, 0), (1, 2), (2, 1)])
    middle = np.ones((400, 2))
    assert len(set(space.nearest_rows(middle).tolist())) == 1
    drawn = np.bincount(space.nearest_rows(middle, np.random.default_rng(5)), minlength=4)
    assert drawn.min() > 60


@pytest.mark.parametrize("name", ["dedispersion", "hotspot", "gemm", "expdist"])
def test_latin_hypercubes_cover_the_values_better_than_uniform_samples(name: str, shared_data: Path) -> None:
    published = json.loads((shared_data / "kernel-tuner/searchspaces_kernel_tuner_paper.json").read_text())[name]
    space = build_space(published["tune_params"], published["restrictions"], {}, limits_of((8, 0)))
    uneven = {"uniform": 0.0, "hypercube": 0.0}
    unmet = {"uniform": 0, "hypercube": 0}
    for seed in range(5):
        for kind, rows in (
            ("uniform", np.random.default_rng(seed).choice(space.size, 40, replace=False)),
            ("hypercube", space.sample_latin_hypercube(np.random.default_rng(seed), 40)),
        ):
            assert len(set(rows.tolist())) == 40
            for axis, size in enumerate(space.axis_sizes):
                share = np.bincount(space.codes[rows, axis], minlength=size) / 40
                uneven[kind] += float(np.abs(share - 1 / size).sum())
                unmet[kind] += int((share == 0).sum())
    assert uneven["hypercube"] < 0.85 * uneven["uniform"]
    assert unmet["hypercube"] < unmet["uniform"]


def test_a_latin_hypercube_of_a_free_space_has_every_stratum_once() -> None:
    space = build_space({f"p{i}": list(range(40)) for i in range(4)}, [], {}, limits_of((8, 0)))
    rows = space.sample_latin_hypercube(np.random.default_rng(1), 40)
    assert all(sorted(space.codes[rows, axis].tolist()) == list(range(40)) for axis in range(4))
    same = space.sample_latin_hypercube(np.random.default_rng(1), 40)
    assert np.array_equal(rows, same)


def test_a_latin_hypercube_may_ask_for_any_share_of_a_space(space: SearchSpace) -> None:
    for count in (0, 1, 4, 5, space.size - 1, space.size, 10**6):
        rows = space.sample_latin_hypercube(np.random.default_rng(count), count)
        assert len(set(rows.tolist())) == len(rows) == min(count, space.size)


TRIANGLE = build_space(
    {"a": list(range(12)), "b": list(range(12)), "c": [0, 1]}, ["a + b <= 12"], {}, limits_of((8, 0))
)


def test_an_even_sample_takes_values_as_often_as_all_rows_do() -> None:
    kinds = (TRIANGLE.sample_latin_hypercube, TRIANGLE.sample_evenly)
    rows, own = [np.concatenate([k(np.random.default_rng(s), 10) for s in range(400)]) for k in kinds], TRIANGLE.codes
    off = [
        max(
            float(
                np.abs(
                    np.bincount(own[some, axis], minlength=size) / len(some) - np.bincount(own[:, axis]) / len(own)
                ).max()
            )
            for axis, size in enumerate(TRIANGLE.axis_sizes)
        )
        for some in rows
    ]
    assert off[1] < 0.02 < off[0], "a Latin hypercube takes values that few rows have as often as others"


def test_an_even_sample_spreads_more_than_a_uniform_one() -> None:
    def uneven(rows: np.ndarray) -> float:
        levels = np.sort(TRIANGLE.codes[rows].astype(float), axis=0)
        every = np.quantile(TRIANGLE.codes, (np.arange(10) + 0.5) / 10, axis=0)
        return float(((levels - every) ** 2).sum())

    drawn = [TRIANGLE.sample_evenly(np.random.default_rng(seed), 10) for seed in range(50)]
    chance = [np.random.default_rng(seed).choice(TRIANGLE.size, 10, replace=False) for seed in range(50)]
    assert np.mean([uneven(rows) for rows in drawn]) < 0.5 * np.mean([uneven(rows) for rows in chance])
    assert np.array_equal(drawn[3], TRIANGLE.sample_evenly(np.random.default_rng(3), 10))


def test_an_even_sample_of_a_free_space_is_a_latin_hypercube() -> None:
    free = build_space({f"p{i}": list(range(40)) for i in range(4)}, [], {}, limits_of((8, 0)))
    rows = free.sample_evenly(np.random.default_rng(1), 40)
    assert all(sorted(free.codes[rows, axis].tolist()) == list(range(40)) for axis in range(4))


def test_an_even_sample_may_ask_for_any_share_of_a_space(space: SearchSpace) -> None:
    for of in (space, TRIANGLE):
        for count in (0, 1, 4, 5, of.size // 4, of.size - 1, of.size, 10**6):
            rows = of.sample_evenly(np.random.default_rng(count), count)
            assert len(set(rows.tolist())) == len(rows) == min(count, of.size)


def test_columns_hold_values_not_codes(space: SearchSpace) -> None:
    assert space.column("a").tolist() == [space.configuration(r)["a"] for r in range(space.size)]
    assert space.column("mode", np.array([0, 1])).tolist() == ["slow", "fast"]


def test_a_subset_keeps_order_and_drops_values_without_rows(space: SearchSpace) -> None:
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
