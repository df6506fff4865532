"""Hardware counters in an analysis: correlations, movers and splits over what was profiled, and what they add."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app.base.records import as_json
from app.engine.analysis.analysis_document import document_of
from app.engine.analysis.charts import Analysed, correlation_bars, counter_gain, split_cloud
from app.engine.analysis.describe_analysis import describe_analysis
from app.engine.analysis.session_analysis import Analysis, analyse
from app.engine.results.chart import Chart
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.engine.specification.plan import SessionPlan

OBJECTIVE = Objective(Goal("TOP/J", True), (Goal("TOP/s", True), Goal("TOP/J", True)))
KERNELS = 96


def kernels(profiled: int) -> ResultTable:
    """Kernels whose speed and energy follow from instructions and traffic, which no parameter tells.

    Energy: 100 J per unit of instructions, 300 J per unit of traffic, and time at 50 W. `profiled` of them have
    counters.
    """
    rng = np.random.default_rng(7)
    instructions, traffic = rng.uniform(1, 2, KERNELS), rng.uniform(0.1, 1, KERNELS)
    time_s = np.maximum(instructions, 1.2 - 0.2 * traffic)
    energy_j = 100 * instructions + 300 * traffic + 50 * time_s
    table = ResultTable(space_of_table({"n": list(range(KERNELS))}, [(row,) for row in range(KERNELS)]))
    for row in range(KERNELS):
        values = {"time_s": time_s[row], "energy_j": energy_j[row]}
        values |= {"TOP/s": 1 / time_s[row], "TOP/J": 1 / energy_j[row]}
        if row < profiled:
            values |= {"inst_executed": 1e9 * instructions[row], "dram_read_byte": 1e9 * traffic[row]}
            values |= {"dram_read_throughput": 1e9 * traffic[row] / time_s[row]}
        table.append(Measurement(row, table.space.configuration(row), State.OK, values))
    return table


def analysed(table: ResultTable) -> Analysed:
    analysis = analyse(table, OBJECTIVE, with_difficulty=False)
    plan = SessionPlan(
        title="k",
        gpu="b",
        driver="",
        source="simulated",
        objective=OBJECTIVE,
        strategy="brute_force",
        space=table.space,
    )
    return Analysed(analysis, plan)


@pytest.fixture(scope="module")
def every() -> Analysed:
    return analysed(kernels(KERNELS))


def test_counters_correlate_and_move_between_speed_and_efficiency(every: Analysed) -> None:
    found = {one.name: one for one in every.analysis.correlations}
    assert found["inst_executed"].speed.strength < -0.9
    assert found["dram_read_byte"].efficiency.strength < -0.7
    assert abs(found["dram_read_byte"].speed.strength) < 0.3
    assert found["dram_read_byte"].mover
    assert as_json(document_of(every.analysis))["movers"][0] in ("dram_read_byte", "dram_read_throughput")
    drawn = correlation_bars(every, "counters")
    assert isinstance(drawn, Chart)
    assert set(drawn.names) == {"inst_executed", "dram_read_byte", "dram_read_throughput"}
    assert [series.label for series in drawn.series] == ["with speed", "with efficiency", "with speed × efficiency"]
    assert set(drawn.names) < set(correlation_bars(every).names)  # type: ignore[union-attr]


def test_a_cloud_is_split_over_what_was_profiled_alone() -> None:
    some = analysed(kernels(40))
    drawn = split_cloud(some, "dram_read_byte")
    assert isinstance(drawn, Chart)
    assert sum(len(series.y) for series in drawn.series) == 40
    one = next(split for split in some.analysis.splits if split.name == "dram_read_byte")
    assert one.above.count + one.below.count == 40
    assert one.above.efficiency < one.below.efficiency


def test_counters_that_energy_follows_from_make_the_model_of_it_better(every: Analysed) -> None:
    found = every.analysis.counted
    assert found is not None
    assert found.configurations == KERNELS
    assert found.with_counters < found.without / 2
    assert found.better > 0.7
    assert not found.by_chance
    drawn = counter_gain(every)
    assert isinstance(drawn, Chart)
    assert drawn.series[0].y.tolist() == [100 * found.without, 100 * found.with_counters]


def test_counters_of_noise_do_not() -> None:
    table, rng = kernels(KERNELS), np.random.default_rng(1)
    noise = ResultTable(table.space)
    for index in range(len(table)):
        one = table.measurement(index)
        values = {**one.values, **{name: rng.random() for name in ("inst_executed", "dram_read_byte")}}
        values.pop("dram_read_throughput")
        noise.append(Measurement(one.row, one.configuration, State.OK, values))
    found = analyse(noise, OBJECTIVE, with_difficulty=False).counted
    assert found is not None
    assert found.with_counters > 0.8 * found.without
    assert found.by_chance or found.better < 0.5


def test_where_it_cannot_be_told_that_is_said() -> None:
    few = analysed(kernels(10))
    assert "16 profiled configurations" in str(counter_gain(few))
    assert as_json(document_of(few.analysis))["counters"]["energy_error_with"] is None
    assert "No configuration of this session was profiled" in str(counter_gain(analysed(kernels(0))))
    assert as_json(document_of(analyse(kernels(0), OBJECTIVE)))["counters"] is None


def test_the_description_has_a_line_for_each_counter(every: Analysed) -> None:
    analysis: Analysis = every.analysis
    described = next(each for each in describe_analysis(analysis) if each.title == "Hardware counters")
    rows = {row[0]: row for row in described.listings[0].rows}
    assert set(rows) == {"inst_executed", "dram_read_byte", "dram_read_throughput"}
    frugal = int(np.nanargmin(analysis.costs.energy_j))
    assert rows["dram_read_byte"][1] == "byte"
    assert rows["dram_read_byte"][3] == pytest.approx(analysis.table.measurement(frugal).values["dram_read_byte"])
    json.dumps(as_json(document_of(analysis)), allow_nan=False)
