"""`auto`: which strategy it hands over to, and that nothing is lost at the hand-over."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import app.engine.strategies  # noqa: F401  (registers them)
from app.engine.space.build import build_space
from app.engine.strategies import base
from app.engine.strategies.base import Outcome
from app.sensors.limits import limits_of

SPACE = build_space({"x": list(range(8)), "y": list(range(8)), "z": [0, 1, 2]}, [], {}, limits_of((8, 0)))
ENDS = ((0, 0), (7, 0))  # the best of two goals


def distances(row: int) -> tuple[float, ...]:
    x, y, z = SPACE.codes[row].tolist()
    return tuple(float(np.hypot(x - a, y - b) + z) for a, b in ENDS)


def one_goal(row: int) -> Outcome:
    return Outcome(row, distances(row)[0])


def front(row: int) -> Outcome:
    return Outcome(row, 0.0, front=distances(row))  # the objective says nothing, the front all


def rows_of(name: str, outcome: Callable[[int], Outcome], evaluations: int, **options: object) -> list[int]:
    chosen = base.get(name)
    search = chosen.search(SPACE, np.random.default_rng(4), 1, chosen.Options(**options))
    rows: list[int] = []
    asked = next(search)
    while len(rows) < evaluations:
        rows += asked
        asked = search.send([outcome(row) for row in asked])
    return rows


@pytest.mark.parametrize(
    ("outcome", "learner"), [(one_goal, "bayesian_optimisation"), (front, "multi_objective_bayesian")]
)
def test_at_first_it_learns_the_objective_or_the_front_where_there_is_one(
    outcome: Callable[[int], Outcome], learner: str
) -> None:
    assert rows_of("auto", outcome, 24) == rows_of(learner, outcome, 24)


@pytest.mark.parametrize("name", ["auto", "bayesian_optimisation"])
def test_it_begins_with_rows_that_are_spread_as_all_are_where_restrictions_bind(name: str) -> None:
    space = build_space({"x": list(range(40)), "y": list(range(40))}, ["x + y <= 40"], {}, limits_of((8, 0)))
    chosen = base.get(name)
    begun = [next(chosen.search(space, np.random.default_rng(seed), 1, chosen.Options())) for seed in range(40)]
    above = space.codes > np.median(space.codes, axis=0)
    assert np.allclose(above[np.concatenate(begun)].mean(axis=0), above.mean(axis=0), atol=0.03)


@pytest.mark.parametrize("outcome", [one_goal, front])
def test_afterwards_a_quicker_search_goes_on_with_what_is_known(outcome: Callable[[int], Outcome]) -> None:
    learnt, all_rows = rows_of("auto", outcome, 24), rows_of("auto", outcome, 150, learn_for=20)
    assert all_rows[:20] == learnt[:20]
    assert all_rows[:24] != learnt
    assert len(set(all_rows)) == len(all_rows), "no configuration is measured twice"
    goals = slice(0, 2 if outcome is front else 1)
    assert (np.array([distances(row)[goals] for row in all_rows]).min(axis=0) == 0).all()


@pytest.mark.parametrize("name", ["auto", "bayesian_optimisation", "multi_objective_bayesian", "random_sample"])
@pytest.mark.parametrize("outcome", [one_goal, front])
def test_no_board_is_left_without_a_row_while_rows_are_left(name: str, outcome: Callable[[int], Outcome]) -> None:
    boards = [16]
    chosen = base.get(name).informed(base.Background(boards=lambda: boards[0]))
    search = chosen.search(SPACE, np.random.default_rng(4), 16, chosen.Options())
    asked, sizes = next(search), []
    while sum(sizes) < 100:
        sizes.append(len(asked))
        boards[0] = 16 if sum(sizes) < 60 else 5  # the others were lost
        asked = search.send([outcome(row) for row in asked])
    assert all(size >= 16 for size in sizes[:3])
    assert sizes[-1] >= 5
    if name != "random_sample":
        assert sizes[-1] < 16, "the fewer at once, the more each teaches"
