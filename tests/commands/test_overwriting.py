"""What is there already stays, unless --force says otherwise; where nothing was named another name is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

SPECIFICATION = str(Path(__file__).resolve().parents[2] / "resources" / "examples" / "gemm.toml")
TUNE = ["tune", SPECIFICATION, "--gpu", "simulated:a100", "--speed", "inf", "--seed", "1", "--max-evaluations", "4"]


def files_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[Path]:
    """The files that a command writes."""
    assert main([*words, "--json"]) == 0
    document: Any = json.loads(capsys.readouterr().out)
    return [Path(file) for file in document["files"]]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """The command ends before it writes anything, and names the file and the remedy."""
    assert main([*words, "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["what"] == "the file exists already"
    assert Path(error["where"]).is_file()
    assert "--force" in error["remedy"]


@pytest.fixture
def session(own_data_folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder into which a session was exported."""
    return files_of(capsys, *TUNE, "--out", str(own_data_folder / "chosen"))[0].parent


def test_an_export_into_a_named_folder_is_replaced_with_force(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.read_bytes() for file in session.iterdir()}
    refused(capsys, "export", "--kind", "script", "--out", str(session))
    assert {file: file.read_bytes() for file in session.iterdir()} == before
    (script,) = files_of(capsys, "export", "--kind", "script", "--out", str(session), "--force")
    assert script in before


def test_a_session_is_not_begun_that_could_not_be_exported(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, *TUNE, "--out", str(session))
    assert main(["sessions", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_without_a_name_each_export_and_report_has_one_of_its_own(
    session: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(session.parent)
    exports = [files_of(capsys, "export", "--kind", "json")[0].parent.name for _ in range(2)]
    assert exports == ["session-1", "session-1-2"]
    reports = [files_of(capsys, "report")[0].name for _ in range(2)]
    assert reports == ["sgemm-report.html", "sgemm-report-2.html"]


def test_a_report_that_was_named_is_replaced_with_force(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", "--out", str(session / "report.html")]
    (file,) = files_of(capsys, *words)
    before = file.stat().st_mtime_ns
    refused(capsys, *words)
    assert file.stat().st_mtime_ns == before
    assert files_of(capsys, *words, "--force") == [file]


def test_scripts_of_settings_and_readings_are_replaced_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = ["--gpu", "simulated:a100", "--speed", "inf"]
    for words in (
        ["apply", *board, "--clock", "1005", "--out", str(tmp_path / "clocks")],
        ["monitor", *board, "--duration", "0.2", "--out", str(tmp_path / "readings.csv")],
    ):
        files = files_of(capsys, *words)
        before = [file.read_bytes() for file in files]
        refused(capsys, *words)
        assert [file.read_bytes() for file in files] == before
        assert files_of(capsys, *words, "--force") == files
