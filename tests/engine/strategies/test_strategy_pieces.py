"""What strategies are made of: their memory and options, the box, and blocking optimisers turned into generators."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import threading
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.results.measurement import State
from app.engine.space.build import build_space
from app.engine.space.search_space import space_of_table
from app.engine.strategies import base
from app.engine.strategies.base import Batch, Outcome
from app.engine.strategies.box import Box
from app.engine.strategies.evaluations import Evaluations
from app.engine.strategies.scipy_optimisers import questions, restarted
from app.sensors.limits import limits_of

GRID = build_space({"a": [1, 2, 3, 4], "b": [1, 2, 3]}, [], {}, limits_of((8, 0)))


def driven(search: Generator[list[int], Any, Any], cost: Callable[[int], float]) -> tuple[list[int], Any]:
    """The rows that a search asks for to its end, and what it returns."""
    seen: list[int] = []
    rows = next(search)
    while True:
        seen += rows
        try:
            rows = search.send([Outcome(row, cost(row)) for row in rows])
        except StopIteration as ended:
            return seen, ended.value


def test_what_is_known_is_not_asked_again() -> None:
    known = Evaluations(GRID, np.random.default_rng(1))
    asking = known.ask([2, 1, 2])
    assert next(asking) == [2, 1]
    with pytest.raises(StopIteration) as ended:
        asking.send([Outcome(2, 5.0, values={"power_w": 80.0}), Outcome(1, math.inf, State.COMPILE)])
    assert ended.value.value == [5.0, math.inf, 5.0]
    with pytest.raises(StopIteration):
        next(known.ask([1, 2]))
    assert (len(known), known.exhausted, list(known.costs())) == (2, False, [5.0, math.inf])
    assert known.outcome(2).values == {"power_w": 80.0}


def test_a_batch_can_carry_a_remark_and_is_a_batch_all_the_same() -> None:
    rows = next(Evaluations(GRID, np.random.default_rng(1)).ask([3, 4], "from here on only these"))
    assert isinstance(rows, Batch)
    assert (rows, rows.remark) == ([3, 4], "from here on only these")


def test_rows_are_drawn_from_what_is_left_until_nothing_is() -> None:
    known = Evaluations(GRID, np.random.default_rng(1))
    seen: list[int] = []
    while not known.exhausted:
        rows = known.draw(5)
        assert len(rows) == min(5, GRID.size - len(seen))
        assert set(rows).isdisjoint(seen)
        seen += rows[:2]
        known.learn([Outcome(row, 1.0) for row in rows[:2]])
    assert sorted(seen) == list(range(GRID.size))
    assert known.draw(5) == []


def test_rows_left_are_drawn_evenly() -> None:
    counts = np.zeros(GRID.size)
    for seed in range(600):
        known = Evaluations(GRID, np.random.default_rng(seed))
        known.learn([Outcome(row, 1.0) for row in range(8)])  # most of it is known: another way to draw
        counts[known.draw(1)] += 1
    assert counts[:8].sum() == 0
    assert (np.abs(counts[8:] - 150) < 45).all()  # four rows, 600 draws: four standard deviations


def test_options_are_read_from_text() -> None:
    class Sample(base.Strategy):
        name, label = "sample", "Sample"

        @dataclasses.dataclass(frozen=True)
        class Options(base.CheckedOptions):
            flag: bool = base.option(True, "a switch")
            kind: str = base.option("x", "a kind", choices=lambda: ("x", "y"))
            count: int = base.option(3, "how many", least=-10, most=10)
            share: float = base.option(0.5, "how much", least=0.0)

        def search(self, space, rng, batch, options):  # type: ignore[no-untyped-def]
            yield []

    make = lambda **given: base.make_options(Sample(), given)  # noqa: E731
    assert (make(flag="false").flag, make(flag="1").flag, make(flag=False).flag) == (False, True, False)
    assert make(kind="y").kind == "y"
    with pytest.raises(InputError, match="one of x, y"):
        make(kind="z")
    assert (make(count="4").count, make(count=4.0).count) == (4, 4)
    assert (make(share="1e-3").share, make(share=1).share) == (1e-3, 1.0)
    with pytest.raises(InputError, match="true or false is needed"):
        make(flag="perhaps")
    for wrong in ("3.5", 3.5, True, "", "many", "1e3", 10**7, -(10**7), "9" * 5000):
        with pytest.raises(InputError, match="a whole number from -1,000,000 to 1,000,000 is needed"):
            make(count=wrong)
    for wrong in ("nan", math.inf, "-inf", "1e308", True, "", "much"):
        with pytest.raises(InputError, match="a number from -1,000,000 to 1,000,000 is needed"):
            make(share=wrong)
    with pytest.raises(InputError, match="count must lie between -10 and 10, not 11"):
        make(count=11)
    with pytest.raises(InputError, match=r"share must be at least 0\.0, not -0\.1"):
        make(share=-0.1)


@pytest.mark.parametrize("name", [name for name in base.names() if type(base.get(name)).__module__.startswith("app.")])
def test_an_option_as_large_as_it_may_be_still_searches_and_one_out_of_range_is_refused(name: str) -> None:
    space = build_space({"a": list(range(5)), "b": list(range(5)), "c": ["x", "y"]}, ["a != b"], {}, limits_of((8, 0)))
    chosen, refused = base.get(name), []
    for option in dataclasses.fields(chosen.Options):
        if not isinstance(option.default, int | float) or isinstance(option.default, bool):
            continue
        for value in (base.LARGEST, -base.LARGEST):
            try:
                options = base.make_options(chosen, {option.name: value})
            except InputError as error:
                refused.append(error.remedy)
                continue
            search = chosen.search(space, np.random.default_rng(1), 4, options)
            rows, seen = next(search), 0
            with contextlib.suppress(StopIteration):
                while seen < 12:
                    seen += len(rows)
                    costs = [float(row % 7) for row in rows]
                    rows = search.send([base.Outcome(row, cost) for row, cost in zip(rows, costs, strict=True)])
            assert seen >= 12, option.name
            search.close()
    assert set(refused) <= {f"see: wattridge strategies {name}"}


# --- the box ----------------------------------------------------------------------------------------------------------


def test_every_row_lies_in_the_box_and_comes_back() -> None:
    space = space_of_table(
        {"n": [64, 16, 32], "layout": ["row", "column"], "fixed": [7]},
        [(64, "row", 7), (16, "row", 7), (32, "column", 7), (64, "column", 7)],
    )
    box = Box(space)
    points = box.points(list(range(space.size)))
    assert box.dimensions == 2
    assert ((points >= 0) & (points <= 1)).all()
    assert box.rows(points) == list(range(space.size))
    n = [space.configuration(row)["n"] for row in range(space.size)]
    assert points[np.argsort(n), 0].tolist() == [0.0, 0.5, 1.0, 1.0]  # by value, not in the order they were written
    for point, nearest in {
        (9.0, -5.0): (64, "row", 7),  # outside counts as on the edge
        (0.0, 1.0): (32, "column", 7),  # not valid: 32 is next to 16, though 64 was written beside it
        (0.3, 1.0): (32, "column", 7),
        (0.1, 0.4): (16, "row", 7),
    }.items():
        assert tuple(space.configuration(box.rows(np.array([point]))[0]).values()) == nearest


def test_a_space_of_one_row_is_a_box_without_dimensions() -> None:
    space = space_of_table({"a": [3]}, [(3,)])
    assert Box(space).dimensions == 0
    assert Box(space).points([0]).shape == (1, 0)


# --- blocking optimisers ----------------------------------------------------------------------------------------------


def test_a_blocking_call_asks_by_yielding() -> None:
    def call(ask):  # type: ignore[no-untyped-def]
        total = 0
        for number in range(3):
            total += ask(number)
        assert total == 30

    talk = questions(call)
    assert (next(talk), talk.send(10), talk.send(10)) == (0, 1, 2)
    with pytest.raises(StopIteration):
        talk.send(10)


def test_its_errors_arrive_where_the_generator_runs() -> None:
    def call(ask):  # type: ignore[no-untyped-def]
        ask(1)
        raise ArithmeticError("singular")

    talk = questions(call)
    next(talk)
    with pytest.raises(ArithmeticError, match="singular"):
        talk.send(0)


@pytest.mark.parametrize("how", ["closed", "dropped", "thrown into"])
def test_no_thread_outlives_its_generator(how: str) -> None:
    unwound = threading.Event()

    def call(ask):  # type: ignore[no-untyped-def]
        try:
            while True:
                try:
                    ask(1)
                except Exception:  # noqa: BLE001  (as a library may do)
                    continue
        finally:
            unwound.set()

    threads = threading.active_count()
    talk = questions(call)
    next(talk)
    talk.send(1)
    assert threading.active_count() == threads + 1
    if how == "closed":
        talk.close()
    elif how == "dropped":
        del talk
        gc.collect()
    else:
        with pytest.raises(KeyboardInterrupt):
            talk.throw(KeyboardInterrupt)
    assert unwound.is_set()
    assert threading.active_count() == threads


def test_a_run_that_learns_nothing_new_is_ended_and_begun_again_elsewhere() -> None:
    starts = []

    def stubborn(landscape, points):  # type: ignore[no-untyped-def]
        starts.append(tuple(points[0]))
        while True:
            landscape.cost(points[0])

    search = restarted(GRID, np.random.default_rng(1), 2, stubborn)
    seen, _ = driven(search, float)
    assert sorted(seen) == list(range(GRID.size))
    assert len(starts) == 5  # two new rows each, of twelve; after the last two there is nothing to look for


@pytest.mark.parametrize("step", ["best", "first", "ordered"])
def test_a_descent_ends_where_no_neighbour_is_better(step: str) -> None:
    cost = {row: float(abs(GRID.codes[row].astype(int) - [2, 1]).sum()) for row in range(GRID.size)}
    known = Evaluations(GRID, np.random.default_rng(1))
    going = known.descend(0, step, 3)  # type: ignore[arg-type]
    _, (row, least) = driven(going, cost.__getitem__)
    assert (GRID.codes[row].tolist(), least) == ([2, 1], 0.0)
    assert len(known) < GRID.size
