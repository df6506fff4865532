"""`wattridge check A B`: exit status, document and words; programs, functions, kernels, and two checkouts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.cli import main
from app.commands.schema import schema_of

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """
[kernel]
name = "rounds"
source = "rounds.cu"
problem_size = ["n // 8"]
grid_divisors = { x = ["block_size_x"] }
arguments = [{ name = "out", type = "float32", shape = ["n // 8"], output = true }]
profile = "roofline"
[constants]
n = 2162688
load_store = 0
[parameters]
block_size_x = [256]
operations = [20000, 20200, 20400]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rounds.toml").write_text(KERNEL)
    (tmp_path / "rounds.cu").write_text("")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of programs and functions that are long enough for a test of the wiring."""
    monkeypatch.setattr("app.engine.session.contenders._least_s", lambda watch, least_s: 0.2)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits; the program of the second runs three times as long."""
    folder = tmp_path / "repository" / "below"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for pause in ("0.05", "0.15"):
        (folder / "bench").write_text(f"#!/bin/sh\nexec sleep {pause}\n")
        (folder / "bench").chmod(0o755)
        git(folder, "add", "-A")
        git(folder, "-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-qm", pause)
    monkeypatch.chdir(folder)
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    status = main(["check", "--json", "--gpu", "simulated:h200", *words])
    return status, json.loads(capsys.readouterr().out)


def side(rounds: int) -> str:
    return f"rounds.toml:operations={rounds}"


def test_two_percent_more_work_is_worse_and_less_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, "--seed", "1", side(20000), side(20400))
    assert (status, found["verdict"]) == (4, "worse")
    low, high = found["result"]["energy"]["interval"]
    assert 0.005 < low < 0.02 < high
    assert found["result"]["seconds"] < 20
    assert found["result"]["seconds_more"] == 0
    assert found["unit"] == "launch"
    assert found["words"].startswith("B needs ")
    assert found["words"].endswith(": worse, by more than 0.5 %")
    assert {block["side"] for block in found["blocks"]} == {"A", "B"}
    status, found = run(capsys, "--seed", "1", side(20400), side(20000))
    assert (status, found["verdict"]) == (0, "no worse")


def test_the_threshold_decides_and_what_cannot_be_told_says_how_long_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(capsys, "--seed", "1", "--threshold", "5", side(20000), side(20400))[0] == 0
    status, found = run(capsys, "--seed", "1", "--seconds", "12", "--threshold", "0.8", side(20000), side(20200))
    assert (status, found["verdict"]) == (3, "undecided")
    assert found["result"]["seconds_more"] > 1
    assert "more would do" in found["words"]


def test_the_answer_in_words_and_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--gpu", "simulated:h200", "--seed", "1", side(20000), side(20400)]
    assert main(words) == 4
    out = capsys.readouterr().out
    assert "B against A: NVIDIA H200 (simulated)" in out
    assert "intervals hold with 99 %, whenever one stops" in out
    assert main([*words, "--markdown"]) == 4
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("❌ **Energy**: B needs ")
    assert "`rounds.toml:operations=20400`; NVIDIA H200 (simulated), " in line


def test_the_same_seeds_give_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (run(capsys, "--seed", "3", side(20000), side(20000))[1] for _ in range(2))
    assert first["blocks"] == second["blocks"]


def test_programs_run_again_and_again_until_a_block_is_long_enough(
    capsys: pytest.CaptureFixture[str], short: None
) -> None:
    words = ("sleep 0.01", "sleep 0.3", "--seconds", "3")
    status, found = run(capsys, *words)
    assert status in (3, 4)
    assert found["unit"] == "run"
    assert all(block["end_s"] - block["start_s"] >= 0.2 for block in found["blocks"])
    work = {side: [block["work"] for block in found["blocks"] if block["side"] == side] for side in "AB"}
    assert max(work["A"]) > 1  # a slow machine takes longer for one than a block must last
    assert set(work["B"]) == {1}
    assert any("draws nothing on a simulated board" in remark for remark in found["remarks"])


