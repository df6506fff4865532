"""What a session says in sentences, on tables whose truth is known, and on a recorded session."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fixtures.lab import plan_for

from app.base.paths import resources
from app.engine.analysis.answers import FRONT, MODEL, ROOFLINE, Answer, Models, answers, models_of, year_bars
from app.engine.analysis.charts import CHARTS
from app.engine.analysis.session_analysis import analyse
from app.engine.analysis.tradeoff import Load
from app.engine.formats.read import read_recording
from app.engine.models.clock_fits import ClockFit
from app.engine.models.describe_fits import describe_fit
from app.engine.models.fit.frequency import fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.roofline.points import recorded_sweeps
from app.engine.results.measurement import Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.session.planning import plan_replay
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import Parameter, SearchSpace

LEAST_ENERGY = Objective(Goal("energy_j", False), (Goal("time_s", False), Goal("energy_j", False)))
NO_MODELS = Models(None, "it was not looked for", None)
CLOCKS = (600, 900, 1200, 1500, 1800)


def space(*parameters: Parameter) -> SearchSpace:
    codes = np.array(list(itertools.product(*(range(len(p.values)) for p in parameters))), dtype=np.uint16)
    return SearchSpace(parameters, codes, cartesian=len(codes))


def table_of(space: SearchSpace, figures: dict[int, dict[str, float]], within: float | None = 0.01) -> ResultTable:
    """Each row with its figures, whose 95 % intervals are that share wide on each side."""
    table = ResultTable(space)
    for row, values in figures.items():
        ends = {} if within is None else {k: (v * (1 - within), v * (1 + within)) for k, v in values.items()}
        clock = space.configuration(row).get("graphics_clock_mhz", 1500)
        observed = float(clock) if clock != "untouched" else 2000.0
        table.append(Measurement(row, space.configuration(row), State.OK, values, ends, observed_clock_mhz=observed))
    return table


def said(table: ResultTable, models: Models = NO_MODELS, load: Load | None = None, **plan: object) -> list[Answer]:
    objective = LEAST_ENERGY
    return answers(analyse(table, objective, load=load), plan_for(table.space, objective, **plan), models, load)


def about(items: list[Answer], words: str) -> Answer:
    [one] = [item for item in items if words in item.sentence]
    return one


CLOCK = Parameter("graphics_clock_mhz", ("untouched", 900), device_setting=True)


def test_what_was_gained_has_its_interval_against_the_fastest_and_the_untouched_board() -> None:
    tile = Parameter("tile", (1, 2))
    three = {0: (0.9, 1.3), 2: (1.0, 1.0), 3: (2.0, 0.8)}  # of tile, and of the clock inside: time, energy
    table = table_of(space(tile, CLOCK), {row: {"time_s": t, "energy_j": e} for row, (t, e) in three.items()})
    items = said(table)
    fastest, untouched = about(items, "Against the fastest"), about(items, "the board's own state, the best")
    assert "38 ± 0.9 % less energy" in fastest.sentence  # 0.8 / 1.3 is 0.615, times the root of two hundredths
    assert "122 ± 3.1 % more time" in fastest.sentence
    assert fastest.points == (2, 0)
    assert "20 ± 1.1 % less energy" in untouched.sentence
    assert untouched.points == (2, 1)
    assert {fastest.confidence, untouched.confidence} == {"95 % interval of the difference in energy and time"}
    assert fastest.figure == FRONT


def test_a_difference_whose_interval_holds_zero_is_none() -> None:
    figures = {0: {"time_s": 1.0, "energy_j": 1.0}, 1: {"time_s": 1.01, "energy_j": 0.99}}
    items = said(table_of(space(CLOCK), figures, within=0.02))
    assert "From the fastest the best for min:energy_j cannot be told apart" in items[0].sentence
    assert "From the board's own state the best for min:energy_j cannot be told apart" in items[1].sentence
    assert "as far as can be told apart" in about(items, "A year").sentence
    front = about(items, "points of the front")
    assert front.sentence.startswith("Of 2 points of the front, counted from the worst time_s on, ")
    assert front.sentence.endswith("cannot be told apart: 1 and 2.")
    assert front.points == (0, 1)


def test_neighbours_on_the_front_are_the_same_only_where_both_figures_are() -> None:
    tile = Parameter("tile", (1, 2, 3, 4))
    cloud = [(1.0, 4.0), (1.01, 3.0), (1.5, 2.99), (1.51, 2.98)]  # the last two alone are alike in both
    table = table_of(space(tile), {row: {"time_s": t, "energy_j": e} for row, (t, e) in enumerate(cloud)})
    front = about(said(table), "points of the front")
    assert front.sentence.endswith("cannot be told apart: 1 and 2.")
    assert front.points == (2, 3)


@pytest.mark.parametrize(
    ("within", "words"),
    [(1e-4, "All neighbours among the 2 points of the front can be told apart."), (None, "is not known.")],
)
def test_whether_points_can_be_told_apart_takes_intervals(within: float | None, words: str) -> None:
    figures = {0: {"time_s": 1.0, "energy_j": 1.0}, 1: {"time_s": 1.01, "energy_j": 0.99}}
    items = said(table_of(space(CLOCK), figures, within=within))
    assert about(items, "points of the front").sentence.endswith(words)


def test_the_parameter_that_matters_is_named_with_the_number_of_measurements() -> None:
    tile, other = Parameter("tile", tuple(range(1, 7))), Parameter("other", tuple(range(5)))
    rng = np.random.default_rng(1)
    rows = {
        row: {"time_s": 1.0 + 0.001 * rng.random(), "energy_j": 1.0 + (row // 5) + 0.01 * rng.random()}
        for row in range(30)
    }
    matters = about(said(table_of(space(tile, other), rows)), "What matters")
    assert "What matters for energy, by its share of the variance: tile (100 %)" in matters.sentence
    assert "other" not in matters.sentence
    assert matters.confidence == "analysis of variance over 30 measurements"
    assert matters.figure == "importance"
    few = about(said(table_of(space(tile, other), dict(itertools.islice(rows.items(), 9)))), "Which parameters")
    assert "too few" in few.sentence
    assert "9 measurements" in few.confidence


def over_clocks(clocks: tuple[int, ...] = CLOCKS) -> ResultTable:
    """P = 50 W + 0.05 W/MHz f up to 1200 MHz, and the square of the voltage above it; the speed is the clock's."""

    def power(clock: float) -> float:
        return 50 + 0.05 * clock * (1 + 0.002 * max(0.0, clock - 1200)) ** 2

    setting = Parameter("graphics_clock_mhz", clocks, device_setting=True)
    rows = {
        row: {"time_s": 1e3 / clock, "energy_j": 1e3 / clock * power(clock), "power_w": power(clock)}
        for row, clock in enumerate(clocks)
    }
    return table_of(space(setting), rows, within=0.001)


