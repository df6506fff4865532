"""A session's learning of its board: the condition in the middle of its windows, and the model that they show."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from hypothesis import given
from hypothesis import strategies as st

from app.engine.metering.condition import Condition, SeenConditions
from app.engine.metering.thermal import BoardLearning, ThermalModel
from app.engine.metering.window import Window

FIGURES = st.floats(0, 700) | st.just(math.nan)


def window(rng: np.random.Generator) -> Window:
    """Of a kernel that draws 0.2 % more per degree."""
    warm = rng.normal(0, 5)
    power_w = 400 * math.exp(0.002 * warm + rng.normal(0, 0.002))
    ends = (power_w * 0.99, power_w * 1.01)
    condition = Condition(50 + warm, 52.0, 400.0, 400.0)
    of_board = dict.fromkeys(("observed_clock_mhz", "memory_power_w", "core_voltage_mv", "memory_clock_mhz"), math.nan)
    return Window(
        time_s=1e-3,
        power_w=power_w,
        power_interval_w=ends,
        temperature_c=50.0,
        event_reasons=0,
        window_ns=(0, 1),
        power_source="buffer",
        condition=condition,
        **of_board,
    )


@given(st.lists(st.tuples(FIGURES, FIGURES, FIGURES)))
def test_the_usual_condition_is_the_median_of_what_is_known_of_each_figure(seen: list[tuple[float, ...]]) -> None:
    conditions = SeenConditions()
    for gpu_c, memory_c, slow_w in seen:
        conditions.add(Condition(gpu_c, memory_c, 1.0, slow_w))
    assert len(conditions) == len(seen)
    known = [[value for value in column if not math.isnan(value)] for column in zip(*seen, strict=True)] or [[], [], []]
    usual = conditions.usual
    for values, step, found in zip(known, (1, 1, 10), (usual.gpu_c, usual.memory_c, usual.slow_w), strict=True):
        assert math.isnan(found) if not values else found == round(median(values) / step) * step
    assert math.isnan(usual.fast_w), "a kernel that runs for seconds has drawn its own power in the last second"


def test_learning_a_long_session_costs_about_as_much_per_window_as_learning_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnt_from: list[int] = []

    def counted(model: ThermalModel, looks: list[object]) -> ThermalModel:
        learnt_from.append(len(looks))
        return replace(model, wander_degrees=model.wander_degrees + len(looks))  # as if it had learnt

    monkeypatch.setattr(ThermalModel, "learn", counted)
    rng, learning, asked = np.random.default_rng(0), BoardLearning(SteadySensors().info), 2000
    windows = [window(rng) for _ in range(20)]
    for number in range(asked):
        learning.note(str(number // 2), windows[number % 20])
        assert learning.model.wander_degrees > 0
        shown = 2 * ((number + 1) // 2)  # looks at kernels that were seen twice
        assert not learnt_from or learnt_from[-1] >= 0.95 * shown, "what it states by is nearly up to date"
    assert sum(learnt_from) < 25 * asked, "each time from everything would be 500 times"


def test_at_the_end_everything_counts() -> None:
    rng, info = np.random.default_rng(1), SteadySensors().info
    lagging, prompt = BoardLearning(info), BoardLearning(info)
    for number in range(301):
        seen = window(rng)
        for each in (lagging, prompt):
            each.note(f"kernel {number % 7}", seen)
        assert lagging.model.wander_degrees > 0
    lagging.learn_all()
    prompt.learn_all()
    assert lagging.model == prompt.model
    assert lagging.model.wander_degrees == ThermalModel().wander_degrees + 301 - 7
    assert lagging.model.coefficients[0] == pytest.approx(0.002, rel=0.15)


def test_windows_of_kernels_that_were_seen_once_teach_nothing() -> None:
    rng, learning = np.random.default_rng(2), BoardLearning(SteadySensors().info)
    for number in range(30):
        learning.note(str(number), window(rng))
    assert learning.model == ThermalModel()
