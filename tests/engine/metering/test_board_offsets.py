"""Offsets between boards, fitted to figures that are drawn from the model they assume, and from worse ones."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from app.engine.measurement import Measurement, State
from app.engine.metering.board_offsets import FIGURES, fit_offsets, offsets_from_json, offsets_to_json
from app.engine.runner.board_correction import BOARD_CORRECTION, corrected, uncorrected
from app.engine.session.load import load_specification
from app.engine.specification.model import evaluate_metrics
from app.paths import resources
from app.sensors.event_reasons import LIMITING

SPEC = load_specification(resources() / "examples" / "gemm.toml")
CONFIGURATION = {"block_size_x": 16, "block_size_y": 16, "tile_size_x": 4, "tile_size_y": 4}
TRUTH = {"a": (1.0, 1.0), "b": (1.03, 1.0), "c": (0.97, 1.01), "d": (1.01, 0.99)}  # of power and time
NOISE, TIME_NOISE, APART = 0.004, 0.001, 0.006


def measured(row: int, board: str, power_w: float, time_s: float, **facts: object) -> Measurement:
    values = {"time_s": time_s, "power_w": power_w, "energy_j": power_w * time_s}
    own = 1.96 * NOISE
    ends = {name: (values[name] * (1 - own), values[name] * (1 + own)) for name in ("power_w", "energy_j")}
    values |= evaluate_metrics(SPEC, CONFIGURATION, values)
    return Measurement(row, CONFIGURATION, State.OK, values, ends, board=board, **facts)  # type: ignore[arg-type]


def draw(
    rng: np.random.Generator, truth: Mapping[str, tuple[float, float]], rows: int, apart: float = 0.0
) -> list[Measurement]:
    """Every board on every row; by `apart` single rows differ from their board's ratio."""
    found = []
    for row in range(rows):
        power_w, time_s = rng.uniform(100, 400), rng.uniform(1e-3, 1e-2)
        for board, (more, longer) in truth.items():
            rest = math.exp(NOISE * rng.standard_normal() + apart * rng.standard_normal())
            other = math.exp(TIME_NOISE * rng.standard_normal())
            found.append(measured(row, board, power_w * more * rest, time_s * longer * other))
    return found


@pytest.mark.parametrize("apart", [0.0, APART])
@pytest.mark.parametrize("boards", ["ab", "abcd"])
def test_the_intervals_hold_the_truth_in_95_of_100(boards: str, apart: float) -> None:
    truth = {board: TRUTH[board] for board in boards}
    held = []
    for seed in range(400):
        offsets = fit_offsets(draw(np.random.default_rng(seed), truth, 8, apart), "a")
        assert set(offsets) == set(boards)
        for board in boards[1:]:
            more, longer = truth[board]
            for name, true in zip(FIGURES, (longer, more, more * longer), strict=True):
                low, high = offsets[board].ratios[name].interval
                held.append(low <= true <= high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)


def grown(warmer_c: float, doubling_c: float) -> float:
    """By how much more leaks, where it is 1 per degree at first."""
    if math.isinf(doubling_c):
        return warmer_c
    return (2.0 ** (warmer_c / doubling_c) - 1.0) * doubling_c / math.log(2.0)


def looks_cold_and_warm(
    rng: np.random.Generator,
    more: float,
    warmer_c: float,
    leakage: tuple[float, float] = (0.07, 0.03),
    doubling_c: float = math.inf,
) -> list[Measurement]:
    """Five configurations cold, twenty of each board's own, and the five once more, warm, on boards a and b.

    `leakage` is its mean and its deviation from board to board, in W per degree at 48 degC. A watt of it counts for
    more where less is drawn; temperatures are whole degrees; and what a board states is off by what its model of its
    heat is off by.
    """
    powers, found = rng.uniform(70, 210, 5), []
    for board, ratio, above_c in (("a", 1.0, 0.0), ("b", more, warmer_c)):
        leaks_w, wrong = rng.normal(*leakage), rng.normal(0.0, 0.0005)  # W and share per degree
        own = rng.uniform(70, 210, 20)
        plan = [(row, powers[row], 30 + 2 * row + above_c) for row in range(5)]
        plan += [(100 * ord(board) + at, own[at], 48 + above_c) for at in range(20)]
        plan += [(row, powers[row], 48 + rng.normal(0, 1) + above_c) for row in range(5)]
        for row, power_w, true_c in plan:
            warm_w = leaks_w * grown(true_c - 48, doubling_c)
            drawn_w = (power_w + warm_w) * ratio * math.exp(NOISE / 4 * rng.standard_normal())
            correction = math.exp(wrong * (48 - true_c))
            facts = measured(row, board, drawn_w * correction, 1e-3)
            seen = {"temperature_c": float(round(true_c)), "power_raw_w": drawn_w, "thermal_correction": correction}
            found.append(replace(facts, values={**facts.values, **seen}))
    return found


