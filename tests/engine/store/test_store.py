"""The store: what goes in comes out, in any process, and a session that was cut off is found."""

from __future__ import annotations

import dataclasses
import math
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.engine_fakes import FakeRunner, grid, measurement_of, plan

from app.base.errors import InputError, WattridgeError
from app.cli import main
from app.engine.models.fit.frequency import FrequencyFit
from app.engine.models.fit_documents import latest_fit, save_fit
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.state import Purpose, SessionState
from app.engine.store.database import Store
from app.engine.store.record import Label

SPACE = grid()


def new_session(store: Store, **changes: object) -> int:
    return store.create_session(plan(SPACE, FakeRunner(SPACE), **changes))


def test_what_a_store_writes_stays_after_another_store_of_its_process_and_one_of_another_process(
    own_data_folder: Path,
) -> None:
    """Of two stores in one process, the second must not end the first one's lock: whoever came and went then would
    take the write-ahead log away."""
    look = "from app.engine.store.database import Store\nwith Store() as store: print(len(store.sessions()))"
    with Store() as store:
        Store().close()
        seen = [subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout]
        new_session(store)
        seen.append(subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout)
    assert [int(each) for each in seen] == [0, 1]
    with Store() as store:
        assert len(store.sessions()) == 1


_LOOKED_INTO = """
import os, subprocess, sys
from app.engine.store.database import Store
look = "from app.engine.store.database import Store; Store().close()"
only_read = "import sqlite3; sqlite3.connect('file:{}?mode=ro', uri=True).execute('SELECT * FROM sessions').fetchall()"
with Store() as store:
    for other in (only_read.format(store.path), look):
        for ending in ("", "-shm", "-wal"):
            open(f"{store.path}{ending}", "rb").close()
        subprocess.run([sys.executable, "-c", other], check=True)
        with store._transaction():
            store._db.execute("CREATE TABLE IF NOT EXISTS kept (number)")
            store._db.executemany("INSERT INTO kept VALUES (?)", [(number,) for number in range(1000)])
    os._exit(0)  # killed: nothing is tidied up
"""


