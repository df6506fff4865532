"""The engine thread: what it does with commands, in which order its events come, and that only its end ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, made_by, plan

from app.base.errors import InputError, WattridgeError
from app.engine.results.measurement import Depth
from app.engine.results.objectives import Goal, Objective
from app.engine.results.state import SessionState
from app.engine.session.engine_thread import Tuner
from app.engine.session.events import (
    Apply,
    EngineFault,
    Fit,
    MeasurementsAdded,
    Pause,
    Resume,
    SessionChanged,
    SessionStarted,
    Start,
    Stop,
)
from app.engine.session.run import run_session
from app.engine.session.summary import session_summary
from app.engine.store.database import Store

SPACE = grid()


@pytest.fixture
def heard() -> Listener:
    return Listener()


@pytest.fixture
def tuner(store: Store, heard: Listener) -> Iterator[Tuner]:
    engine = Tuner(store, heard)
    engine.start()
    yield engine
    engine.stop()
    engine.join(10)


def never() -> threading.Event:
    return threading.Event()


class Gate:
    """Lets a runner measure up to a row, and on when opened."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, row: int) -> None:
        if row == self._at:
            self.reached.set()
            assert self.open.wait(10)


def test_a_session_runs_to_its_end_and_everything_reported_is_on_disk(store: Store, heard: Listener) -> None:
    runner = FakeRunner(SPACE)
    result = run_session(plan(SPACE, runner), store, heard, never())
    assert (result.state, result.progress.evaluated, len(result.table)) == (SessionState.DONE, 100, 100)
    assert runner.closed
    assert sorted(runner.measured) == list(range(100))
    assert isinstance(heard.events[0], SessionStarted)
    assert isinstance(heard.events[-1], SessionChanged)
    assert heard.of(MeasurementsAdded)[-1].length == 100
    assert store.session(result.session).evaluated == 100
    assert store.session(result.session).state is SessionState.DONE


def test_every_measurement_names_the_board_that_made_it(store: Store, heard: Listener) -> None:
    origin = {"kind": "fake", "gpu": "GPU-1"}
    measured = plan(SPACE, FakeRunner(SPACE), origin=origin, max_evaluations=9)
    session = run_session(measured, store, heard, never()).session
    table = store.load(session).table
    assert {table.measurement(index).board for index in range(len(table))} == {"GPU-1"}
    replayed = FakeRunner(SPACE)
    replayed.source = "recorded"
    session = run_session(plan(SPACE, replayed, origin=origin, max_evaluations=9), store, heard, never()).session
    assert store.load(session).table.measurement(0).board == "", "a recording is of its own board, known or not"


def test_every_measurement_is_on_disk_when_it_is_reported(store: Store) -> None:
    on_disk: list[tuple[int, int]] = []

    def look(event: object) -> None:
        if isinstance(event, MeasurementsAdded):
            with Store() as other:
                on_disk.append((event.length, other.session(event.session).evaluated))

    run_session(plan(SPACE, FakeRunner(SPACE)), store, look, never())
    assert on_disk
    assert all(reported == found for reported, found in on_disk)


def test_the_best_and_the_failures_are_reported(store: Store, heard: Listener) -> None:
    result = run_session(plan(SPACE, FakeRunner(SPACE)), store, heard, never())
    assert result.progress.failed == len([row for row in range(100) if row % 7 == 3])
    assert result.progress.best_index == 99
    assert result.progress.best_value == pytest.approx(0.01)
    summary = session_summary(result.table, result.plan, session=result.session, seconds=1.0)
    assert summary["failed"] == {"runtime": 14}
    assert summary["best"]["configuration"] == {"x": 9, "letter": "j"}
    assert len(summary["front"]) == 86  # time falls and energy rises with the row: no row beats another
    assert (summary["cartesian"], summary["valid"], summary["evaluated"]) == (100, 100, 100)


