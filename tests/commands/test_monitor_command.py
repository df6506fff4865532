"""`wattridge monitor` as a process: a full disk, a kill in the middle, and flags on either side of the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli import main
from app.sensors.recorded.recording import read_recording

if sys.platform == "win32":
    pytest.skip("limits and signals of POSIX", allow_module_level=True)

import resource

ROOT = Path(__file__).resolve().parents[2]
MONITOR = [sys.executable, "-m", "app", "monitor", "--gpu", "simulated:h200", "--speed", "20", "--interval", "0.1"]


def monitor(*words: str, file_limit: int | None = None) -> subprocess.Popen[str]:
    """The command, with at most so many bytes in any file it writes."""

    def limit() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.Popen(
        [*MONITOR, *words],
        # no bytecode: the limit would cut off a module's, and every later start would fail on it
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit,
    )


def ends_with_a_summary(process: subprocess.Popen[str], file: Path, why: str) -> None:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    document = json.loads(out)
    assert document["duration_s"] > 35
    assert document["energy_j"] > 0
    assert document["channels"]["power_instant_w"]["samples"] > 100
    (fault,) = document["faults"]
    assert why in fault
    assert f"{file}.part" in fault
    assert "\n" not in fault
    assert not file.exists()
    kept = read_recording(Path(f"{file}.part"))
    assert 20 < len(kept.time_ns) < 390
    assert kept.time_ns[-1] < 35e9


def test_a_file_that_may_not_grow_ends_the_recording_and_keeps_the_summary(tmp_path: Path) -> None:
    file = tmp_path / "r.csv.gz"
    process = monitor("--duration", "40", "--record", str(file), "--json", file_limit=8000)
    ends_with_a_summary(process, file, "File too large")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_recording_and_keeps_the_summary(tiny_disk: Path) -> None:
    file = tiny_disk / "r.csv.gz"
    ends_with_a_summary(monitor("--duration", "40", "--record", str(file), "--json"), file, "No space left")


def test_a_disk_that_is_full_at_the_end_keeps_the_summary_too(tmp_path: Path) -> None:
    """All fits but the file's end: the last flush is the one that fails."""
    file = tmp_path / "r.csv.gz"
    process = monitor("--duration", "0.5", "--record", str(file), "--json", file_limit=1)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert json.loads(out)["energy_j"] > 0


def test_a_monitor_that_is_killed_leaves_a_part_that_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = tmp_path / "r.csv.gz.part"
    process = monitor("--duration", "600", "--record", str(part.with_suffix("")))
    deadline, seen = time.monotonic() + 60, set[int]()
    while len(seen) < 12 and time.monotonic() < deadline:  # written out a dozen times
        if part.exists():
            seen.add(part.stat().st_size)
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    kept = read_recording(part)
    assert kept.time_ns[-1] > 9e9
    assert np.all(np.diff(kept.time_ns) > 0)
    assert main(["monitor", "--gpu", f"recorded:{part}", "--duration", "5", "--speed", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "recorded"


# --- a board that lives as fast as it can be computed, and where its options stand ------------------------------------


def summary(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_monitor_without_a_wall_clock_watches_all_the_seconds_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wherever its options stand, and every time: only the sampler moves such a clock."""
    board, rest = ("--gpu", "simulated:h200", "--speed", "inf"), ("--duration", "20")
    after, before, between = (
        summary(capsys, "monitor", *board, *rest),
        summary(capsys, *board, "monitor", *rest),
        summary(capsys, "--speed", "inf", "monitor", *rest, "--gpu", "simulated:h200"),
    )
    assert after == before == between
    assert after["duration_s"] == pytest.approx(20.0, abs=0.05)
    assert after["channels"]["power_instant_w"]["samples"] == pytest.approx(1001, abs=2)
    assert after["energy_j"] == pytest.approx(20 * after["channels"]["power_samples_w"]["mean"], rel=0.02)


def test_a_recording_replayed_without_a_wall_clock_is_seen_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "r.csv.gz"
    summary(capsys, "monitor", "--gpu", "simulated:h200", "--speed", "inf", "--duration", "20", "--record", str(file))
    assert read_recording(file).time_ns[-1] == pytest.approx(20e9, abs=0.05e9)
    seen = summary(capsys, "--speed", "inf", "monitor", "--gpu", f"recorded:{file}", "--duration", "20")
    assert seen["duration_s"] == pytest.approx(20.0, abs=0.1)
    assert seen["channels"]["power_instant_w"]["samples"] > 950


def test_an_option_before_a_command_that_has_no_use_for_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, flag in (
        (["--speed", "inf", "gpus"], "--speed"),
        (["--gpu", "0", "sessions"], "--gpu"),
        (["--sim-seed", "3", "twin"], "--sim-seed"),
        (["--specification", "x.toml", "gpus"], "--specification"),
        (["monitor", "--openmetrics", "127.0.0.1:0", "--speed", "inf"], "--speed"),
        (["--speed", "2", "measure", "--gpu", "simulated:h200", "--", "true"], "--speed"),
    ):
        assert main(words) == 2
        line = capsys.readouterr().err
        assert flag in line
        assert line.count("\n") == 1


def test_a_board_named_before_the_command_is_the_one_that_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    before = summary(capsys, "--gpu", "simulated:v100", "monitor", "--duration", "1", "--speed", "inf")
    assert "V100" in before["gpu"]
    after = summary(
        capsys, "--gpu", "simulated:v100", "monitor", "--duration", "1", "--speed", "inf", "--gpu", "simulated:h200"
    )
    assert "H200" in after["gpu"]
