"""Model-steered search: a sweep first, then only the clocks near the model's optimum; or it says why not."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.engine_fakes import Listener
from fixtures.spaces import space_of

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.results.measurement import State
from app.engine.results.objectives import Goal
from app.engine.session.events import SessionRemark
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_replay, plan_specification
from app.engine.session.run import run_session
from app.engine.space.search_space import SearchSpace
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.strategies import base
from app.engine.strategies.base import Batch, Outcome
from app.sensors.select import open_gpu

CLOCKS = tuple(range(600, 1981, 60))
Measure = Callable[[Mapping[str, float]], tuple[float, dict[str, float]]]


SPACE = space_of(block=[32, 64, 128, 256], unroll=[1, 2, 4, 8], graphics_clock_mhz=list(CLOCKS))


def power_w(clock_mhz: float) -> float:
    """P_idle 50 W, ridge at 1140 MHz."""
    voltage = 1 + 0.001 * max(0.0, clock_mhz - 1140)
    return 50 + 0.1 * clock_mhz * voltage**2


def energy(configuration: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    time_s = (1 + abs(math.log2(configuration["block"] / 128)) + 1 / configuration["unroll"]) / configuration[
        "graphics_clock_mhz"
    ]
    watts = power_w(configuration["graphics_clock_mhz"])
    return time_s * watts, {"time_s": time_s, "power_w": watts, "energy_j": time_s * watts}


def search(space: SearchSpace, measure: Measure, **options: object) -> tuple[list[list[int]], list[str], bool]:
    """The batches of a whole search, what was said, and whether it ended by itself."""
    strategy = base.get("steered")
    made = base.make_options(strategy, {"base": "random_sample", "first_samples": 4, **options})
    batches, said = [], []
    going = strategy.search(space, np.random.default_rng(2), 8, made)
    rows = next(going)
    try:
        while len(batches) < 5000:
            assert set(rows).isdisjoint(row for batch in batches for row in batch)
            batches.append(list(rows))
            said += [Batch.of(rows).remark] if Batch.of(rows).remark else []
            outcomes = []
            for row in rows:
                cost, values = measure(space.configuration(row))  # type: ignore[arg-type]
                state = State.OK if math.isfinite(cost) else State.RUNTIME
                outcomes.append(Outcome(row, cost, state, values=values))
            rows = going.send(outcomes)
    except StopIteration:
        return batches, said, True
    going.close()
    return batches, said, False


def optimum_mhz() -> float:
    fine = np.arange(600, 1981)
    return float(fine[np.argmin([power_w(clock) / clock for clock in fine])])


@pytest.mark.parametrize("within", [0.1, 0.2])
def test_after_the_sweep_only_clocks_near_the_optimum_are_measured(within: float) -> None:
    (sample, sweep, *rest), said, ended = search(SPACE, energy, within=within)
    clock_mhz = SPACE.column("graphics_clock_mhz").astype(float)
    assert ended
    assert set(clock_mhz[sample]) == {CLOCKS[-1]}
    best = min(sample, key=lambda row: energy(SPACE.configuration(row))[0])  # type: ignore[arg-type]
    assert (SPACE.codes[sweep][:, :2] == SPACE.codes[best][:2]).all()
    assert len(np.unique(clock_mhz[[*sweep, best]])) == 8  # the row of the sample is part of the sweep
    measured = {row for batch in rest for row in batch}
    near = np.abs(clock_mhz / optimum_mhz() - 1) < within
    swept = {*sample, *sweep}
    assert {row for row in measured if not near[row]} == set()
    missing = {row for row in np.flatnonzero(near).tolist() if row not in measured | swept}
    assert missing == set()
    assert len(measured | swept) < (0.3 if within == 0.1 else 0.5) * SPACE.size
    assert [words.split()[0] for words in said] == ["Sweeping", "Most"]
    assert f"of {SPACE.size} configurations, by Random sampling" in said[1]


def _without_power(configuration: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    cost, values = energy(configuration)
    return cost, {"time_s": values["time_s"]}


def _time(configuration: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    _, values = energy(configuration)
    return values["time_s"], values


def _senseless(configuration: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    noise = np.random.default_rng(round(configuration["graphics_clock_mhz"])).uniform(50, 400)
    return noise, {"time_s": 1.0, "power_w": noise}


@pytest.mark.parametrize(
    ("space", "measure", "why"),
    [
        (space_of(block=[1, 2, 3]), _without_power, "no graphics clocks"),
        (space_of(block=[32, 64], unroll=[1], graphics_clock_mhz=[1000, 1500]), energy, "has 2 values"),
        (SPACE, _without_power, "hold no power_w"),
        (SPACE, _time, "objective is better at other clocks"),
        (SPACE, _senseless, "not identifiable"),
        (SPACE, lambda _: (math.inf, {}), "no configuration worked"),
    ],
)
def test_it_says_why_it_does_not_steer_and_searches_everything(space: SearchSpace, measure: Measure, why: str) -> None:
    def safe(configuration: Mapping[str, float]) -> tuple[float, dict[str, float]]:
        return measure({"unroll": 1, "graphics_clock_mhz": 1000, **configuration})

    batches, said, ended = search(space, safe)
    assert ended
    assert said[-1].startswith("Not steered: ")
    assert why in said[-1]
    assert sorted(row for batch in batches for row in batch) == list(range(space.size))


def test_it_steers_every_other_strategy_but_itself() -> None:
    for name in ("greedy_ils", "differential_evolution", "brute_force"):
        batches, said, ended = search(SPACE, energy, base=name)
        assert ended
        assert base.get(name).label in said[-1]
        assert sum(map(len, batches)) < 0.3 * SPACE.size
    for wrong in ("steered", "nonsense"):
        with pytest.raises(InputError, match="greedy_ils"):
            base.make_options(base.get("steered"), {"base": wrong})


def test_on_a_simulated_board_it_finds_the_most_efficient_in_a_part_of_the_space(own_data_folder: Path) -> None:
    gpu = open_gpu("simulated:a100", speed=math.inf)
    try:
        specification = load_specification(resources() / "examples" / "gemm.toml")
        options = {"base": "greedy_ils"}
        plan = plan_specification(
            specification, gpu, SearchOptions(strategy="steered", strategy_options=options, max_evaluations=90, seed=1)
        )
        heard = Listener()
        with Store() as store:
            result = run_session(plan, store, heard, threading.Event())
    finally:
        gpu.close()
    clock_mhz = plan.space.column("graphics_clock_mhz")[result.table.rows()]
    said = [event.text for event in heard.of(SessionRemark)]
    assert any(text.startswith("Most efficient near 1") for text in said)
    searched = set(clock_mhz[16 + 8 :])
    # of the board's seven clocks here the one within a tenth of 1035 MHz, its optimum, and the board's own state
    assert searched == {1005, "untouched"}
    assert result.progress.best_index is not None
    assert clock_mhz[result.progress.best_index] == 1005


def test_a_steered_session_taken_up_goes_on_as_if_it_had_never_stopped(shared_data: Path) -> None:
    """Cut in the sample, in the sweep and later: the sweep is not made again."""
    cache = shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"
    whole = plan_replay(
        cache,
        SearchOptions(
            objective=Goal("TFLOPS/J", maximise=True), strategy="steered", strategy_options={"base": "greedy_ils"}
        ),
    )
    heard = Listener()
    with Store() as store:
        uncut = run_session(replace(whole, max_evaluations=60), store, heard, threading.Event()).table.rows().tolist()
        session = None
        for budget in (10, 20, 35, 60):
            part = replace(whole, max_evaluations=budget, resume=session)
            result = run_session(part, store, Listener(), threading.Event())
            session = result.session
    assert result.table.rows().tolist() == uncut
    assert heard.of(SessionRemark)[-1].text.startswith("Most efficient near 1485 MHz, the end of the sweep")
    clock_mhz = whole.space.column("nvml_gr_clock").astype(float)[uncut[24:]]
    assert clock_mhz.max() <= 1.1 * 1485
