"""Meters on the command line: `wattridge meters`, `measure --meter`, `tune --meter` of a kernel and of a program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

WATTS = 123.0
# A sample of every 10 ms, also of those in which a busy machine did not let it run.
PRINTS = f"""
import time
due = time.time()
while True:
    while due <= time.time():
        print(f"{{due:.6f}} {WATTS}", flush=True)
        due += 0.01
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody comes back within the second."""
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)


@pytest.fixture
def meter(tmp_path: Path) -> str:
    """A program that prints time stamps and watts."""
    program = tmp_path / "meter.py"
    program.write_text(PRINTS)
    return f"command:{sys.executable} {program}"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    status = main([*words, "--json"] if "--" not in words else [words[0], "--json", *words[1:]])
    return status, json.loads(capsys.readouterr().out)


def test_the_meters_that_seem_to_be_here_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, "meters", "--gpu", "simulated:a100")
    assert status == 0
    assert {"meter": "simulated", "label": found[-1]["label"]} == found[-1]


def test_a_meter_is_read_and_each_channel_reported(capsys: pytest.CaptureFixture[str], meter: str) -> None:
    status, found = run(capsys, "meters", "--gpu", "simulated:a100", "--meter", meter, "--duration", "0.3")
    assert status == 0
    [only] = found
    assert only["samples"] >= 5
    assert only["channels"]["command_w"]["mean"] == WATTS


def test_measure_reports_a_program_by_the_meter_too(capsys: pytest.CaptureFixture[str], meter: str) -> None:
    program = (sys.executable, "-c", "import time; time.sleep(0.3)")
    status, found = run(capsys, "measure", "--gpu", "simulated:h200", "--meter", meter, "--", *program)
    assert status == 0
    by_meter = found["meters"]["command"]
    assert by_meter["mean_power_w"] == pytest.approx(WATTS)
    assert by_meter["energy_j"] == pytest.approx(WATTS * found["time_s"])
    assert found["mean_power_w"] == pytest.approx(83, rel=0.02)  # an idle H200


def test_a_program_is_tuned_with_the_energy_of_both(
    capsys: pytest.CaptureFixture[str], meter: str, tmp_path: Path
) -> None:
    spec = tmp_path / "nap.toml"
    spec.write_text(
        f"""
[command]
run = '''{sys.executable} -c "import time; time.sleep({{nap}})"'''
[parameters]
nap = [0.25, 0.35]
[objective]
minimise = "energy_j"
[metering]
meters = [{json.dumps(meter)}]
energy_from = "command"
"""
    )
    status, found = run(capsys, "tune", str(spec), "--gpu", "simulated:h200")
    assert status == 0
    values = found["best"]["values"]
    assert values["power_command_w"] == pytest.approx(WATTS)
    assert values["energy_j"] == pytest.approx(WATTS * values["time_s"])
    assert values["power_board_w"] == pytest.approx(83, rel=0.05)
    assert any("as a meter beside the board" in note for note in found["notes"])


def test_a_session_prints_the_gain_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("tune", "resources/examples/dot.toml", "--gpu", "simulated:a100", "--meter", "simulated:0.97")
    status, found = run(capsys, *words, "--strategy", "random_sample", "--max-evaluations", "8")
    assert status == 0
    assert found["sensor_gain"]["gain"] == pytest.approx(1 / 0.97, rel=0.003)
    assert found["stated_for"]["gain_error"] == pytest.approx(1 / 0.97 - 1, abs=0.003)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("meters", "--meter", "rapl:/no/such/folder"), "no RAPL counters"),
        (("meters", "--meter", "pm_counters:gpu7"), "no pm_counters"),
        (("meters", "--meter", "pmt:rapl"), "not installed"),
        (("meters", "--meter", "command:/no/such/program"), "does not start"),
        (("meters", "--meter", "file:/no/such/file"), "does not open"),
        (("tune", "resources/examples/dot.toml", "--gpu", "simulated:a100", "--meter", "rapl"), "in real time"),
        (("tune", "resources/examples/dot.toml", "--gpu", "simulated:a100", "--energy-from", "rapl"), "choose one of"),
    ],
)
def test_what_is_not_there_is_one_line_with_the_remedy(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    status, found = run(capsys, words[0], "--gpu", "simulated:a100", *words[1:])
    assert status == 2
    assert said in found["error"]["what"] + found["error"]["remedy"]
    assert found["error"]["remedy"]