def test_the_optimum_of_the_clocks_is_that_of_the_board() -> None:
    table = over_clocks(tuple(range(600, 2001, 100)))
    models = models_of(table, plan_for(table.space, LEAST_ENERGY))
    clocks = about(said(table, models), "A model of the clocks could be fitted")
    assert "the least energy per work is at 1200 MHz" in clocks.sentence
    assert "15 points" in clocks.confidence
    assert clocks.figure == MODEL
    few = over_clocks((1200, 1500))
    why_not = about(said(few, models_of(few, plan_for(few.space, LEAST_ENERGY))), "No model of the clocks")
    assert "at least 5" in why_not.sentence


def test_an_optimum_at_an_end_of_the_clocks_may_lie_beyond() -> None:
    table = over_clocks((1300, 1400, 1500, 1600, 1700, 1800, 1900))
    models = models_of(table, plan_for(table.space, LEAST_ENERGY))
    assert "it may lie beyond" in about(said(table, models), "A model of the clocks").sentence


def waits(clock: float) -> tuple[float, float]:
    """W, and work a second, where most of the time does not shrink with the clock: P/rate is least near 930 MHz."""
    return 50 + 0.05 * clock * (1 + 0.002 * max(0.0, clock - 1200)) ** 2, 1 / (0.7 + 600 / clock)


def of_first_figure(table: ResultTable, models: Models) -> list[Answer]:
    goal = Objective(Goal(table.value_names[0], False))
    return answers(analyse(table, goal), plan_for(table.space, goal), models)