@pytest.mark.parametrize("warmer_c", [0.0, 6.0])
def test_boards_that_warm_up_and_know_their_heat_badly_are_compared_as_they_drew_at_one_temperature(
    warmer_c: float,
) -> None:
    held, halves = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        more = rng.uniform(0.96, 1.04)
        ratio = fit_offsets(looks_cold_and_warm(rng, more, warmer_c), "a")["b"].ratios["power_w"]
        low, high = ratio.interval
        held.append(low <= more <= high)
        halves.append(ratio.half)
    assert 0.92 <= np.mean(held) <= 0.995
    assert np.median(halves) < 0.004


LEAKY, TIGHT = (0.2, 0.04), (0.0, 0.0)


@pytest.mark.parametrize(
    ("leakage", "doubling_c"), [(LEAKY, 25.0), (LEAKY, 40.0), (LEAKY, 80.0), (LEAKY, math.inf), (TIGHT, math.inf)]
)
@pytest.mark.parametrize(("warmer_c", "widest"), [(12.0, 0.003), (25.0, 0.009), (-12.0, 0.010)])
def test_boards_that_are_cooled_differently_are_compared_however_their_leakage_grows(
    warmer_c: float, widest: float, leakage: tuple[float, float], doubling_c: float
) -> None:
    held, halves = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        more = rng.uniform(0.96, 1.04)
        looks = looks_cold_and_warm(rng, more, warmer_c, leakage, doubling_c)
        ratio = fit_offsets(looks, "a")["b"].ratios["power_w"]
        low, high = ratio.interval
        held.append(low <= more <= high)
        halves.append(ratio.half)
    assert np.mean(held) >= 0.93
    assert np.median(halves) < widest


def test_an_impossible_temperature_does_not_spoil_the_comparison() -> None:
    found = looks_cold_and_warm(np.random.default_rng(8), 1.02, 0.0)
    found[0] = replace(found[0], values={**found[0].values, "temperature_c": 1e9})
    ratio = fit_offsets(found, "a")["b"].ratios["power_w"]
    assert ratio.value == pytest.approx(1.02, abs=0.01)
    assert 0.0 < ratio.half < 0.05


def test_more_looks_at_the_same_configurations_say_no_more_of_how_these_differ_from_board_to_board() -> None:
    held = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        more, differs = rng.uniform(0.96, 1.04), rng.normal(0, APART, (2, 5))
        found = [
            measured(
                row, board, 200.0 * (row + 1) * ratio * math.exp(differs[at, row] + rng.normal(0, NOISE / 4)), 1e-3
            )
            for at, (board, ratio) in enumerate((("a", 1.0), ("b", more)))
            for row in range(5)
            for _ in range(6)
        ]
        low, high = fit_offsets(found, "a")["b"].ratios["power_w"].interval
        held.append(low <= more <= high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.03)


def test_a_thousand_boards_are_fitted_together() -> None:
    rng = np.random.default_rng(7)
    truth = {f"{number:04}": (rng.uniform(0.96, 1.04), 1.0) for number in range(1000)}
    offsets = fit_offsets(draw(rng, {**truth, "0000": (1.0, 1.0)}, 5), "0000")
    assert len(offsets) == 1000
    off = [offsets[board].ratios["power_w"].value / more - 1 for board, (more, _) in truth.items() if board != "0000"]
    assert np.sqrt(np.mean(np.square(off))) < 2 * NOISE


