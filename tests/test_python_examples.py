"""The examples of the Python interface run as they are, and print what was measured."""

from __future__ import annotations

import runpy
import sys

import pytest

import app
from app.base.paths import resources

EXAMPLES = sorted(  # that of a strategy needs Optuna: `tests/scripting/test_kernel_tuner_strategies.py`
    path for path in (resources() / "examples").glob("*.py") if path.stem != "optuna_strategy"
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_prints_energies(
    path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wattridge", app)  # as the package is called once installed
    monkeypatch.setattr(sys, "argv", [str(path), "simulated:h200"])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "NVIDIA H200 (simulated)" in printed
    assert " J" in printed
    assert "nan" not in printed


def test_they_are_there() -> None:
    assert len(EXAMPLES) >= 3
