"""Clocks and caps change as seldom as can be: within a batch, and over a whole space by brute force."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
from fixtures.fake_board import FakeBoard
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.control.guard import DeviceGuard
from app.engine.runner.base import by_setting
from app.engine.space.search_space import Parameter, SearchSpace
from app.engine.strategies import base as strategies

PARAMETERS = (
    Parameter("power_limit_w", (150, 200, 250), device_setting=True),
    Parameter("tile", (1, 2, 4)),
    Parameter("graphics_clock_mhz", (600, 900, 1200, 1500), device_setting=True),
    Parameter("layout", ("row", "column")),
)


def space() -> SearchSpace:
    shape = [len(parameter.values) for parameter in PARAMETERS]
    codes = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1).reshape(-1, len(shape))
    return SearchSpace(PARAMETERS, codes.astype(np.uint8), cartesian=len(codes))


def runs_of(rows: list[int], *names: str) -> list[tuple[object, ...]]:
    """The settings one after the other, each stretch of the same one once."""
    whole = space()
    return [key for key, _ in groupby(tuple(whole.configuration(row)[name] for name in names) for row in rows)]


@given(st.sets(st.integers(0, 71), min_size=1), st.sampled_from((None, 600, 900, 1500)))
@settings(max_examples=60)
def test_a_batch_changes_the_clock_once_for_each_and_begins_with_the_one_in_force(
    rows: set[int], in_force: int | None
) -> None:
    guard = DeviceGuard(FakeBoard())
    if in_force is not None:
        guard.apply(graphics_clock_mhz=in_force, power_limit_w=200.0)
    ordered = by_setting(sorted(rows), space(), guard)
    assert sorted(ordered) == sorted(rows)
    clocks = runs_of(ordered, "graphics_clock_mhz")
    assert len(clocks) == len(set(clocks))
    if (in_force,) in clocks:
        assert clocks[0] == (in_force,)
    both = runs_of(ordered, "graphics_clock_mhz", "power_limit_w")
    assert len(both) == len(set(both))


@given(st.sets(st.integers(0, 71), min_size=1), st.sampled_from((None, 1, 4)))
@settings(max_examples=40)
def test_a_service_is_started_once_for_each_of_its_arguments(rows: set[int], running: int | None) -> None:
    ordered = by_setting(sorted(rows), space(), DeviceGuard(FakeBoard()), {"tile": running})
    assert sorted(ordered) == sorted(rows)
    starts = runs_of(ordered, "tile")
    assert len(starts) == len(set(starts))
    if (running,) in starts:
        assert starts[0] == (running,)
    for (tile,) in starts:
        of_it = [row for row in ordered if space().configuration(row)["tile"] == tile]
        clocks = runs_of(of_it, "graphics_clock_mhz")
        assert len(clocks) == len(set(clocks)), "and of these each clock is set once"


def test_from_one_clock_to_the_next_the_cap_stays_where_it_can() -> None:
    guard = DeviceGuard(FakeBoard())
    ordered = by_setting(range(72), space(), guard)
    settings_made = runs_of(ordered, "graphics_clock_mhz", "power_limit_w")
    changes = [
        sum(one != other for one, other in zip(before, after, strict=True)) for before, after in pairwise(settings_made)
    ]
    assert set(changes) == {1}


def test_brute_force_takes_each_setting_once() -> None:
    whole = space()
    chosen = strategies.get("brute_force")
    options = strategies.make_options(chosen, {})
    search = chosen.search(whole, np.random.default_rng(0), 16, options)
    rows = list(next(search))
    try:
        while True:
            rows += search.send([strategies.Outcome(row, 1.0) for row in rows[-16:]])
    except StopIteration:
        pass
    assert sorted(rows) == list(range(72))
    made = runs_of(rows, "power_limit_w", "graphics_clock_mhz")
    assert len(made) == 12
    assert len(runs_of(rows, "graphics_clock_mhz")) == 4
