"""`wattridge profile -- PROGRAM`: the user's own Python is watched, and what cannot be watched is said in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from app.cli import main

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="programs are watched on Linux")
BOARD = ("--gpu", "simulated:h200")

# Writes what the watcher writes, as cupti_activity.h's records say: two kernels that alternate every half second.
STAND_IN = """
import json, os, struct, sys, time
folder = os.environ["WATTRIDGE_PROFILE"]
file = open(os.path.join(folder, f"{os.getpid()}.watched"), "ab", buffering=0)
def chunk(tag, content): file.write(struct.pack("<4sI", tag, len(content)) + content)
def rows(tag, *rows): chunk(tag, b"".join(struct.pack(f"<{len(row)}q", *row) for row in rows))
chunk(b"META", json.dumps({"pid": os.getpid()}).encode())
for name in ("gemm", "softmax", "step"): chunk(b"NAME", json.dumps(name).encode())
began = time.time_ns()
for number in range(int(sys.argv[1])):
    at = time.time_ns()
    time.sleep(0.01)
    end = time.time_ns()
    rows(b"SLCE", (0, 0, 7, (at - began) // 500_000_000 % 2, at + 1000, end - at - 2000, 0, number, -1))
    rows(b"LNCH", (number, 1, at))
    rows(b"HOST", (1, 2, at, end - at, -1))
if sys.argv[2].isdigit():  # PyTorch's profiler had the records for so many ms
    kernel = {"ph": "X", "cat": "kernel", "name": "traced", "pid": 0, "tid": 7, "dur": 9_000, "args": {"device": 0}}
    kernels = [{**kernel, "ts": began / 1e3 + 10_000 * number} for number in range(int(sys.argv[2]) // 10)]
    with open(os.path.join(folder, "1-1.trace.json"), "w") as trace:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H200"}], "traceEvents": kernels}, trace)
if sys.argv[2] != "killed":
    rows(b"SPAN", (began, time.time_ns()))
    chunk(b"DONE", b'{"dropped": 0, "most": false}')
sys.exit(3 if sys.argv[2] == "fails" else 0)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(STAND_IN)
    return path


def test_a_program_is_profiled_and_its_profile_written(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "profile",
        *BOARD,
        "--out",
        str(tmp_path / "out"),
        "--json",
        "--",
        sys.executable,
        str(script),
        "250",
        "ends",
    )
    assert main([*words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["title"] == "train"
    assert document["source"] == "simulated"
    assert {item["name"] for item in document["families"]} == {"gemm", "softmax"}
    assert sum(item["count"] for item in document["families"]) == 250
    assert [item["path"] for item in document["ranges"]] == [["step"]]
    assert document["energy_j"] > 0
    assert document["clocks"]["shift_s"] == 0
    assert (tmp_path / "out" / "train-profile.json").is_file()


def test_a_program_that_fails_or_is_killed_loses_nothing(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *BOARD, "--", sys.executable, str(script), "120", "fails"]) == 1
    said = capsys.readouterr()
    assert "gemm" in said.out
    assert "the program failed: exit status 3" in said.err
    assert main(["profile", *BOARD, "--", sys.executable, str(script), "120", "killed"]) == 0
    assert "ended without a word" in capsys.readouterr().out


@pytest.mark.parametrize(("profiled_ms", "expected"), [("20", {"gemm", "softmax"}), ("60000", {"traced"})])
def test_where_pytorchs_profiler_ran_too_the_records_that_hold_more_are_used(
    script: Path, capsys: pytest.CaptureFixture[str], profiled_ms: str, expected: set[str]
) -> None:
    assert main(["profile", *BOARD, "--json", "--", sys.executable, str(script), "100", profiled_ms]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {item["name"] for item in document["families"]} == expected
    assert any("PyTorch's profiler" in note for note in document["notes"])


def test_a_program_is_ended_after_its_seconds(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *BOARD, "--seconds", "2", "--", sys.executable, str(script), "100000", "ends"]) == 0
    assert "gemm" in capsys.readouterr().out


def test_the_watcher_comes_into_the_programs_own_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own `sitecustomize` runs too, its modules are as they are, and what is missing there is said."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; sys.own_one_ran = True\n")
    (tmp_path / "own" / "cupy.py").write_text("here = __spec__.loader.get_data(__file__)\n")
    program = (
        "import sys; assert sys.own_one_ran; assert not [entry for entry in sys.path if 'injected' in entry];"
        "sys.path[:] = [entry for entry in sys.path if not entry.endswith('site-packages')];"
        "import cupy; assert cupy.here; assert type(cupy.__spec__.loader).__name__ == 'SourceFileLoader'"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path / "own"))
        assert main(["profile", *BOARD, "--", sys.executable, "-c", program]) == 2
    assert f"NumPy is not found ({sys.executable} -m pip install numpy)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((*BOARD, "--", sys.executable, "-c", "1"), "no Python process of the program imported"),
        ((*BOARD, "--", "no-such-program"), "the program does not start"),
        ((*BOARD, "--trace", "x.json", "--", "true"), "it does not go with a program"),
        ((*BOARD, "--seconds", "-1", "--", "true"), "-1 s"),
        (("train.json", "--", "true"), "it does not go with a profile that was kept"),
    ],
)
def test_what_cannot_be_profiled_is_said_in_one_line(
    words: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *words]) == 2
    said = capsys.readouterr()
    assert what in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
