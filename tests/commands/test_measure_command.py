"""`wattridge measure -- PROGRAM`: what a person and a program see of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from app.cli import main

SLEEP = (sys.executable, "-c", "import time; time.sleep(0.4)")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests look once; nobody comes back within the second."""
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit status and the one document of `measure --json WORDS`."""
    status = main(["measure", "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def test_time_energy_and_power_of_a_program_with_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, "--gpu", "simulated:h200", "--repeats", "3", "--", *SLEEP)
    assert status == 0
    assert found["repeats"] == len(found["runs"]) == 3
    assert found["program"] == list(SLEEP)
    assert found["source"] == "simulated"
    assert 0.4 < found["time_s"] < 1.0
    assert found["mean_power_w"] == pytest.approx(83, rel=0.02)  # an idle H200
    assert found["energy_j"] == pytest.approx(found["mean_power_w"] * found["time_s"], rel=0.01)
    assert found["mean_power_w"] <= found["peak_power_w"] < 90
    for name in ("time_s", "energy_j", "mean_power_w", "peak_power_w"):
        low, high = found[f"{name}_interval"]
        assert low <= found[name] <= high
        seen = [run[name] for run in found["runs"]]
        assert (found[f"{name}_min"], found[f"{name}_max"]) == (min(seen), max(seen))
        assert found[f"{name}_deviation"] == pytest.approx(stdev(seen))
        assert all(run[name] > 0 for run in found["runs"])
    (gpu,) = found["gpus"]
    assert gpu["graphics_clock_mhz"]["mean"] == pytest.approx(345)
    assert gpu["event_reasons_s"]["idle"] == pytest.approx(3 * found["time_s"], abs=0.3)
    assert any("draws nothing there" in note for note in found["notes"])


def test_one_run_has_the_interval_of_the_power_readings(capsys: pytest.CaptureFixture[str]) -> None:
    """How well the sensor knows energy and power; of time and peak only repeats tell."""
    _, found = run(capsys, "--gpu", "simulated:h200", "--", *SLEEP)
    for name in ("energy_j", "mean_power_w"):
        low, high = found[f"{name}_interval"]
        assert low < found[name] < high
        assert high - low < 0.05 * found[name]
    assert found["time_s_interval"] is found["peak_power_w_interval"] is found["time_s_deviation"] is None
    assert found["time_s_min"] == found["time_s"] == found["time_s_max"]


def test_repeats_are_printed_with_minimum_mean_maximum_and_deviation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--gpu", "simulated:h200", "--repeats", "2", "--", *SLEEP]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("2 runs")
    assert re.match(r" +Time +[\d.]+ s \([\d.]+–[\d.]+\)$", lines[1]), "the mean, and its 95 % interval"
    heads = lines.index("Over the runs") + 1
    assert lines[heads].split() == ["minimum", "maximum", "deviation", "unit"]
    assert lines[heads + 2].split()[0] == "Time"


def test_no_interval_of_a_time_an_energy_or_a_power_reaches_below_zero(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two runs of which one takes twice as long: Student's t alone would reach far below."""
    longer = "import pathlib, sys, time; p = pathlib.Path(sys.argv[1]); time.sleep(0.4 + 0.6 * p.exists()); p.touch()"
    words = (sys.executable, "-c", longer, str(tmp_path / "ran"))
    _, found = run(capsys, "--gpu", "simulated:h200", "--repeats", "2", "--subtract-idle", "--", *words)
    for name in ("time_s", "energy_j"):
        low, high = found[f"{name}_interval"]
        assert low == 0, f"two such runs show nothing of the lower end of {name}"
        assert high > found[f"{name}_max"]
    low, _ = found["energy_above_idle_j_interval"]
    assert low < 0, "a difference can be negative"


def test_idle_power_is_subtracted_beside_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = run(capsys, "--gpu", "simulated:h200", "--subtract-idle", "--", *SLEEP)
    assert found["idle_power_w"] == pytest.approx(83, rel=0.02)
    above_j = found["energy_j"] - found["idle_power_w"] * found["time_s"]
    assert found["energy_above_idle_j"] == pytest.approx(above_j)
    assert abs(above_j) < 0.02 * found["energy_j"]
    low, high = found["energy_above_idle_j_interval"]
    energy_low, energy_high = found["energy_j_interval"]
    assert low < above_j < high
    assert high - low >= energy_high - energy_low


