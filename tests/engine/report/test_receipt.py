"""Every export has a folder of its own, and each of its files says what it holds and how that was chosen."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fixtures.lab import OBJECTIVE, filled, grid_space, plan_for

from app.base.errors import WattridgeError
from app.engine.formats.read import read_recording
from app.engine.report.export import export_session
from app.engine.report.receipt import new_folder
from app.engine.results.measurement import State
from app.engine.results.state import SessionState
from app.engine.runner.boards import ReadyPlan
from app.engine.space.result_table import ResultTable


@pytest.fixture
def table() -> ResultTable:
    return filled(grid_space())


@pytest.fixture
def plan(table: ResultTable) -> ReadyPlan:
    origin = {"file": "/somewhere/gemm.json", "sha256": "ab" * 32}
    return plan_for(table.space, OBJECTIVE, title="SGEMM 4096/2", gpu="NVIDIA A100-PCIE-40GB", origin=origin)


def test_a_folder_is_named_by_title_board_session_date_and_count(plan: ReadyPlan, tmp_path: Path) -> None:
    made = [new_folder(plan, session, tmp_path / "exports").name for session in (12, 12, None, 12)]
    day = f"{datetime.now():%Y%m%d}"
    stem = "sgemm-4096-2-a100"
    assert made == [f"{stem}-12-{day}-1", f"{stem}-12-{day}-2", f"{stem}-{day}-1", f"{stem}-12-{day}-3"]
    assert new_folder(dataclasses.replace(plan, title="/", gpu="(twin)"), None, tmp_path).name == f"{day}-1"


def test_an_export_is_never_written_over_another(plan: ReadyPlan, table: ResultTable, tmp_path: Path) -> None:
    first = export_session(plan, table, 12, 20, tmp_path, existing="new")
    before = {path: path.read_bytes() for path in first}
    second = export_session(plan, table, 12, 21, tmp_path, existing="new")
    assert {path.parent for path in first} != {path.parent for path in second}
    assert {path: path.read_bytes() for path in first} == before
    with pytest.raises(WattridgeError, match="exists already"):
        export_session(plan, table, 12, 21, first[0].parent)
    beside = export_session(plan, table, 12, 21, first[0].parent, existing="beside")
    assert beside[0].parent.parent == first[0].parent
    assert {path: path.read_bytes() for path in first} == before


@pytest.mark.parametrize(("rule", "words"), [(None, "chosen by hand"), ("fastest", "chosen for fastest")])
def test_each_file_says_which_measurement_and_how_it_was_chosen(
    plan: ReadyPlan, table: ResultTable, tmp_path: Path, rule: str | None, words: str
) -> None:
    files = export_session(plan, table, 12, 20, tmp_path, rule=rule, state=SessionState.DONE)
    whole = json.loads(files[-1].read_text())
    assert files[-1].name == "receipt.json"
    assert (whole["measurement"], whole["rule"], whole["session"]) == (21, rule or "by hand", 12)
    assert whole["configuration"] == table.measurement(20).configuration
    assert whole["inputs"] == {"gemm.json": "ab" * 32}
    assert whole["provenance"] == "replayed from a recording made on NVIDIA A100-PCIE-40GB"
    assert whole["files"] == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files[:-1]}
    in_files = {path.name: receipt_in(path) for path in files[:-1]}
    inside = {key: value for key, value in whole.items() if key != "files"}
    for name, found in in_files.items():
        assert found in (inside, None), name
    texts = [name for name, found in in_files.items() if found is None]
    assert texts == ["SGEMM-4096-2.h", "SGEMM-4096-2-clocks.sh"]
    for name in texts:
        text = re.sub(r"[\s#*]+", " ", (tmp_path / name).read_text())
        assert f"measurement 21, session 12, {words}, rank {whole['standing']['rank']} of 150 for max:GFLOPS/W" in text
        assert f"Input: gemm.json, SHA-256 {'ab' * 32}." in text
        assert f"digest {whole['digest']}" in text
    for path in files[2:-1]:
        if path.suffix in (".csv", ".json"):
            assert len(read_recording(path)) == len(table), "a receipt does not keep a file from being read"


def receipt_in(path: Path) -> object:
    """The receipt in a file of JSON or CSV; None of another."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            rows = [row["receipt"] for row in csv.DictReader(file)]
        assert set(rows[1:]) == {""}
        return json.loads(rows[0])
    if path.suffix != ".json":
        return None
    document = json.loads(path.read_text())
    return document.get("receipt") or document["wattridge"]["receipt"]


def test_the_digest_changes_with_what_is_chosen_and_not_with_the_kinds(
    plan: ReadyPlan, table: ResultTable, tmp_path: Path
) -> None:
    def receipt(name: str, index: int, kinds: list[str]) -> dict[str, Any]:
        files = export_session(plan, table, 12, index, tmp_path / name, kinds)
        read: dict[str, Any] = json.loads(files[-1].read_text())
        return read

    one, other, third = receipt("a", 20, ["csv"]), receipt("b", 20, ["header"]), receipt("c", 21, ["header"])
    assert one["measurement"] == other["measurement"] == 21, "a session's table is exported with its choice as well"
    assert one["written"] != other["written"] or one["digest"] == other["digest"]
    assert third["digest"] != other["digest"]


def test_a_session_in_which_nothing_worked_is_exported_without_a_choice(plan: ReadyPlan, tmp_path: Path) -> None:
    failed = ResultTable(plan.space)
    failed.append(dataclasses.replace(filled(plan.space, 1).measurement(0), state=State.RUNTIME, values={}))
    remarks: list[str] = []
    state = SessionState.RUNNING
    files = export_session(plan, failed, 12, None, tmp_path, ["csv"], remarks.append, state=state)
    receipt = json.loads(files[-1].read_text())
    assert [receipt[key] for key in ("measurement", "rule", "standing", "measured")] == [None, None, None, 1]
    assert remarks == ["The session was still running: 1 measured so far."]
