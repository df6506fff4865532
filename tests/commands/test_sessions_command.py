"""`wattridge sessions`: the list, one session, and one session stated for another thermal condition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixtures.commands import run

from app.base.paths import resources
from app.cli import main

GEMM = str(resources() / "examples" / "gemm.toml")
TUNE = ("tune", GEMM, "--gpu", "simulated:a100", "--strategy", "random_sample", "--max-evaluations", "8", "--seed", "7")


def test_a_session_is_stated_for_the_condition_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, tuned = run(capsys, *TUNE, "--condition", "40C,200W")
    assert tuned["stated_for"]["condition"] == "40 °C, 200 W"
    number = str(tuned["session"])
    _, shown = run(capsys, "sessions", number)
    assert shown["best"] == tuned["best"]
    assert shown["stated_for"] == tuned["stated_for"]
    status, warmer = run(capsys, "sessions", number, "--condition", "80C,200W")
    assert status == 0
    assert (warmer["stated_for"]["gpu_c"], warmer["stated_for"]["slow_w"]) == (80.0, 200.0)
    before, after = tuned["best"]["values"], warmer["best"]["values"]
    assert after["energy_j"] > before["energy_j"]
    assert after["energy_raw_j"] == before["energy_raw_j"]
    _, again = run(capsys, "sessions", number)
    assert again["best"] == tuned["best"], "the store stays as it is"


def test_repeatability_reproducibility_and_gain_are_named_apart_wherever_a_session_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*TUNE, "--condition", "40C"]) == 0
    tuned = capsys.readouterr().out
    assert main(["sessions", "1"]) == 0
    shown = capsys.readouterr().out
    assert main(["report", "1", "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    for said in (tuned, shown, page):
        assert "Energy and power at" in said
        assert "40 °C" in said
        assert "of power within the session" in said.split("Repeatability")[1][:200]
        assert "between sessions at that condition" in said.split("Reproducibility")[1][:200]
        assert "needs a meter" in said.split("Gain of the sensor")[1][:200]
    capsys.readouterr()
    _, document = run(capsys, "sessions", "1")
    stated = document["stated_for"]
    assert 0 < stated["repeatability"] < stated["reproducibility"]
    assert stated["gain_error"] is None, "not known"


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "--condition", "55C"),
        ("sessions", "99"),
        (*TUNE, "--condition", "warm"),
        ("tune", "--resume", "1", "--condition", "55C"),
    ],
)
def test_what_makes_no_sense_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    status, document = run(capsys, *words)
    assert status == 2
    assert document["error"]["what"]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("--minimise", "time_s"), "objective"),
        (("--front", "min:time_s,min:energy_j"), "front"),
        (("--limit", "power_w<=100"), "limits"),
        (("--strategy", "random_search"), "strategy"),
        (("--seed", "0"), "seed"),
    ],
)
def test_a_resumed_session_ignores_nothing_that_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], word: str
) -> None:
    """A limit that is not kept in the answer must not be accepted."""
    status, document = run(capsys, "tune", "--resume", "1", *words)
    assert status == 2
    assert word in document["error"]["what"]


def test_another_specification_is_not_resumed_under_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    examples = resources() / "examples"
    words = ("--gpu", "simulated:a100", "--max-evaluations", "2")
    _, begun = run(capsys, "tune", str(examples / "copy.toml"), *words)
    status, refused = run(capsys, "tune", str(examples / "dot.toml"), "--resume", str(begun["session"]))
    assert status == 2
    assert "copy.toml" in refused["error"]["what"]
    status, gone_on = run(
        capsys, "tune", str(examples / "copy.toml"), "--resume", str(begun["session"]), "--max-evaluations", "3"
    )
    assert (status, gone_on["evaluated"]) == (0, 3)


def test_a_session_that_is_resumed_on_another_board_of_its_model_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    copy = str(resources() / "examples" / "copy.toml")
    _, begun = run(capsys, "tune", copy, "--gpu", "simulated:a100", "--max-evaluations", "2")
    words = ["tune", "--resume", str(begun["session"]), "--max-evaluations", "3", "--gpu"]
    assert main([*words, "simulated:a100#2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "partly measured on simulated:a100, not on simulated:a100#2: boards of one model differ" in said


def test_a_replayed_session_has_no_condition(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, replayed = run(capsys, "replay", "h200-sgemm-session", "--max-evaluations", "4")
    assert replayed["stated_for"] is None
    status, document = run(capsys, "sessions", str(replayed["session"]), "--condition", "55C")
    assert status == 2
    assert "thermal model" in document["error"]["what"]


@pytest.mark.parametrize(
    ("objective", "unit"),
    [("energy_j", "J"), ("time_s", "ms"), ("GFLOPS/W", "GFLOPS/W")],
    ids=["joules", "time", "own"],
)
def test_the_best_is_said_in_its_unit_while_a_session_runs_and_after_it(
    capsys: pytest.CaptureFixture[str], objective: str, unit: str
) -> None:
    way = "--maximise" if objective == "GFLOPS/W" else "--minimise"
    assert main([*TUNE, way, objective]) == 0
    shown = capsys.readouterr()
    (line,) = [each for each in shown.out.splitlines() if "Best by" in each]
    assert line.split()[-1] == unit
    assert float(line.split()[-2]) > 0
    assert f" {unit}" in shown.err.split("best ")[-1]


def test_tune_and_sessions_say_why_a_search_ended(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", GEMM, "--gpu", "simulated:h200", "--speed", "inf", "--strategy", "auto"]
    assert main([*words, "--max-evaluations", "300"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"Ended +another measurement is expected to gain less than 0\.1 %", said)
    assert main([*words, "--max-evaluations", "5"]) == 0
    assert re.search(r"Ended +the budget is used up", capsys.readouterr().out)
    assert main(["sessions", "1"]) == 0
    assert re.search(r"Ended +another measurement", capsys.readouterr().out)
