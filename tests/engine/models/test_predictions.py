"""What a fitted model predicts of a load, against what the same board then measures."""

from __future__ import annotations

import dataclasses
import math
from contextlib import closing

import numpy as np
import pytest

from app.engine.control.guard import DeviceGuard
from app.engine.models.clock_fits import fit_of_sweep
from app.engine.models.fit.frequency import FrequencyFit, fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.fit.predict import Predictor
from app.engine.models.fit_documents import fit_from_document, fit_to_document
from app.engine.models.sweep import sweep_clocks, sweep_limits
from app.sensors.select import open_gpu


def curve_w(clock_mhz: np.ndarray) -> np.ndarray:
    return 60 + 0.1 * clock_mhz * np.maximum(1.0, 1 + 1.5e-3 * (clock_mhz - 1100)) ** 2


def fitted(**beside: object) -> FrequencyFit:
    clock = np.linspace(700.0, 1400.0, 8)
    return fit_frequency_model(Points(clock, curve_w(clock), **beside))  # type: ignore[arg-type]


def predictor_of(fit: FrequencyFit) -> Predictor:
    made = Predictor.of(fit)
    assert made is not None
    return made


@pytest.mark.parametrize("board", ["a100", "h200", "rtx5090", "mi210"])
def test_a_board_then_draws_and_takes_what_was_predicted_from_eight_clocks(board: str) -> None:
    with closing(open_gpu(f"simulated:{board}", seed=5, speed=math.inf)) as gpu:
        fit, _ = fit_of_sweep(gpu, points=8)
        model = predictor_of(fit)
        clocks = sweep_clocks(gpu, DeviceGuard(gpu), points=9).points
        limits = sweep_limits(gpu, DeviceGuard(gpu), points=6).points
    assert fit.untouched_rate
    assert fit.untouched_energy
    states = [(clock, math.inf) for clock in clocks.clock_mhz]
    assert limits.requested_mhz is not None
    states += [(model.range_mhz[1] * 2, limit) for limit in limits.requested_mhz]
    power, rate = (
        np.concatenate(parts)
        for parts in zip((clocks.power_w, clocks.rate), (limits.power_w, limits.rate), strict=True)
    )
    held = compared = 0
    for (clock, limit), seen_w, seen_rate in zip(states, power, rate, strict=True):
        outcome = model.at(clock, limit)
        if outcome is None or outcome.binds is None:  # outside what was measured, or at the edge of the limit
            continue
        change = model.change(outcome)
        assert change is not None
        time, energy = fit.untouched_rate / seen_rate, seen_w / seen_rate / fit.untouched_energy
        for expected, seen in zip((model.power(outcome), *change), (seen_w, time, energy), strict=True):
            assert expected.low <= seen <= expected.high, (clock, limit)
            assert expected.high / expected.low < 1.2, "it says something"
        compared, held = compared + 1, held + bool(outcome.binds)
    assert compared >= 5
    assert held or board in ("a100", "mi210"), "the lowest limits hold it"


def test_a_limit_above_what_the_load_draws_cannot_bind_and_one_below_lowers_the_clock() -> None:
    model = predictor_of(fitted(rate=np.linspace(700.0, 1400.0, 8)))
    free_w = float(curve_w(np.asarray([1000.0]))[0])
    free, held = model.at(1000.0, 1.2 * free_w), model.at(1000.0, 0.9 * free_w)
    assert free is not None
    assert held is not None
    assert (free.binds, held.binds) == (False, True)
    assert free.held_mhz == pytest.approx(1000.0)
    assert curve_w(np.asarray([held.held_mhz]))[0] == pytest.approx(0.9 * free_w, rel=0.01)
    change = model.change(held, free)
    assert change is not None
    assert change[0].value == pytest.approx(1000.0 / held.held_mhz, rel=0.01)


def test_nothing_is_predicted_beyond_the_measured_clocks() -> None:
    model = predictor_of(fitted())
    assert model.range_mhz == (700.0, 1400.0)
    for clock, limit in ((600.0, math.inf), (1500.0, math.inf), (1500.0, 400.0), (1000.0, 100.0)):
        assert model.at(clock, limit) is None
    assert model.at(1500.0, 200.0) is not None, "the limit holds it within them"


def test_without_speed_only_watts_are_predicted_and_without_a_model_nothing() -> None:
    model = predictor_of(fitted())
    outcome = model.at(1000.0)
    assert outcome is not None
    assert model.power(outcome).low < 160 < model.power(outcome).high
    assert model.change(outcome) is None
    flat = fit_frequency_model(Points(np.linspace(700.0, 1400.0, 8), np.full(8, 100.0)))
    assert not flat.identifiable
    assert Predictor.of(flat) is None


def test_a_stored_fit_predicts_what_it_did_before() -> None:
    fit = dataclasses.replace(fitted(rate=np.linspace(0.7, 1.4, 8)), untouched_rate=1.4, untouched_energy=160.0)
    again = fit_from_document(fit_to_document(fit))
    results = []
    for each in (fit, again):
        model = predictor_of(each)
        outcome = model.at(1000.0)
        assert outcome is not None
        results.append((model.power(outcome), model.change(outcome)))
    assert results[0] == results[1]
    assert fit.speed(700.0) == pytest.approx(0.5)
