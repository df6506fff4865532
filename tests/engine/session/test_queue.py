"""Runs that wait: their order, what starts the next one and what does not, alone and with the real engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, made_by, plan

from app.base.errors import InputError, WattridgeError
from app.engine.results.state import Progress, SessionState
from app.engine.session import events
from app.engine.session.engine_thread import Tuner
from app.engine.session.queue import MOST_WAITING, QueuedRun, RunQueue, chosen_as, variants
from app.engine.space.result_table import ResultTable
from app.engine.specification.plan import SessionPlan
from app.engine.store.database import Store

SPACE = grid()


class Engine:
    """Keeps what it is given; the test says what becomes of it."""

    def __init__(self) -> None:
        self.started: list[SessionPlan] = []
        self.queue = RunQueue(self.started.append)
        self.sessions = 0

    def begin(self, started: SessionPlan | None = None) -> None:
        self.sessions += 1
        made = started if started is not None else self.started[-1]
        self.queue.note(events.SessionStarted(self.sessions, made, ResultTable(SPACE)))

    def end(self, state: SessionState = SessionState.DONE, reason: str = "") -> None:
        self.queue.note(events.SessionChanged(progress(self.sessions, state), reason))

    def run(self, state: SessionState = SessionState.DONE, reason: str = "") -> None:
        self.begin()
        self.end(state, reason)


def progress(session: int, state: SessionState, evaluated: int = 10) -> Progress:
    return Progress(session, state, evaluated, 0, 100, 5.0, 2.0, 1.0, None, None)


def plans(count: int, **changes: object) -> list[SessionPlan]:
    return [plan(SPACE, FakeRunner(SPACE), seed=seed, **changes) for seed in range(count)]


def seeds(runs: tuple[QueuedRun, ...]) -> list[int]:
    return [run.plan.seed for run in runs]


@pytest.fixture
def engine() -> Engine:
    return Engine()


def test_the_first_begins_at_once_and_each_next_one_when_the_one_before_has_ended(engine: Engine) -> None:
    three = plans(3)
    engine.queue.add(three)
    assert engine.started == three[:1]
    assert seeds(engine.queue.waiting) == [1, 2]
    engine.begin()
    assert engine.started == three[:1], "it runs"
    engine.end()
    assert engine.started == three[:2]
    engine.run()
    engine.run()
    assert engine.started == three
    assert [(run.session, run.state) for run in engine.queue.finished] == [
        (1, SessionState.DONE),
        (2, SessionState.DONE),
        (3, SessionState.DONE),
    ]
    assert engine.queue.current is None
    assert not engine.queue.waiting


def test_a_session_that_was_started_by_hand_is_waited_for_and_is_none_of_the_queue(engine: Engine) -> None:
    by_hand, queued = plans(2)
    engine.queue.expect(by_hand)
    engine.queue.add([queued])
    assert not engine.started, "it was handed over, and has not answered yet"
    engine.begin(by_hand)
    engine.queue.note(events.SessionChanged(progress(1, SessionState.PAUSED)))
    assert not engine.started
    engine.end()
    assert engine.started == [queued]
    assert not engine.queue.finished


def test_a_stopped_run_pauses_the_queue_and_says_so(engine: Engine) -> None:
    engine.queue.add(plans(3))
    engine.run(SessionState.STOPPED, "stopped")
    assert len(engine.started) == 1
    assert engine.queue.paused
    assert engine.queue.paused_because == "session 1 was stopped"
    assert engine.queue.finished[0].state is SessionState.STOPPED
    engine.queue.resume()
    assert seeds((engine.queue.current,)) == [1]  # type: ignore[arg-type]
    assert not engine.queue.paused_because


def test_stopping_the_last_one_leaves_nothing_to_pause(engine: Engine) -> None:
    engine.queue.add(plans(1))
    engine.run(SessionState.STOPPED)
    assert not engine.queue.paused


def test_a_failed_run_is_kept_with_its_reason_and_the_next_one_begins(engine: Engine) -> None:
    engine.queue.add(plans(2))
    engine.run(SessionState.FAILED, "the GPU went away")
    assert len(engine.started) == 2
    assert engine.queue.finished[0].reason == "the GPU went away"


def test_a_run_that_cannot_even_begin_has_failed(engine: Engine) -> None:
    engine.queue.add(plans(2))
    engine.queue.note(events.StartFailed(engine.started[0], "no such strategy"))
    assert len(engine.started) == 2
    [failed] = engine.queue.finished
    assert (failed.state, failed.session, failed.reason) == (SessionState.FAILED, None, "no such strategy")


def test_a_session_by_hand_that_cannot_begin_does_not_keep_the_queue_waiting(engine: Engine) -> None:
    by_hand, queued = plans(2)
    engine.queue.expect(by_hand)
    engine.queue.add([queued])
    engine.queue.note(events.StartFailed(by_hand, "no"))
    assert engine.started == [queued]
    assert not engine.queue.finished


def test_a_start_by_hand_that_is_refused_in_between_changes_nothing(engine: Engine) -> None:
    first, second, by_hand = plans(3)
    engine.queue.add([first, second])
    engine.queue.expect(by_hand)
    engine.begin(first)
    engine.queue.note(events.StartFailed(by_hand, "a session is running"))
    assert engine.queue.current is not None
    assert engine.queue.current.session == 1
    engine.end()
    assert engine.started == [first, second]


def test_a_stored_session_that_is_only_shown_is_no_end_of_a_run(engine: Engine) -> None:
    engine.queue.pause()
    engine.queue.add(plans(1))
    engine.queue.note(events.SessionStarted(9, plans(1)[0], ResultTable(SPACE), running=False))
    engine.end(SessionState.STOPPED)
    assert not engine.queue.paused_because
    engine.queue.resume()
    assert len(engine.started) == 1


def test_while_a_sweep_runs_nothing_is_started(engine: Engine) -> None:
    engine.queue.note(events.FitProgress(0, 10))
    engine.queue.add(plans(2))
    engine.queue.note(events.FitProgress(5, 10))
    assert not engine.started
    engine.queue.note(events.FitFailed())
    assert not engine.started
    assert "sweep" in engine.queue.paused_because
    engine.queue.resume()
    assert len(engine.started) == 1
    engine.begin()
    engine.queue.note(events.FitProgress(0, 10))  # for which the session waits
    engine.queue.note(events.FitFailed())
    assert not engine.queue.paused
    engine.end()
    assert len(engine.started) == 2


def test_a_fit_without_a_sweep_is_no_matter_of_the_queue(engine: Engine) -> None:
    engine.queue.pause()
    engine.queue.add(plans(1))
    engine.queue.note(events.FitProgress(0, 0))
    engine.queue.note(events.FitFailed())
    assert not engine.queue.paused_because


def test_nothing_comes_between_the_turns_of_what_holds_the_queue(engine: Engine) -> None:
    roofline = plans(2)
    engine.queue.hold(True)
    engine.queue.add(plans(1))
    for each in roofline:
        engine.begin(each)
        engine.end()
    assert not engine.started
    engine.queue.hold(False)
    assert len(engine.started) == 1


def test_a_paused_queue_lets_the_run_end_and_starts_no_other(engine: Engine) -> None:
    engine.queue.add(plans(2))
    engine.begin()
    engine.queue.pause()
    engine.end()
    assert len(engine.started) == 1
    engine.queue.add(plans(1))
    assert len(engine.started) == 1
    engine.queue.resume()
    assert len(engine.started) == 2


def test_runs_are_moved_removed_and_cleared(engine: Engine) -> None:
    engine.queue.add(plans(5))
    assert seeds(engine.queue.waiting) == [1, 2, 3, 4]
    numbers = {run.plan.seed: run.number for run in engine.queue.waiting}
    engine.queue.move(numbers[4], 0)
    engine.queue.move(numbers[1], 99)
    assert seeds(engine.queue.waiting) == [4, 2, 3, 1]
    engine.queue.remove([numbers[2], numbers[3]])
    assert seeds(engine.queue.waiting) == [4, 1]
    current = engine.queue.current
    assert current is not None
    engine.queue.remove([current.number])
    assert engine.queue.current == current, "what runs is stopped, not removed"
    engine.begin()
    engine.queue.clear()
    engine.end()
    assert len(engine.started) == 1
    engine.queue.remove([run.number for run in engine.queue.finished])
    assert engine.queue.runs == ()


def test_what_is_finished_is_not_kept_without_end(engine: Engine) -> None:
    for _ in range(3):
        engine.queue.add(plans(100))
        for _ in range(100):
            engine.run()
    assert len(engine.queue.finished) == 200
    assert engine.queue.finished[-1].session == 300


def test_there_is_a_bound(engine: Engine) -> None:
    engine.queue.pause()
    engine.queue.add(plans(MOST_WAITING - 1))
    with pytest.raises(InputError, match="2 more runs are too many"):
        engine.queue.add(plans(2))
    assert len(engine.queue.waiting) == MOST_WAITING - 1, "all of them or none"


def test_what_waits_for_a_board_that_is_let_go_of_has_failed(engine: Engine) -> None:
    engine.queue.pause()
    engine.queue.add([*plans(1, origin={"gpu": "here"}), *plans(2, origin={"gpu": "there"})])
    engine.queue.note(events.BoardReleased("there"))
    assert [run.plan.origin["gpu"] for run in engine.queue.waiting] == ["here"]
    assert {run.reason for run in engine.queue.finished} == {"its board is no longer watched"}


def test_what_is_remembered_has_a_bound_however_it_ended(engine: Engine) -> None:
    engine.queue.pause()
    for _ in range(3):
        engine.queue.add(plans(MOST_WAITING, origin={"gpu": "there"}))
        engine.queue.note(events.BoardReleased("there"))
    assert len(engine.queue.finished) <= MOST_WAITING


def test_the_time_of_a_run_is_that_of_the_same_kernel_on_the_same_board(engine: Engine) -> None:
    engine.queue.add(
        [
            *plans(2),
            *plans(1, max_evaluations=20),
            *plans(1, gpu="Another GPU"),
            *plans(1, gpu="Another GPU", max_seconds=7.0),
            *plans(1, max_seconds=3.0),
        ]
    )
    assert engine.queue.estimate_s(engine.queue.waiting[0]) is None
    engine.begin()
    engine.queue.note(events.MeasurementsAdded(1, 10, progress(1, SessionState.RUNNING)))  # 0.5 s each
    waiting = engine.queue.waiting
    assert [engine.queue.estimate_s(run) for run in waiting] == [50.0, 10.0, None, 7.0, 3.0]


def test_the_cross_product_keeps_the_options_of_the_plans_own_strategy_only() -> None:
    own = plan(SPACE, FakeRunner(SPACE), strategy_options={"chunk": 3})
    made = variants(own, ["test_in_order", "test_one_by_one"], [5, 6, 7])
    assert [(each.strategy, each.seed, dict(each.strategy_options)) for each in made] == [
        *(("test_in_order", seed, {"chunk": 3}) for seed in (5, 6, 7)),
        *(("test_one_by_one", seed, {}) for seed in (5, 6, 7)),
    ]
    assert all(each.space is own.space for each in made), "no copy of a large space"


def test_another_board_is_searched_as_the_first_one() -> None:
    chosen = plan(SPACE, FakeRunner(SPACE), seed=9, max_evaluations=7, patience=3)
    other = plan(grid(3, 3), FakeRunner(SPACE), gpu="Another GPU")
    made = chosen_as(chosen, other)
    assert (made.gpu, made.space.size, made.seed, made.max_evaluations, made.patience) == ("Another GPU", 9, 9, 7, 3)


# --- with the engine --------------------------------------------------------------------------------------------------


class Laboratory:
    """The tuner with a queue that hears of its events on one thread, as the window's does."""

    def __init__(self) -> None:
        self.store = Store()
        self.heard = Listener()
        self._lock = threading.RLock()
        self.tuner = Tuner(self.store, self._on_event)
        self.queue = RunQueue(lambda plan: self.tuner.submit(events.Start(plan)))
        self.tuner.start()

    def _on_event(self, event: events.Event) -> None:
        with self._lock:
            self.queue.note(event)
        self.heard(event)

    def add(self, *added: SessionPlan) -> None:
        with self._lock:
            self.queue.add(added)

    def wait_for_ends(self, count: int) -> None:
        ends: list[events.SessionChanged | events.StartFailed] = []
        for _ in range(1000):
            ends = [e for e in self.heard.of(events.SessionChanged) if not e.progress.state.alive]
            ends += self.heard.of(events.StartFailed)
            if len(ends) >= count:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"{len(ends)} of {count} ended")

    def close(self) -> None:
        self.tuner.stop()
        self.tuner.join(10)
        self.store.close()


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = Laboratory()
    yield made
    made.close()


