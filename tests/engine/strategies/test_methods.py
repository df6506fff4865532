"""The ways to tune for energy: which rows each asks for, what it chooses, and all on one set of measurements."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fixtures.spaces import space_of

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.models.boards_file import base_clock_named
from app.engine.models.compare_methods import Steering, compare_methods, steer_by_measurements
from app.engine.models.fit.frequency import fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.tuning_methods import AT_BASE_CLOCK, METHODS, Clocks, Seen, base_clock_of, recipe
from app.engine.results.measurement import Measurement, State
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.space.search_space import SearchSpace
from app.engine.specification.plan import SearchOptions
from app.sensors.select import open_gpu

CLOCKS = tuple(range(600, 1501, 100))


SPACE = space_of(block=[32, 64, 128], unroll=[1, 2], graphics_clock_mhz=list(CLOCKS))


def power_w(clock_mhz: float) -> float:
    return 50 + 0.1 * clock_mhz * (1 + 0.001 * max(0.0, clock_mhz - 1000)) ** 2


def measurement(space: SearchSpace, row: int) -> Measurement:
    """Block 128 is the fastest; block 64 draws a tenth less and is 3 % slower, so it has the least energy."""
    configuration = space.configuration(row)
    clock = float(configuration["graphics_clock_mhz"])
    slow = {32: 1.5, 64: 1.03, 128: 1.0}[int(configuration["block"])] * (1.2 if configuration["unroll"] == 1 else 1.0)
    time_s = slow / clock
    watts = power_w(clock) * (0.9 if configuration["block"] == 64 else 1.0)
    values = {"time_s": time_s, "power_w": watts, "energy_j": watts * time_s, "GFLOP/s": 1 / time_s}
    return Measurement(row, configuration, State.OK, values, cost_s=2.0, source="simulated")


def all_of(space: SearchSpace) -> dict[int, Measurement]:
    return {row: measurement(space, row) for row in range(space.size)}


def steering() -> Steering:
    clock = np.asarray(CLOCKS, dtype=float)
    fit = fit_frequency_model(Points(clock, [power_w(c) for c in CLOCKS], rate=clock, supported_mhz=CLOCKS))
    return Steering(fit, 8, 20.0, "a sweep of 8 clocks")


def follow(method: str, measured: dict[int, Measurement]) -> tuple[int | None, list[list[int]]]:
    clocks = Clocks(SPACE)
    steps = recipe(method, clocks, base_mhz=800, near_mhz=clocks.near(steering().fit))
    batches: list[list[int]] = []
    try:
        rows = next(steps)
        while True:
            batches.append(rows)
            rows = steps.send([Seen(r, measured[r].values["time_s"], measured[r].values["energy_j"]) for r in rows])
    except StopIteration as end:
        return end.value, batches


def test_each_method_asks_for_its_own_rows_and_chooses_by_its_own_figure() -> None:
    measured = all_of(SPACE)
    clock = SPACE.column("graphics_clock_mhz").astype(float)
    block = SPACE.column("block").astype(int)
    chosen = {method: follow(method, measured) for method in METHODS}

    race, (asked,) = chosen["race_to_idle"]
    assert race is not None
    assert (block[race], clock[race]) == (128, 1500)
    assert set(clock[asked]) == {1500}
    frugal, _ = chosen["energy_at_max_clock"]
    assert frugal is not None
    assert (block[frugal], clock[frugal]) == (64, 1500)
    then, (first, second) = chosen["race_to_idle_then_clocks"]
    assert then is not None
    assert (block[then], clock[then]) == (128, 1000)
    assert set(clock[first]) == {1500}
    assert set(block[second]) == {128}
    assert sorted(clock[second]) == list(CLOCKS)
    based, (first, _) = chosen["energy_at_base_clock_then_clocks"]
    assert based is not None
    assert (block[based], clock[based]) == (64, 1000)
    assert set(clock[first]) == {800}
    best, (asked,) = chosen["global_energy"]
    assert sorted(asked) == list(range(SPACE.size))
    near, (asked,) = chosen["model_steered"]
    assert near == best == based
    assert 1000 in set(clock[asked]) <= {900, 1000, 1100}


def test_side_by_side_everything_is_counted_as_if_alone() -> None:
    methods = compare_methods(
        SPACE, all_of(SPACE), gpu="board", title="kernel", source="simulated", steering=steering(), base_mhz=800
    )
    of = {result.method: result for result in methods.results}
    assert [result.method for result in methods.results] == list(METHODS)
    assert methods.simulated
    assert of["race_to_idle"].measurements == 6
    assert of["race_to_idle_then_clocks"].measurements == 6 + 9  # one row is of both stages
    assert of["global_energy"].measurements == SPACE.size
    assert of["global_energy"].reduction == 0
    near = len(Clocks(SPACE).near(steering().fit))
    assert of["model_steered"].measurements == near * 6 + 8
    assert of["model_steered"].seconds == pytest.approx(near * 6 * 2.0 + 20.0)
    assert of["race_to_idle"].energy_change == of["race_to_idle"].speed_change == 0
    assert all(of["global_energy"].energy_j <= result.energy_j for result in methods.results)
    assert of["global_energy"].energy_change == pytest.approx(
        of["global_energy"].energy_j / of["race_to_idle"].energy_j - 1
    )
    assert methods.speed_name == "GFLOP/s"
    assert of["race_to_idle"].efficiency == pytest.approx(1 / of["race_to_idle"].energy_j)


def test_rows_that_were_not_measured_are_missed_only_by_those_who_need_them() -> None:
    measured = all_of(SPACE)
    clock = SPACE.column("graphics_clock_mhz").astype(float)
    some = {row: m for row, m in measured.items() if clock[row] in (800, 1500)}
    found = compare_methods(
        SPACE, some, gpu="", title="", source="nvml", steering=None, methods=("race_to_idle", "energy_at_max_clock")
    )
    assert len(found.results) == 2
    with pytest.raises(InputError, match="were not measured"):
        compare_methods(SPACE, some, gpu="", title="", source="nvml", steering=None)


def test_failures_are_never_chosen_and_nothing_that_works_is_said() -> None:
    measured = {
        row: Measurement.failed(row, SPACE.configuration(row), State.RUNTIME, "fault", source="nvml")
        for row in range(SPACE.size)
    }
    with pytest.raises(InputError, match="no configuration worked"):
        compare_methods(SPACE, measured, gpu="", title="", source="nvml", steering=None)


def test_a_space_without_clocks_has_no_methods() -> None:
    with pytest.raises(InputError, match="no graphics clocks"):
        Clocks(space_of(block=[1, 2]))
    with pytest.raises(InputError, match="one graphics clock"):
        Clocks(space_of(block=[1, 2], graphics_clock_mhz=[900]))
    with pytest.raises(InputError, match="unknown method"):
        next(recipe("haste", Clocks(SPACE), base_mhz=800))


@pytest.mark.parametrize(
    ("name", "base_mhz"),
    [
        ("NVIDIA A100-PCIE-40GB", 765),
        ("A100", 765),  # as recordings name it: the only base clock on file of that name
        ("NVIDIA A100-SXM4-40GB", None),  # another board, whose data sheet names none
        ("NVIDIA GeForce RTX 4090", 2235),
        ("some board", None),
        ("", None),
    ],
)
def test_the_base_clock_is_the_data_sheets_where_it_is_known(name: str, base_mhz: float | None) -> None:
    assert base_clock_named(name) == base_mhz


class Unlisted:
    """A board that no data sheet is on file of, and whose driver names a clock."""

    info = SimpleNamespace(name="some board")

    def base_clock_mhz(self) -> float | None:
        return 1110.0


def test_the_driver_is_asked_for_the_base_clock_of_a_board_that_is_not_on_file() -> None:
    assert base_clock_of(Unlisted()) == 1110.0  # type: ignore[arg-type]
    assert base_clock_of(open_gpu("simulated:a100")) == 765.0


def test_without_a_base_clock_the_method_that_begins_there_is_left_out_and_the_others_are_not() -> None:
    compared = compare_methods(
        SPACE, all_of(SPACE), gpu="some board", title="kernel", source="simulated", steering=steering()
    )
    assert compared.base_mhz is None
    assert AT_BASE_CLOCK not in [result.method for result in compared.results]
    assert len(compared.results) == len(METHODS) - 1
    assert any("no base clock of 'some board' is known (--base-clock)" in note for note in compared.notes)
    with pytest.raises(InputError, match="no base clock"):
        next(recipe(AT_BASE_CLOCK, Clocks(SPACE), base_mhz=None))


def test_a_search_in_stages_begins_at_the_base_clock_of_its_board() -> None:
    options = SearchOptions(strategy="staged", strategy_options={"method": AT_BASE_CLOCK}, max_evaluations=10)
    spec = load_specification(resources() / "examples" / "dot.toml")
    plan = plan_specification(spec, open_gpu("simulated:a100", speed=math.inf), options)
    assert plan.strategy_options == {"method": AT_BASE_CLOCK, "base_clock_mhz": 765}
    chosen = SearchOptions(strategy="staged", strategy_options={"method": AT_BASE_CLOCK, "base_clock_mhz": 900})
    assert plan_specification(spec, open_gpu("simulated:a100"), chosen).strategy_options["base_clock_mhz"] == 900
    with pytest.raises(InputError, match=r"no base clock of 'AMD Instinct MI210' is known .*base_clock_mhz=MHZ"):
        plan_specification(spec, open_gpu("simulated:mi210"), options)


def test_measurements_alone_tell_the_clocks_near_the_ridge() -> None:
    found = steer_by_measurements(SPACE, all_of(SPACE))
    assert found is not None
    assert found.fit.optimum_mhz == pytest.approx(1000, abs=40)
    assert 1000 in Clocks(SPACE).near(found.fit)
    assert found.measurements < 6 + 9


def test_a_recorded_board_side_by_side(shared_data: Path) -> None:
    """RTX 4000 Ada, 512 configurations at 10 clocks: the published fastest and most efficient ones."""
    from app.engine.formats.read import read_recording

    recording = read_recording(shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
    table, space = recording.table(), recording.space()
    measured = {m.row: m for m in (table.measurement(index) for index in range(len(table)))}
    steered = steer_by_measurements(space, measured)
    methods = compare_methods(space, measured, gpu=recording.device, title="", source="recorded", steering=steered)
    of = {result.method: result for result in methods.results}
    assert of["race_to_idle"].speed == pytest.approx(80.435, abs=1e-3)
    assert of["global_energy"].efficiency == pytest.approx(0.9315, abs=1e-4)
    assert of["model_steered"].energy_j <= 1.01 * of["global_energy"].energy_j
    assert all(math.isfinite(result.seconds) for result in methods.results)
