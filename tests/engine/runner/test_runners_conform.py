"""What every `Runner` must do, whatever it measures with: each test runs over all that need no board."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.cuda_bench import Bench
from fixtures.engine_fakes import grid, measurement_of
from fixtures.fake_pool import FakePool
from fixtures.pool_sides import BUNDLE, MODEL, ScriptedSide
from fixtures.virtual_cuda import VirtualBoard

from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.formats.read import read_recording
from app.engine.results.evidence import unpack
from app.engine.results.measurement import Depth, State
from app.engine.results.objectives import Goal, Objective
from app.engine.runner.base import PreparationFailed, Runner
from app.engine.runner.command import CommandRunner
from app.engine.runner.function import FunctionRunner, FunctionWork
from app.engine.runner.pool.runner import PoolRunner
from app.engine.runner.replay import ReplayRunner
from app.engine.runner.service import ServiceRunner
from app.engine.runner.service_modelled import ServiceModelled
from app.engine.runner.simulated import SimulatedRunner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.space.search_space import SearchSpace
from app.engine.workloads.service import Service
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

Made = tuple[Runner, SearchSpace]
PROGRAM = """
[command]
run = "{python} -I -S -c pass {{x}}"
[parameters]
x = [1, 2, 3, 4]
[objective]
minimise = "time_s"
"""
OBJECTIVE = Objective(Goal("time_s", maximise=False))
EXAMPLES = resources() / "examples"


def simulated() -> Made:
    spec, gpu = load_specification(EXAMPLES / "gemm.toml"), SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    space = plan_specification(spec, gpu).space
    return SimulatedRunner(gpu, spec, space, DeviceGuard(gpu)), space


def modelled_service() -> Made:
    spec = load_specification(EXAMPLES / "services" / "rtx5090_clocks.toml")
    gpu = SimulatedGpu(load_twin("rtx5090"), clock=VirtualClock())
    space, service = plan_specification(spec, gpu).space, Service(spec, modelled=True)
    return ServiceRunner(gpu, spec, space, DeviceGuard(gpu), service, ServiceModelled(gpu, service)), space


def function() -> Made:
    space = grid(2, 4)
    return FunctionRunner(FunctionWork(lambda x, letter: None), space, None, 0.5), space


def replay_of_known() -> Made:
    space = grid()

    def half_measured(row: int) -> object:
        known = measurement_of(space, row)
        return replace(known, depth=Depth.TIME) if row == 1 else known

    return ReplayRunner(half_measured, frozenset({"time_s"}), ("time_s", "energy_j")), space  # type: ignore[arg-type]


ALONE: dict[str, Callable[[], Made]] = {
    each.__name__: each for each in (simulated, modelled_service, function, replay_of_known)
}


@pytest.fixture(params=[*ALONE, "recorded", "command", "kernel", "pool"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    runner, space = _made(request, tmp_path)
    with closing(runner):
        yield runner, space


@pytest.fixture
def pool() -> Iterator[FakePool]:
    with closing(FakePool(*(ScriptedSide(key, grid()) for key in "ab"))) as made:
        yield made


def _made(request: pytest.FixtureRequest, folder: Path) -> Made:
    name = request.param
    if name in ALONE:
        return ALONE[name]()
    if name == "recorded":
        data: Path = request.getfixturevalue("shared_data")
        recording = read_recording(data / "kernel-tuner" / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
        return ReplayRunner.of(recording), recording.space()
    if name == "command":
        (folder / "program.toml").write_text(PROGRAM.format(python=sys.executable))
        spec, gpu = load_specification(folder / "program.toml"), SimulatedGpu(load_twin("h200"))
        space = plan_specification(spec, gpu).space
        return CommandRunner(gpu, spec, space, DeviceGuard(gpu)), space
    if name == "pool":
        space = grid()
        return PoolRunner(request.getfixturevalue("pool"), MODEL, "simulated", space, BUNDLE), space
    board: VirtualBoard = request.getfixturevalue("virtual_board")
    bench: type[Bench] = request.getfixturevalue("bench")
    one = bench("launch_ms = [1, 2, 3, 4]", sensors=board)
    return one.runner, one.space


def go() -> threading.Event:
    return threading.Event()


def test_each_row_that_is_asked_for_is_measured_once_in_full(made: Made) -> None:
    runner, space = made
    rows = [0, 2, 1]
    found = {each.row: each for each in runner.measure(rows, go())}
    assert sorted(found) == sorted(rows)
    for row, each in found.items():
        assert each.configuration == space.configuration(row)
        assert each.final
        assert each.source == runner.source or runner.source == "recorded"
        assert each.state is not State.OK or each.values["time_s"] > 0
        assert each.state is State.OK or each.error
    assert list(runner.measure([], go())) == []


def test_power_that_was_measured_comes_with_its_samples(made: Made) -> None:
    """And nothing else does: neither what is replayed, nor what was only timed or too short for the sensor."""
    runner, _ = made
    for each in runner.measure([0, 1], go()):
        if each.state is not State.OK or "power_w" not in each.values or each.source == "recorded":
            assert not each.evidence
            continue
        kept = unpack(each.evidence)
        drawn = {**each.values, **each.as_measured}
        assert kept.mean_power_w - drawn.get("aftereffect_w", 0.0) == pytest.approx(drawn["power_w"], rel=0.02)
        assert not int(np.bitwise_or.reduce(kept.event_reasons)) & ~each.event_reasons, "counters may show more"
    for each in runner.time([2], go()) if runner.timed else []:
        assert not each.evidence


def test_nothing_is_measured_once_it_is_stopped(made: Made) -> None:
    runner, _ = made
    stop = go()
    stop.set()
    assert list(runner.measure([0, 1, 2], stop)) == []
    assert len([*runner.measure([3], go())]) == 1, "the next request is not"


def test_a_measurement_that_is_broken_off_leaves_the_runner_usable(made: Made) -> None:
    runner, _ = made
    measuring = runner.measure([0, 1], go())
    next(measuring)
    measuring.close()  # type: ignore[attr-defined]
    assert [each.row for each in runner.measure([2], go())] == [2]


def test_rows_are_timed_only_where_that_gives_values(made: Made) -> None:
    runner, _ = made
    timed = list(runner.time([0, 2], go())) if runner.timed else []
    assert sorted(each.row for each in timed) == ([0, 2] if runner.timed else [])
    for each in timed:
        assert each.depth is Depth.TIME
        assert each.state is not State.OK or "energy_j" not in each.values


def test_further_rows_are_asked_for_without_harm(made: Made) -> None:
    runner, _ = made
    coming = [[1]]
    found = [each.row for each in runner.measure([0], go(), more=lambda: coming.pop() if coming else [])]
    assert sorted(found) == ([0] if coming else [0, 1]), "those that were taken were measured"


def test_features_have_a_row_each_and_a_column_for_each_name(made: Made) -> None:
    runner, _ = made
    assert runner.features([0, 1], go()).shape == (2, len(runner.feature_names))


def test_preparing_and_expecting_are_always_allowed(made: Made) -> None:
    runner, _ = made
    steps: list[tuple[str, float, float]] = []
    stop = go()
    stop.set()  # a look at a sensor takes seconds
    try:
        runner.prepare([0, 1], stop, lambda *step: steps.append(step))
    except PreparationFailed:
        assert not steps, "it says so before it begins"
    runner.expect([1, 2])
    assert all(done <= whole for _, done, whole in steps)
    assert runner.board_count >= 1
    assert runner.batch >= 1
    assert runner.source


def test_the_end_of_a_session_keeps_rows_their_order_and_what_did_not_change(made: Made) -> None:
    runner, _ = made
    measured = sorted(runner.measure([0, 1, 2], go()), key=lambda each: each.row)
    again = [each.row for each in measured if each.state is State.OK][:1]
    finished = runner.finish(measured, again, OBJECTIVE, go())
    assert [each.row for each in finished] == [0, 1, 2]
    assert [each.state for each in finished] == [each.state for each in measured]
    stated = runner.restated(finished)
    assert [each.row for each in stated] == [0, 1, 2]
    assert [each.values.get("time_s") for each in stated] == [each.values.get("time_s") for each in measured]
    origin = runner.conclude()
    assert all(isinstance(text, str) for pair in origin.items() for text in pair)


def test_it_can_be_closed_twice(made: Made) -> None:
    runner, _ = made
    runner.close()
