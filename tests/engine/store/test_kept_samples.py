"""Each measurement keeps its samples in the store: for one row at a time, in bounds, and over upgrades and copies."""

from __future__ import annotations

import csv
import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.engine_fakes import FakeRunner, Listener, grid, measurement_of, plan
from fixtures.simulated import board

from app.base.errors import InputError
from app.base.paths import resources
from app.cli import main
from app.engine.results.evidence import Evidence, unpack
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.state import SessionState
from app.engine.session.evidence import evidence_of
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import EVIDENCE_BYTE, Store

SPACE = grid()
EXAMPLE = resources() / "examples" / "gemm.toml"
OLD = Path(__file__).with_name("store_of_schema_6.sql")
LATER = "PRAGMA user_version = 7; CREATE TABLE stated (session, row, measured, intervals, message, window_start_ns,"
LATER += " window_end_ns, observed_clock_mhz, event_reasons, power_source, timestamp_s, board);"


def samples(row: int, count: int = 9) -> bytes:
    """Samples of about 100 bytes that are those of this row alone."""
    noise = np.random.default_rng(row)
    readings = [(20_000_000 * place, 1410.0 - row, 4.0) for place in range(1, 11)]
    return Evidence.of(
        [(0, 200_000_000)], 0.2 * np.arange(count) / count, 100.0 + row + noise.standard_normal(count), readings
    ).pack()


def sampled(row: int, count: int = 9) -> Measurement:
    measured = measurement_of(SPACE, row)
    if measured.state is not State.OK:
        return measured
    return replace(measured, values={**measured.values, "power_w": 100.0 + row}, evidence=samples(row, count))


def new_session(store: Store, **changes: object) -> int:
    return store.create_session(plan(SPACE, FakeRunner(SPACE), **changes))


