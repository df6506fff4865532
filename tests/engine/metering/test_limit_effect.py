"""Power limits that a load cannot reach: by hand, and on simulated boards whose power is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from fixtures.simulated import board

from app.base.records import as_json
from app.engine.control.guard import DeviceGuard
from app.engine.metering.limit_effect import (
    SENSOR_ERROR,
    LimitEffect,
    effect_now,
    effects_of,
    in_words,
    look_at_effect,
)
from app.engine.metering.meter import Meter
from app.engine.metering.power_source import PowerSensor
from app.engine.models.clock_fits import caps_of_sweep
from app.engine.models.describe_fits import describe_caps
from app.engine.models.fit.caps import compare, fit_caps
from app.engine.models.fit.frequency import fit_frequency_model
from app.engine.models.sweep import sweep_clocks, sweep_limits
from app.sensors.channel import PowerSample, Reading, channel
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import Load
from app.sensors.select import open_gpu
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.trace.trace import Trace

# Streams weights with too few blocks to fill the memory: on the model of an H200 224 W of 700 W, about as measured
# while decoding [arXiv 2605.11999: 137 to 300 W].
DECODING = Load("decoding", "fp16_tensor", work_flop=1e9, traffic_byte=1e9, occupancy=0.05)
MORE_DECODING = Load("decoding more", "fp16_tensor", work_flop=1e9, traffic_byte=1e9, occupancy=0.1)  # 320 W


def of(limit_w: float, peak_w: float, share: float = 0.0) -> LimitEffect:
    return LimitEffect(limit_w, peak_w, share)


@pytest.mark.parametrize(
    ("effect", "without", "binds"),
    [
        (of(700, 300), True, False),
        (of(300, 300), False, False),  # a sample at the limit may be a peak that no average reaches, or more
        (of(300 / (1 - SENSOR_ERROR) - 0.01, 300), False, False),  # within what the sensor may be off
        (of(300 / (1 - SENSOR_ERROR) + 0.01, 300), True, False),
        (of(200, 300), False, False),  # a peak above a limit does not show that it binds
        (of(200, 300, 0.4), False, True),
        (of(700, 300, 0.4), False, True),  # power throttled the load although samples did not show why
        (of(700, 300, 0.005), True, False),
        (of(700, math.nan), False, False),
        (of(700, 300, math.nan), False, False),
    ],
)
def test_the_peak_and_the_throttled_time_decide(effect: LimitEffect, without: bool, binds: bool) -> None:
    assert (effect.without_effect, effect.binds) == (without, binds)
    assert ("without effect" in in_words([effect])) is without


def effects(limits: Sequence[float], *measured: tuple[float, float, float]) -> list[tuple[bool, bool]]:
    columns = np.array(measured, dtype=np.float64).reshape(-1, 3).T
    return [(effect.binds, effect.without_effect) for effect in effects_of(limits, *columns)]


def test_of_several_limits_those_below_one_that_binds_bind_too() -> None:
    limits = [200.0, 300.0, 400.0, 500.0]
    measured = ((300.0, 302.0, 0.9), (500.0, 340.0, 0.0))
    assert effects(limits, *measured) == [(True, False), (True, False), (False, True), (False, True)]


def test_throttled_far_below_its_limit_a_load_was_throttled_by_another_one() -> None:
    """As while the clock returns from the limit before."""
    limits = [200.0, 400.0, 500.0]
    measured = ((200.0, 201.0, 1.0), (400.0, 301.0, 1.0), (500.0, 357.0, 0.0))
    assert effects(limits, *measured) == [(True, False), (False, False), (False, True)]
    assert effects(limits, measured[0], measured[2]) == [(True, False), (False, True), (False, True)]


def test_a_peak_under_a_limit_that_binds_says_nothing_of_higher_ones() -> None:
    assert effects([200.0, 700.0], (200.0, 201.0, 0.9)) == [(True, False), (False, False)]
    assert effects([200.0, 700.0]) == [(False, False), (False, False)]


def test_the_words_name_limits_peak_and_throttled_time() -> None:
    words = in_words([of(200, 300, 0.4), of(500, 300), of(600, 300, 0.004), of(700, 300)])
    assert words == (
        "a power limit of 200 W binds; 500 W, 600 W or 700 W is without effect on this load: "
        "samples of its power peak at 300 W (sensor ±5 %), and power throttled it for 0.0 % of the time"
    )
    assert in_words([of(300, 300)]) == ""
    assert as_json(of(700, 300))["without_effect"] is True


def test_values_that_average_over_a_second_show_no_peak() -> None:
    assert PowerSensor("", None, 0.02, 0.02).peak_w([100.0, 300.0]) == 300.0
    assert math.isnan(PowerSensor("", "power_average_w", 0.1, 1.0).peak_w([100.0, 300.0]))
    assert math.isnan(PowerSensor("", None, 0.02, 0.02).peak_w([]))


# --- windows ----------------------------------------------------------------------------------------------------------


def test_a_window_holds_the_peak_and_the_throttled_time() -> None:
    gpu = board("h200")
    free = Meter(gpu).measure(DECODING)
    assert free is not None
    assert free.power_w < free.peak_power_w < 1.03 * free.power_w
    assert free.throttled_share == 0
    gpu.set_power_limit(200)
    held = Meter(gpu).measure(full_load())
    assert held is not None
    assert held.throttled_share > 0.9


# --- sweeps of limits -------------------------------------------------------------------------------------------------


def swept(load: Load, points: int = 8) -> tuple[list[float], tuple[LimitEffect, ...], SimulatedGpu]:
    gpu = board("h200")
    sweep = sweep_limits(gpu, DeviceGuard(gpu), points=points, load=load)
    assert sweep.points.requested_mhz is not None
    return sweep.points.requested_mhz.tolist(), sweep.effects, gpu


def test_a_sweep_leaves_out_limits_that_the_load_cannot_reach() -> None:
    measured, effects, gpu = swept(MORE_DECODING)
    spared = [effect.limit_w for effect in effects if effect.without_effect]
    assert spared == [343.0, 414.0, 486.0, 557.0, 629.0, 700.0]
    assert measured == [200.0, 271.0, 343.0, 700.0], "the highest and the one above the peak stay"
    assert [effect.limit_w for effect in effects if effect.binds] == [200.0, 271.0]
    assert gpu.read().values[[item.name for item in gpu.channels].index("power_limit_w")] == 700.0, "put back"


def test_where_no_limit_binds_three_are_measured() -> None:
    measured, effects, _ = swept(Load("little", "fp16_tensor", work_flop=1e9, traffic_byte=1e9, occupancy=0.02))
    assert all(effect.without_effect for effect in effects)
    assert measured == [200.0, 271.0, 700.0]


def test_a_full_load_is_measured_under_every_limit() -> None:
    measured, effects, _ = swept(full_load(), points=4)
    assert measured == [200.0, 367.0, 533.0, 700.0]
    assert [effect.binds for effect in effects] == [True, True, True, False]


def test_caps_say_which_limits_were_left_out_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.sensors.simulated.profiles.full_load", lambda: MORE_DECODING)
    caps = caps_of_sweep(board("h200"), points=8)
    assert caps.points == 4
    assert caps.without_effect_from_w == 343.0
    described = describe_caps(caps)
    [reason] = [text for text in described.remarks if "without effect" in text]
    assert "343 W, 414 W, 486 W, 557 W, 629 W or 700 W is without effect" in reason
    assert reason.endswith("(not measured: 414 W, 486 W, 557 W or 629 W)")
    assert as_json(caps)["without_effect_from_w"] == 343.0


def test_locking_against_capping_names_the_limits_without_effect() -> None:
    gpu = board("h200")
    fit = fit_frequency_model(sweep_clocks(gpu, DeviceGuard(gpu), points=8, load=MORE_DECODING).points)
    limits, power = np.array([200.0, 271.0, 343.0, 700.0]), np.array([199.0, 270.0, 321.0, 321.0])
    effects = tuple(LimitEffect(limit, 325.0, float(limit < 300)) for limit in limits.tolist())
    caps = fit_caps(limits, power, (power / 321.0) ** 0.5, effects=effects)
    assert caps is not None
    comparison = compare(fit, caps)
    assert comparison is not None
    assert comparison.words.endswith("; limits from 343 W on are without effect on this load")
    unknown = fit_caps(limits, power, (power / 321.0) ** 0.5)
    assert unknown is not None
    assert unknown.without_effect_from_w is None
    without = compare(fit, unknown)
    assert without is not None
    assert "without effect" not in without.words


# --- what runs now ----------------------------------------------------------------------------------------------------


CHANNELS = tuple(channel(name) for name in ("power_instant_w", "power_limit_w", "event_reasons"))


def trace_of(*stretches: tuple[float, float, EventReason], limit_w: float = 700.0, samples: bool = False) -> Trace:
    """Seconds, W and event reasons of stretches after one another, read 20 times a second."""
    trace, now = Trace(CHANNELS), 1_000_000_000
    for seconds, power_w, reasons in stretches:
        for _ in range(round(20 * seconds)):
            now += 50_000_000
            trace.append(Reading(now, (power_w, limit_w, float(reasons))))
            if samples:
                trace.append_power_samples([PowerSample(now, power_w)])
    return trace


NONE, IDLE, CAP = EventReason.NONE, EventReason.IDLE, EventReason.POWER_CAP


@pytest.mark.parametrize("samples", [False, True])
def test_what_runs_is_judged_by_its_peak_and_not_by_its_mean(samples: bool) -> None:
    calm = effect_now(trace_of((10, 200, NONE), samples=samples), 500)
    assert calm is not None
    assert calm.without_effect
    bursts = effect_now(trace_of((9, 200, NONE), (0.2, 490, NONE), (1, 200, NONE), samples=samples), 500)
    assert bursts is not None
    assert bursts.peak_w == 490
    assert not bursts.without_effect


def test_what_ran_longer_ago_counts_no_more() -> None:
    effect = effect_now(trace_of((5, 600, NONE), (31, 200, NONE)), 500)
    assert effect is not None
    assert effect.without_effect


def test_under_a_limit_that_binds_a_higher_one_is_not_known_and_a_lower_one_binds() -> None:
    trace = trace_of((10, 298, CAP), limit_w=300)
    higher, lower = effect_now(trace, 700), effect_now(trace, 250)
    assert higher is not None
    assert lower is not None
    assert (higher.binds, higher.without_effect) == (False, False)
    assert lower.binds


def test_an_idle_board_has_no_load_to_judge_by() -> None:
    assert effect_now(trace_of((10, 80, IDLE)), 500) is None
    assert effect_now(trace_of((0.5, 200, NONE)), 500) is None, "too short"
    assert effect_now(Trace(()), 500) is None
    mostly_idle = effect_now(trace_of((8, 80, IDLE), (2, 300, NONE)), 500)
    assert mostly_idle is not None
    assert mostly_idle.without_effect


def test_without_event_reasons_nothing_is_known() -> None:
    trace = Trace(CHANNELS[:2])
    for step in range(100):
        trace.append(Reading(1_000_000_000 + 50_000_000 * step, (200.0, 700.0)))
    assert effect_now(trace, 700) is None


def test_a_look_at_a_board_that_works() -> None:
    gpu = open_gpu("simulated:h200", speed=4.0)
    assert isinstance(gpu, SimulatedGpu)
    assert look_at_effect(gpu, 400.0) is None, "it is idle"
    gpu.begin(DECODING)
    effect = look_at_effect(gpu, 400.0)
    assert effect is not None
    assert effect.without_effect
    assert 200 < effect.peak_w < 250
    gpu.end()
    gpu.set_power_limit(300)
    gpu.begin(full_load())
    gpu.clock.wait(2.0)
    held = look_at_effect(gpu, 300.0)
    assert held is not None
    assert held.binds
    gpu.end()