def test_the_evaluation_budget_is_kept_exactly(store: Store, heard: Listener) -> None:
    runner = FakeRunner(SPACE)
    result = run_session(plan(SPACE, runner, max_evaluations=13), store, heard, never())
    assert (len(runner.measured), result.state, result.reason) == (13, SessionState.DONE, "the budget is used up")


def test_the_time_budget_ends_a_session(store: Store, heard: Listener) -> None:
    runner = FakeRunner(SPACE, before=lambda _: threading.Event().wait(0.02) and None)
    result = run_session(plan(SPACE, runner, max_seconds=0.1), store, heard, never())
    assert (result.state, result.reason) == (SessionState.DONE, "the time is used up")
    assert 1 <= len(result.table) < 20


def test_patience_ends_a_session_that_finds_nothing_better_also_after_a_resume(store: Store, heard: Listener) -> None:
    longest = Objective(Goal("time_s", True))  # the first row has it
    first = run_session(plan(SPACE, FakeRunner(SPACE), objective=longest, patience=10), store, heard, never())
    assert (len(first.table), first.state) == (11, SessionState.DONE)
    assert first.reason == "no improvement in 10 evaluations"

    more = FakeRunner(SPACE)
    resumed = plan(SPACE, more, objective=longest, patience=25, resume=first.session)
    assert len(run_session(resumed, store, heard, never()).table) == 26
    again = FakeRunner(SPACE)
    run_session(plan(SPACE, again, objective=longest, patience=25, resume=first.session), store, heard, never())
    assert again.measured == []

    improving = run_session(plan(SPACE, FakeRunner(SPACE), patience=10), store, heard, never())
    assert len(improving.table) == SPACE.size


def test_patience_counts_failures_while_nothing_has_worked(store: Store, heard: Listener) -> None:
    nowhere = Objective(Goal("no_such_value", False))
    result = run_session(plan(SPACE, FakeRunner(SPACE), objective=nowhere, patience=7), store, heard, never())
    assert len(result.table) == 7
    assert result.reason == (
        "no_such_value is missing in 6 of 6 configurations that worked (no improvement in 7 evaluations)"
    )


def test_a_wrong_option_is_bad_input_and_nothing_is_written(store: Store, heard: Listener) -> None:
    with pytest.raises(InputError):
        run_session(plan(SPACE, FakeRunner(SPACE), strategy_options={"colour": 3}), store, heard, never())
    with pytest.raises(InputError):
        run_session(plan(SPACE, FakeRunner(SPACE), strategy="nonsense"), store, heard, never())
    assert store.sessions() == []
    assert heard.events == []


def test_a_lost_gpu_ends_the_session_with_what_was_measured(store: Store, heard: Listener) -> None:
    def fall_off(row: int) -> None:
        if row == 20:
            raise WattridgeError("the GPU fell off the bus", remedy="restart the machine")

    runner = FakeRunner(SPACE, before=fall_off)
    result = run_session(plan(SPACE, runner), store, heard, never())
    assert (result.state, len(result.table)) == (SessionState.FAILED, 20)
    assert heard.of(EngineFault) == [EngineFault("the GPU fell off the bus", "restart the machine")]
    assert store.session(result.session).state is SessionState.FAILED
    assert runner.closed


def test_a_runner_that_leaves_a_row_out_is_a_failure_not_an_endless_loop(store: Store, heard: Listener) -> None:
    class Forgetful(FakeRunner):
        def measure(self, rows, stop, depth=Depth.ENERGY, more=list):  # type: ignore[no-untyped-def]
            return iter(())

    result = run_session(plan(SPACE, Forgetful(SPACE)), store, heard, never())
    assert result.state is SessionState.FAILED
    assert "no result" in result.reason