def old_store(folder: Path, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "wattridge.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD.read_text() + more)
    return path


def of_row(store: Store, session: int, row: int) -> Evidence | str:
    table = store.load(session).table
    [measured] = [m for m in map(table.measurement, range(len(table))) if m.row == row]
    return evidence_of(store, session, measured)


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_samples_are_read_for_a_row_and_not_with_the_session(own_data_folder: Path) -> None:
    with Store() as store:
        session = new_session(store)
        store.append(session, [sampled(row) for row in range(9)])
    with Store() as store:
        table = store.load(session).table
        assert not any(table.measurement(index).evidence for index in range(len(table)))
        assert store.evidence(session, 5) == samples(5)
        kept = of_row(store, session, 5)
        assert isinstance(kept, Evidence)
        assert kept.mean_power_w == pytest.approx(105.0, abs=2.0)
        assert store.evident(session) == {0, 1, 2, 4, 5, 6, 7, 8}, "all but the one that failed"
        assert of_row(store, session, 3) == "It failed, or was only timed: nothing was sampled."


def test_a_copy_keeps_them_and_what_is_purged_does_not(own_data_folder: Path) -> None:
    with Store() as store:
        session = new_session(store)
        store.append(session, [sampled(1), sampled(2)])
        store.finish(session, SessionState.DONE)
        copy = store.duplicate(session)
        store.delete(session)
        store.purge(-1.0)
        assert store.evident(session) == set()
        assert store.evidence(copy, 2) == samples(2)
        assert store.session(copy).evidence_byte == EVIDENCE_BYTE


def test_what_was_only_timed_gets_its_samples_with_its_energy(own_data_folder: Path) -> None:
    with Store() as store:
        session = new_session(store)
        store.append(session, [replace(measurement_of(SPACE, 5), depth=Depth.TIME)])
        assert "only timed" in str(of_row(store, session, 5))
        store.append(session, [sampled(5)])
        assert isinstance(of_row(store, session, 5), Evidence)


# --- how much ---------------------------------------------------------------------------------------------------------


def kept_byte(store: Store, session: int) -> int:
    return sum(len(store.evidence(session, row)) for row in store.evident(session))


def test_beyond_its_budget_the_needed_the_chosen_and_the_newest_keep_theirs(own_data_folder: Path) -> None:
    most = 20 * len(samples(50))
    with Store(evidence_byte=most) as store:
        session = new_session(store)
        store.chosen[session] = 2
        for row in range(90):
            store.append(session, [sampled(row)], needed=lambda: (0, 7))
            assert kept_byte(store, session) <= most
        kept = store.evident(session)
        assert {0, 2, 7, 89, 88} <= kept
        others = sorted(kept - {0, 2, 7})
        assert others == [row for row in range(others[0], 90) if row % 7 != 3], "the newest of the rest"
        assert len(others) >= 14
        assert "beyond" in str(of_row(store, session, 1))
        assert "front, the best, the chosen and the newest" in str(of_row(store, session, 1))


def test_what_is_needed_stays_though_it_is_more_than_the_budget(own_data_folder: Path) -> None:
    with Store(evidence_byte=3 * len(samples(50))) as store:
        session = new_session(store)
        for row in (0, 1, 2, 4, 5, 6, 7, 8, 9):
            store.append(session, [sampled(row)], needed=lambda: (0, 1, 2, 4, 5))
        assert {0, 1, 2, 4, 5, 9} <= store.evident(session) < set(range(10))


def test_the_budget_holds_over_a_resumed_session(own_data_folder: Path) -> None:
    most = 20 * len(samples(50))
    with Store(evidence_byte=most) as store:
        session = new_session(store)
        store.append(session, [sampled(row) for row in range(20)])
    with Store(evidence_byte=1) as store:  # a session keeps what it began with
        store.reopen(session)
        for row in range(20, 60):
            store.append(session, [sampled(row)])
            assert kept_byte(store, session) <= most
        assert len(store.evident(session)) > 14


def test_a_session_can_do_without(own_data_folder: Path) -> None:
    with Store(evidence_byte=0) as store:
        session = new_session(store)
        store.append(session, [sampled(1)])
        assert store.evident(session) == set()
        assert of_row(store, session, 1) == "No samples: this session was to do without."


class Sampling(FakeRunner):
    """The fake board with samples; its time falls with the row and its energy grows: every row is on the front."""

    def __init__(self, energy_j: Callable[[int], float]) -> None:
        super().__init__(SPACE)
        self._energy_j = energy_j

    def measure(self, rows: Any, stop: threading.Event, *rest: Any, **named: Any) -> Any:
        for measured in super().measure(rows, stop, *rest, **named):
            values = {**measured.values, "energy_j": self._energy_j(measured.row)}
            yield measured if measured.state is not State.OK else replace(sampled(measured.row), values=values)


def test_a_session_keeps_those_of_its_front_and_its_best(
    own_data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows 4 and 9 cost the least energy and stay on the front though many come after them; the last is the fastest."""
    monkeypatch.setattr("app.engine.session.run.FLUSH_S", 0.0)
    least = {4: 0.1, 9: 0.2}
    runner = Sampling(lambda row: least.get(row, 50.0 - 0.01 * row if row < 95 else 60.0))
    with Store(evidence_byte=15 * len(samples(50))) as store:
        result = run_session(plan(SPACE, runner), store, Listener(), threading.Event())
        kept = store.evident(result.session)
    assert {4, 9, 99} <= kept
    assert len(kept) < 20
    assert not any(result.table.measurement(index).evidence for index in range(len(result.table))), "they are on disk"


# --- older sessions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["", LATER], ids=["schema 6", "schema 7"])
def test_an_older_session_says_that_it_has_none_and_keeps_those_to_come(own_data_folder: Path, more: str) -> None:
    old_store(own_data_folder, more)
    with Store() as store:
        record = store.session(1)
        assert record.evidence_byte is None
        table = store.load(1).table
        assert len(table) == 9
        assert evidence_of(store, 1, table.measurement(0)) == (
            "No samples: this session was measured before they were kept."
        )
        store.reopen(1)
        fresh = replace(table.measurement(0), row=7, evidence=samples(7))
        store.append(1, [fresh])
        assert isinstance(evidence_of(store, 1, fresh), Evidence)
        assert isinstance(evidence_of(store, 1, table.measurement(0)), str)


def test_damaged_samples_are_a_reason_and_no_failure(own_data_folder: Path) -> None:
    with Store() as store:
        session = new_session(store)
        store.append(session, [sampled(1), sampled(2)])
    with closing(sqlite3.connect(own_data_folder / "wattridge.sqlite")) as db, db:
        db.execute("UPDATE evidence SET packed = x'0102' WHERE row = 1")
        db.execute("UPDATE evidence SET packed = 'text' WHERE row = 2")
    with Store() as store:
        assert "they are damaged" in str(of_row(store, session, 1))
        assert isinstance(of_row(store, session, 2), str)


# --- from a board to the command line ---------------------------------------------------------------------------------


@pytest.fixture(name="tuned")
def with_a_session(own_data_folder: Path) -> int:
    """Of a simulated board, each configuration in three repeats."""
    made = plan_specification(
        load_specification(EXAMPLE),
        board("h200"),
        SearchOptions(strategy="random_sample", max_evaluations=8, seed=1, repeats=3),
    )
    with Store() as store:
        return run_session(made, store, Listener(), threading.Event()).session


def test_the_samples_of_a_session_are_the_power_that_it_measured(tuned: int) -> None:
    with Store() as store:
        table = store.load(tuned).table
        worked = [m for m in map(table.measurement, range(len(table))) if m.state is State.OK]
        for measured in worked:
            kept = unpack(store.evidence(tuned, measured.row))
            assert len(kept.starts_s) >= 3, "each repeat has its own"
            before = {**measured.values, **measured.as_measured}
            assert kept.mean_power_w - before.get("aftereffect_w", 0.0) == pytest.approx(before["power_w"], rel=0.02)
            assert measured.window_ns is not None
            assert kept.ends_s[-1] <= (measured.window_ns[1] - measured.window_ns[0]) / 1e9 + 0.5
            assert len(store.evidence(tuned, measured.row)) <= 4096 * np.ceil(kept.seconds / 0.2)
    assert len(worked) > 3


def test_the_command_line_lays_two_side_by_side(tuned: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.csv"
    with Store() as store:
        table = store.load(tuned).table
    first, second = [i + 1 for i in range(len(table)) if table.measurement(i).state is State.OK][:2]
    words = ["analyse", str(tuned), "--evidence", str(first), str(second)]
    assert main([*words, "--out", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["measurement"] for one in document["evidence"]] == [first, second]
    assert document["files"] == [str(path)]
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for one in document["evidence"]:
        of_csv = [
            float(line["power_w"])
            for line in lines
            if int(line["measurement"]) == one["measurement"] and line["power_w"]
        ]
        assert of_csv == pytest.approx(one["samples"]["power_w"])
        clocks = [line for line in lines if int(line["measurement"]) == one["measurement"] and line["event_reasons"]]
        assert len(clocks) == len(one["samples"]["graphics_clock_mhz"])
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"measurement {first}" in said
    assert f"measurement {second}" in said
    assert "mean power (W)" in said
    assert main([*words, "--out", str(path)]) == 1, "a file is not replaced unasked"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["1", "--evidence", "99"], "no measurement 99"),
        (["h200-sgemm-session", "--evidence", "1"], "a file holds no samples"),
        (["1", "--out", "x.csv"], "nothing to write"),
    ],
)
def test_wrong_numbers_are_one_line(tuned: int, capsys: pytest.CaptureFixture[str], words: list[str], why: str) -> None:
    assert main(["analyse", *words]) == InputError.exit_code
    [line] = capsys.readouterr().err.splitlines()
    assert why in line


def test_tune_keeps_as_many_as_it_is_told(own_data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", "gemm", "--gpu", "simulated:a100", "--max-evaluations", "2", "--keep-samples"]
    assert main([*words, "0"]) == 0
    assert main([*words, "2"]) == 0
    assert main([*words, "-1"]) == 2
    with Store() as store:
        assert [store.session(number).evidence_byte for number in (1, 2)] == [0, 2 << 20]
        assert [len(store.evident(number)) for number in (1, 2)] == [0, 2]
