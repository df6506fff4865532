"""Statistics of fewer than five measurements are not formed, and every place that would show them says so."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import main
from app.engine.analysis.correlations import Observed, correlations, split_by_mean
from app.engine.analysis.describe_analysis import describe_analysis, describe_counter_split
from app.engine.analysis.session_analysis import analyse
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table


def session(count: int, profiled: int = 0) -> ResultTable:
    """So many configurations with time and energy, the first of them with counters."""
    table = ResultTable(space_of_table({"x": (), "y": ()}, [(index // 3, index % 3) for index in range(count)]))
    for index in range(count):
        values = {"time_s": 1.0 + 0.1 * index, "energy_j": 60.0 - index, "power_w": 50.0 - index}
        counters = {"dram_percent": 10.0 + index, "sm_percent": 90.0 - index} if index < profiled else {}
        row = table.space.row_of({"x": index // 3, "y": index % 3})
        assert row is not None
        table.append(Measurement(row, table.space.configuration(row), State.OK, values | counters))
    return table


OBJECTIVE = Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_session_of_fewer_than_five_says_too_few_in_terminal_and_json(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    analysis = analyse(session(count), OBJECTIVE)
    assert analysis.correlations == ()
    assert analysis.splits == ()
    assert analysis.difficulty == {}
    described = {each.title.split(":")[0].split(" (")[0]: each for each in describe_analysis(analysis)}
    for title in ("Correlation with speed, efficiency and their product", "Difficulty"):
        (remark,) = described[title].remarks
        assert remark == f"too few: {count} worked, and at least 5 are needed"
    file = tmp_path / "few.csv"
    rows = [f"{index},{1 + index / 10},{60 - index}" for index in range(count)]
    file.write_text("\n".join(["x,time_s,energy_j", *rows]))
    assert main(["analyse", str(file), "--json"]) == 0
    assert "too few" in json.loads(capsys.readouterr().out)["too_few"]
    assert main(["analyse", str(file)]) == 0
    assert "too few" in capsys.readouterr().out
    report = tmp_path / "few.html"
    assert main(["report", str(file), "--out", str(report)]) == 0
    assert "too few" in report.read_text(encoding="utf-8")


def test_two_profiled_configurations_have_no_means_above_and_below() -> None:
    from app.engine.workloads.hardware_counters import COUNTERS

    first, second, *_ = COUNTERS
    table = session(20)
    measured = [table.measurement(position) for position in range(20)]
    again = ResultTable(table.space)
    for index, each in enumerate(measured):
        counters = {first: 10.0 + index, second: 90.0 - index} if index < 2 else {}
        again.append(Measurement(each.row, each.configuration, State.OK, {**each.values, **counters}))
    (said,) = describe_counter_split(analyse(again, OBJECTIVE, with_difficulty=False))
    assert not said.listings
    assert said.remarks == ["too few: 2 were profiled, and at least 5 are needed"]


def test_levels_of_few_have_no_mean_and_say_so() -> None:
    (effects, *_) = (
        each for each in describe_analysis(analyse(session(9), OBJECTIVE)) if each.title.startswith("Importance")
    )
    for _, over_all, near_best, best in effects.listings[0].rows:
        assert (over_all, near_best) == ("too few", "too few")
        assert best == "too few of each value"


def test_four_runs_of_the_reference_show_no_drift_and_are_said_to_be_too_few() -> None:
    for runs, said in ((4, ["too few: at least 5 timed runs of it are needed"]), (5, [])):
        table = session(9)
        again = ResultTable(table.space)
        for index in range(9):
            each = table.measurement(index)
            reference = {"reference_time_s": 1.0 + index / 100} if index < runs else {}
            values = {**each.values, **reference}
            again.append(Measurement(each.row, each.configuration, State.OK, values, timestamp_s=60.0 * index))
        analysis = analyse(again, OBJECTIVE, with_difficulty=False)
        [drift] = [each for each in describe_analysis(analysis) if each.title.startswith("Drift")]
        assert list(drift.remarks) == said
        assert len(analysis.drift) == (runs >= 5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 100))
def test_no_mean_and_no_coefficient_is_of_fewer_than_five(codes: list[int], seed: int) -> None:
    values = np.array(codes, dtype=np.float64)
    speed = np.random.default_rng(seed).uniform(1, 2, len(codes))
    split = split_by_mean(Observed("x", values), speed, 1 / speed)
    for half in (split.above, split.below) if split is not None else ():
        assert math.isfinite(half.speed) == (half.count >= 5)
        assert math.isfinite(half.best_efficiency) == (half.count >= 5)
    for one in correlations([Observed("x", values)], speed, 1 / speed):
        assert one.speed.pairs >= 5