def test_the_hosts_joules_stand_beside_the_boards_where_they_can_be_read(
    capsys: pytest.CaptureFixture[str], short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = time.monotonic()
    folder = tmp_path / "intel-rapl:0"
    folder.mkdir()
    (folder / "name").write_text("package-0")

    def counted(path: Path) -> int:  # 50 W
        return round(50e6 * (time.monotonic() - begun)) if path.name == "energy_uj" else 1 << 60

    monkeypatch.setattr("app.sensors.meters.rapl.Rapl.__init__.__defaults__", (tmp_path,))
    monkeypatch.setattr("app.sensors.meters.rapl.Rapl._number", staticmethod(counted))
    found = run(capsys, "sleep 0.3", "sleep 0.3", "--seconds", "2")[1]
    for block in found["blocks"]:
        assert block["host_energy_j"] == pytest.approx(50 * block["time_s"], rel=0.1)
    assert main(["check", "--gpu", "simulated:h200", "sleep 0.3", "sleep 0.3", "--seconds", "1"]) in (0, 3, 4)
    assert "J of the host" in capsys.readouterr().out


def test_functions_get_the_same_inputs_and_run_apart(
    capsys: pytest.CaptureFixture[str], short: None, tmp_path: Path
) -> None:
    (tmp_path / "one.py").write_text(
        "import os, random\n"
        "def made():\n    return [random.random() for _ in range(100)], 2\n"
        "def note(values, times, name):\n"
        "    with open(name, 'w') as file: file.write(f'{os.getpid()} {values}')\n"
        "def a(values, times): note(values, times, 'a.txt'); sum(values * times)\n"
        "def b(values, times): note(values, times, 'b.txt'); sum(values * times)\n"
    )
    status, found = run(capsys, "one.py:a", "one.py:b", "--inputs", "made", "--copies", "2", "--seconds", "2")
    assert status in (0, 3, 4)
    assert found["unit"] == "call"
    (pid_a, values_a), (pid_b, values_b) = ((tmp_path / name).read_text().split(" ", 1) for name in ("a.txt", "b.txt"))
    assert values_a == values_b
    assert len({pid_a, pid_b, str(os.getpid())}) == 3


def test_what_the_program_prints_does_not_reach_the_document(capsys: pytest.CaptureFixture[str], short: None) -> None:
    status, found = run(capsys, "echo one", "echo two", "--seconds", "1")
    assert status in (0, 3, 4)
    assert found["b"] == "echo two"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("false", "true"), 1, "it failed: exit status 1"),
        (("there-is-no-such-program", "true"), 2, "there is no program"),
        (("true",), 2, "two sides are compared, not 1"),
        (("true", side(20000)), 2, "A is a command and B a specification"),
        (("no.py:f", "no.py:g"), 2, "there is no such file"),
        ((side(20000), side(7)), 2, "no configuration has operations=7 (values of operations: 20000, 20200, 20400)"),
        (("rounds.toml", side(20000)), 2, "3 configurations match"),
        (("'open", "true"), 2, "not a command line"),
        (("true", "true", "--commits", "HEAD"), 2, "are no two commits"),
        (("--commits=-x,HEAD", "--", "true"), 2, "are no two commits"),
        (("--commits", "a,b"), 2, "nothing to run"),
        (("true", "--", "true"), 2, "use --commits, or quote A and B"),
    ],
)
def test_a_side_that_fails_is_status_1_and_a_wrong_word_is_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, says: str
) -> None:
    assert main(["check", "--gpu", "simulated:h200", *words]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_function_that_raises_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def f(): raise ValueError('too late')\ndef g(): import os; os._exit(3)\n")
    assert main(["check", "--gpu", "simulated:h200", "one.py:f", "one.py:f"]) == 1
    assert "ValueError: too late" in capsys.readouterr().err
    assert main(["check", "--gpu", "simulated:h200", "one.py:g", "one.py:g"]) == 1
    assert "its process ended" in capsys.readouterr().err


def test_two_commits_are_checked_out_and_removed_again(
    capsys: pytest.CaptureFixture[str], repository: Path, short: None
) -> None:
    status, found = run(capsys, "--commits", "HEAD~1,HEAD", "--prepare", "touch prepared", "--", "./bench")
    assert (status, found["verdict"]) == (4, "worse")
    assert (found["a"], found["b"]) == ("HEAD~1", "HEAD")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert [path.name for path in repository.iterdir() if path.name != ".git"] == ["bench"]


def test_the_history_of_commits_names_the_change_point(capsys: pytest.CaptureFixture[str], repository: Path) -> None:
    assert main(["check", "--history"]) == 2
    assert "nothing was compared here" in capsys.readouterr().err
    (repository / "rounds.cu").write_text("")
    for rounds in (20000, 20020, 20420, 20440):
        (repository / "rounds.toml").write_text(KERNEL.replace("[20000, 20200, 20400]", f"[{rounds}]"))
        git(repository, "add", "-A")
        git(repository, "-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-qm", str(rounds))
    for back in (3, 2, 1):
        run(capsys, "--seed", "1", "--commits", f"HEAD~{back},HEAD~{back - 1}", "--", "rounds.toml")
    assert main(["check", "--history", "--out", str(repository / "history.html")]) == 0
    assert capsys.readouterr().out.count("  change point") == 1
    page = (repository / "history.html").read_text()
    assert "<svg" in page
    assert "Content-Security-Policy" in page
    assert main(["check", "--history", "--json", "--", "rounds.toml"]) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("check")).validate(document)
    (history,) = document
    second = history["commits"][1]
    assert [commit["change_point"] for commit in history["commits"]] == [False, True, False]
    assert second["commit"] == git(repository, "rev-parse", "HEAD~1").strip()
    assert second["change"][0] < 400 / 20020 < second["change"][1]
    low, high = history["commits"][2]["since_first"]
    assert low < 440 / 20000 < high
    assert main(["check", "--history", "--", "another"]) == 2


def test_a_commit_that_is_not_there_and_a_preparation_that_fails(
    capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    assert main(["check", "--gpu", "simulated:h200", "--commits", "HEAD,nothing", "--", "./bench"]) == 2
    assert "no commit 'nothing'" in capsys.readouterr().err
    words = ["--commits", "HEAD~1,HEAD", "--prepare", "false", "--", "./bench"]
    assert main(["check", "--gpu", "simulated:h200", *words]) == 1
    assert "--prepare" in capsys.readouterr().err
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_was_measured_and_leaves_no_checkout(
    repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words = [sys.executable, "-m", "app", "check", "--json", "--gpu", "simulated:h200", "--seconds", "60"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": str(tmp_path / "data")}
    process = subprocess.Popen(
        [*words, "--commits", "HEAD~1,HEAD", "--", "./bench"],
        cwd=repository,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while len(git(repository, "worktree", "list").splitlines()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    if out:
        assert process.returncode == 3
        assert "it was stopped before it was decided" in json.loads(out)["remarks"]
    else:  # before the first block
        assert process.returncode != 0
        assert errors.strip()