@pytest.mark.parametrize(
    "figures",
    [
        lambda watts, rate: {"power_w": watts, "tok/s": rate, "tok/J": rate / watts},
        lambda watts, rate: {"power_w": watts, "GFLOPS": rate, "GFLOPS/W": rate / watts},
        lambda watts, rate: {"power_w": watts, "work/J": rate / watts},
        lambda watts, rate: {"power_w": watts, "energy_j": watts / rate},
    ],
)
def test_the_model_of_the_clocks_uses_the_speed_that_was_measured(
    figures: Callable[[float, float], dict[str, float]],
) -> None:
    """Power over clock is least at 1200 MHz here."""
    clocks = tuple(range(600, 2001, 50))
    setting = Parameter("graphics_clock_mhz", clocks, device_setting=True)
    table = table_of(space(setting), {row: figures(*waits(clock)) for row, clock in enumerate(clocks)})
    models = models_of(table, plan_for(table.space, LEAST_ENERGY))
    assert models.clocks is not None
    assert models.clocks.fit is not None
    assert models.clocks.fit.recommended_clock_mhz == pytest.approx(930, abs=50)
    clock = about(of_first_figure(table, models), "A model of the clocks could be fitted")
    assert "82 % less energy than" in clock.sentence
    assert "in proportion" not in clock.sentence


def test_without_a_speed_the_optimum_stands_beside_what_it_assumes_of_the_work() -> None:
    clocks = tuple(range(600, 2001, 100))
    setting = Parameter("graphics_clock_mhz", clocks, device_setting=True)
    table = table_of(space(setting), {row: {"power_w": waits(clock)[0]} for row, clock in enumerate(clocks)})
    models = models_of(table, plan_for(table.space, LEAST_ENERGY))
    clock = about(of_first_figure(table, models), "A model of the clocks could be fitted")
    assert "if the work goes in proportion to the clock, as is assumed without a time or a rate, the" in clock.sentence
    assert "with 95 % if so" in clock.confidence
    assert models.clocks is not None
    assert models.clocks.fit is not None
    described = describe_fit(models.clocks.fit)
    assert "least expected power per clock" in described.figures[0].meaning
    assert described.listings[0].title.endswith("for work in proportion to the clock")


def said_of_the_clocks(points: Points) -> str:
    models = Models(ClockFit(fit_frequency_model(points), None, "a test"), "", None)
    table = over_clocks(tuple(range(600, 2001, 100)))
    return about(said(table, models), "A model of the clocks").sentence


def test_where_the_least_measured_energy_lies_outside_of_the_optimum_both_are_said() -> None:
    """No clock near 1200 MHz was measured."""
    clock = np.array([300.0, 500, 900, 1500, 1700, 1900])
    power = 60 + 0.1 * clock * (1 + 0.002 * np.maximum(0.0, clock - 1200)) ** 2
    words = said_of_the_clocks(Points(clock, power, rate=clock))
    assert re.search(r"; its optimum is 1[12]\d\d MHz, but the least energy per work was measured at 900 MHz, ", words)


def test_a_reading_that_the_fit_leaves_out_is_named_where_it_has_the_least_energy() -> None:
    clock = np.arange(600.0, 2001.0, 100.0)
    power, rate = np.array([waits(each) for each in clock]).T
    power[clock == 1600] *= 0.1
    words = said_of_the_clocks(Points(clock, power, rate=rate))
    assert words.endswith("; a reading at 1600 MHz with less is left out of the fit.")


def test_where_nothing_was_set_an_administrator_could_lower_the_clock() -> None:
    figures = {0: {"time_s": 1.0, "energy_j": 200.0, "power_w": 200.0, "GB/s": 1555.0}}
    table, board = table_of(space(Parameter("tile", (1,))), figures), "NVIDIA A100-PCIE-40GB"
    advised = about(said(table, gpu=board, source="nvml", origin={"gpu": "GPU-12"}), "An administrator can try it")
    assert "runs at 1500 MHz by itself" in advised.sentence
    assert "sudo nvidia-smi -i GPU-12 -lgc 0,1035" in advised.sentence
    assert "up to 20 % more time" in advised.sentence, "it waits for memory"
    assert advised.figure == MODEL
    why_not = about(said(table, source="nvml"), "What a lower clock would save here")
    assert "the power limit of Test GPU is not known" in why_not.sentence
    set_here = said(table_of(space(CLOCK), figures), gpu=board, source="nvml")
    assert not [item for item in set_here if "administrator" in item.sentence or "lower clock" in item.sentence]
    clock = tuple(range(600, 1801, 100))
    swept = models_of(over := over_clocks(clock), plan_for(over.space, LEAST_ENERGY)).clocks
    assert swept is not None
    by_sweep = about(said(table, replace(NO_MODELS, of_model=swept.fit), gpu=board, source="nvml"), "An administrator")
    assert "a board of this model" in by_sweep.sentence