def test_every_run_is_an_ordinary_stored_session(laboratory: Laboratory) -> None:
    laboratory.add(*variants(plans(1)[0], ["test_in_order", "test_one_by_one"], [1, 2]))
    laboratory.wait_for_ends(4)
    records = laboratory.store.sessions()
    assert sorted((r.strategy, r.seed, r.state, r.evaluated) for r in records) == [
        (strategy, seed, SessionState.DONE, 100) for strategy in ("test_in_order", "test_one_by_one") for seed in (1, 2)
    ]
    assert sorted(r.id for r in records) == sorted(run.session or 0 for run in laboratory.queue.finished)


def test_runs_that_fail_before_and_after_they_began_are_followed_by_the_next(laboratory: Laboratory) -> None:
    def fails(row: int) -> None:
        raise WattridgeError("the GPU went away")

    def no_runner() -> FakeRunner:
        raise WattridgeError("no such board")

    dying = plan(SPACE, FakeRunner(SPACE, before=fails))
    laboratory.add(dying, plan(SPACE, FakeRunner(SPACE), boards=made_by(no_runner)), *plans(1))
    laboratory.wait_for_ends(3)
    finished = laboratory.queue.finished
    assert [run.state for run in finished] == [SessionState.FAILED, SessionState.FAILED, SessionState.DONE]
    assert "the GPU went away" in finished[0].reason
    assert "no such board" in finished[1].reason
    assert [run.session is None for run in finished] == [False, True, False]


def test_a_start_while_a_session_runs_is_answered_to_whoever_asked(laboratory: Laboratory) -> None:
    reached, go = threading.Event(), threading.Event()

    def wait(row: int) -> None:
        reached.set()
        assert go.wait(10)

    refused = plans(1)[0]
    laboratory.add(plan(SPACE, FakeRunner(SPACE, before=wait)))
    assert reached.wait(10)
    laboratory.tuner.submit(events.Start(refused))
    go.set()
    failed = laboratory.heard.wait_for(events.StartFailed)
    assert failed.plan is refused
    assert failed.reason == "a session is running"
