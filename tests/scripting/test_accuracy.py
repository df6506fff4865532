"""Arguments in several precisions and the errors of outputs, as `kernel_tuner.accuracy` has them."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import tune_kernel
from app.base.errors import InputError
from app.engine.metering import stopwatch
from app.scripting.accuracy import AccuracyObserver, Tunable, TunablePrecision, error_by_name

X = np.linspace(1, 2, 100)
SCALE = """
float scale(float_type *y, const float_type *x, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] / 3;
    return 1;
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_each_precision_has_its_arguments_and_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "WINDOW_S", 0.01)
    results, environment = tune_kernel(
        "scale",
        SCALE,
        1,
        [TunablePrecision("float_type", np.zeros_like(X)), TunablePrecision("float_type", X), np.int32(X.size)],
        {"float_type": ["float", "double"]},
        answer=[X / 3, None, None],
        observers=[AccuracyObserver(), AccuracyObserver("max rel error", "relative")],
        quiet=True,
    )
    single, double = results
    assert 1e-9 < single["error"] < 1e-7
    assert single["relative"] < 1e-6
    assert double["error"] == double["relative"] == 0.0
    assert environment["isolated"] is True


def test_a_choice_may_be_nested_and_made_by_a_function() -> None:
    chosen = Tunable("layout", {"c": Tunable(lambda p: p["wide"] > 1, {True: "wide", False: "narrow"}), "f": "other"})
    assert chosen({"layout": "c", "wide": 2}) == "wide"
    assert chosen({"layout": "c", "wide": 1}) == "narrow"
    assert chosen({"layout": "f", "wide": 1}) == "other"
    with pytest.raises(KeyError, match="'x' is not one of c, f"):
        chosen({"layout": "x"})


@given(st.lists(st.floats(0.5, 100), min_size=1, max_size=20), st.floats(1e-3, 0.4))
def test_errors_of_a_constant_difference_are_known(values: list[float], by: float) -> None:
    answer = np.array(values)
    output = answer + by
    for names, expected in (
        (("MSE", "mean_squared_error", "avg sq"), by**2),
        (("rmse", "MAE", "max", "maximum absolute error", "absolute"), by),
        (("NRMSE",), by / np.sqrt(np.mean(answer**2))),
        (("max rel", "maximum relative"), by / answer.min()),
        (("MRE", "relative error"), np.mean(by / answer)),
        (("rmsre",), np.sqrt(np.mean((by / answer) ** 2))),
        (("MALE",), np.mean(np.log10(output / answer))),
    ):
        for name in names:
            assert error_by_name(name)(answer, output) == pytest.approx(expected, rel=1e-4, abs=1e-7), name


def test_an_unknown_error_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match="mean squared"):
        AccuracyObserver("nonsense")
