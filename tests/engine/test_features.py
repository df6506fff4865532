"""What a model sees of a configuration: its parameters, their powers of two and their products."""

from __future__ import annotations

import dataclasses

import numpy as np

from app.engine.space.build import build_space
from app.engine.space.search_space import SearchSpace
from app.engine.strategies.features import Features
from app.sensors.device_limits import limits_of


def space_of(**parameters: object) -> SearchSpace:
    return build_space(parameters, [], {}, limits_of((8, 0)))  # type: ignore[arg-type]


def on_axis(space: SearchSpace, axis: int) -> dict[int, set[tuple[object, ...]]]:
    """Which configurations share a level of an axis."""
    shared: dict[int, set[tuple[object, ...]]] = {}
    for row, level in enumerate(Features(space).of(np.arange(space.size))[:, axis].tolist()):
        shared.setdefault(level, set()).add(tuple(space.configuration(row).values()))
    return shared


def test_own_axes_come_first_and_only_parameters_that_vary_are_axes() -> None:
    features = Features(space_of(mode=["a", "b", "c"], fixed=7, unroll=[0, 1, 2, 3]))
    assert (features.own, features.axes) == (2, 2)
    assert features.positions[0] is None, "words have no order"
    assert np.allclose(features.positions[1], [0, 1 / 3, 2 / 3, 1])


def test_values_that_divide_by_two_alike_share_a_level_of_their_own_axis() -> None:
    space = space_of(block_size_x=[32, 48, 64, 80, 96])
    assert Features(space).axes == 2
    assert sorted(map(sorted, on_axis(space, 1).values())) == [[(32,), (96,)], [(48,), (80,)], [(64,)]]
    assert Features(space_of(block_size_x=[32, 64, 128])).axes == 1, "powers of two say it themselves"


def test_equal_products_share_a_level_and_clocks_are_not_multiplied() -> None:
    space = space_of(x=[1, 2, 4], y=[2, 4, 8])
    shared = on_axis(space, 2)
    assert {(1, 8), (2, 4), (4, 2)} in shared.values()
    clocks = tuple(dataclasses.replace(p, device_setting=p.name == "y") for p in space.parameters)
    assert Features(dataclasses.replace(space, parameters=clocks)).axes == 2


def test_many_products_share_few_levels_in_order() -> None:
    space = space_of(x=list(range(1, 41)), y=list(range(1, 41)))
    features = Features(space)
    axis = features.axes - 1
    levels = features.of(np.arange(space.size))[:, axis] - features.starts[axis]
    product = space.column("x").astype(float) * space.column("y").astype(float)
    assert len(np.unique(levels)) <= 12
    assert (np.diff(levels[np.argsort(product, kind="stable")]) >= 0).all()
    positions = features.positions[axis]
    assert positions is not None
    assert (np.diff(positions) > 0).all()