def test_several_boards_are_summed_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = run(capsys, "--gpu", "simulated:h200,simulated:v100", "--", *SLEEP)
    assert [gpu["gpu"] for gpu in found["gpus"]] == ["NVIDIA H200", "Tesla V100-PCIE-16GB"]
    assert found["energy_j"] == pytest.approx(sum(gpu["energy_j"] for gpu in found["gpus"]))


def test_a_recording_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = run(capsys, "--gpu", "recorded:h200-gemm", "--", *SLEEP)
    assert found["source"] == "recorded"
    assert any("recording's" in note for note in found["notes"])


def test_a_program_too_short_for_the_sensor_has_no_energy(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, "--gpu", "simulated:k20x", "--", "true")
    assert status == 0
    assert found["energy_j"] is found["mean_power_w"] is found["peak_power_w"] is None
    assert "too short" in found["energy_unknown"]
    assert found["time_s"] > 0


def test_a_program_that_fails_is_status_1_and_ends_the_repeats(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen = tmp_path / "runs"
    status, found = run(capsys, "--repeats", "5", "--", "sh", "-c", f"echo run >> {seen}; exit 3")
    assert status == 1
    assert "exit status 3" in found["error"]["what"]
    assert seen.read_text().count("run") == 1


def test_a_program_without_the_dashes_before_it_is_named_with_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--gpu", "simulated:a100", "ls", "-l"]) == 2
    assert "wattridge measure -- ls -l" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--",), "no program"),
        ((), "no program"),
        (("--", "no-such-program-here"), "no-such-program-here"),
        (("--repeats", "0", "--", "true"), "0"),
        (("--gpu", "simulated:a100,simulated:a100", "--", "true"), "twice"),
        (("--gpu", "simulated:gtx9999", "--", "true"), "gtx9999"),
    ],
)
def test_bad_input_is_status_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], named: str) -> None:
    status, found = run(capsys, *words)
    assert status == 2
    assert named in found["error"]["what"] + found["error"]["where"]


def test_the_programs_own_words_are_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    """Options after `--` are the program's, `--json` and `--gpu` among them, and so is a further `--`."""
    words = ["--gpu", "x", "--json", "--", "$HOME", "a b"]
    code = "import sys; print(sys.argv[1:])"
    assert main(["measure", "--gpu", "simulated:v100", "--", sys.executable, "-c", code, *words]) == 0
    assert str(words) in capfd.readouterr().out


def test_with_json_the_programs_output_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--json", "--gpu", "simulated:v100", "--", "echo", "the program's line"]) == 0
    captured = capfd.readouterr()
    json.loads(captured.out)
    assert "the program's line" in captured.err


def test_the_terminal_shows_a_line_per_figure(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--gpu", "simulated:h200", "--", *SLEEP]) == 0
    out = capfd.readouterr().out
    assert "NVIDIA H200 (simulated)" in out
    for word in ("Time", "Energy", "Mean power", "Peak power", "345 MHz", "idle"):
        assert word in out


def test_an_interrupt_ends_the_program_and_says_so(tmp_path: Path) -> None:
    began = tmp_path / "began"
    program = ["sh", "-c", f"touch {began}; sleep 600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "measure", "--gpu", "simulated:a100", "--json", "--", *program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not began.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert json.loads(out)["error"]["what"] == "stopped"


def test_joules_at_the_boards_condition_are_a_key_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "simulated:a100", "--", *SLEEP)
    _, before = run(capsys, *words)
    assert before["energy_at_condition_j"] is None
    assert before["condition"] is None
    example = str(ROOT / "resources/examples/gemm.toml")
    main(["tune", example, "--gpu", "simulated:a100", "--max-evaluations", "6", "--json"])
    fixed = json.loads(capsys.readouterr().out)["stated_for"]["condition"]
    _, after = run(capsys, *words)
    assert after["condition"] == fixed
    assert after["energy_j"] == pytest.approx(after["mean_power_w"] * after["time_s"], rel=1e-6), "what was drawn"
    assert after["energy_at_condition_j"] == pytest.approx(after["energy_j"], rel=0.05)
    low, high = after["energy_at_condition_j_interval"]
    assert low < after["energy_at_condition_j"] < high
    assert main(["measure", *words]) == 0
    assert f"Energy at {fixed}" in capsys.readouterr().out
