"""What an `Activity` accepts, and what it refuses."""

import numpy as np
import pytest

from app.engine.attribution.activity import Activity

GOOD = {
    "names": ("gemm", "copy"),
    "kinds": ("kernel", "copy"),
    "family": [1, 0, 0],
    "begin_s": [2.0, 0.0, 1.0],
    "end_s": [3.0, 1.0, 1.5],
}


def test_slices_are_sorted_by_their_begin_and_counted():
    activity = Activity.of(**GOOD)
    assert activity.begin_s.tolist() == [0.0, 1.0, 2.0]
    assert activity.end_s.tolist() == [1.0, 1.5, 3.0]
    assert activity.family.tolist() == [0, 0, 1]
    assert activity.family.dtype == np.int32
    assert activity.counts.tolist() == [2, 1]
    assert len(activity) == 3


def test_slices_may_overlap_and_there_may_be_none():
    assert len(Activity.of(("a",), ("kernel",), [0, 0], [0.0, 0.5], [1.0, 2.0])) == 2
    assert Activity.of((), (), [], [], []).counts.tolist() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kinds": ("kernel",)}, "2 names of families, but 1 kinds"),
        ({"kinds": ("kernel", "range")}, "kind 'range'"),
        ({"names": ("gemm", "gemm")}, "two families are called 'gemm'"),
        ({"family": [2, 0, 0]}, "has no name"),
        ({"family": [-1, 0, 0]}, "has no name"),
        ({"end_s": [3.0, 1.0, np.nan]}, "no finite time"),
        ({"end_s": [1.0, 1.0, 1.5]}, "ends before it begins"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        Activity.of(**(GOOD | change))


def test_unsorted_slices_are_refused():
    with pytest.raises(ValueError, match="not sorted"):
        Activity(("a",), ("kernel",), np.zeros(2, np.int32), np.array([1.0, 0.0]), np.array([2.0, 2.0]))