def test_a_board_that_differs_from_row_to_row_is_known_less_well_and_so_is_what_it_measures() -> None:
    held, plain = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        offset = fit_offsets(draw(rng, TRUTH, 8, APART), "a")["b"]
        reference, of_b = draw(rng, {"a": TRUTH["a"], "b": TRUTH["b"]}, 1, APART)
        true = reference.values["energy_j"]
        low, high = corrected(of_b, offset, SPEC).intervals["energy_j"]
        slack = 1.96 * NOISE  # of what the reference itself reports of the row
        held.append(low * (1 - slack) <= true <= high * (1 + slack))
        plain.append(offset.ratios["energy_j"].differs)
    assert np.mean(held) >= 0.93
    assert np.median(plain) == pytest.approx(math.sqrt(2) * APART, rel=0.25)


def test_the_offset_of_energy_is_that_of_time_and_power_also_where_boards_measured_different_rows() -> None:
    found = draw(np.random.default_rng(1), TRUTH, 12)
    some = [each for each in found if (each.row + ord(each.board)) % 3]
    offsets = fit_offsets(some, "a")
    for board in "bcd":
        ratios = offsets[board].ratios
        assert ratios["energy_j"].value == pytest.approx(ratios["time_s"].value * ratios["power_w"].value, rel=1e-12)
        assert ratios["power_w"].value == pytest.approx(TRUTH[board][0], abs=0.01)


def test_boards_are_linked_through_others_and_left_out_where_too_little_links_them() -> None:
    found = draw(np.random.default_rng(2), TRUTH, 12)
    chain = [e for e in found if e.board in {"a": "ab", "b": "ab"}.get("a" if e.row < 6 else "", "bc")]
    offsets = fit_offsets(chain, "a")
    assert offsets["c"].ratios["power_w"].value == pytest.approx(TRUTH["c"][0], abs=0.012)
    assert offsets["c"].ratios["power_w"].half > offsets["b"].ratios["power_w"].half
    few = [each for each in found if each.board == "a" or (each.board == "b" and each.row < 2)]
    assert set(fit_offsets(few, "a")) == {"a"}
    apart = [each for each in found if each.board == ("a" if each.row < 6 else "b")]
    assert set(fit_offsets(apart, "a")) == {"a"}


def test_what_is_at_a_limit_is_not_fitted_and_not_corrected_but_less_certain() -> None:
    rng = np.random.default_rng(3)
    found = draw(rng, {"a": TRUTH["a"], "b": TRUTH["b"]}, 8)
    capped = [measured(row, board, 700.0, 1e-3, event_reasons=LIMITING) for row in range(8, 20) for board in "ab"]
    offset = fit_offsets([*found, *capped], "a")["b"]
    assert offset.ratios["power_w"].value == pytest.approx(TRUTH["b"][0], abs=0.01)
    given = corrected(capped[-1], offset, SPEC)
    assert given.values["power_w"] == 700.0
    low, high = given.intervals["power_w"]
    assert low < 700.0 / TRUTH["b"][0] < 700.0 < high


def test_boards_that_cannot_be_of_one_model_are_left_out() -> None:
    found = draw(np.random.default_rng(4), {"a": (1.0, 1.0), "b": (2.5, 1.0)}, 8)
    assert set(fit_offsets(found, "a")) == {"a"}


def test_a_correction_can_be_taken_back() -> None:
    found = draw(np.random.default_rng(5), TRUTH, 8, APART)
    offsets = fit_offsets(found, "a")
    for own in found:
        given = corrected(own, offsets[own.board], SPEC)
        share = given.values["energy_j"] / own.values["energy_j"]
        assert given.values[BOARD_CORRECTION] == pytest.approx(share)
        assert given.values["GFLOPS/W"] != own.values["GFLOPS/W"] or own.board == "a"
        back = uncorrected(given, SPEC)
        assert dict(back.values) == pytest.approx(dict(own.values), rel=1e-9)
        assert set(back.intervals) == set(own.intervals)
        for name, ends in own.intervals.items():
            assert back.intervals[name] == pytest.approx(ends, rel=1e-6)


def test_offsets_survive_as_text_and_damage_is_refused() -> None:
    offsets = fit_offsets(draw(np.random.default_rng(6), TRUTH, 8), "a")
    document = json.loads(json.dumps(offsets_to_json(offsets, "a")))
    assert offsets_from_json(document) == (offsets, "a")
    document["boards"]["b"]["time_s"][1] = -1.0
    with pytest.raises(ValueError):
        offsets_from_json(document)
    with pytest.raises(ValueError):
        offsets_from_json({"reference": "z", "boards": {}})
