"""SIGKILL at any moment: every reported measurement is there, and going on repeats none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, plan

from app.base.errors import InputError, WattridgeError
from app.engine.results.state import SessionState
from app.engine.session.events import SessionStarted
from app.engine.session.run import run_session
from app.engine.store.database import Store

SPACE = grid(20, 20)
# Prints the rows of every measurement the moment it is reported, and measures until it is killed.
VICTIM = """
import sys, threading, time
from fixtures.engine_fakes import FakeRunner, grid, plan
from app.engine.session.events import MeasurementsAdded, SessionStarted
from app.engine.session.run import run_session
from app.engine.store.database import Store

space = grid(20, 20)
table, seen = None, 0
def show(event):
    global table, seen
    if isinstance(event, SessionStarted):
        table = event.table
    if isinstance(event, MeasurementsAdded):
        print(*(int(row) for row in table.rows(seen)), flush=True)
        seen = event.length
runner = FakeRunner(space, before=lambda row: time.sleep(0.0015))
run_session(plan(space, runner, strategy="test_one_by_one"), Store(), show, threading.Event())
"""


def kill_a_session_after(reports: int, delay_s: float) -> list[int]:
    """Run a session in a process of its own, kill it; the rows that were reported."""
    here = Path(__file__).resolve()
    paths = os.pathsep.join([str(here.parents[1]), str(here.parents[2]), str(here.parents[3])])
    process = subprocess.Popen(
        [sys.executable, "-c", VICTIM], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert process.stdout is not None
    with process.stdout as output:
        lines = [output.readline() for _ in range(reports)]
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        lines += output.readlines()
    assert process.wait(10) == -signal.SIGKILL
    whole = [line for line in lines if line.endswith("\n")]
    return [int(row) for line in whole for row in line.split()]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(("reports", "delay_s"), [(1, 0.0), (2, 0.013), (4, 0.031)])
def test_killed_and_resumed_without_losing_or_repeating(reports: int, delay_s: float) -> None:
    reported = kill_a_session_after(reports, delay_s)
    with Store() as store:
        [record] = store.sessions()
        assert record.state is SessionState.INTERRUPTED
        kept = [int(row) for row in store.load(record.id).table.rows()]
        assert kept[: len(reported)] == reported
        assert record.evaluated == len(kept) < SPACE.size

        runner, heard = FakeRunner(SPACE), Listener()
        resumed = plan(SPACE, runner, strategy="test_one_by_one", resume=record.id)
        result = run_session(resumed, store, heard, threading.Event())
        assert result.session == record.id
        assert len(heard.of(SessionStarted)[0].table) == SPACE.size
        assert set(runner.measured).isdisjoint(kept)
        assert sorted(store.load(record.id).table.rows()) == list(range(SPACE.size))

        # The same path as one that was never cut off.
        whole = FakeRunner(SPACE)
        run_session(plan(SPACE, whole, strategy="test_one_by_one"), store, Listener(), threading.Event())
        assert kept + runner.measured == whole.measured


def stopped_session(store: Store) -> int:
    stop = threading.Event()
    runner = FakeRunner(SPACE, before=lambda row: stop.set() if row == 12 else None)
    return run_session(plan(SPACE, runner), store, Listener(), stop).session


def test_a_larger_budget_counts_what_was_there_already() -> None:
    with Store() as store:
        session = stopped_session(store)
        before = store.session(session).evaluated
        assert before == 13
        runner = FakeRunner(SPACE)
        result = run_session(
            plan(SPACE, runner, resume=session, max_evaluations=20), store, Listener(), threading.Event()
        )
        assert (len(runner.measured), result.progress.evaluated) == (7, 20)
        assert result.progress.best_index == 19


def test_another_space_or_a_session_that_still_runs_cannot_be_resumed() -> None:
    with Store() as store, Store() as other:
        session = stopped_session(store)
        small = grid(3, 3)
        with pytest.raises(InputError, match="another search space"):
            run_session(plan(small, FakeRunner(small), resume=session), store, Listener(), threading.Event())
        assert store.session(session).state is SessionState.STOPPED
        other.reopen(session)
        with pytest.raises(WattridgeError, match="running already"):
            run_session(plan(SPACE, FakeRunner(SPACE), resume=session), store, Listener(), threading.Event())
