"""What `analyse` and `monitor` state of a log, against a computation that shares nothing with them."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.cli import main

Rows = list[tuple[float, str, float]]


def write(file: Path, rows: Rows, heading: str = "index") -> Path:
    """As a monitor wrote it: seconds since 1970 under `ts`, the boards in turn."""
    lines = [f"ts,phase,{heading},power_w", *(f"{when:.3f},load,{board},{watts:.2f}" for when, board, watts in rows)]
    file.write_text("\n".join(lines) + "\n")
    return file


def joules(rows: Rows, board: str) -> float:
    """Straight lines between the readings of one board."""
    found = [(when, watts) for when, each, watts in rows if each == board]
    return sum((b - a) * (p + q) / 2 for (a, p), (b, q) in pairwise(found))


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict:  # type: ignore[type-arg]
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def alternating(count: int = 40) -> Rows:
    return [(1777906480.048 + 1.05 * k, board, 30.0 + 40 * int(board) + k) for k in range(count) for board in "01"]


@st.composite
def logs(draw: st.DrawFn) -> Rows:
    """Readings of one to three boards at uneven steps, seconds or longer."""
    boards = [str(number) for number in range(draw(st.integers(1, 3)))]
    base = draw(st.sampled_from((0.02, 0.1, 1.05, 5.0)))
    rows, when = [], 1777906480.0
    for _ in range(draw(st.integers(20, 60))):
        when += round(base * draw(st.floats(0.8, 1.5)), 3)
        rows += [(round(when, 3), board, round(draw(st.floats(5, 700)), 2)) for board in boards]
    return rows


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs())
def test_every_board_of_a_log_has_the_joules_of_its_own_trapezoid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Rows
) -> None:
    file = write(tmp_path / "log.csv", rows)
    boards = sorted({board for _, board, _ in rows})
    found = document(capsys, "analyse", str(file))["boards"]
    assert len(found) == len(boards)
    for board, each in zip(boards, found, strict=True):
        assert each["energy"][0]["energy_j"] == pytest.approx(joules(rows, board), rel=1e-5)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(), st.floats(1.2, 5))
def test_a_recording_ends_at_its_end_and_with_its_joules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Rows, beyond: float
) -> None:
    file = write(tmp_path / "log.csv", rows)
    length_s = rows[-1][0] - rows[0][0]
    for board in {board for _, board, _ in rows}:
        words = ("monitor", "--gpu", f"recorded:{file}#{board}", "--speed", "inf", "--interval", "0.01")
        found = document(capsys, *words, "--duration", str(beyond * length_s))
        assert found["duration_s"] == pytest.approx(length_s, abs=0.02)
        assert found["energy_j"] == pytest.approx(joules(rows, board), rel=1e-3)


def test_a_recording_begins_again_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "log.csv", alternating())
    watch = ["monitor", "--gpu", f"recorded:{file}", "--duration", "90", "--speed", "inf", "--json"]
    assert main(watch) == 0
    once = capsys.readouterr()
    assert "s and ends there; --loop" in once.err
    assert json.loads(once.out)["duration_s"] == pytest.approx(40.95, abs=0.01)
    assert main([*watch, "--loop"]) == 0
    twice = capsys.readouterr()
    assert "which are repeated" in twice.err
    assert json.loads(twice.out)["energy_j"] > 1.5 * json.loads(once.out)["energy_j"]


@pytest.mark.parametrize("heading", ["index", "gpu_index", "gpu_idx", "card", "serial", "local_rank", "device"])
def test_two_boards_are_never_one_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str], heading: str) -> None:
    found = document(capsys, "analyse", str(write(tmp_path / "log.csv", alternating(), heading)))["boards"]
    assert [round(each["energy"][0]["energy_j"]) for each in found] == [
        round(joules(alternating(), board)) for board in "01"
    ]


def test_the_published_log_of_two_boards(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = shared_data / "logs/two_boards_with_phases.csv"
    with file.open() as lines:
        rows = [(float(row["ts"]), row["index"], float(row["power_w"])) for row in csv.DictReader(lines)]
    found = document(capsys, "analyse", str(file))["boards"]
    assert [each["energy"][0]["energy_j"] for each in found] == pytest.approx([7341.7, 4103.6], abs=0.1)
    assert [joules(rows, board) for board in "01"] == pytest.approx([7341.7, 4103.6], abs=0.1)
