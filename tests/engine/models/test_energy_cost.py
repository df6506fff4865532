"""The energy cost model: held out, it beats mean power x time; a prior that does not help is noticed."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from app.base.errors import InputError
from app.engine.models.energy_cost import EnergyCostModel, Sample, error_share, fit, helps

NAMES = ("tile", "registers", "width")


def kernels(count: int, seed: int, *, scale: float = 1.0, power_w: float = 200.0) -> tuple[Sample, np.ndarray]:
    """Kernels whose power depends on what they are, by a law that no model knows, and their energies."""
    rng = np.random.default_rng(seed)
    tile, registers, width = (rng.choice(values, count) for values in ([1, 2, 4, 8], np.arange(24, 128, 8), [4, 8, 16]))
    time_s = scale * 1e-3 * (1 + 8 / tile + np.abs(registers - 72) / 40 + 4 / width) * np.exp(0.1 * rng.random(count))
    power = power_w * (0.6 + 0.5 / tile + 0.2 * (width == 16) + 0.001 * registers)
    return Sample(NAMES, np.column_stack([tile, registers, width]).astype(float), time_s), power * time_s


def off(model: EnergyCostModel, sample: Sample, energy_j: np.ndarray) -> float:
    return float(np.median(np.abs(model.energy_j(sample) / energy_j - 1)))


def test_held_out_kernels_are_ranked_and_predicted_better_than_by_mean_power_and_time() -> None:
    known, energy_j = kernels(128, 1)
    others, truth_j = kernels(500, 2)
    model = fit(known, energy_j)
    by_mean_power = (energy_j / known.time_s).mean() * others.time_s
    assert spearmanr(model.energy_j(others), truth_j)[0] > 0.97
    assert off(model, others, truth_j) < 0.03
    assert off(model, others, truth_j) < np.median(np.abs(by_mean_power / truth_j - 1)) / 3


RECORDED = Path(__file__).parent / "data" / "operator_energies_h200.json.gz"  # random rows of MM1 and MM2


def recorded(shape: str) -> tuple[Sample, np.ndarray]:
    """What an H200 measured, on 22 November 2026: parameters, machine code and launch of each, time and energy."""
    kept = json.loads(gzip.decompress(RECORDED.read_bytes()))[shape]
    features = np.array([[math.nan if value is None else value for value in row] for row in kept["features"]])
    sample = Sample(tuple(kept["names"]), features, np.array(kept["time_us"]) * 1e-6)
    return sample, np.array(kept["energy_mj"]) * 1e-3


@pytest.mark.parametrize(("shape", "rank", "error"), [("MM1", 0.9, 0.04), ("MM2", 0.8, 0.05)])
def test_of_kernels_that_a_board_measured_a_third_predicts_the_others(shape: str, rank: float, error: float) -> None:
    sample, energy_j = recorded(shape)
    found = []
    for split in range(6):
        order = np.random.default_rng(split).permutation(len(energy_j))
        learnt, others = order[:32], order[32:]
        predicted = fit(sample.of(learnt), energy_j[learnt]).energy_j(sample.of(others))
        by_mean_power = (energy_j[learnt] / sample.time_s[learnt]).mean() * sample.time_s[others]
        off = [float(np.median(np.abs(each / energy_j[others] - 1))) for each in (predicted, by_mean_power)]
        found.append((spearmanr(predicted, energy_j[others])[0], *off))
    ranks, errors, of_mean_power = np.mean(found, axis=0)
    assert ranks > rank
    assert errors < error
    assert errors < 0.6 * of_mean_power


def test_of_kernels_that_a_board_measured_another_shape_is_a_prior_that_helps() -> None:
    prior = fit(*recorded("MM2"))
    sample, energy_j = recorded("MM1")
    order = np.random.default_rng(1).permutation(len(energy_j))
    learnt, others = order[:12], order[12:]
    few, few_j = sample.of(learnt), energy_j[learnt]
    with_prior, without = helps(prior, few, few_j)
    assert with_prior < without
    truth_j = energy_j[others]
    assert off(fit(few, few_j, prior), sample.of(others), truth_j) < off(fit(few, few_j), sample.of(others), truth_j)


def test_the_same_kernels_give_the_same_model() -> None:
    known, energy_j = kernels(64, 1)
    others, _ = kernels(50, 2)
    assert (fit(known, energy_j).energy_j(others) == fit(known, energy_j).energy_j(others)).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_of_a_few_kernels_it_knows_their_mean_power(count: int) -> None:
    known, _ = kernels(count, 1)
    model = fit(known, 150.0 * known.time_s)
    others, _ = kernels(20, 2)
    assert model.energy_j(others) == pytest.approx(150.0 * others.time_s)


def test_unknown_features_are_no_obstacle() -> None:
    known, energy_j = kernels(64, 1)
    known.features[::3, 1] = math.nan
    others, truth_j = kernels(100, 2)
    model = fit(known, energy_j)
    assert off(model, others, truth_j) < 0.06
    without_width = Sample(NAMES[:2], others.features[:, :2], others.time_s)
    assert np.isfinite(model.energy_j(without_width)).all()


def test_a_prior_from_another_shape_and_board_helps_where_it_is_alike() -> None:
    shape, energy_j = kernels(256, 1, scale=20.0, power_w=90.0)
    prior = fit(shape, energy_j)
    few, few_j = kernels(16, 3)
    others, truth_j = kernels(200, 4)
    with_prior, without = helps(prior, few, few_j)
    assert with_prior < without
    assert off(fit(few, few_j, prior), others, truth_j) < off(fit(few, few_j), others, truth_j)


def test_a_prior_that_knows_the_opposite_is_found_out() -> None:
    shape, energy_j = kernels(256, 1)
    wrong = fit(shape, shape.time_s**2 / energy_j * 4e4)  # power the other way round
    with_prior, without = helps(wrong, *kernels(64, 3))
    assert with_prior > without


def test_whether_a_prior_helps_is_not_said_of_too_few() -> None:
    assert all(math.isnan(each) for each in helps(fit(*kernels(64, 1)), *kernels(4, 2)))


def test_a_kept_model_predicts_as_before_and_needs_no_pickle() -> None:
    model = fit(*kernels(64, 1))
    text = json.dumps(model.to_json(), allow_nan=False)
    others, _ = kernels(50, 2)
    again = EnergyCostModel.from_json(json.loads(text), "a file")
    assert again.energy_j(others) == pytest.approx(model.energy_j(others))


@pytest.mark.parametrize(
    "damage",
    [
        {"names": 3},
        {"least_energy_j": 0.0},
        {"level": "nan"},
        {"exponent": 2.0},
        {"points": None},
        {"regression": {"points": []}},
        {"regression": []},
        {"names": ["tile"]},
    ],
)
def test_a_damaged_one_is_refused_in_one_line(damage: dict[str, object]) -> None:
    document = {**fit(*kernels(64, 1)).to_json(), **damage}
    with pytest.raises(InputError, match="a damaged energy model") as refused:
        EnergyCostModel.from_json(document, "models/some.json")
    assert "\n" not in str(refused.value)


def test_the_error_is_the_inverse_of_a_signal_to_noise_ratio_of_what_is_searched_for() -> None:
    measured = np.array([1.0, 2.0])
    assert error_share(measured / 1.1, measured) == pytest.approx(0.01)
    far_off_at_the_best, far_off_at_the_worst = np.array([1.5, 2.0]), np.array([1.0, 3.0])
    assert error_share(far_off_at_the_best, measured) > 3 * error_share(far_off_at_the_worst, measured)