def test_a_kernel_stands_beside_the_roofline_that_is_named() -> None:
    [sweep] = recorded_sweeps("fp32")
    assert sweep.model is not None
    time_s, energy_j, _ = sweep.model.predict(1e12, 1e12)
    figures = {"time_s": 2 * time_s, "energy_j": 3 * energy_j, "GFLOP/s": 500 / time_s, "GB/s": 500 / time_s}
    models, origin = Models(None, "no", sweep), {"precision": "fp32"}
    tile = Parameter("tile", (1,))
    stands = about(said(table_of(space(tile), {0: figures}), models, origin=origin), "flop/B")
    assert stands.sentence.startswith("At 1 flop/B the traffic binds the best; it takes 2 times the time and 3 times ")
    assert "H200" in stands.confidence
    assert stands.figure == ROOFLINE
    figures.pop("GB/s")
    without = about(said(table_of(space(tile), {0: figures}), models, origin=origin), "metric of its traffic")
    assert "%" not in without.sentence, "a ratio to what was measured is no share of a peak"
    unknown = about(said(table_of(space(tile), {0: figures}), origin=origin), "in the roofline is not known")
    assert "no roofline of Test GPU in FP32" in unknown.sentence


def test_a_year_has_the_energy_of_its_hours_and_its_price() -> None:
    figures = {0: {"time_s": 1.0, "energy_j": 200.0}, 1: {"time_s": 1.25, "energy_j": 100.0}}
    table, load = table_of(space(CLOCK), figures), Load(1000.0, 2, price_per_kwh=0.5)
    year = about(said(table, load=load), "A year")
    assert "takes 200 kWh (100 EUR) with the best, 200 kWh (100 EUR) less than" in year.sentence
    assert "1000 h on 2 boards" in year.confidence
    assert "± 0.7 % of the energy" in year.confidence
    drawn = year_bars(analyse(table, LEAST_ENERGY, load=load))
    assert not isinstance(drawn, str)
    assert drawn.series[0].y[drawn.names.index("Untouched")] == pytest.approx(400)
    timed = table_of(space(CLOCK), {0: {"time_s": 1.0}, 1: {"time_s": 2.0}})
    fastest = Objective(Goal("time_s", False))
    items = answers(analyse(timed, fastest), plan_for(timed.space, fastest), NO_MODELS)
    assert about(items, "What a year").sentence.endswith("the time and energy of a launch.")


def test_a_session_in_which_nothing_worked_says_so() -> None:
    table = ResultTable(space(CLOCK))
    table.append(Measurement(0, table.space.configuration(0), State.COMPILE, error="too many registers"))
    [only] = said(table)
    assert only.sentence == "No configuration worked."
    assert only.figure == "failures"


def test_a_recorded_session_answers_every_question_or_says_what_is_missing() -> None:
    path = resources() / "recordings" / "h200-sgemm-session.json.gz"
    recording = read_recording(path)
    table, plan = recording.table(), replace(plan_replay(path, read=recording), origin={"precision": "fp32"})
    analysis = analyse(table, plan.objective, with_difficulty=False)
    items = answers(analysis, plan, models_of(table, plan))
    assert [item.figure for item in items] == [FRONT, FRONT, "importance", MODEL, MODEL, ROOFLINE, "year"]
    assert all(item.sentence.endswith(".") for item in items)
    assert "of 204 measurements" in items[0].confidence
    assert "204 measurements" in items[2].confidence
    assert "at least 5" in items[3].sentence, "no clock was varied"
    assert "On NVIDIA H200 (recorded) this load runs at 1980 MHz by itself" in items[4].sentence
    assert "times the peak of the roofline" in items[5].sentence
    figures = {chart.name for chart in CHARTS} | {FRONT, MODEL, ROOFLINE}
    assert {item.figure for item in items} <= figures


def test_what_is_time_or_energy_itself_is_correlated_with_neither() -> None:
    rng = np.random.default_rng(2)
    tile = Parameter("tile", tuple(range(1, 13)))
    rows = {}
    for row in range(12):
        time_s, energy_j, noise = rng.random() + 0.5, rng.random() + 0.5, rng.random()
        rows[row] = {
            "time_s": time_s,
            "time (ms)": round(1e3 * time_s, 2),
            "GFLOP/s": round(12 / time_s, 4),
            "energy_j": energy_j,
            "GFLOPS/W": round(12 / energy_j, 4),
            "power_w": energy_j / time_s,
            "temperature_c": 40 + noise,
        }
    analysis = analyse(table_of(space(tile), rows), LEAST_ENERGY)
    assert {one.name for one in analysis.correlations} == {"tile", "power_w", "temperature_c"}
    assert {one.name for one in analysis.splits} == {"tile", "power_w", "temperature_c"}
