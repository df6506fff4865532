"""An energy against earlier sessions: how often it is called worse, and what one session or ten can show."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.analysis.baseline import BETWEEN_SESSIONS, CallEnergy, against_baseline, call_energy


def energy(value_j: float, half_j: float = 0.0) -> CallEnergy:
    return CallEnergy(value_j, (value_j - half_j, value_j + half_j), 0.01, None)


def test_the_energy_of_blocks_is_their_mean_with_what_the_sensor_wanders() -> None:
    values = [3.0, 3.03, 2.97, 3.01, 2.99]
    found = call_energy(values, [0.01] * 5, 0.0)
    assert found.energy_j == pytest.approx(3.0)
    low, high = found.energy_interval_j or (0.0, 0.0)
    assert high - low == pytest.approx(2 * 2.7764 * np.std(values, ddof=1) / np.sqrt(5), rel=1e-4)
    wider = call_energy(values, [0.01] * 5, 0.02).energy_interval_j or (0.0, 0.0)
    assert wider[1] - wider[0] > 2 * 1.96 * 0.02 * 3.0
    assert call_energy([3.0], [0.01], 0.0).energy_interval_j is None


@pytest.mark.parametrize("sessions", [1, 3, 10])
def test_the_same_energy_is_rarely_called_worse_and_much_more_always(sessions: int) -> None:
    noise = np.random.default_rng(7)
    alarms = found = 0
    for _ in range(1000):
        drawn = np.exp(BETWEEN_SESSIONS * noise.standard_normal(sessions + 1))
        earlier = (3.0 * drawn[1:]).tolist()
        alarms += against_baseline(energy(3.0 * drawn[0]), earlier).worse(0.0)
        found += against_baseline(energy(3.0 * 1.1 * drawn[0]), earlier).worse(0.0)
    assert alarms <= 12, "0.5 % is promised"
    assert found >= 950


def test_sessions_that_differ_widen_the_interval_and_sessions_that_agree_narrow_it() -> None:
    def width(earlier: list[float]) -> float:
        low, high = against_baseline(energy(3.0), earlier).interval
        return high - low

    agreeing, differing = [3.0, 3.003] * 5, [2.8, 3.2] * 5
    assert width(agreeing) < width([3.0]) / 2
    assert width(differing) > 2 * width(agreeing)


def test_the_uncertainty_of_this_session_counts_too() -> None:
    sharp, blurred = (against_baseline(energy(3.2, half_j), [3.0] * 10) for half_j in (0.0, 0.5))
    assert sharp.worse(0.005)
    assert sharp.differs
    assert not blurred.worse(0.005)
    assert sharp.change == pytest.approx(0.2 / 3.0)
