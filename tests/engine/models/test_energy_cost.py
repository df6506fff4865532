"""The energy cost model: held out, it beats mean power x time; a prior that does not help is noticed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from app.engine.models.energy_cost import EnergyCostModel, Sample, error_share, fit, helps, library
from app.errors import InputError

pytest.importorskip("xgboost", reason="the model's library is not installed")
NAMES = ("tile", "registers", "width")


def kernels(count: int, seed: int, *, scale: float = 1.0, power_w: float = 200.0) -> tuple[Sample, np.ndarray]:
    """Kernels whose power depends on what they are, by a law that no tree knows, and their energies."""
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
        {"level": 0.0},
        {"level": "nan"},
        {"points": None},
        {"trees": {"learner": {}}},
        {"trees": []},
        {"names": ["tile"]},
    ],
)
def test_a_damaged_one_is_refused_in_one_line(damage: dict[str, object]) -> None:
    document = {**fit(*kernels(64, 1)).to_json(), **damage}
    with pytest.raises(InputError, match="a damaged energy model") as refused:
        EnergyCostModel.from_json(document, "models/some.json")
    assert "\n" not in str(refused.value)


def test_without_the_library_energies_are_mean_power_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.models.energy_cost.library", lambda: None)
    known, energy_j = kernels(64, 1)
    model = fit(known, energy_j)
    others, truth_j = kernels(100, 2)
    assert np.ptp(model.energy_j(others) / others.time_s) < 1e-9
    assert off(model, others, truth_j) < 0.5


def test_the_error_is_the_inverse_of_a_signal_to_noise_ratio() -> None:
    assert error_share(np.array([1.1, 2.2]), np.array([1.0, 2.0])) == pytest.approx(0.01)
    assert library() is not None
