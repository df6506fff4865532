"""The gain of a board's sensor against a meter: fitted with its interval, kept per board, refused where it is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import WattridgeError
from app.base.records import as_json
from app.engine.metering.gain import fit_gain, keep_gain, known_gain, read_gain, straight_line
from app.sensors.select import open_gpu


def windows(gain: float, offset_w: float = 0.0, scatter: float = 0.002, count: int = 60, seed: int = 0) -> tuple:
    random = np.random.default_rng(seed)
    meter_w = random.uniform(60.0, 320.0, count)
    return (gain * meter_w + offset_w) * (1.0 + scatter * random.standard_normal(count)), meter_w


@settings(max_examples=20)
@given(st.floats(0.94, 1.06), st.integers(0, 1000))
def test_a_gain_is_found_within_three_thousandths(gain: float, seed: int) -> None:
    found = fit_gain("meter", *windows(gain, seed=seed))
    assert found.gain == pytest.approx(gain, rel=0.003)
    assert found.interval[0] < found.gain < found.interval[1]


def test_its_interval_holds_the_truth_nineteen_times_of_twenty() -> None:
    found = [fit_gain("meter", *windows(1.03, count=12, seed=seed)) for seed in range(200)]
    held = sum(each.interval[0] <= 1.03 <= each.interval[1] for each in found)
    assert 180 <= held <= 199


def test_an_offset_is_told_from_a_gain_and_corrected_with_it() -> None:
    board_w, meter_w = windows(0.98, offset_w=11.0, scatter=0.001)
    found = fit_gain("meter", board_w, meter_w)
    assert found.gain == pytest.approx(0.98, abs=0.002)
    assert found.offset_w == pytest.approx(11.0, abs=0.4)
    assert found.corrected(0.98 * 200.0 + 11.0) == pytest.approx(200.0, rel=0.002)


def test_without_an_offset_none_is_reported() -> None:
    found = [fit_gain("meter", *windows(1.02, seed=seed)) for seed in range(40)]
    assert sum(each.offset_w == 0.0 for each in found) >= 35


def test_a_line_through_errors_in_both_variables_is_yorks() -> None:
    """Pearson's points with York's weights, the classic example: slope -0.4805, intercept 5.4799."""
    x = np.array([0.0, 0.9, 1.8, 2.6, 3.3, 4.4, 5.2, 6.1, 6.5, 7.4])
    y = np.array([5.9, 5.4, 4.4, 4.6, 3.5, 3.7, 2.8, 2.8, 2.4, 1.5])
    weight_x = np.array([1000.0, 1000.0, 500.0, 800.0, 200.0, 80.0, 60.0, 20.0, 1.8, 1.0])
    weight_y = np.array([1.0, 1.8, 4.0, 8.0, 20.0, 20.0, 70.0, 70.0, 100.0, 500.0])
    found = straight_line(x, y, weight_x**-0.5, weight_y**-0.5)
    assert (found.slope, found.intercept) == (pytest.approx(-0.48053, abs=1e-5), pytest.approx(5.47991, abs=1e-5))
    scale = (11.8663 / 8) ** 0.5  # of the errors, by the sum of squares that is published
    assert found.slope_error == pytest.approx(0.057985 * scale, rel=1e-4)
    assert found.intercept_error == pytest.approx(0.294971 * scale, rel=1e-4)


def test_which_of_two_meters_stands_for_which_does_not_matter() -> None:
    """As it would where only one of them is taken to err."""
    random = np.random.default_rng(5)
    truth_w = random.uniform(60.0, 320.0, 40)
    one_w, other_w = (truth_w * (1.0 + 0.04 * random.standard_normal(40)) for _ in range(2))
    there, back = straight_line(one_w, other_w, one_w, other_w), straight_line(other_w, one_w, other_w, one_w)
    assert there.slope * back.slope == pytest.approx(1.0)
    assert there.slope_error / there.slope == pytest.approx(back.slope_error / back.slope)


def test_the_intervals_of_gain_and_offset_hold_the_truth_where_both_meters_err() -> None:
    held_gain = held_offset = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        truth_w = random.uniform(60.0, 320.0, 30)
        meter_w = truth_w * (1.0 + 0.01 * random.standard_normal(30))
        board_w = (0.97 * truth_w + 12.0) * (1.0 + 0.01 * random.standard_normal(30))
        found = fit_gain("meter", board_w, meter_w)
        assert found.offset_interval_w is not None
        held_gain += found.interval[0] <= 0.97 <= found.interval[1]
        held_offset += found.offset_interval_w[0] <= 12.0 <= found.offset_interval_w[1]
    assert held_gain >= 184
    assert held_offset >= 184


def test_powers_that_span_too_little_tell_a_gain_and_no_offset() -> None:
    random = np.random.default_rng(1)
    meter_w = random.uniform(200.0, 220.0, 30)
    found = fit_gain("wall_w", 1.02 * meter_w * (1.0 + 0.002 * random.standard_normal(30)), meter_w)
    assert (found.offset_w, found.offset_interval_w) == (0.0, None)
    assert "tell no offset" in found.sentence("gpu_w", "W")


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=5, max_size=12))
def test_any_numbers_give_a_gain_that_is_finite_or_a_reason(pairs: list[tuple[float, float]]) -> None:
    try:
        found = fit_gain("meter", *zip(*pairs, strict=True))
    except WattridgeError:
        return
    assert read_gain(json.loads(json.dumps(as_json(found)))) == found


def test_readings_that_rise_and_fall_against_each_other_are_no_gain() -> None:
    one_w = np.linspace(100.0, 200.0, 20)
    with pytest.raises(WattridgeError, match="it reports -"):
        fit_gain("meter", one_w[::-1], one_w)


@pytest.mark.parametrize(
    ("board_w", "meter_w", "said"),
    [
        ([100.0] * 4, [100.0] * 4, "needs 5 windows"),
        ([100.0] * 9, [float("nan")] * 9, "there are 0"),
        ([300.0] * 9, [90.0] * 9, "3.33 times"),
    ],
)
def test_what_shows_no_gain_says_why(board_w: list[float], meter_w: list[float], said: str) -> None:
    with pytest.raises(WattridgeError, match=said):
        fit_gain("rapl", board_w, meter_w)


def test_a_gain_is_kept_for_its_own_board_alone() -> None:
    gpu, other = open_gpu("simulated:a100"), open_gpu("simulated:v100")
    gain = fit_gain("powersensor3", *windows(1.04))
    assert known_gain(gpu.info) is None
    keep_gain(gpu.info.uuid, gpu.info.name, gain)
    assert known_gain(gpu.info) == gain
    assert known_gain(other.info) is None


@settings(max_examples=30)
@given(st.recursive(st.none() | st.floats() | st.text(max_size=5), lambda each: st.lists(each, max_size=3)), st.data())
def test_a_damaged_file_is_no_gain(junk: object, data: st.DataObject) -> None:
    document = as_json(fit_gain("powersensor3", *windows(1.04)))
    name = data.draw(st.sampled_from(sorted(document)))
    try:
        found = read_gain(json.loads(json.dumps({**document, name: junk})))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return
    assert 0.5 <= found.gain <= 2.0


def test_a_file_that_is_not_ours_counts_for_nothing(own_data_folder: Path) -> None:
    gpu = open_gpu("simulated:a100")
    keep_gain(gpu.info.uuid, gpu.info.name, fit_gain("powersensor3", *windows(1.04)))
    [path] = (own_data_folder / "gains").iterdir()
    path.write_text("[1, 2")
    assert known_gain(gpu.info) is None
