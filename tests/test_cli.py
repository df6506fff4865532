"""The command line as users and as programs meet it: tables, one JSON document, one clear line when it fails."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from fixtures.commands import run

from app.cli import main
from app.engine.runner.command import CommandRunner
from app.sensors.gpu import GpuLost

PS3 = "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"


def test_replay_of_the_rtx4000ada_cache_finds_the_published_front(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    status, document = run(
        capsys,
        "replay",
        str(shared_data / PS3),
        "--strategy",
        "brute_force",
        "--front",
        "max:TFLOPS,max:TFLOPS/J",
    )
    assert status == 0
    assert (document["evaluated"], document["valid"], document["failed"]) == (5120, 5120, {"runtime": 430})
    assert document["source"] == "recorded"
    front = document["front"]
    assert len(front) == 13
    by_speed = max(front, key=lambda p: p["values"]["TFLOPS"])
    by_energy = max(front, key=lambda p: p["values"]["TFLOPS/J"])
    assert list(by_speed["configuration"].values()) == [1815, 32, 1, 2, 64, 64, 2]
    assert by_speed["values"]["TFLOPS"] == pytest.approx(80.435, abs=5e-4)
    assert list(by_energy["configuration"].values()) == [1485, 32, 2, 2, 64, 128, 2]
    assert by_energy["values"]["TFLOPS/J"] == pytest.approx(0.9315, abs=5e-5)


def test_every_strategy_replays_a_cache_within_its_budget(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    import app.engine.strategies  # noqa: F401  (registers every strategy)
    from app.engine.strategies import base

    for name in base.names():
        if not type(base.get(name)).__module__.startswith("app."):
            continue  # registered by another test
        status, document = run(
            capsys, "replay", str(shared_data / PS3), "--strategy", name, "--max-evaluations", "40", "--seed", "3"
        )
        assert status == 0, name
        assert document["strategy"] == name
        assert document["evaluated"] == 40, name
        assert document["best"] is not None, name


def test_the_same_seed_gives_the_same_run(capsys: pytest.CaptureFixture[str], shared_data: Path) -> None:
    words = ("replay", str(shared_data / PS3), "--strategy", "genetic_algorithm", "--max-evaluations", "150")
    first, second, other = (run(capsys, *words, "--seed", seed)[1] for seed in ("5", "5", "6"))
    assert first["best"] == second["best"]
    assert first["front"] == second["front"]
    assert first["front"] != other["front"]


def test_fit_of_the_h200_sweep_recommends_a_clock_within_one_per_cent_of_the_best(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    status, fit = run(capsys, "fit", str(shared_data / "clock-sweeps/h200_fp64_gemm_clock_sweep.csv"))
    assert status == 0
    assert fit["ridge_mhz"] == pytest.approx(969, abs=40)
    assert fit["best_measured_mhz"] == 975
    watts_per_gflops = {975: 311.2 / 32130.1, 1020: 334.5 / 33767.7, 1080: 361.0 / 35754.2, 915: 296.8 / 29959.0}
    clocks = sorted(watts_per_gflops)
    recommended = np.interp(fit["recommended_clock_mhz"], clocks, [watts_per_gflops[clock] for clock in clocks])
    assert recommended <= 1.01 * watts_per_gflops[975], "between two clocks, at most what a straight line has"


def test_fit_says_that_the_ridge_of_the_rtx4000ada_is_not_bracketed(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    status, fit = run(capsys, "fit", str(shared_data / PS3))
    assert status == 0
    assert fit["ridge_bracketed"] is False
    assert fit["reasons"]


def test_the_twin_of_the_h200_follows_the_measured_sweep(capsys: pytest.CaptureFixture[str], shared_data: Path) -> None:
    import csv

    status, document = run(capsys, "twin", "h200", "--truth", "--workload", "fp64_gemm", "--power-limit", "600")
    assert status == 0
    truth = {row["clock_mhz"]: row for row in document["clocks"]}
    with open(shared_data / "clock-sweeps/h200_fp64_gemm_clock_sweep.csv") as file:
        for measured in csv.DictReader(file):
            row = truth[int(measured["clock_mhz_locked"])]
            assert row["power_w"] == pytest.approx(float(measured["power_w"]), rel=0.05), measured
            assert row["rate"] == pytest.approx(float(measured["dgflops"]), rel=0.05), measured


def test_gpus_lists_the_simulated_boards_where_no_driver_answers(capsys: pytest.CaptureFixture[str]) -> None:
    status, boards = run(capsys, "gpus")
    assert status == 0
    for board in boards:
        assert {"index", "uuid", "name", "source", "driver", "power_limit_w", "channels", "power_source"} <= set(board)
        assert board["graphics_clocks_mhz"]["min"] < board["graphics_clocks_mhz"]["max"]
        for description in board["channels"].values():
            assert isinstance(description, str)


def test_monitor_reports_each_channel_with_its_unit_and_the_energy(capsys: pytest.CaptureFixture[str]) -> None:
    """As fast as it can be computed: on a busy machine the readings of a board in real time have gaps."""
    status, document = run(capsys, "monitor", "--gpu", "simulated:h200", "--duration", "2", "--speed", "inf")
    assert status == 0
    assert document["source"] == "simulated"
    power = document["channels"]["power_instant_w"]
    assert power["unit"] == "W"
    assert power["min"] <= power["mean"] <= power["max"]
    assert document["energy_j"] == pytest.approx(power["mean"] * document["duration_s"], rel=0.1)
    assert document["duration_s"] == pytest.approx(2.0, abs=0.1)
    assert "core_voltage_mv" in document["unavailable"]
    assert "core_voltage_mv" not in document["channels"]


def test_a_recording_replays_what_was_watched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "watched.csv.gz"
    _, seen = run(
        capsys, "monitor", "--gpu", "simulated:h200", "--duration", "2", "--speed", "4", "--record", str(file)
    )
    status, replayed = run(capsys, "monitor", "--gpu", f"recorded:{file}", "--duration", "1.5", "--speed", "4")
    assert status == 0
    assert replayed["source"] == "recorded"
    mean = replayed["channels"]["power_instant_w"]["mean"]
    assert mean == pytest.approx(seen["channels"]["power_instant_w"]["mean"], rel=0.1)


def test_demo_without_a_window_prints_front_ridge_and_exports(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, document = run(capsys, "demo", "--max-evaluations", "40", "--out", str(tmp_path / "out"))
    assert status == 0
    assert document["source"] == "simulated"
    assert 20 < document["evaluated"] <= 40, "it may end by itself"
    assert document["front"]
    assert document["fit"]["ridge_bracketed"]
    for file in document["files"]:
        assert Path(file).stat().st_size > 0
    exported = json.loads(
        next(Path(f) for f in document["files"] if f.endswith(".json") and "cache" not in f).read_text()
    )
    assert "simulated" in json.dumps(exported)


def test_the_session_of_a_real_h200_that_comes_along_is_replayed_by_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, document = run(capsys, "replay", "h200-sgemm-session", "--strategy", "random_sample")
    assert status == 0
    assert (document["gpu"], document["source"], document["evaluated"]) == ("NVIDIA H200", "recorded", 204)
    assert document["best"]["values"]["GFLOPS/W"] > 60


def test_tune_keeps_the_session_and_export_takes_it_away(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from app.base.paths import resources

    example = str(resources() / "examples" / "gemm.toml")
    status, tuned = run(capsys, "tune", example, "--gpu", "simulated:a4000", "--max-evaluations", "25")
    assert status == 0
    status, exported = run(capsys, "export", str(tuned["session"]), "--out", str(tmp_path / "taken"))
    assert status == 0
    names = {Path(file).suffix for file in exported["files"]}
    assert {".json", ".h", ".sh", ".csv"} <= names
    cache = next(f for f in exported["files"] if "cache" in Path(f).name)
    status, replayed = run(capsys, "replay", cache, "--strategy", "brute_force")
    assert status == 0
    assert replayed["evaluated"] == 25 + tuned["timed"] > 25, "what was only timed is there, and is no failure"
    assert replayed["best"]["configuration"] == tuned["best"]["configuration"]


def test_a_session_on_a_twin_of_ones_own_is_resumed_from_any_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.base.paths import resources

    (tmp_path / "mine.toml").write_text((resources() / "twins" / "a4000.toml").read_text())
    example = str(resources() / "examples" / "gemm.toml")
    monkeypatch.chdir(tmp_path)
    _, begun = run(capsys, "tune", example, "--gpu", "simulated:mine.toml", "--sim-seed", "7", "--max-evaluations", "6")
    monkeypatch.chdir("/")
    status, gone_on = run(capsys, "tune", "--resume", str(begun["session"]), "--max-evaluations", "12")
    assert status == 0
    assert gone_on["session"] == begun["session"]
    assert gone_on["evaluated"] == 12


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("replay", "no-such-file.json"), "no-such-file.json"),
        (("tune", "no-such-file.toml"), "no-such-file.toml"),
        (("fit", "no-such-file.csv"), "no-such-file.csv"),
        (("monitor", "--gpu", "simulated:gtx9999"), "gtx9999"),
        (("monitor", "--gpu", "recorded:nothing"), "nothing"),
        (("monitor", "--duration", "-1"), "--duration"),
        (("monitor", "--speed", "1e9"), "1e9"),
        (("monitor", "--speed", "nan"), "nan"),
        (("fit",), "fit"),
        (("export",), "export"),
        (("nonsense",), "nonsense"),
    ],
)
def test_bad_input_is_one_document_with_exit_status_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], named: str
) -> None:
    status, document = run(capsys, *words)
    assert status == 2
    error = document["error"]
    assert set(error) == {"what", "where", "remedy"}
    assert named in error["what"] + error["where"]
    assert "\n" not in error["what"]
    assert error["remedy"]


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("300,80\n400\n500,99\n", "line 3 has 1 cells"),
        ("300,80\n400,90,7\n500,99\n", "line 3 has 3 cells"),
        ("300,80\n400,90\n500,x\n600,120\n", "line 4: 'x' is not a number"),
    ],
)
def test_a_damaged_row_is_named_not_skipped(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rows: str, named: str
) -> None:
    file = tmp_path / "sweep.csv"
    file.write_text("clock_mhz,power_w\n" + rows)
    status, document = run(capsys, "fit", str(file))
    assert status == 2
    assert named in document["error"]["what"]
    assert str(file) in document["error"]["where"]


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            {
                "library": "cuda-bindings 12.9.10",
                "compiler": "NVRTC 12.9",
                "other_libraries": ["pycuda"],
                "why_not": None,
            },
            "run by cuda-bindings 12.9.10 and compiled by NVRTC 12.9; WATTRIDGE_CUDA=pycuda takes pycuda",
        ),
        (
            {"library": None, "compiler": None, "other_libraries": [], "why_not": "no library (pip install it)"},
            "none can run from here: no library (pip install it)",
        ),
    ],
)
def test_gpus_says_in_full_what_runs_kernels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], line: str
) -> None:
    monkeypatch.setattr("app.engine.runner.cuda.language.cuda_in_use", lambda: found)
    assert main(["gpus", "--verbose"]) == 0
    assert f"Kernels on real boards: {line}\n" in capsys.readouterr().out
    assert main(["gpus"]) == 0
    assert "Kernels" not in capsys.readouterr().out
    assert main(["gpus", "--verbose", "--json"]) == 0
    assert not any("cuda" in board for board in json.loads(capsys.readouterr().out)), "simulated boards need none"


def test_without_json_the_error_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "missing.toml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def test_commands_work_where_optional_packages_are_missing(tmp_path: Path) -> None:
    """Neither Qt nor NVML nor what speaks to CUDA may stop a headless command."""
    blocker = tmp_path / "sitecustomize.py"
    blocker.write_text(
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'PySide6', 'shiboken6', 'pyqtgraph', 'pynvml', 'pycuda', 'cuda', 'cupy'}:\n"
        "            raise ImportError(name + ' is not here')\n"
        "sys.meta_path.insert(0, Block())\n"
    )
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}
    for words in (["gpus"], ["demo", "--max-evaluations", "5"], ["monitor", "--duration", "0.5"]):
        done = subprocess.run(
            [sys.executable, "-m", "app", *words, "--json"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


def test_interrupting_a_monitor_still_prints_what_was_seen(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    record = tmp_path / "r.csv.gz"
    words = ["--gpu", "simulated:a100", "--duration", "600", "--record", str(record), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "monitor", *words],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    part, sizes, deadline = record.with_name("r.csv.gz.part"), set[int](), time.monotonic() + 60
    while len(sizes) < 4 and time.monotonic() < deadline:  # it has begun, and seen a second or two
        if part.exists():
            sizes.add(part.stat().st_size)
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    document = json.loads(out)
    assert 0 < document["duration_s"] < 300
    assert math.isfinite(document["energy_j"])


def test_patience_ends_a_search_and_is_kept_with_the_session(
    capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    words = ("replay", str(shared_data / PS3), "--strategy", "simulated_annealing", "--seed", "2")
    status, ended = run(capsys, *words, "--patience", "40")
    assert status == 0
    assert 40 < ended["evaluated"] < 2000
    resumed = run(capsys, "tune", "--resume", str(ended["session"]))[1]
    assert resumed["evaluated"] == ended["evaluated"]
    longer = run(capsys, "tune", "--resume", str(ended["session"]), "--patience", "60")[1]
    assert longer["evaluated"] >= ended["evaluated"] + 20
    assert main([*words, "--patience", "0"]) == 2


ALWAYS_FAILS = """
[parameters]
x = [1, 2]
[command]
run = "false"
[objective]
minimise = "time_s"
[search]
strategy = "brute_force"
"""


def test_a_session_in_which_every_configuration_fails_has_failed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A script that tunes and then builds must not go on; what was measured is printed and kept all the same."""
    path = tmp_path / "fails.toml"
    path.write_text(ALWAYS_FAILS)
    status = main(["tune", str(path), "--gpu", "simulated:a100", "--json"])
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert status == 1
    assert (document["state"], document["best"], document["failed"]) == ("done", None, {"runtime": 2})
    assert "error" not in document, "the document of a session, as always"
    assert said.err.splitlines()[-1] == ("wattridge: session 1: every configuration failed (most often: exit status 1)")


