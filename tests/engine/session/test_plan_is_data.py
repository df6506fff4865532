"""A plan says what is to be done, and holds nothing that is open: it can be written down and read again."""

from __future__ import annotations

import pickle
import threading
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.engine.metering.condition import Condition
from app.engine.runner.boards import ReadyPlan, open_runner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_of, plan_replay, plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

EXAMPLES = resources() / "examples"


def data_of(plan: ReadyPlan) -> SessionPlan:
    return SessionPlan(**{each.name: getattr(plan, each.name) for each in fields(SessionPlan)})


def tuned(board: SimulatedGpu, **options: object) -> ReadyPlan:
    wanted = SearchOptions(condition=Condition(gpu_c=60.0), seed=7, **options)  # type: ignore[arg-type]
    return plan_specification(load_specification(EXAMPLES / "gemm.toml"), board, wanted)


@pytest.fixture
def board() -> SimulatedGpu:
    return SimulatedGpu(load_twin("a100"), clock=VirtualClock())


def read_again(plan: SessionPlan) -> SessionPlan:
    again: SessionPlan = pickle.loads(pickle.dumps(plan))  # noqa: S301  (written here)
    for each in fields(SessionPlan):
        before, after = getattr(plan, each.name), getattr(again, each.name)
        if each.name == "space":
            assert (before.parameters, before.notes) == (after.parameters, after.notes)
            assert np.array_equal(before.codes, after.codes)
        else:
            assert repr(before) == repr(after), each.name  # NaN, where a condition leaves something open
    return again


def test_a_plan_of_a_specification_measures_the_same_once_it_was_written_and_read(board: SimulatedGpu) -> None:
    plan = tuned(board, strategy="brute_force")
    again = read_again(data_of(plan))
    rows, found = [0, 5, 9], []
    for each, gpu in ((data_of(plan), board), (again, SimulatedGpu(load_twin("a100"), clock=VirtualClock()))):
        with open_runner(each, tuned(gpu).boards) as runner:
            found.append([(m.row, m.values["time_s"]) for m in runner.measure(rows, threading.Event())])
    assert found[0] == found[1]


def test_plans_of_recordings_and_of_stored_sessions_are_data_too(board: SimulatedGpu, tmp_path: Path) -> None:
    with Store() as store:
        result = run_session(tuned(board, max_evaluations=5), store, lambda _: None, threading.Event())
        stored, resumed = plan_of(store.load(result.session)), plan_resume(store, result.session, gpu=board)
    for plan in (stored, resumed, plan_replay(resources() / "recordings" / "h200-sgemm-session.json.gz")):
        read_again(data_of(plan))


def test_a_plan_that_is_only_for_looking_at_opens_nothing(board: SimulatedGpu) -> None:
    with Store() as store:
        result = run_session(tuned(board, max_evaluations=3), store, lambda _: None, threading.Event())
        stored = plan_of(store.load(result.session))
    with pytest.raises(WattridgeError, match="for looking at"), open_runner(stored, stored.boards):
        pass
