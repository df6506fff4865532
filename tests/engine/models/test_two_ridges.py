"""Two estimates of the ridge: where they disagree beyond their intervals that is said, and one is stated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from app.base.records import as_json
from app.cli import main
from app.engine.models.describe_fits import describe_fit
from app.engine.models.fit.frequency import fit_points
from app.engine.models.fit.points import choose
from app.engine.models.series import read_series

CLOCKS = np.arange(510, 1426, 60)


def sweep(file: Path, by_power: float, by_voltage: float) -> Path:
    """Power that bends at one clock, and a voltage that rises from another one on."""
    rows = ["clock_mhz,power_w,time_s,voltage_mv"]
    for index, clock in enumerate(CLOCKS.tolist()):
        bend = 1 + 0.0011 * max(0.0, clock - by_power)
        millivolts = 730 * (1 + 0.0011 * max(0.0, clock - by_voltage)) + (index % 3 - 1) * 0.3
        rows.append(
            f"{clock},{33 + 0.044 * clock * bend**2 + (index % 2 - 0.5) * 0.1:.4f},{1000 / clock:.6f},{millivolts:.3f}"
        )
    file.write_text("\n".join(rows))
    return file


def ridges(file: Path) -> tuple[dict[str, object], list[str]]:
    """What is stated, and the lines that are shown of ridges."""
    fit = fit_points(choose(read_series(file)))
    shown = [f"{figure.label}: {figure.value}" for figure in describe_fit(fit).figures if "Ridge" in figure.label]
    return as_json(fit), shown


def test_estimates_that_disagree_are_one_figure_and_a_note(tmp_path: Path) -> None:
    document, shown = ridges(sweep(tmp_path / "sweep.csv", 1120, 950))
    assert document["ridge_mhz"] == pytest.approx(950, abs=12)
    assert document["ridge_bracketed"] is True
    assert document["ridge_mhz"] == document["voltage_ridge_mhz"]
    assert "ridge_mhz" not in document["standard_errors"]  # type: ignore[operator]
    assert len(shown) == 1
    (said,) = [reason for reason in document["reasons"] if "measured voltage" in reason]  # type: ignore[attr-defined]
    bend = float(said.partition("bends at ")[2].partition(" ±")[0])
    assert bend == pytest.approx(1120, abs=15)


def test_estimates_that_agree_are_both_shown_and_said_to(tmp_path: Path) -> None:
    document, shown = ridges(sweep(tmp_path / "sweep.csv", 1000, 1000))
    assert len(shown) == 2
    assert document["ridge_mhz"] == pytest.approx(1000, abs=12)
    assert not any("voltage" in reason for reason in document["reasons"])  # type: ignore[attr-defined]


def test_a_simulated_a100_states_one_ridge_which_is_that_of_its_voltage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--gpu", "simulated:a100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found["voltage_ridge_interval_mhz"]
    assert low <= found["ridge_mhz"] <= high
    assert low <= 1028 <= high, "where the simulated voltage begins to rise"