def test_a_session_that_a_fault_ends_is_one_document_and_a_line_beside_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> NoReturn:
        raise GpuLost("the board fell off the bus", "simulated:a100")

    monkeypatch.setattr(CommandRunner, "measure", lost)
    path = tmp_path / "fails.toml"
    path.write_text(ALWAYS_FAILS)
    status = main(["tune", str(path), "--gpu", "simulated:a100", "--json"])
    said = capsys.readouterr()
    assert status == 1
    assert json.loads(said.out)["state"] == "failed"
    assert "the board fell off the bus" in said.err.splitlines()[-1]


def test_strategies_are_listed_with_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    status, documents = run(capsys, "strategies")
    assert status == 0
    assert documents[0]["name"] == "auto"
    by_name = {document["name"]: document for document in documents}
    assert {"tabu_search", "steered", "brute_force"} <= set(by_name)
    status, one = run(capsys, "strategies", "steered")
    assert one == by_name["steered"]
    options = {option["name"]: option for option in one["options"]}
    assert "tabu_search" in options["base"]["choices"]
    assert (options["within"]["default"], options["within"]["choices"]) == (0.1, None)
    assert all(option["help"] for document in documents for option in document["options"])
    assert main(["strategies", "no_such"]) == 2
    capsys.readouterr()
    assert main(["strategies", "tabu_search"]) == 0
    assert "tenure" in capsys.readouterr().out


def test_every_command_that_help_lists_declares_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("First steps:")[2].splitlines()
    commands = [line.split()[0] for line in listed if re.match(r"  [a-z]", line)]
    assert {"gpus", "tune", "fit", "compare-methods", "restore"} <= set(commands)
    for command in commands:
        assert main([command, "--help"]) == 0
        described = capsys.readouterr().out
        assert described.startswith(f"usage: wattridge {command}")
        assert "--json" in described


def test_an_option_of_another_command_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "--points", "3", "--json"]) == 2
    assert "--points" in json.loads(capsys.readouterr().out)["error"]["what"]
