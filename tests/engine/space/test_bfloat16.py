"""bfloat16 as arrays: what is written as bits is read as the number that IEEE 754 rounding gives."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.runner.kernels.backend import difference
from app.engine.space.array_expressions import BFLOAT16, cast, evaluate_array, number_type, type_name, widened

FLOATS = st.floats(width=32)


@given(FLOATS)
def test_a_number_becomes_the_nearest_and_of_two_the_even_one(number: float) -> None:
    found = cast(np.array([number], np.float32), BFLOAT16)
    back = float(widened(found)[0])
    if math.isnan(number):
        assert math.isnan(back)
        return
    below = struct.unpack("<I", struct.pack("<f", number))[0] & 0xFFFF0000  # towards zero
    ends = [float(np.array([bits], np.uint32).view(np.float32)[0]) for bits in (below, below + 0x10000)]
    largest = 2.0**128 - 2.0**120
    if math.isinf(ends[1]) and not math.isinf(number):  # beyond the largest one by half a step: infinity
        ends[1] = math.copysign(2.0**128, number)
    distances = [abs(number - end) for end in ends] if math.isfinite(number) else [0.0, math.inf]
    nearest = ends[int(distances[1] < distances[0])]
    if distances[0] == distances[1]:
        nearest = ends[0] if (below >> 16) % 2 == 0 else ends[1]
    assert back == nearest or (abs(nearest) > largest and math.isinf(back) and back * number > 0)


@given(st.integers(0, 2**16 - 1))
def test_what_it_holds_comes_back_bit_by_bit(bits: int) -> None:
    kept = np.array([bits], np.uint16).view(BFLOAT16)
    number = widened(kept)
    again = cast(number, BFLOAT16)
    assert again.view(np.uint16)[0] == bits or np.isnan(number[0])


def test_expressions_calculate_with_the_numbers_and_not_with_their_bits() -> None:
    a = cast(np.array([[1.0, 2.0], [3.0, -4.5]]), BFLOAT16)
    assert evaluate_array("a @ a", "test", {"a": a}).tolist() == [[7.0, -7.0], [-10.5, 26.25]]
    assert difference(a, cast(np.array([[1.0, 2.0], [3.0, -4.0]]), BFLOAT16), 0.0, 0.1) == (1, 3, 0.5)


@pytest.mark.parametrize("name", ["float16", "float32", "int8", "complex64", "bfloat16"])
def test_a_type_has_one_name(name: str) -> None:
    assert type_name(number_type(name)) == name
    assert np.zeros((2, 3), number_type(name)).nbytes % 6 == 0
