"""Sessions that are answered from real recordings."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fixtures.engine_fakes import Listener

from app.base.errors import InputError, WattridgeError
from app.engine.results.objectives import Goal, parse_front
from app.engine.results.state import SessionState
from app.engine.session.events import MeasurementsAdded
from app.engine.session.planning import plan_of, plan_replay, plan_resume
from app.engine.session.run import run_session
from app.engine.session.summary import session_summary
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.strategies import base as strategies

FRONT = parse_front("max:TFLOPS,max:TFLOPS/J")
STRATEGIES = ("brute_force", "random_sample", "genetic_algorithm", "greedy_ils", "simulated_annealing")


@pytest.fixture
def gemm_cache(shared_data: Path) -> Path:
    return shared_data / "kernel-tuner" / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


def test_brute_force_finds_the_published_front(gemm_cache: Path) -> None:
    plan = plan_replay(
        gemm_cache, SearchOptions(strategy="brute_force", front=FRONT, objective=Goal("TFLOPS", maximise=True))
    )
    heard = Listener()
    with Store() as store:
        result = run_session(plan, store, heard, threading.Event())
        summary = session_summary(result.table, plan, session=result.session, seconds=result.progress.elapsed_s)
    assert (summary["evaluated"], summary["failed"]) == (5120, {"runtime": 430})
    assert summary["source"] == "recorded"
    assert len(summary["front"]) == 13
    words = [",".join(str(value) for value in entry["configuration"].values()) for entry in summary["front"]]
    assert "1815,32,1,2,64,64,2" in words
    assert "1485,32,2,2,64,128,2" in words
    assert summary["best"]["values"]["TFLOPS"] == pytest.approx(80.435, abs=5e-4)
    assert summary["best"]["values"]["TFLOPS/J"] == pytest.approx(0.8264, abs=5e-5)
    assert len(heard.of(MeasurementsAdded)) < 100  # coalesced: 5120 events would cost more than the search


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_searches_a_cache_within_its_budget_and_repeats_exactly(gemm_cache: Path, strategy: str) -> None:
    assert set(STRATEGIES) <= set(strategies.names())

    def rows(seed: int) -> list[int]:
        plan = plan_replay(gemm_cache, SearchOptions(strategy=strategy, front=FRONT, max_evaluations=150, seed=seed))
        with Store() as store:
            result = run_session(plan, store, Listener(), threading.Event())
        assert result.state is SessionState.DONE
        return [int(row) for row in result.table.rows()]

    once = rows(1)
    assert len(once) == len(set(once)) == 150
    assert rows(1) == once
    if strategy != "brute_force":
        assert rows(2) != once


def test_a_replay_is_taken_up_where_it_was_left(gemm_cache: Path) -> None:
    with Store() as store:
        first = plan_replay(gemm_cache, SearchOptions(strategy="genetic_algorithm", max_evaluations=60, seed=3))
        session = run_session(first, store, Listener(), threading.Event()).session
        plan = plan_resume(store, session, SearchOptions(max_evaluations=100))
        result = run_session(plan, store, Listener(), threading.Event())
        uncut = plan_replay(gemm_cache, SearchOptions(strategy="genetic_algorithm", max_evaluations=100, seed=3))
        whole = run_session(uncut, store, Listener(), threading.Event())
    assert result.session == session
    assert result.table.rows().tolist() == whole.table.rows().tolist()


def test_a_changed_or_missing_file_cannot_be_resumed_but_still_be_looked_at(shared_data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.json"
    original = shared_data / "kernel-tuner" / "kt_vector_add_RTX4000Ada_PowerSensor3_15.json"
    cache.write_bytes(original.read_bytes())
    with Store() as store:
        plan = plan_replay(cache)
        assert plan.objective.goal in (Goal("time", maximise=False), Goal("time_s", maximise=False))
        session = run_session(plan, store, Listener(), threading.Event()).session
        cache.write_bytes(original.read_bytes() + b"\n")
        with pytest.raises(InputError, match="changed"):
            plan_resume(store, session)
        cache.unlink()
        with pytest.raises(InputError, match="gone"):
            plan_resume(store, session)
        loaded = store.load(session)
        kept = plan_of(loaded)
        summary = session_summary(loaded.table, kept, session=session)
        assert summary["evaluated"] == 15
        assert (kept.objective, kept.units) == (plan.objective, plan.units)
        with pytest.raises(WattridgeError):
            run_session(kept, store, Listener(), threading.Event())


@pytest.mark.parametrize(
    "wrong",
    [
        {"objective": Goal("TFLOP", maximise=True)},
        {"front": parse_front("max:TFLOPS,min:nonsense")},
        {"strategy": "nonsense"},
        {"strategy_options": {"nonsense": 1}},
        {"max_evaluations": 0},
        {"max_seconds": -1.0},
        {"patience": 0},
    ],
)
def test_what_the_cache_or_the_strategy_does_not_know_is_bad_input(gemm_cache: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError) as error:
        plan_replay(gemm_cache, SearchOptions(**wrong))  # type: ignore[arg-type]
    assert error.value.remedy
