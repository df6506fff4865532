"""How long a session takes is stated before it starts: a range that follows from its board and its limits."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.paths import resources
from app.engine.results.state import Progress, SessionState
from app.engine.runner.boards import ReadyPlan
from app.engine.session.expected_time import TimeRange, expected_time, pace_of
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.select import open_gpu

EXAMPLES = resources() / "examples"


def plan_of(name: str, speed: float = 1.0, **options: object) -> ReadyPlan:
    gpu = open_gpu("simulated:a100", speed=speed)
    return plan_specification(load_specification(EXAMPLES / f"{name}.toml"), gpu, SearchOptions(**options))  # type: ignore[arg-type]


def expected(plan: ReadyPlan, done: int = 0) -> TimeRange:
    with Store() as store:
        pace = pace_of(plan, store)
    assert pace is not None
    return expected_time(pace, plan, done)


@pytest.mark.parametrize("strategy", ["greedy_ils", "auto"])
@pytest.mark.parametrize("name", ["vector_add", "gemm", "n_body"])
def test_the_boards_own_seconds_lie_within_it(name: str, strategy: str, own_data_folder: Path) -> None:
    """What a session spends on the board's clock is what it would take on the wall at real time."""
    stated = expected(plan_of(name, strategy=strategy))
    plan = plan_of(name, math.inf, strategy=strategy)
    with Store() as store:
        table = run_session(plan, store, lambda _event: None, threading.Event()).table
    spent_s = sum(table.measurement(index).cost_s for index in range(len(table)))
    assert stated.low_s <= spent_s <= stated.high_s
    assert stated.high_s < 3 * stated.low_s or strategy == "auto", "narrow enough to plan by"


def test_it_follows_budget_time_limit_speed_and_what_is_done(own_data_folder: Path) -> None:
    plan = plan_of("vector_add", strategy="simulated_annealing")
    whole = expected(plan)
    assert expected(replace(plan, max_evaluations=20)).high_s < whole.low_s
    assert expected(replace(plan, max_seconds=5.0)).high_s < whole.low_s
    assert expected(plan_of("vector_add", 60.0, strategy="simulated_annealing")).high_s < whole.low_s
    assert expected(plan, done=180).high_s < whole.low_s
    assert expected(replace(plan, patience=3)).low_s < whole.low_s


def test_what_a_copy_of_the_board_is_tried_with_leaves_the_board_alone(own_data_folder: Path) -> None:
    plan = plan_of("gemm")
    gpu = plan.boards.gpu  # type: ignore[attr-defined]
    before = gpu.info.power_limit
    expected(plan)
    assert not gpu.busy
    assert gpu.info.power_limit == before
    with Store() as store:
        assert list(store.sessions()) == []


def test_nothing_is_said_of_a_recording(own_data_folder: Path) -> None:
    from app.engine.session.planning import plan_replay

    with Store() as store:
        assert pace_of(plan_replay(resources() / "recordings" / "h200-sgemm-session.json.gz"), store) is None


def test_health_comes_with_the_progress_of_a_session(own_data_folder: Path) -> None:
    seen: list[Progress] = []
    plan = plan_of("vector_add", math.inf, max_evaluations=10)
    with Store() as store:
        result = run_session(
            plan, store, lambda e: seen.append(p) if (p := getattr(e, "progress", None)) else None, threading.Event()
        )
    assert result.state is SessionState.DONE
    assert result.progress.health.objective_share == 1.0
    assert seen[-1].health.healthy
    assert seen[-1].health.known
