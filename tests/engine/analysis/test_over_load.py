"""The answer over a load: by hand on a small table, and on the measured figures of a service."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from app.base.records import as_json
from app.engine.analysis.analysis_document import document_of
from app.engine.analysis.charts import Analysed, load_curves
from app.engine.analysis.costs import costs_of
from app.engine.analysis.describe_analysis import describe_analysis, describe_models_over_load, describe_over_load
from app.engine.analysis.over_load import OverLoad, models_over_load, over_load, settings_at
from app.engine.analysis.session_analysis import analyse
from app.engine.analysis.tradeoff import Load
from app.engine.results.chart import Chart
from app.engine.results.measurement import Configuration, Measurement, State
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import Parameter, SearchSpace

Rates = Callable[[Configuration], tuple[float, float]]  # tokens/s and W
CLOCKS, LIMITS, LOADS = (1200.0, 1600.0, 2000.0), (300.0, 450.0), (1.0, 4.0, 8.0)


def table_of(figures: Rates, **values: tuple[object, ...]) -> ResultTable:
    settings = {"graphics_clock_mhz", "memory_clock_mhz", "power_limit_w", "workload_power_profile"}
    parameters = tuple(Parameter(name, value, name in settings) for name, value in values.items())  # type: ignore[arg-type]
    codes = np.array(list(itertools.product(*(range(len(each)) for each in values.values()))), dtype=np.uint8)
    table = ResultTable(SearchSpace(parameters, codes, len(codes)))
    for row in range(len(codes)):
        configuration = table.space.configuration(row)
        rate, power_w = figures(configuration)
        known = {"time_s": 1 / rate, "energy_j": power_w / rate, "power_w": power_w, "output_tokens_per_s": rate}
        table.append(Measurement(row, configuration, State.OK, known, source="simulated"))
    return table


def by_hand(configuration: Configuration) -> tuple[float, float]:
    """The more load, the higher the clock that costs least; a limit of 300 W is a clock of 1800 MHz and 1 W more."""
    clock, load = float(configuration["graphics_clock_mhz"]), float(configuration["concurrency"])
    capped = configuration["power_limit_w"] == 300.0
    clock = min(clock, 1800.0) if capped else clock
    rate = load * min(clock, {1.0: 1000.0, 4.0: 1500.0, 8.0: 9999.0}[load]) / 100
    return rate, capped + 100 + 40 * load + (clock / 100) ** 2 * (0.2 if load < 8 else 0.6)


@pytest.fixture
def table() -> ResultTable:
    return table_of(by_hand, graphics_clock_mhz=CLOCKS, power_limit_w=LIMITS, concurrency=LOADS)


def found_in(table: ResultTable, feasible: np.ndarray | None = None, load: Load | None = None) -> OverLoad:
    found = over_load(table, feasible, load)
    assert found is not None
    return found


def least(table: ResultTable, **held: float) -> float:
    """The least J per token of the measurements with these values, without the code under test."""
    alike = [m for m in map(table.measurement, range(len(table))) if held.items() <= m.configuration.items()]
    return min(m.values["energy_j"] for m in alike)


def test_the_best_at_each_load_is_the_least_energy_there(table: ResultTable) -> None:
    found = found_in(table)
    assert [level.load for level in found.levels] == list(LOADS)
    for level in found.levels:
        assert level.best is not None
        best = table.measurement(level.best)
        assert best.configuration["concurrency"] == level.load
        assert best.values["energy_j"] == least(table, concurrency=float(level.load))  # type: ignore[arg-type]
        assert (level.measured, level.feasible) == (6, 6)
    assert found.changes
    assert [settings_at(found, table, level.best) for level in found.levels if level.best is not None] == [
        "graphics clock 1200 MHz",
        "graphics clock 1600 MHz",
        "the highest measured",
    ]
    assert found.own == {"power_limit_w": 450.0, "graphics_clock_mhz": 2000.0}


def test_no_profile_is_the_boards_own() -> None:
    def of_profiles(configuration: Configuration) -> tuple[float, float]:
        return 100.0, 200.0 - 20.0 * (configuration["workload_power_profile"] == 0)

    found = over_load(table_of(of_profiles, workload_power_profile=(-1, 0, 6), concurrency=(1.0, 4.0)))
    assert found is not None
    assert found.own == {"workload_power_profile": -1.0}
    [one, _] = found.levels
    assert one.settings == (("workload_power_profile", 0.0),)
    assert one.gain is not None
    assert one.locked is None
    assert one.capped is None


def test_the_gain_is_against_the_boards_own_clocks_and_limit(table: ResultTable) -> None:
    level = found_in(table, load=Load(hours_per_year=1000)).levels[0]
    assert level.default is not None
    assert level.best is not None
    assert level.gain is not None
    assert level.yearly is not None
    default = table.measurement(level.default)
    assert default.configuration == {"graphics_clock_mhz": 2000.0, "power_limit_w": 450.0, "concurrency": 1.0}
    before, after = default.values["energy_j"], table.measurement(level.best).values["energy_j"]
    assert level.gain.energy_change == pytest.approx(after / before - 1)
    # 1000 h of the tokens that the default gives, at the difference of their energies
    tokens = 1000 * 3600 * default.values["output_tokens_per_s"]
    assert level.yearly.saved_kwh == pytest.approx(tokens * (before - after) / 3.6e6)


def test_where_the_untouched_board_was_measured_it_alone_is_the_baseline() -> None:
    def locked_costs(configuration: Configuration) -> tuple[float, float]:
        """A clock that is locked, at whatever value, costs a tenth of the rate."""
        clock = configuration["graphics_clock_mhz"]
        if clock == "untouched":
            return 100.0, 300.0
        return 90.0 * float(clock) / 2000, 60 + 0.05 * float(clock)

    table = table_of(locked_costs, graphics_clock_mhz=(*CLOCKS, "untouched"), concurrency=(1.0, 4.0))
    found = found_in(table)
    assert found.own == {"graphics_clock_mhz": "untouched"}
    assert found.baseline == "the board's own state"
    for level in found.levels:
        assert level.default is not None
        assert level.best is not None
        assert level.gain is not None
        assert table.measurement(level.default).configuration["graphics_clock_mhz"] == "untouched"
        best = table.measurement(level.best)
        assert level.gain.energy_change == pytest.approx(best.values["energy_j"] / 3.0 - 1)
    [described] = describe_over_load(found, table, costs_of(table))
    assert described.listings[0].header[-1] == "against the board's own state"
    assert described.remarks[0] == "gains are against the board's own state"
    assert {dict(curve.settings)["graphics_clock_mhz"] for curve in found.curves} == {*CLOCKS, "untouched"}
    assert as_json(found)["curves"][-1]["settings"] == {"graphics_clock_mhz": "untouched"}  # type: ignore[index]


def test_locking_and_capping_are_compared_with_the_other_untouched(table: ResultTable) -> None:
    for level in found_in(table).levels:
        assert level.locked is not None
        assert level.capped is not None
        assert level.locking_against_capping is not None
        locked, capped = table.measurement(level.locked), table.measurement(level.capped)
        assert locked.configuration["power_limit_w"] == 450.0
        assert locked.configuration["graphics_clock_mhz"] < 2000
        assert capped.configuration["power_limit_w"] == 300.0
        assert capped.configuration["graphics_clock_mhz"] == 2000
        change = level.locking_against_capping.energy_change
        assert change == pytest.approx(locked.values["energy_j"] / capped.values["energy_j"] - 1)


def test_what_breaks_a_limit_is_never_the_answer(table: ResultTable) -> None:
    rates = np.array([table.measurement(i).values["output_tokens_per_s"] for i in range(len(table))])
    feasible = rates >= 60
    found = found_in(table, feasible)
    assert [level.feasible for level in found.levels] == [0, 4, 6]  # 4 at once give 60 from 1500 MHz on
    assert found.levels[0].best is None
    for level in found.levels[1:]:
        assert level.best is not None
        assert feasible[level.best]
    for curve in found.curves:
        assert (curve.rate >= 60).all()
    described = list(describe_over_load(found, table, costs_of(table)))
    assert "none keeps the limits" in str(described[0].listings[0].rows[0])


def test_the_front_over_the_load_is_that_of_all_points(table: ResultTable) -> None:
    found = found_in(table)
    rates = np.concatenate([curve.rate for curve in found.curves])
    works = np.concatenate([curve.efficiency for curve in found.curves])
    marked = np.concatenate([curve.front for curve in found.curves])
    for rate, work, on in zip(rates, works, marked, strict=True):
        beaten = ((rates >= rate) & (works >= work) & ((rates > rate) | (works > work))).any()
        assert on == (not beaten)
    assert marked.any()
    assert not marked.all()


def test_a_default_that_was_not_measured_is_said_and_no_gain_is_claimed() -> None:
    every = table_of(by_hand, graphics_clock_mhz=CLOCKS, power_limit_w=(450.0,), concurrency=LOADS)
    table = ResultTable(every.space)
    for index in range(len(every)):
        measurement = every.measurement(index)
        if (measurement.configuration["graphics_clock_mhz"], measurement.configuration["concurrency"]) != (2000.0, 4.0):
            table.append(measurement)
    found = found_in(table)
    assert (found.levels[1].default, found.levels[1].gain) == (None, None)
    [described] = describe_over_load(found, table, costs_of(table))
    text = str(described)
    assert "that was not measured" in text
    assert "the highest measured power limit and clock, which may not be the board's own state" in described.remarks[0]
    assert "whether capping is better is not known" in text


def test_limits_that_a_load_cannot_reach_are_named_at_that_load(table: ResultTable) -> None:
    """Eight at once draw 640 W where nothing holds them back, and fewer 230 W at most."""
    shown = ResultTable(table.space)
    for measured in map(table.measurement, range(len(table))):
        busy = measured.configuration["concurrency"] == 8.0
        limit_w = float(measured.configuration["power_limit_w"])
        figures = {"peak_power_w": min(640.0, limit_w) if busy else 230.0, "throttled_power_share": 0.5 * busy}
        shown.append(dataclasses.replace(measured, values={**measured.values, **figures}))
    found = found_in(shown)
    assert [[effect.without_effect for effect in level.limits] for level in found.levels] == [
        [True, True],
        [True, True],
        [False, False],
    ]
    remarks = next(describe_over_load(found, shown, costs_of(shown))).remarks
    assert any(text.startswith("at concurrency 4: a power limit of 300 W or 450 W is without") for text in remarks)
    assert "at concurrency 8: a power limit of 300 W or 450 W binds" in remarks
    assert [level.limits for level in found_in(table).levels] == [(), (), ()], "without peaks"


def test_a_session_of_kernels_has_no_answer_over_a_load() -> None:
    table = table_of(by_hand, graphics_clock_mhz=CLOCKS, power_limit_w=LIMITS, concurrency=LOADS)
    plain = ResultTable(table.space)
    for index in range(len(table)):
        measurement = table.measurement(index)
        values = {k: v for k, v in measurement.values.items() if k != "output_tokens_per_s"}
        plain.append(dataclasses.replace(measurement, values=values))
    assert over_load(plain) is not None  # concurrency is a load, whatever runs
    for_kernels = table_of(
        lambda c: by_hand({**c, "concurrency": 4.0}), graphics_clock_mhz=CLOCKS, power_limit_w=LIMITS
    )
    assert over_load(for_kernels) is not None  # of a service: one level
    assert len(found_in(for_kernels).levels) == 1
    assert found_in(for_kernels).curves == ()


def test_the_json_has_every_level_and_no_number_that_json_lacks(table: ResultTable) -> None:
    document = as_json(found_in(table))
    assert document is not None
    assert len(document["levels"]) == 3
    assert len(document["curves"]) == 6
    for level in document["levels"]:  # type: ignore[attr-defined]
        assert level["best"] == level["default"] or math.isfinite(level["energy_change"])


def test_each_load_has_its_frequency_model_or_the_reason_why_not() -> None:
    def cubic(configuration: Configuration) -> tuple[float, float]:
        clock, load = float(configuration["graphics_clock_mhz"]), float(configuration["concurrency"])
        volts = 1 + max(0.0, clock - 1200) * 4e-4
        return load * clock, 50 + 10 * load + 0.08 * clock * volts**2

    clocks = tuple(float(index) for index in range(600, 2401, 150))
    table = table_of(cubic, graphics_clock_mhz=clocks, concurrency=(1.0, 8.0))
    models = models_over_load(table, gpu="a board", simulated=True)
    assert [model.held for model in models] == ["concurrency=1.0", "concurrency=8.0"]
    assert all(model.fit.identifiable for model in models)
    few = table_of(cubic, graphics_clock_mhz=clocks[:3], concurrency=(1.0, 8.0))
    for each in models_over_load(few):
        assert not each.fit.identifiable
    [described] = describe_models_over_load(models_over_load(few))
    assert all("needs at least" in str(row[-1]) for row in described.listings[0].rows)


def test_an_analysis_has_it_and_its_chart_draws_what_is_best_somewhere(table: ResultTable) -> None:
    analysis = analyse(table, Objective(Goal("energy_j", maximise=False), (), (Limit("power_w", True, 1000.0),)))
    assert analysis.over_load is not None
    chart = load_curves(Analysed(analysis, None))  # type: ignore[arg-type]
    assert isinstance(chart, Chart)
    assert "Output tokens per joule" in chart.y_title
    assert len(chart.series) >= 3  # a setting for each load, and what else is on the front
    assert all(len(each.x) == len(LOADS) for each in chart.series)
    assert as_json(document_of(analysis))["over_load"]["load"] == "concurrency"
    titles = [each.title for each in describe_analysis(analysis)]
    assert "Least energy at each concurrency" in titles
