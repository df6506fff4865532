"""What a model sees of a configuration: its parameters, their powers of two, their products and ratios."""

from __future__ import annotations

import dataclasses

import numpy as np
from fixtures.spaces import space_of

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.features import MOST_LEVELS, Features, scaled


def on_axis(space: SearchSpace, axis: int) -> list[set[tuple[object, ...]]]:
    """Which configurations share a level of an axis, level by level."""
    features = Features(space)
    shared: list[set[tuple[object, ...]]] = [set() for _ in range(features.axes[axis].count)]
    for row, level in enumerate(features.of(np.arange(space.size), [axis])[:, 0].tolist()):
        shared[level].add(tuple(space.configuration(row).values()))
    return shared


def test_own_axes_come_first_and_only_parameters_that_vary_are_axes() -> None:
    features = Features(space_of(mode=["a", "b", "c"], fixed=7, unroll=[0, 1, 2, 3], on=[False, True]))
    assert features.own == len(features.axes) == 3, "words, zeros and switches have nothing derived"
    words, unroll, switch = (axis.positions for axis in features.axes)
    assert words is None
    assert unroll is not None
    assert np.allclose(unroll, [0, 1 / 3, 2 / 3, 1])
    assert switch is None, "of two values neither lies between"


def test_values_that_grow_geometrically_are_placed_by_their_logarithm() -> None:
    assert np.allclose(scaled(np.array([1.0, 2, 4, 8])), [0, 1 / 3, 2 / 3, 1])
    assert np.allclose(scaled(np.array([8.0, 16, 24])), [0, 0.5, 1])
    assert np.allclose(scaled(np.array([0.0, 1, 2, 4])), [0, 0.25, 0.5, 1]), "there is no logarithm of zero"


def test_values_that_divide_by_two_alike_share_a_level() -> None:
    space = space_of(block_size_x=[32, 48, 64, 80, 96])
    assert on_axis(space, 1) == [{(48,), (80,)}, {(32,), (96,)}, {(64,)}]
    assert len(Features(space_of(block_size_x=[32, 64, 128])).axes) == 1, "powers of two say it themselves"


def test_equal_products_and_equal_ratios_share_a_level_and_clocks_have_neither() -> None:
    space = space_of(x=[1, 2, 4], y=[2, 4, 8])
    assert on_axis(space, 2)[2] == {(1, 8), (2, 4), (4, 2)}
    assert on_axis(space, 3)[2] == {(1, 2), (2, 4), (4, 8)}
    clocks = tuple(dataclasses.replace(p, device_setting=p.name == "y") for p in space.parameters)
    assert len(Features(dataclasses.replace(space, parameters=clocks)).axes) == 2


def test_products_of_products_hold_up_to_four_sizes_none_of_them_squared() -> None:
    space = space_of(m=[1, 2, 4], n=[2, 4, 8], x=[1, 2, 4], y=[2, 4, 8])
    features = Features(space)
    of_two = {axis.powers: index for index, axis in enumerate(features.axes) if axis.powers}
    found = features.products([of_two[(0, 1), (2, -1)], of_two[(1, 1), (3, -1)], of_two[(0, 1), (1, 1)]])
    powers = {features.axes[index].powers for index in found}
    assert powers == {
        ((0, 1), (1, 1), (2, -1), (3, -1)),  # m n / x y
        ((0, 1), (1, -1), (2, -1), (3, 1)),
        ((1, 1), (2, 1)),  # of m n by m / x
        ((0, 1), (3, 1)),
    }
    assert found == features.products([of_two[(0, 1), (2, -1)], of_two[(1, 1), (3, -1)], of_two[(0, 1), (1, 1)]])
    work = features.of(
        np.arange(space.size), [features.axes.index(next(a for a in features.axes if len(a.powers) == 4))]
    )
    m, n, x, y = (space.column(name).astype(float) for name in ("m", "n", "x", "y"))
    assert len(set(zip(work[:, 0].tolist(), (m * n / (x * y)).tolist(), strict=True))) == work.max() + 1


def test_many_values_share_levels_in_their_order() -> None:
    space = space_of(x=list(range(1, 201)), y=list(range(1, 201)))
    features = Features(space)
    x, y = space.column("x").astype(float), space.column("y").astype(float)
    for axis, quantity in ((0, x), (4, x * y), (5, x / y)):
        levels = features.of(np.arange(space.size), [axis])[:, 0]
        assert len(np.unique(levels)) == features.axes[axis].count <= MOST_LEVELS
        assert (np.diff(levels[np.argsort(quantity.round(9), kind="stable")]) >= 0).all()
        positions = features.axes[axis].positions
        assert positions is not None
        assert (np.diff(positions) > 0).all()
