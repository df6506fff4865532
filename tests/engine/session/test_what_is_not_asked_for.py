"""What a recording or a board reports beside what is asked for is shown, and does not change the search."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.engine_fakes import Listener

from app.base.paths import resources
from app.engine.results.objectives import Goal, Objective
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, plan_replay, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.strategies import base as strategies
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

BUDGET = 40
OF_FRONTS = ("multi_objective_bayesian", "nsga2")


def cache(folder: Path, *, energy: bool) -> Path:
    """Of a Kernel Tuner session for the time, over 24 x 24 configurations."""
    rng, entries = np.random.default_rng(5), dict[str, Any]()
    for x in range(24):
        for y in range(24):
            time_ms = 1.0 + (x - 17) ** 2 / 50 + (y - 5) ** 2 / 30 + 0.3 * float(rng.random())
            entry: dict[str, Any] = {"x": x, "y": y, "time": time_ms}
            if energy:
                entry["nvml_energy"] = time_ms * 1e-3 * (60 + 5 * abs(x - 3))
            entries[f"{x},{y}"] = entry
    document = {
        "device_name": "Board",
        "kernel_name": "kernel",
        "problem_size": [1],
        "objective": "time",
        "tune_params_keys": ["x", "y"],
        "tune_params": {"x": list(range(24)), "y": list(range(24))},
        "cache": entries,
    }
    path = folder / f"{'with' if energy else 'without'}-energy.json"
    path.write_text(json.dumps(document))
    return path


def replay(path: Path, strategy: str, **wanted: Any) -> SessionResult:
    options = SearchOptions(strategy=strategy, max_evaluations=BUDGET, seed=1, **wanted)
    with Store() as store:
        return run_session(plan_replay(path, options), store, Listener(), threading.Event())


@pytest.mark.parametrize("strategy", [s for s in strategies.names() if s not in OF_FRONTS])
def test_a_search_for_the_time_is_the_same_with_and_without_energies_in_the_recording(
    strategy: str, tmp_path: Path
) -> None:
    alone, beside = (replay(cache(tmp_path, energy=energy), strategy) for energy in (False, True))
    assert alone.table.rows().tolist() == beside.table.rows().tolist()
    assert not beside.table.timed().any()
    assert {goal.name for goal in beside.plan.objective.front} == {"time_s", "energy_j"}, "it is still shown"


def test_a_front_that_is_asked_for_is_searched(tmp_path: Path) -> None:
    path = cache(tmp_path, energy=True)
    shown = replay(path, "auto")
    asked = replay(path, "auto", front=(Goal("time_s", False), Goal("energy_j", False)))
    assert (shown.plan.objective.front_asked, asked.plan.objective.front_asked) == (False, True)
    assert asked.table.rows().tolist() != shown.table.rows().tolist()
    assert asked.table.timed().any()


@pytest.mark.parametrize("strategy", OF_FRONTS)
def test_who_chooses_a_search_of_the_front_has_asked_for_it(strategy: str, tmp_path: Path) -> None:
    listener = Listener()
    options = SearchOptions(strategy=strategy, max_evaluations=BUDGET, seed=1)
    with Store() as store:
        plan = plan_replay(cache(tmp_path, energy=True), options)
        run_session(plan, store, listener, threading.Event())
    assert not any("no front" in getattr(event, "text", "") for event in listener.events)


def test_a_specification_that_names_the_time_alone_is_searched_for_that(tmp_path: Path) -> None:
    text = (resources() / "examples" / "gemm.toml").read_text()
    begin, end = text.index("[objective]"), text.index("\n[", text.index("[objective]") + 1)
    path = tmp_path / "gemm.toml"
    path.write_text(f"{text[:begin]}[objective]\nminimise = 'time_s'\n{text[end:]}")
    (tmp_path / "sgemm.cu").write_text("")
    gpu = SimulatedGpu(load_twin("a100"), seed=1, clock=VirtualClock())
    options = SearchOptions(strategy="auto", max_evaluations=20, seed=1)
    plan = plan_specification(load_specification(path), gpu, options)
    with Store() as store:
        result = run_session(plan, store, Listener(), threading.Event())
        again = plan_of(store.load(result.session))
    assert len(plan.objective.front) == 2
    assert not plan.objective.front_asked
    assert again.objective == plan.objective, "when it is resumed, too"
    assert len(result.table) == 20
    assert not result.table.timed().any()


@pytest.mark.parametrize("asked", [True, False])
def test_files_keep_whether_a_front_was_asked_for(asked: bool) -> None:
    front = (Goal("time_s", False), Goal("energy_j", False))
    objective = Objective(Goal("time_s", False), front, front_asked=asked)
    assert Objective.of_list(json.loads(json.dumps(objective.to_list()))) == objective
    assert Objective.of_list([["a", True], ["a", True], ["b", False]]).front_asked, "as it was written before"
