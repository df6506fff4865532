"""Nothing is overwritten that the user did not ask to be replaced, and what is exported says how it was chosen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fixtures.commands import run

from app.cli import main

TUNE = (
    *("tune", "gemm", "--gpu", "simulated:a100", "--speed", "inf"),
    *("--strategy", "random_sample", "--max-evaluations", "6", "--seed", "2"),
)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


WRITING = (
    ("export", "1", "--out", "chosen"),
    ("export", "1", "--kind", "csv", "--out", "chosen"),
    ("export", "gemm", "--out", "chosen"),
    ("report", "1", "--out", "chosen/report.html"),
    ("apply", "--gpu", "simulated:a100", "--clock", "1005", "--out", "chosen"),
    ("monitor", "--gpu", "simulated:a100", "--speed", "inf", "--duration", "1", "--out", "chosen/readings.csv"),
    (*TUNE, "--out", "chosen"),
    ("demo", "--no-window", "--max-evaluations", "4", "--out", "chosen"),
    ("replay", "h200-sgemm-session", "--max-evaluations", "5", "--out", "chosen"),
)


@pytest.mark.parametrize("words", WRITING, ids=lambda words: " ".join(words[:4]))
def test_what_was_named_is_replaced_only_with_force(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chosen").mkdir()
    assert main(TUNE) == 0
    capsys.readouterr()
    assert run(capsys, *words)[0] == 0
    before = contents(tmp_path / "chosen")
    sessions = len(list_sessions(capsys))
    status, document = run(capsys, *words)
    assert status == 1
    assert document["error"]["what"] == "the file exists already"  # type: ignore[index]
    assert "--force" in document["error"]["remedy"]  # type: ignore[index]
    assert contents(tmp_path / "chosen") == before
    assert len(list_sessions(capsys)) == sessions, "it is refused before anything is measured"
    assert run(capsys, *words, "--force")[0] == 0
    assert set(contents(tmp_path / "chosen")) == set(before)


def list_sessions(capsys: pytest.CaptureFixture[str]) -> list[object]:
    assert main(["sessions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return found if isinstance(found, list) else found["sessions"]


def test_without_a_name_a_second_export_stands_beside_the_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(TUNE) == 0
    capsys.readouterr()
    first, second, third = (run(capsys, "export", "1")[1]["files"] for _ in range(3))
    assert len({*first, *second, *third}) == 3 * len(first)  # type: ignore[misc]
    folders = [Path(files[0]).parent.name for files in (first, second, third)]  # type: ignore[index]
    assert [re.sub(r"-\d{8}-", "-DATE-", name) for name in folders] == [f"sgemm-a100-1-DATE-{n}" for n in (1, 2, 3)]
    assert all(Path(file).is_file() for file in (*first, *second, *third))  # type: ignore[misc]
    reports = [run(capsys, "report", "1")[1]["files"] for _ in range(3)]
    assert [Path(files[0]).name for files in reports] == [  # type: ignore[index]
        f"sgemm-report{number}.html" for number in ("", "-2", "-3")
    ]


def test_a_file_of_another_origin_is_never_replaced(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(TUNE) == 0
    (tmp_path / "chosen").mkdir()
    (tmp_path / "chosen" / "sgemm.h").write_text("mine\n")
    capsys.readouterr()
    status, document = run(capsys, "export", "1", "--out", "chosen", "--force")
    assert (status, document["error"]["what"]) == (1, "a file of another origin is there")  # type: ignore[index]
    assert (tmp_path / "chosen" / "sgemm.h").read_text() == "mine\n"


def test_exported_files_say_by_which_rule_which_measurement_was_chosen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, document = run(capsys, *TUNE)
    assert status == 0
    best = document["best"]["configuration"]  # type: ignore[index]
    assert run(capsys, "export", "1", "--out", "best")[0] == 0
    chosen = json.loads((tmp_path / "best" / "sgemm.json").read_text())["choice"]
    assert (chosen["rule"], chosen["place"]) == ("max:GFLOPS/W", [1, 6])
    csv = (tmp_path / "best" / "sgemm-session.csv").read_text().splitlines()
    heads = csv[0].split(",")
    number = 1 + next(
        i for i, line in enumerate(csv[1:]) if all(line.split(",")[heads.index(n)] == str(best[n]) for n in best)
    )
    assert chosen["measurement"] == number
    words = f"measurement {number}, session 1, chosen for max:GFLOPS/W, rank 1 of 6 for max:GFLOPS/W"
    for name in ("sgemm.h", "sgemm.cu", "sgemm-clocks.sh"):
        assert words in re.sub(r"\s+", " ", (tmp_path / "best" / name).read_text()), name
    other = next(line.split(",") for i, line in enumerate(csv[1:]) if i + 1 != number)
    named = ",".join(f"{name}={other[heads.index(name)]}" for name in best)
    assert run(capsys, "export", "1", "--configuration", named, "--out", "other")[0] == 0
    text = (tmp_path / "other" / "sgemm.h").read_text()
    assert "session 1, chosen by hand, rank " in text
    assert "rank 1 of 6" not in text


def test_a_folder_that_is_named_holds_one_export_and_its_receipt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(TUNE) == 0
    capsys.readouterr()
    status, document = run(capsys, "export", "1", "--kind", "header", "--out", "chosen")
    assert status == 0
    receipt = json.loads((tmp_path / "chosen" / "receipt.json").read_text())
    assert document["receipt"] == receipt
    assert [receipt[key] for key in ("rule", "session", "session_state", "measured")] == ["max:GFLOPS/W", 1, "done", 6]
    assert receipt["inputs"].keys() == {"gemm.toml", "the kernel's sources"}
    status, document = run(capsys, "export", "1", "--kind", "csv", "--out", "chosen")
    assert (status, document["error"]["where"]) == (1, "chosen/receipt.json"), "another export is none of its files"  # type: ignore[index]
    assert run(capsys, "export", "1", "--kind", "csv", "--out", "chosen", "--force")[0] == 0
    again = json.loads((tmp_path / "chosen" / "receipt.json").read_text())
    assert [*again["files"]] == ["sgemm-session.csv"]
    assert again["standing"] == receipt["standing"]


@pytest.mark.parametrize("gpu", ["simulated:a100", "recorded:h200-gemm"])
def test_files_that_set_no_real_board_say_so(gpu: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["apply", "--gpu", gpu, "--clock", "1005", "--out", str(tmp_path / "out")]) == 0
    assert "it is no real board" in capsys.readouterr().err


def test_export_names_what_reads_a_log_of_power(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", "h200-gemm", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "recording of a board's readings over time" in said
    assert "wattridge monitor --gpu recorded:" in said