@pytest.mark.skipif(sys.platform != "linux", reason="locks of open file descriptions are of Linux")
def test_what_is_written_stays_though_something_else_in_the_process_has_looked_into_the_files(
    own_data_folder: Path,
) -> None:
    """As a file dialog does, which ends SQLite's own locks; other processes come and go meanwhile."""
    ended = subprocess.run([sys.executable, "-c", _LOOKED_INTO], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    with closing(sqlite3.connect(own_data_folder / "wattridge.sqlite")) as db, db:
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (2000,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_store_that_is_closed_leaves_one_file(own_data_folder: Path) -> None:
    with Store() as store:
        new_session(store)
    assert [path.name for path in own_data_folder.glob("*.sqlite*")] == ["wattridge.sqlite"]


def test_a_session_comes_back_as_it_was_written(own_data_folder: Path) -> None:
    with Store() as store:
        session = new_session(store, strategy_options={"chunk": 3}, max_evaluations=50, max_seconds=1.5, patience=9)
        measurements = [measurement_of(SPACE, row) for row in (5, 3, 99)]
        store.append(session, measurements[:2])
        store.append(session, measurements[2:], elapsed_s=4.0)
        store.finish(session, SessionState.DONE, "the budget is used up", 4.5)

    with Store() as store:
        loaded = store.load(session)
    record = loaded.record
    assert (record.state, record.reason, record.evaluated, record.elapsed_s) == (
        "done",
        "the budget is used up",
        3,
        4.5,
    )
    assert (record.strategy_options, record.max_evaluations, record.max_seconds) == ({"chunk": 3}, 50, 1.5)
    assert record.patience == 9
    assert (record.gpu, record.units, record.origin) == ("Fake GPU", {"score": "points"}, {"kind": "fake"})
    assert record.objective == plan(SPACE, FakeRunner(SPACE)).objective
    assert loaded.space.parameters == SPACE.parameters
    assert np.array_equal(loaded.space.codes, SPACE.codes)
    assert loaded.space.removed_by == SPACE.removed_by
    found = [loaded.table.measurement(index) for index in range(3)]
    assert [(m.row, m.configuration, m.state, m.values, m.error) for m in found] == [
        (m.row, m.configuration, m.state, m.values, m.error) for m in measurements
    ]
    assert math.isnan(found[1].observed_clock_mhz)
    assert (own_data_folder / "wattridge.sqlite").is_file()


def test_intervals_windows_and_unknown_values_survive() -> None:
    measured = Measurement(
        7,
        SPACE.configuration(7),
        State.OK,
        {"power_w": 201.5, "GFLOPS/W": math.nan},
        {"power_w": (200.0, 203.0)},
        window_ns=(10, 2**60),
        message="a\nwarning",
        event_reasons=4,
        power_source="driver buffer",
        source="simulated",
        timestamp_s=1.25,
        cost_s=0.4,
    )
    with Store() as store:
        session = new_session(store)
        store.append(session, [measured])
        found = store.load(session).table.measurement(0)
    assert math.isnan(found.values["GFLOPS/W"])
    assert (found.intervals, found.window_ns, found.event_reasons) == (measured.intervals, measured.window_ns, 4)
    assert (found.error, found.message) == ("", "a\nwarning")
    assert (found.power_source, found.timestamp_s, found.cost_s) == ("driver buffer", 1.25, 0.4)


def test_no_row_is_ever_written_twice_and_a_refused_batch_leaves_nothing() -> None:
    with Store() as store:
        session = new_session(store)
        store.append(session, [measurement_of(SPACE, 1)])
        with pytest.raises(ValueError):
            store.append(session, [measurement_of(SPACE, 2), measurement_of(SPACE, 1)])
        assert [int(row) for row in store.load(session).table.rows()] == [1]
        assert store.session(session).evaluated == 1


def test_sessions_are_listed_newest_first() -> None:
    with Store() as store:
        first, second = new_session(store), new_session(store)
        assert [record.id for record in store.sessions()] == [second, first]


def test_sessions_for_other_purposes_do_not_count() -> None:
    with Store() as store:
        kept = [new_session(store), new_session(store)]
        for _ in range(3):
            new_session(store, origin={"purpose": "roofline"})
        tuned = store.sessions(2, without=frozenset({Purpose.ROOFLINE}))
        assert [record.id for record in tuned] == kept[::-1]
        assert [record.id for record in store.sessions(1, without=frozenset({Purpose.ROOFLINE}))] == kept[1:]
        assert len(store.sessions(2)) == 2


def test_only_so_many_of_the_newest_are_listed_where_that_is_asked_for() -> None:
    with Store() as store:
        sessions = [new_session(store) for _ in range(5)]
        assert [record.id for record in store.sessions(2)] == sessions[:-3:-1]
        assert len(store.sessions()) == 5


def test_figures_are_read_in_parts_without_the_failed_and_the_damaged(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        session = new_session(store)
        store.append(session, [measurement_of(SPACE, row) for row in range(4)])
        loaded = store.load(session).table
        expected = [
            loaded.measurement(index).values for index in range(4) if loaded.measurement(index).state is State.OK
        ]
        assert [values for part in store.values(session) for values in part] == expected != []
        other = sqlite3.connect(store.path)
        other.execute("UPDATE measurements SET measured = '{broken' WHERE row = 0")
        other.commit()
        other.close()
        assert [values for part in store.values(session) for values in part] == expected[1:]


def test_a_session_whose_store_went_away_is_interrupted_and_can_be_resumed() -> None:
    store = Store()
    session = new_session(store)
    store.close()
    with Store() as later:
        assert later.session(session).state is SessionState.INTERRUPTED
        later.reopen(session, max_evaluations=9)
        assert later.session(session).state is SessionState.RUNNING
        assert later.session(session).max_evaluations == 9


def test_a_running_session_is_left_alone_by_other_openings_and_cannot_be_run_twice() -> None:
    with Store() as one, Store() as other:
        session = new_session(one)
        assert other.session(session).state is SessionState.RUNNING
        with pytest.raises(WattridgeError, match="running already"):
            other.reopen(session)
        one.finish(session, SessionState.STOPPED)
        other.reopen(session)


def test_threads_and_openings_write_at_once_without_losing_anything() -> None:
    def write(store: Store, session: int, rows: range) -> None:
        for row in rows:
            store.append(session, [measurement_of(SPACE, row)])

    with Store() as one, Store() as other:
        sessions = [new_session(one), new_session(other)]
        threads = [
            threading.Thread(target=write, args=(store, session, range(start, start + 25)))
            for store, session in zip((one, other), sessions, strict=True)
            for start in (0, 25)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for session in sessions:
            assert sorted(one.load(session).table.rows()) == list(range(50))


def test_what_was_only_timed_is_kept_as_that_until_it_is_measured_in_full() -> None:
    whole = measurement_of(SPACE, 5)
    timed = replace(whole, values={"time_s": whole.values["time_s"]}, depth=Depth.TIME)
    with Store() as store:
        session = new_session(store)
        store.append(session, [timed, replace(measurement_of(SPACE, 3), depth=Depth.TIME), measurement_of(SPACE, 8)])
        record, table = store.session(session), store.load(session).table
        assert (record.evaluated, record.timed) == (1, 2)
        assert [table.measurement(index).depth for index in range(3)] == ["time", "time", "energy"]
        with pytest.raises(ValueError, match="row"):
            store.append(session, [timed])
        store.append(session, [whole, measurement_of(SPACE, 9)])
        record, table = store.session(session), store.load(session).table
        assert (record.evaluated, record.timed) == (3, 1)
        assert table.rows().tolist() == [3, 8, 5, 9], "in the order in which they were measured"
        assert (table.measurement(2).values, table.measurement(2).depth) == (whole.values, "energy")
        with pytest.raises(ValueError, match="row"):
            store.append(session, [whole])
        with pytest.raises(ValueError, match="row"):  # a failure is final at any depth
            store.append(session, [measurement_of(SPACE, 3)])
        copy = store.session(store.duplicate(session))
        assert (copy.evaluated, copy.timed) == (3, 1)


def test_a_row_timed_and_measured_between_two_writings_is_one(tmp_path: Path) -> None:
    whole = measurement_of(SPACE, 5)
    with Store() as store:
        session = new_session(store)
        store.append(session, [replace(whole, values={"time_s": 1.0}, depth=Depth.TIME), whole])
        record = store.session(session)
        assert (record.evaluated, record.timed) == (1, 0)
        assert store.load(session).table.measurement(0).values == whole.values


def test_an_unknown_session_is_bad_input() -> None:
    with Store() as store, pytest.raises(InputError, match="no session 7"):
        store.load(7)


def test_a_file_that_is_no_database_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "wattridge.sqlite"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 20)
    with pytest.raises(WattridgeError, match="is damaged") as error:
        Store(path)
    assert str(path) in str(error.value)
    assert "WATTRIDGE_DATA" in error.value.remedy


@pytest.mark.parametrize(("schema", "said"), [(99, "newer version"), (5, "older version"), (1, "older version")])
def test_another_schema_is_refused_in_one_line_and_left_as_it_is(
    own_data_folder: Path, capsys: pytest.CaptureFixture[str], schema: int, said: str
) -> None:
    own_data_folder.mkdir(parents=True, exist_ok=True)
    path = own_data_folder / "wattridge.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE sessions (id INTEGER)")
        db.execute(f"PRAGMA user_version = {schema}")
    before = path.read_bytes()
    with pytest.raises(WattridgeError, match=said) as error:
        Store()
    assert str(path) in str(error.value)
    assert "WATTRIDGE_DATA" in error.value.remedy
    assert main(["sessions"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert path.read_bytes() == before


def test_the_board_that_measured_a_row_comes_back_with_it() -> None:
    with Store() as store:
        session = new_session(store)
        measured = [replace(measurement_of(SPACE, row), board=f"GPU-{row}") for row in (3, 1)]
        store.append(session, [*measured, measurement_of(SPACE, 2)])
        table = store.load(session).table
        assert [table.measurement(index).board for index in range(3)] == ["GPU-3", "GPU-1", ""]


def test_what_the_user_says_of_a_session_is_kept_and_changes_nothing_measured() -> None:
    said = Label("the good one", ("gemm", "before the fix"), "measured after lunch", True)
    with Store() as store:
        session = new_session(store)
        before = store.session(session)
        assert before.shown_name == before.title
        store.label(session, said)
        with pytest.raises(InputError, match="no session"):
            store.label(session + 1, said)
    with Store() as store:
        record = store.session(session)
        assert record.label == said
        assert (record.shown_name, record.title) == ("the good one", before.title)


def test_a_duplicate_is_a_session_of_its_own() -> None:
    with Store() as store:
        session = new_session(store, seed=7)
        store.append(session, [measurement_of(SPACE, row) for row in (4, 2)], elapsed_s=3.0)
        store.label(session, Label("first", ("x",), "n"))
        copy = store.duplicate(session)
        record = store.session(copy)
        assert record.state is SessionState.STOPPED, "no process runs the copy"
        assert store.session(session).state is SessionState.RUNNING
        assert (record.shown_name, record.label.tags, record.label.notes) == ("first (copy)", ("x",), "n")
        assert (record.seed, record.evaluated, record.elapsed_s) == (7, 2, 3.0)
        store.append(copy, [measurement_of(SPACE, 9)])
        assert store.load(copy).table.rows().tolist() == [4, 2, 9]
        assert store.load(session).table.rows().tolist() == [4, 2]


def test_deleting_can_be_undone_until_it_is_purged(own_data_folder: Path) -> None:
    with Store() as store:
        running, session, other = new_session(store), new_session(store), new_session(store)
        store.append(session, [measurement_of(SPACE, 1)])
        for each in (session, other):
            store.finish(each, SessionState.DONE)
        with pytest.raises(WattridgeError, match="is running"):
            store.delete(running)
        store.delete(session)
        assert [r.id for r in store.sessions()] == [other, running]
        assert store.purge() == 0, "not yet: it may be wanted back"
        store.undelete(session)
        assert [r.id for r in store.sessions()] == [other, session, running]
        assert store.load(session).table.rows().tolist() == [1]

        store.delete(session)
        assert store.purge(older_than_s=-1.0) == 1
        with pytest.raises(InputError, match="no session"):
            store.session(session)
    with closing(sqlite3.connect(own_data_folder / "wattridge.sqlite")) as db, db:
        assert db.execute("SELECT count(*) FROM measurements").fetchone() == (0,)
    db.close()


@pytest.mark.parametrize(
    ("column", "value"), [("units", "metres"), ("objective", "[]"), ("evaluated", "many"), ("state", "asleep")]
)
def test_a_damaged_session_is_named_by_its_number_and_the_others_stay(column: str, value: str) -> None:
    with Store() as store:
        whole, damaged = new_session(store), new_session(store)
        for session in (whole, damaged):
            store.finish(session, SessionState.DONE)
        with closing(sqlite3.connect(store.path)) as other, other:
            other.execute(f"UPDATE sessions SET {column} = ? WHERE id = ?", (value, damaged))
        assert [record.id for record in store.sessions()] == [whole]
        [line] = store.unreadable
        assert f"session {damaged} is damaged" in line
        newest = new_session(store)
        assert [record.id for record in store.sessions(1)] == [newest]
        assert store.unreadable == (line,), "a listing of the newest few forgets no other"
        with pytest.raises(WattridgeError, match=f"session {damaged} is damaged"):
            store.load(damaged)


PAGE = 4096


def with_three_sessions() -> Path:
    """Of twenty measurements each, whose figures take several pages."""
    with Store() as store:
        for _ in range(3):
            session = new_session(store)
            whole = (measurement_of(SPACE, row) for row in range(20))
            store.append(session, [replace(each, message="x" * 3000) for each in whole])
            store.finish(session, SessionState.DONE)
        return store.path


def test_wherever_a_store_is_damaged_its_sessions_are_not_listed_in_silence(own_data_folder: Path) -> None:
    path = with_three_sessions()
    whole = path.read_bytes()
    with Store() as store:
        assert store.damage() == ()
    named = set[str]()
    for page in range(1, len(whole) // PAGE):
        broken = whole[: page * PAGE] + b"\xff" * PAGE + whole[(page + 1) * PAGE :]
        path.write_bytes(broken)
        try:
            with Store() as store:
                lines = store.damage()
        except WattridgeError as error:
            lines = (str(error),)
        assert lines, f"page {page}"
        assert all("damaged" in line and str(path) in line for line in lines), lines
        assert all("restore it from a backup" in line or ".recover" in line for line in lines), lines
        named |= {line.partition("session ")[2].partition(" ")[0] for line in lines if ": session " in line}
    assert named == {"1", "2", "3"}, "by their numbers, where that can be known"


def test_a_measurement_that_is_no_json_or_gone_is_counted_by_its_session(own_data_folder: Path) -> None:
    path = with_three_sessions()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE measurements SET measured = '{broken' WHERE session = 2 AND row < 2")
        db.execute("DELETE FROM measurements WHERE session = 3 AND row = 7")
    db.close()
    with Store() as store:
        third, second = store.damage()
        assert "session 3 is damaged: 1 of its 20 measurements cannot be read" in third
        assert "session 2 is damaged: 2 of its 20 measurements cannot be read" in second
        assert len(store.sessions()) == 3, "they are listed all the same"


def test_the_newest_fit_of_a_board_is_kept_with_its_points() -> None:
    def fit(ridge: float | None) -> FrequencyFit:
        return FrequencyFit(
            gpu="Fake GPU",
            series="full load",
            clock_mhz=np.asarray([900.0, 1000.0, 1100.0]),
            power_w=np.asarray([100.0, 120.0, 150.0]),
            used=np.asarray([True, True, False]),
            form="sharp",
            p_idle_w=30.0,
            alpha_w_per_mhz=0.1,
            beta_per_mhz=0.001,
            ridge_mhz=ridge,
            ridge_bracketed=ridge is not None,
            standard_errors={"ridge_mhz": 3.0},
            optimum_mhz=1000.0,
            optimum_interval_mhz=(990.0, 1010.0),
            optimum_bracketed=True,
            recommended_clock_mhz=1005.0,
            best_measured_mhz=1005.0,
            identifiable=True,
            r2=0.999,
            rmse_w=0.5,
            reasons=("a", "b"),
            simulated=True,
        )

    with Store() as store:
        assert latest_fit(store, "Fake GPU") is None
        save_fit(store, fit(None), "sweep of 3 clocks")
        save_fit(store, fit(980.0), "session of gemm", new_session(store))
    with Store() as store:
        found = latest_fit(store, "Fake GPU")
        assert latest_fit(store, "another") is None
        assert latest_fit(store, "Fake GPU", simulated=True) is not None
        assert latest_fit(store, "Fake GPU", simulated=False) is None, "the real board of that name has none"
        save_fit(store, dataclasses.replace(fit(1000.0), simulated=False), "a real sweep")
        real, twin = (latest_fit(store, "Fake GPU", simulated=simulated) for simulated in (False, True))
        assert real is not None
        assert twin is not None
        assert (real[1], twin[1]) == ("a real sweep", "session of gemm")
        save_fit(store, fit(1010.0), "a sweep of this one", uuid="GPU-this")
        save_fit(store, fit(1020.0), "a sweep of that one", uuid="GPU-that")
        asked = {uuid: latest_fit(store, "Fake GPU", uuid=uuid) for uuid in ("GPU-this", "GPU-that", "GPU-third", "")}
        assert {uuid: answer and answer[1] for uuid, answer in asked.items()} == {
            "GPU-this": "a sweep of this one",
            "GPU-that": "a sweep of that one",
            "GPU-third": "a sweep of that one, of another GPU of this model",
            "": "a sweep of that one",
        }
        save_fit(store, dataclasses.replace(fit(1000.0), simulated=False), "a real sweep")
        for bad in ("", "[]", "{}", '{"gpu": "Fake GPU"}', "nonsense"):
            with closing(sqlite3.connect(store.path)) as other, other:
                other.execute(
                    "INSERT INTO fits (created_s, gpu, source, fit) VALUES (0, 'Fake GPU', 'a damaged row', ?)", (bad,)
                )
        still = latest_fit(store, "Fake GPU")
        assert still is not None
        assert still[1] == "a real sweep"
    assert found is not None
    kept, source = found
    assert (kept.ridge_mhz, source, kept.reasons, kept.range_mhz) == (980.0, "session of gemm", ("a", "b"), None)
    assert kept.optimum_interval_mhz == (990.0, 1010.0)
    assert kept.power_w.tolist() == [100.0, 120.0, 150.0]
    assert kept.used.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("title", "file", "purpose"),
    [
        ("roofline_fp32", "/opt/wattridge/resources/rooflines/fp32.toml", Purpose.ROOFLINE),
        ("roofline_fp16_tensor", "/home/me/.venv/wattridge/resources/rooflines/fp16_tensor.toml", Purpose.ROOFLINE),
        ("roofline_fp32", "/home/me/fp32.toml", Purpose.TUNING),
        ("sgemm", "/home/me/rooflines/sgemm.toml", Purpose.TUNING),
    ],
)
def test_a_roofline_that_was_stored_before_sessions_had_a_purpose_is_known_by_its_microbenchmark(
    title: str, file: str, purpose: Purpose
) -> None:
    with Store() as store:
        session = new_session(store, title=title, origin={"kind": "specification", "file": file})
        assert store.session(session).purpose is purpose


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_store_that_is_no_file_is_refused_at_once(own_data_folder: Path, ending: str, kind: str) -> None:
    own_data_folder.mkdir(exist_ok=True)
    path = own_data_folder / f"wattridge.sqlite{ending}"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(WattridgeError, match="no file"):
        Store()
