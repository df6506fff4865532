"""A stored session to look at, and a recording kept as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, measurement_of, plan

from app.base.errors import InputError
from app.engine.formats.csv_table import write_csv
from app.engine.formats.read import read_recording
from app.engine.report.export import export_session
from app.engine.results.objectives import Goal
from app.engine.results.state import SessionState
from app.engine.session.describe_session import describe_session
from app.engine.session.engine_thread import Tuner
from app.engine.session.events import EngineFault, FitFinished, Open, SessionChanged, SessionStarted, Show
from app.engine.session.planning import plan_of, plan_replay
from app.engine.session.stored import best_of, import_recording, open_session
from app.engine.space.result_table import ResultTable
from app.engine.store.database import Store
from app.views.shared.captions import provenance

SPACE = grid()


def stored(store: Store, rows: tuple[int, ...]) -> int:
    session = store.create_session(plan(SPACE, FakeRunner(SPACE), max_evaluations=20))
    store.append(session, [measurement_of(SPACE, row) for row in rows], elapsed_s=4.0)
    store.finish(session, SessionState.STOPPED, "stopped by hand")
    return session


def test_a_stored_session_opens_as_it_ended(store: Store) -> None:
    session = stored(store, (5, 3, 8, 1))
    started, ended = open_session(store, session)
    assert started.session == session
    assert started.table.rows().tolist() == [5, 3, 8, 1]
    goal = started.plan.objective.goal
    values = [m.values.get(goal.name, np.nan) for m in (measurement_of(SPACE, row) for row in (5, 3, 8, 1))]
    progress = ended.progress
    assert (progress.state, ended.reason) == (SessionState.STOPPED, "stopped by hand")
    assert (progress.evaluated, progress.budget, progress.elapsed_s, progress.rate_per_s) == (4, 20, 4.0, 1.0)
    assert progress.best_value == (np.nanmax(values) if goal.maximise else np.nanmin(values))
    assert progress.best_index is not None
    assert values[progress.best_index] == progress.best_value


def test_nothing_that_succeeded_is_no_best() -> None:
    assert best_of(ResultTable(SPACE), Goal("score", True)) is None


def test_the_engine_shows_a_stored_session(store: Store) -> None:
    session = stored(store, (5, 3))
    heard = Listener()
    tuner = Tuner(store, heard)
    tuner.start()
    try:
        tuner.submit(Open(session))
        changed = heard.wait_for(SessionChanged)
        assert changed.progress.session == session
        assert heard.of(SessionStarted)[0].table.rows().tolist() == [5, 3]
        tuner.submit(Open(session + 7))
        assert "no session" in heard.wait_for(EngineFault).what
    finally:
        tuner.stop()
        tuner.join(10)
    assert store.session(session).state is SessionState.STOPPED, "to look changes nothing"


def test_the_engine_shows_all_of_a_recording_and_stores_nothing(store: Store) -> None:
    table = ResultTable(SPACE)
    table.extend(replace(measurement_of(SPACE, row), cost_s=1.5) for row in (5, 3, 8, 1))
    heard = Listener()
    tuner = Tuner(store, heard)
    tuner.start()
    try:
        tuner.submit(Show(plan(SPACE, FakeRunner(SPACE), source="recorded"), table))
        changed = heard.wait_for(SessionChanged)
    finally:
        tuner.stop()
        tuner.join(10)
    [started] = heard.of(SessionStarted)
    assert (started.session, started.running, started.table) == (0, False, table)
    progress = changed.progress
    assert (progress.state, progress.evaluated, progress.budget) == (SessionState.DONE, 4, 4)
    assert progress.elapsed_s == 6.0, "what the tuner that wrote it spent"
    assert progress.best_index == best_of(table, started.plan.objective.goal) is not None
    assert store.sessions() == []
    assert heard.of(FitFinished) == []


def test_an_exported_session_comes_back_by_import(store: Store, tmp_path: Path) -> None:
    session = stored(store, (5, 3, 8, 1))
    loaded = store.load(session)
    files = export_session(plan_of(loaded), loaded.table, session, None, tmp_path, ["csv", "cache", "t4"])
    for file in files[:-1]:
        taken = store.load(import_recording(store, read_recording(file)))
        assert taken.record.state is SessionState.DONE, file
        assert len(taken.table) == 4, file
        assert file.name in taken.record.reason
        name = loaded.record.objective.goal.name
        assert np.allclose(np.sort(taken.table.values(name)), np.sort(loaded.table.values(name)), equal_nan=True), file


@pytest.mark.parametrize("kind", ["csv", "cache", "t4"])
def test_a_replay_of_simulated_figures_says_that_they_are(store: Store, tmp_path: Path, kind: str) -> None:
    """The simulated board has the name of a real one, so that nothing else would tell."""
    loaded = store.load(stored(store, (5, 1)))
    file, _ = export_session(plan_of(loaded), loaded.table, None, None, tmp_path, [kind])
    replayed = plan_replay(file)
    assert replayed.source == "simulated"
    assert provenance(replayed) == f"simulated, recorded in {file.name}"
    said = next(figure.value for figure in describe_session(replayed, loaded.table).figures if figure.label == "Source")
    assert "SIMULATED" in str(said)
    assert "replayed" in str(said)


def test_a_cache_from_elsewhere_is_imported_whole(store: Store, shared_data: Path) -> None:
    path = next(p for p in sorted((shared_data / "kernel-tuner").rglob("*.json*")) if p.stat().st_size < 3e6)
    recording = read_recording(path)
    record = store.session(import_recording(store, recording))
    assert record.evaluated == len(recording)
    assert (record.source, record.gpu) == ("recorded", recording.device)


def test_a_file_without_a_success_leaves_nothing(store: Store, tmp_path: Path) -> None:
    session = stored(store, (5,))
    empty = ResultTable(SPACE)
    path = tmp_path / "nothing.csv"
    from app.engine.formats.own import About

    about = About("Fake GPU", "k", plan(SPACE, FakeRunner(SPACE)).objective, "nvml", "", {})
    write_csv(empty, path, about)
    with pytest.raises(InputError):
        import_recording(store, read_recording(path))
    assert [record.id for record in store.sessions()] == [session]
