"""Rows of a space as numbers that a model can learn from."""

from __future__ import annotations

import math

import pytest

from app.engine.space.search_space import space_of_table
from app.engine.strategies.energy_aware import RowNumbers

SPACE = space_of_table(
    {"a": [1, 2, 4], "b": [3, 6, 9], "layout": ["row", "column"], "fixed": [7], "flag": [False, True]},
    [(1, 3, "row", 7, False), (2, 9, "column", 7, True), (4, 6, "row", 7, True)],
)


def test_sizes_stay_words_become_yes_or_no_and_what_does_not_vary_is_left_out() -> None:
    numbers = RowNumbers(SPACE)
    assert numbers.names == ("a", "b", "layout=row", "layout=column", "flag", "ln a*b", "ln a/b")
    table = {name: numbers.of(range(SPACE.size))[:, index].tolist() for index, name in enumerate(numbers.names)}
    of = [SPACE.configuration(row) for row in range(SPACE.size)]
    assert table["a"] == [each["a"] for each in of]
    assert table["layout=row"] == [float(each["layout"] == "row") for each in of]
    assert table["flag"] == [float(each["flag"]) for each in of]
    assert table["ln a/b"] == pytest.approx([math.log(each["a"] / each["b"]) for each in of])


def test_a_space_of_one_row_has_no_numbers() -> None:
    one = space_of_table({"a": [5]}, [(5,)])
    assert RowNumbers(one).of([0]).shape == (1, 0)