def test_pause_holds_the_session_and_resume_continues_it(tuner: Tuner, heard: Listener, store: Store) -> None:
    gate = Gate(at=30)
    runner = FakeRunner(SPACE, before=gate)
    tuner.submit(Start(plan(SPACE, runner)))
    assert gate.reached.wait(10)
    tuner.submit(Pause())
    gate.open.set()
    paused = heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.PAUSED)
    assert store.session(paused.progress.session).state is SessionState.PAUSED
    assert store.session(paused.progress.session).evaluated == len(runner.measured) == paused.progress.evaluated
    tuner.submit(Resume())
    heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.RUNNING)
    done = heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.DONE)
    assert done.progress.evaluated == 100
    assert runner.measured == list(range(100))


def test_stop_ends_a_session_at_once_also_while_paused(tuner: Tuner, heard: Listener) -> None:
    gate = Gate(at=30)
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE, before=gate))))
    assert gate.reached.wait(10)
    tuner.submit(Pause())
    tuner.submit(Stop())
    gate.open.set()
    ended = heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.STOPPED)
    assert ended.progress.evaluated <= 31


def test_stop_right_after_start_is_not_lost(tuner: Tuner, heard: Listener) -> None:
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE, before=lambda _: threading.Event().wait(0.01) and None))))
    tuner.submit(Stop())
    heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.STOPPED)


def test_sessions_follow_each_other_and_a_second_one_at_once_is_refused(tuner: Tuner, heard: Listener) -> None:
    gate = Gate(at=5)
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE, before=gate))))
    assert gate.reached.wait(10)
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE))))
    gate.open.set()
    assert "running" in heard.wait_for(EngineFault).what
    first = heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.DONE).progress.session
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE))))
    heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.DONE and e.progress.session != first)


def test_ending_the_thread_stops_the_session_and_keeps_it_for_later(store: Store, heard: Listener) -> None:
    gate = Gate(at=10)
    tuner = Tuner(store, heard)
    tuner.start()
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE, before=gate))))
    assert gate.reached.wait(10)
    tuner.stop()
    gate.open.set()
    tuner.join(10)
    [record] = store.sessions()
    assert record.state is SessionState.STOPPED
    assert record.evaluated == heard.of(SessionChanged)[-1].progress.evaluated


def test_what_cannot_be_done_is_one_event_and_the_thread_lives_on(tuner: Tuner, heard: Listener) -> None:
    def broken() -> FakeRunner:
        raise RuntimeError("a defect")

    tuner.submit(Fit())
    tuner.submit(Apply("GPU-1", {"graphics_clock_mhz": 1000}))
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE), boards=made_by(broken))))
    tuner.submit(Pause())
    tuner.submit(Resume())
    tuner.submit(Stop())
    heard.wait_for(EngineFault, lambda e: "a defect" in e.what)
    assert len(heard.of(EngineFault)) == 3
    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE))))
    heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.DONE)


def test_a_defect_during_a_session_ends_it_for_everyone(tuner: Tuner, heard: Listener, store: Store) -> None:
    def stumble(row: int) -> None:
        if row == 20:
            raise RuntimeError("a defect")

    tuner.submit(Start(plan(SPACE, FakeRunner(SPACE, before=stumble))))
    heard.wait_for(EngineFault, lambda e: "a defect" in e.what)
    ended = heard.of(SessionChanged)[-1]
    assert ended.progress.state is SessionState.FAILED, "nothing waits for a session that is gone"
    assert store.session(ended.progress.session).state is SessionState.FAILED


def test_commands_at_random_moments_lose_no_measurement(tuner: Tuner, heard: Listener, store: Store) -> None:
    runner = FakeRunner(SPACE, before=lambda _: threading.Event().wait(0.001) and None)
    tuner.submit(Start(plan(SPACE, runner, strategy="test_one_by_one")))
    session = heard.wait_for(SessionStarted).session
    for pause_s in (0.0, 0.003, 0.011, 0.02, 0.001):
        threading.Event().wait(pause_s)
        tuner.submit(Pause())
        tuner.submit(Resume())
    heard.wait_for(SessionChanged, lambda e: e.progress.state is SessionState.DONE)
    assert sorted(runner.measured) == list(range(100))
    assert sorted(store.load(session).table.rows()) == list(range(100))
