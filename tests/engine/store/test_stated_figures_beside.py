"""What is measured stays as it was measured; what is stated once more is known of the board is stored beside it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, measurement_of, plan

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.cli import main
from app.engine.results.measurement import Depth, Measurement, same
from app.engine.results.state import SessionState
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

SPACE = grid()
EXAMPLE = resources() / "examples" / "gemm.toml"
OLD = Path(__file__).with_name("store_of_schema_6.sql")  # a session that a program of schema 6 measured and stated


def rows_of(path: Path, table: str) -> dict[int, str]:
    """The figures that lie in a table, by row, as they are on disk."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return dict(db.execute(f"SELECT row, measured FROM {table} WHERE session = 1 ORDER BY row").fetchall())
    finally:
        db.close()


def figures(store: Store, session: int = 1) -> dict[int, Measurement]:
    table = store.load(session).table
    return {each.row: each for each in map(table.measurement, range(len(table)))}


def old_store(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "wattridge.sqlite"
    db = sqlite3.connect(path)
    db.executescript(OLD.read_text())
    db.close()
    return path


def version_of(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


@pytest.fixture(name="session")
def with_two_rows(own_data_folder: Path) -> tuple[Store, int]:
    store = Store()
    session = store.create_session(plan(SPACE, FakeRunner(SPACE)))
    store.append(session, [measurement_of(SPACE, row) for row in (0, 1)])
    return store, session


# --- the store ----------------------------------------------------------------------------------------------------


def test_a_row_is_not_changed_by_what_is_stated_of_it(session: tuple[Store, int]) -> None:
    store, number = session
    before = rows_of(store.path, "measurements")
    first = measurement_of(SPACE, 0)
    said = replace(first, values={"time_s": 1.0, "energy_j": 1.5}, message="again", board="GPU-2")
    store.restate(number, [said], {"condition": "40 °C"})
    assert rows_of(store.path, "measurements") == before
    found = figures(store)
    assert same(found[0], replace(said, as_measured={"energy_j": 2.0}, timestamp_s=found[0].timestamp_s))
    assert found[1].as_measured == {}
    assert [dict(each) for part in store.values(number) for each in part] == [dict(m.values) for m in found.values()]
    store.restate(number, [replace(first, values={"time_s": 1.0, "energy_j": 1.25})], {})
    assert figures(store)[0].values["energy_j"] == 1.25
    assert figures(store)[0].as_measured == {"energy_j": 2.0}, "what was measured, not what was stated before"
    store.close()


def test_a_copy_has_both_and_what_is_purged_leaves_neither(session: tuple[Store, int]) -> None:
    store, number = session
    store.restate(number, [replace(measurement_of(SPACE, 0), values={"time_s": 1.0, "energy_j": 1.5})], {})
    store.finish(number, SessionState.DONE)
    copy = store.duplicate(number)
    assert figures(store, copy)[0].as_measured == {"energy_j": 2.0}
    store.delete(number)
    store.purge(-1.0)
    assert rows_of(store.path, "measurements") == rows_of(store.path, "stated") == {}
    assert figures(store, copy)[0].values["energy_j"] == 1.5
    store.close()


def test_what_was_stated_of_a_time_does_not_hide_what_is_measured_in_full_later(own_data_folder: Path) -> None:
    with Store() as store:
        session = store.create_session(plan(SPACE, FakeRunner(SPACE)))
        full = measurement_of(SPACE, 4)
        store.append(session, [replace(full, values={"time_s": 0.3}, depth=Depth.TIME)])
        store.restate(session, [replace(full, values={"time_s": 0.4}, depth=Depth.TIME)], {})
        assert figures(store)[4].values == {"time_s": 0.4}
        store.append(session, [full])
        assert figures(store)[4].values == full.values
        assert figures(store)[4].as_measured == {}


# --- sessions -----------------------------------------------------------------------------------------------------


def test_a_session_keeps_what_it_measured_beside_what_it_states_however_often_it_is_resumed(
    own_data_folder: Path,
) -> None:
    gpu = SimulatedGpu(load_twin("a100"), seed=1, clock=VirtualClock())
    options = SearchOptions(strategy="random_sample", max_evaluations=9, seed=3)
    with Store() as store:
        appended: dict[int, Measurement] = {}
        write = store.append

        def remembered(session: int, measurements: list[Measurement], *more: Any) -> None:
            appended.update({measurement.row: measurement for measurement in measurements})
            write(session, measurements, *more)

        store.append = remembered  # type: ignore[method-assign, assignment]
        first = run_session(
            plan_specification(load_specification(EXAMPLE), gpu, options), store, Listener(), threading.Event()
        )
        on_disk = rows_of(store.path, "measurements")
        resumed = plan_resume(store, first.session, SearchOptions(max_evaluations=14), gpu=gpu)
        second = run_session(resumed, store, Listener(), threading.Event())
        assert {row: text for row, text in rows_of(store.path, "measurements").items() if row in on_disk} == on_disk
        shown = figures(store, first.session)
    assert len(appended) == len(shown) == 14
    for row, measured in appended.items():
        assert json.loads(rows_of(store.path, "measurements")[row]) == measured.values
        assert {**shown[row].values, **shown[row].as_measured} == {**shown[row].values, **measured.values}
    assert any("energy_j" in each.as_measured for each in shown.values())
    assert not any("time_s" in each.as_measured for each in shown.values()), "one board, one time"
    for index in range(len(second.table)):
        said = second.table.measurement(index)
        assert shown[said.row].values == said.values
        assert shown[said.row].as_measured == said.as_measured


def test_both_are_in_the_documents_and_the_table(
    own_data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tune = ["tune", str(EXAMPLE), "--gpu", "simulated:a100", "--max-evaluations", "9", "--strategy", "random_sample"]
    assert main([*tune, "--seed", "7", "--json"]) == 0
    tuned = json.loads(capsys.readouterr().out)
    assert main(["sessions", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == tuned["best"]
    assert main(["export", "1", "--out", str(tmp_path), "--kind", "csv", "--kind", "json"]) == 0
    [document] = [json.loads(p.read_text()) for p in tmp_path.glob("*.json") if p.name != "receipt.json"]
    with Store() as store:
        shown = figures(store)
    energy = document["values"]["energy_j"]
    measured = tuned["best"]["as_measured"]["energy_j"]
    assert energy["value"] == tuned["best"]["values"]["energy_j"] != measured == energy["as_measured"]
    [path] = tmp_path.glob("*.csv")
    with path.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(shown) == 9
    for line, each in zip(table, shown.values(), strict=True):
        assert float(line["energy_j"]) == each.values["energy_j"]
        assert float(line["energy_j (as measured)"] or "nan") == pytest.approx(
            each.as_measured.get("energy_j", float("nan")), nan_ok=True, rel=0
        )
    assert "time_s (as measured)" not in table[0], "only what is stated otherwise"
    assert main(["analyse", str(path), "--json"]) == 0, "what was measured is not read as figures of their own"
    assert "(as measured)" not in capsys.readouterr().out


# --- stores of the program before -----------------------------------------------------------------------------------


def test_a_store_of_the_schema_before_is_upgraded_and_no_figure_changes(own_data_folder: Path) -> None:
    path = old_store(own_data_folder)
    before = rows_of(path, "measurements")
    with Store() as store:
        found = figures(store)
        assert {row: dict(each.values) for row, each in found.items()} == {
            row: json.loads(text) for row, text in before.items()
        }
        assert len(found) == 9
        assert not any(each.as_measured for each in found.values())
        row, one = next(iter(found.items()))
        store.restate(1, [replace(one, values={**one.values, "energy_j": 5.0})], {"condition": "40 °C"})
        assert figures(store)[row].as_measured == {"energy_j": one.values["energy_j"]}
    assert rows_of(path, "measurements") == before
    assert version_of(path) == 8


_KILLED = """
import os, signal
from app.engine.store import schema
connect = schema._connect
def watched(*arguments, **options):
    db = connect(*arguments, **options)
    db.set_trace_callback(lambda said: os.kill(os.getpid(), signal.SIGKILL) if {when!r} in said else None)
    return db
schema._connect = watched
from app.engine.store.database import Store
Store()
"""


@pytest.mark.parametrize(
    "when",
    ["CREATE TABLE stated", "CREATE TABLE evidence", "ALTER TABLE sessions", "PRAGMA user_version = 8", "COMMIT"],
)
def test_an_upgrade_that_is_killed_leaves_the_store_as_it_was(own_data_folder: Path, when: str) -> None:
    path = old_store(own_data_folder)
    before = rows_of(path, "measurements")
    ended = subprocess.run([sys.executable, "-c", _KILLED.format(when=when)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert version_of(path) == 6
    with Store() as store:
        assert len(figures(store)) == 9
    assert rows_of(path, "measurements") == before
    assert version_of(path) == 8


def test_several_processes_that_come_at_once_upgrade_it_once(own_data_folder: Path) -> None:
    path = old_store(own_data_folder)
    look = (
        "import sys\nfrom app.engine.store.database import Store\nprint('here', flush=True)\nsys.stdin.read(1)\n"
        "with Store() as store: print(len(store.load(1).table), store.read_only)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", look], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
    assert [process.communicate("\n", timeout=60)[0].split() for process in processes] == [["9"]] * 3
    assert version_of(path) == 8


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write everything")
def test_a_store_of_the_schema_before_that_can_only_be_read_is_read_as_it_is(own_data_folder: Path) -> None:
    path = old_store(own_data_folder)
    before = path.read_bytes()
    look = (
        "from app.engine.store.database import Store\n"
        "with Store() as store: print(len(store.load(1).table), bool(store.read_only))"
    )
    own_data_folder.chmod(0o555)
    path.chmod(0o444)
    words = [sys.executable, "-c", look]
    if os.geteuid() == 0:
        words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *words]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False)
    finally:
        own_data_folder.chmod(0o755)
        path.chmod(0o644)
    assert said.stdout.split() == ["9", "True"], said.stderr
    assert path.read_bytes() == before


def test_a_program_of_the_schema_before_refuses_this_one_in_one_line(
    own_data_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old_store(own_data_folder)
    Store().close()
    monkeypatch.setattr("app.engine.store.schema._VERSION", 6)
    with pytest.raises(WattridgeError, match=r"newer version \(schema 8, this program knows 6\)"):
        Store()
    assert main(["sessions"]) == 1
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert "update wattridge" in said.err
