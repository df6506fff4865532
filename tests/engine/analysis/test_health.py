"""The health of a session: four shares, each with a threshold below which it is amber."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.engine_fakes import grid, measurement_of

from app.base.records import as_json
from app.cli import main
from app.engine.analysis.health import health_of
from app.engine.results.health import LEAST_COVERAGE, LEAST_OBJECTIVE, MOST_DRIFT, MOST_SCATTER, Health
from app.engine.results.measurement import Measurement
from app.engine.space.result_table import ResultTable

SPACE = grid(10, 10)
HEALTHY = Health("energy_j", 1.0, 1.0, 0.0, 0.0)


def table_of(*, with_energy: int = 100, with_interval: int = 100, drift: float = 0.0) -> ResultTable:
    """Of so many of the measurements that worked the energy is known, and its interval."""
    table = ResultTable(SPACE)
    worked = [one for one in (measurement_of(SPACE, row) for row in range(SPACE.size)) if one.values]
    for place, one in enumerate(worked):
        table.append(_spoiled(one, place, with_energy, with_interval, drift))
    return table


def _spoiled(one: Measurement, place: int, with_energy: int, with_interval: int, drift: float) -> Measurement:
    values = {"time_s": one.values["time_s"], "reference_power_w": 100.0 * (1.0 + drift * place / 99)}
    values |= {"energy_j": 1.0, "power_w": 2.0} if place < with_energy else {}
    intervals = {"power_w": (1.9, 2.1)} if place < min(with_energy, with_interval) else {}
    return replace(one, values=values, intervals=intervals, window_ns=(0, 1), timestamp_s=60.0 * place)


def test_a_session_that_has_everything_is_healthy() -> None:
    health = health_of(table_of(), "energy_j", {})
    assert (health.objective_share, health.coverage, health.missing) == (1.0, 1.0, "")
    assert health.healthy
    assert health.words == "healthy"


def test_before_the_first_measurement_nothing_is_amber() -> None:
    health = health_of(ResultTable(SPACE), "energy_j", {})
    assert health.healthy
    assert not health.known
    assert health.words == "not known yet"


def test_where_most_lack_the_objective_the_reason_is_said() -> None:
    health = health_of(table_of(with_energy=20), "energy_j", {})
    assert health.missing.startswith("energy_j is missing in ")
    assert health.remarks[0] == health.missing


def test_windows_without_enough_samples_count_against_the_sensor() -> None:
    table = table_of(with_interval=60)
    health = health_of(table, "energy_j", {})
    assert health.coverage == pytest.approx(60 / len(table))
    assert health.remarks == (f"too few power samples in {100 * (1 - 60 / len(table)):.1f} % of the windows",)


def test_of_a_recording_without_intervals_the_coverage_is_not_known() -> None:
    assert health_of(table_of(with_interval=0), "energy_j", {}).coverage != 0.0


def test_a_board_that_changed_meanwhile_is_amber() -> None:
    health = health_of(table_of(drift=0.1), "energy_j", {})
    assert health.drift == pytest.approx(0.1, rel=0.3)
    assert "the board drifted by" in health.words


@pytest.mark.parametrize(
    ("share", "threshold", "worse"),
    [
        ("objective_share", LEAST_OBJECTIVE, -0.01),
        ("coverage", LEAST_COVERAGE, -0.01),
        ("drift", MOST_DRIFT, 0.001),
        ("repeatability", MOST_SCATTER, 0.001),
    ],
)
def test_each_share_is_amber_beyond_its_threshold(share: str, threshold: float, worse: float) -> None:
    assert replace(HEALTHY, **{share: threshold}).healthy
    beyond = replace(HEALTHY, **{share: threshold + worse})
    assert len(beyond.remarks) == 1
    assert as_json(beyond)["healthy"] is False


def test_the_commands_print_it(own_data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned = ["tune", "vector_add", "--gpu", "simulated:a100", "--max-evaluations", "8"]
    assert main([*tuned, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["health"]["healthy"] is True
    assert main(tuned) == 0
    assert any(line.split() == ["Health", "healthy"] for line in capsys.readouterr().out.splitlines())
    assert main(["analyse", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["health"]["objective_share"] == 1.0
