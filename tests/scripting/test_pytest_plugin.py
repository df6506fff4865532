"""`pytest --energy`, as other projects run it: in processes of its own, on simulated boards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engine.report.evidence_file import verify_evidence
from app.scripting.energy_tests import BASELINES

ROOT = Path(__file__).resolve().parents[2]
_WITHOUT = ("-p", "no:wattridge", "-p", "no:cacheprovider")  # the plug-in of an installation would declare it twice
ON_H200 = ("--energy", "--energy-gpu", "simulated:h200")
TESTS = """
import time


def test_call(energy):
    assert energy(time.sleep, 0.004).time_s >= 0.004


def test_plain():
    pass
"""
COMPARING = """
import time


def test_worse(energy):
    compared = energy.compare(lambda s: time.sleep(s), lambda s: time.sleep(5 * s), 0.004)
    assert compared.worse
    assert compared.energy.change > 0.5
    assert not compared.worse, "shown"
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path, own_data_folder: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    (folder / "test_it.py").write_text(TESTS)
    return folder


@pytest.fixture
def run(project: Path) -> Run:
    def run_pytest(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-rs", "-p", "app.scripting.pytest_plugin", *_WITHOUT]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "300"}
        environment.pop("PYTEST_ADDOPTS", None)
        return subprocess.run(
            [*command, *words], cwd=project, env=environment, capture_output=True, text=True, timeout=240
        )

    return run_pytest


def test_nothing_heavy_is_imported_before_it_is_asked_for(project: Path, run: Run) -> None:
    (project / "conftest.py").write_text(
        "import sys\n\n\ndef pytest_unconfigure():\n"
        "    print('LOADED', [name for name in sys.modules if name.startswith(('numpy', 'scipy', 'PySide6', 'app'))])"
    )
    done = run("-p", "no:pytest-qt", "-p", "no:hypothesispytest")
    assert "1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "energy is measured with --energy" in done.stdout
    assert "LOADED ['app', 'app.scripting', 'app.scripting.pytest_plugin']" in done.stdout
    assert "energy on" not in done.stdout


def test_the_mark_selects(run: Run) -> None:
    assert "1 skipped, 1 deselected" in run("-m", "energy").stdout
    assert "1 passed, 1 deselected" in run("-m", "not energy").stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--energy-gpu", "host"), "reports no power"),
        (("--energy-gpu", "simulated:nothing"), "no board can be measured"),
        (("--energy-gpu", "simulated:h200", "-n", "1"), "while pytest-xdist runs other tests"),
    ],
)
def test_where_nothing_can_be_measured_tests_are_skipped_with_the_reason(
    run: Run, words: tuple[str, ...], reason: str
) -> None:
    done = run("--energy", *words)
    assert "1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert reason in done.stdout


def test_a_call_is_measured_kept_and_compared_with_its_baseline(project: Path, run: Run) -> None:
    done = run(*ON_H200, "--energy-evidence", "evidence.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "energy on NVIDIA H200 (simulated)" in done.stdout
    verified = verify_evidence(project / "evidence.json")
    assert verified.holds, verified.faults
    assert verified.blocks == 5
    assert not (project / BASELINES).exists(), "nobody asked for one"

    assert run(*ON_H200, "--energy-update").returncode == 0
    boards = json.loads((project / BASELINES).read_text())["boards"]
    (before_j,) = boards["NVIDIA H200 (simulated)"]["test_it.py::test_call"]
    assert before_j > 0

    boards["NVIDIA H200 (simulated)"]["test_it.py::test_call"] = [before_j / 10, before_j / 10.1]
    (project / BASELINES).write_text(json.dumps({"version": 1, "boards": boards}))
    done = run(*ON_H200)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "it needs more energy" in done.stdout
    assert "against 2 sessions on NVIDIA H200 (simulated)" in done.stdout

    assert run(*ON_H200, "--energy-update").returncode == 0, "what is accepted replaces the baseline"
    boards = json.loads((project / BASELINES).read_text())["boards"]
    (again_j,) = boards["NVIDIA H200 (simulated)"]["test_it.py::test_call"]
    assert again_j > before_j / 5


def test_a_damaged_baseline_ends_the_run_with_its_name(project: Path, run: Run) -> None:
    (project / BASELINES).write_text('{"version": 1, "boards": {"x": {"y": [-1.0]}}}')
    done = run(*ON_H200)
    assert done.returncode == 4
    assert BASELINES in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_what_cannot_be_written_fails_the_run_and_is_said(run: Run) -> None:
    done = run(*ON_H200, "--energy-evidence", "test_it.py/evidence.json")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "not written" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_a_function_that_fails_fails_its_test(project: Path, run: Run) -> None:
    (project / "test_it.py").write_text("def test_it(energy):\n    energy(int, 'x')\n")
    done = run(*ON_H200)
    assert done.returncode == 1
    assert "invalid literal for int()" in done.stdout


def test_two_functions_are_compared_in_turns(project: Path, run: Run) -> None:
    (project / "test_it.py").write_text(COMPARING)
    done = run(*ON_H200, "--energy-evidence", "evidence.json")
    assert done.returncode == 1
    assert "<worse: B needs" in done.stdout, done.stdout + done.stderr
    assert "test_it.py::test_worse  worse: B needs" in done.stdout
    document = json.loads((project / "evidence.json").read_text())
    assert document["measured"][0]["figures"]["verdict"] == "worse"
    assert verify_evidence(project / "evidence.json").holds


def test_the_plug_in_is_found_once_installed() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    package, _, module = points["wattridge"].partition(".")
    assert package == "wattridge"
    assert (ROOT / "app" / f"{module.replace('.', '/')}.py").is_file()
