"""The pipeline of a real board with a device that is not there: compiling, measuring, and every way to fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import SPECIFICATION, Bench, SteadySensors
from fixtures.virtual_cuda import VirtualBoard

from app.base.errors import InputError, WattridgeError
from app.engine.metering import meter as metering
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.runner.cuda.gpu import CudaGpu
from app.engine.runner.kernels import reference
from app.engine.runner.kernels.process import KernelFailed, RunnerProcess
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.workloads.source_kernel import parameter_names

HERE = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "WARM_STEP_S", 0.02)


def test_time_and_power_come_from_the_launches_of_each_configuration(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    measured = bench("draws_w = [150, 300, 600]\nlaunch_ms = [1, 2, 5]", sensors=virtual_board).rows()
    assert len(measured) == 9
    for measurement in measured:
        assert measurement.state is State.OK, measurement.error
        power_w, time_s = (float(str(measurement.configuration[name])) for name in ("draws_w", "launch_ms"))
        time_s /= 1e3
        assert measurement.values["time_s"] == pytest.approx(time_s, rel=1e-3)
        assert measurement.values["power_w"] == pytest.approx(power_w, rel=0.003)
        assert measurement.values["energy_j"] == pytest.approx(power_w * time_s, rel=0.004)
        assert measurement.values["J/Mvalue"] == pytest.approx(measurement.values["energy_j"] * 1e3)
        assert measurement.values["registers_per_thread"] == 32
        assert measurement.values["occupancy"] == 0.5
        low, high = measurement.intervals["power_w"]
        assert low < power_w < high
        low, high = measurement.intervals["power_raw_w"]
        assert low < power_w < high
        assert high - low < 0.02 * power_w
        assert measurement.window_ns is not None
        assert 0.09 < (measurement.window_ns[1] - measurement.window_ns[0]) / 1e9 < 0.3


def test_every_fault_has_its_state_and_costs_no_other_configuration(bench: type[Bench]) -> None:
    faults = ["none", "broken", "wrong", "out_of_memory", "illegal_address", "segfault", "endless", "prints"]
    one = bench(f"fault = {faults}")
    began = time.monotonic()
    measured = one.measure()
    assert {fault: m.state for fault, m in measured.items()} == {
        "none": State.OK,
        "broken": State.COMPILE,
        "wrong": State.CORRECTNESS,
        "out_of_memory": State.RUNTIME,
        "illegal_address": State.RUNTIME,
        "segfault": State.RUNTIME,
        "endless": State.TIMEOUT,
        "prints": State.OK,
    }
    assert "expected a" in measured["broken"].error
    assert "y: 1 of 1000 values are wrong, the first at 3" in measured["wrong"].error
    assert "out of memory" in measured["out_of_memory"].error
    assert "illegal memory access" in measured["illegal_address"].error
    assert "SIGSEGV" in measured["segfault"].error
    assert one.runner.replaced == 3
    lost_s = {fault: measured[fault].values["lost_s"] for fault in ("illegal_address", "segfault", "endless")}
    took_s = time.monotonic() - began
    assert min(lost_s.values()) > 0
    assert lost_s["endless"] >= 0.3, "its time limit"
    assert sum(lost_s.values()) + sum(measured[fault].values["teardown_s"] for fault in lost_s) < took_s


def test_a_kernel_that_overwrites_its_inputs_does_not_make_the_others_wrong(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    measured = bench('fault = ["overwrites", "none", "warns"]', sensors=virtual_board).measure()
    assert measured["overwrites"].state is State.CORRECTNESS
    assert measured["none"].state is State.OK
    assert measured["warns"].state is State.OK


def test_a_kernel_whose_work_the_compiler_removed_is_not_measured(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    asked = 'instructions = { FFMA = "2 * multiplies" }'
    measured = bench("multiplies = [0, 1, 8]", sensors=virtual_board, kernel=asked).measure()
    states = {count: m.state for count, m in measured.items()}
    assert states == {0: State.OK, 1: State.CORRECTNESS, 8: State.CORRECTNESS}
    assert "8 FFMA, at least 16 are asked for" in measured[8].error
    kept = bench("multiplies = [0, 1, 8]", sensors=virtual_board, kernel='instructions = { FFMA = "multiplies" }')
    assert {m.state for m in kept.measure().values()} == {State.OK}


def test_a_reference_kernel_of_the_same_source_checks_the_outputs(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    measured = bench('fault = ["none", "wrong"]', reference="scale_reference", sensors=virtual_board).measure()
    assert measured["none"].state is State.OK
    assert measured["wrong"].state is State.CORRECTNESS


def test_a_reference_from_a_file(bench: type[Bench], virtual_board: VirtualBoard, tmp_path: Path) -> None:
    np.save(tmp_path / "expected.npy", np.zeros(1000, np.float32))
    measured = bench('fault = ["none"]', reference="expected.npy", sensors=virtual_board).measure()
    assert measured["none"].state is State.CORRECTNESS
    assert "of 1000 values are wrong" in measured["none"].error


def test_images_are_kept_for_the_next_session(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    first = bench("launch_ms = [1, 2]", sensors=virtual_board)
    first.measure()
    assert first.runner.compiled == 4  # and the comparer, and the reference kernel
    again = bench("launch_ms = [1, 2]", sensors=virtual_board)
    again.measure()
    assert again.runner.compiled == 0


def test_a_compilers_warnings_stay_with_the_measurement_from_the_cache_too(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    for compiled in (5, 0):  # three images, the comparer and the reference kernel
        one = bench('fault = ["warns", "none", "wrong"]', sensors=virtual_board)
        measured = one.measure()
        assert one.runner.compiled == compiled
        assert {fault: (m.state, bool(m.message)) for fault, m in measured.items()} == {
            "warns": (State.OK, True),
            "none": (State.OK, False),
            "wrong": (State.CORRECTNESS, True),
        }
        assert measured["warns"].message.startswith("kernel.cu(7): warning")
        assert not measured["warns"].error
        assert "warning" not in measured["wrong"].error


REFERENCE = ("reference_time_s", "reference_power_w", "reference_energy_j")
EVERY = 4


@pytest.fixture
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "FIRST", (0,))
    monkeypatch.setattr(reference, "EVERY", EVERY)


@pytest.mark.usefixtures("looked_at_often")
def test_a_fixed_kernel_is_measured_every_so_often_to_show_drift(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    measured = bench(f"draws_w = {list(range(100, 100 + EVERY + 2))}", sensors=virtual_board).rows()
    with_reference = [index for index, m in enumerate(measured) if "reference_energy_j" in m.values]
    assert with_reference == [0, EVERY]
    for at in with_reference:
        time_s, power_w, energy_j = (measured[at].values[name] for name in REFERENCE)
        assert time_s == pytest.approx(1e-3, rel=1e-3)
        assert power_w == pytest.approx(500.0, rel=0.003)  # every multiprocessor of the stand-in works
        assert energy_j == pytest.approx(time_s * power_w)


@pytest.mark.usefixtures("looked_at_often")
@pytest.mark.parametrize("lost", [False, True])
def test_a_reference_kernel_that_does_not_run_costs_no_configuration(
    bench: type[Bench], virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    asked, ask = [0], CudaGpu.ask

    def refuse(gpu: CudaGpu, message: dict[str, Any], *rest: Any, **named: Any) -> dict[str, Any]:
        if message["do"] == "drift":
            asked[0] += 1
            raise KernelFailed(State.RUNTIME, "no memory left", lost=lost)
        return ask(gpu, message, *rest, **named)

    monkeypatch.setattr(CudaGpu, "ask", refuse)
    measured = bench(f"draws_w = {list(range(100, 100 + EVERY + 2))}", sensors=virtual_board).rows()
    assert {m.state for m in measured} == {State.OK}
    assert not any(name in m.values for m in measured for name in REFERENCE)
    assert asked == [1], "it is not tried again"


def test_stopping_ends_at_once(bench: type[Bench]) -> None:
    one = bench("launch_ms = [1, 2, 3, 4]")
    stop = threading.Event()
    found = []
    for measurement in one.runner.measure(range(4), stop):
        found.append(measurement)
        stop.set()
    assert 1 <= len(found) <= 2


def test_rows_that_come_meanwhile_follow_without_a_break(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    one = bench("launch_ms = [1, 2, 3, 5]", sensors=virtual_board)
    coming, found = [[], [2], [3]], list[Measurement]()
    known_when_asked = []

    def more() -> list[int]:
        known_when_asked.append(len(found))
        return coming.pop(0) if coming else []

    for measurement in one.runner.measure([0, 1], threading.Event(), more=more):
        found.append(measurement)
    assert sorted(each.row for each in found) == [0, 1, 2, 3]
    for each in found:
        assert each.state is State.OK, each.error
        assert each.values["time_s"] == pytest.approx(float(str(each.configuration["launch_ms"])) / 1e3, rel=1e-3)
    assert known_when_asked[1:3] == [0, 1], "the last that ran is finished while the next one runs"


def test_a_reference_that_names_nothing_is_one_clear_line(bench: type[Bench]) -> None:
    with pytest.raises(InputError, match="unknown name 'z'"):
        bench("launch_ms = [1]", reference="z + 1")


def test_a_real_board_without_a_library_for_cuda_is_an_error_with_the_remedy(
    tmp_path: Path, libraries: Callable[..., None]
) -> None:
    (tmp_path / "scale.cu").write_text("")
    path = tmp_path / "scale.toml"
    path.write_text(SPECIFICATION.format(parameters="", reference="factor * x", kernel=""))
    libraries()
    with pytest.raises(WattridgeError, match="neither is installed") as refused:
        plan_specification(load_specification(path), SteadySensors())
    assert "[cuda]'" in refused.value.remedy


def test_a_runner_process_that_was_killed_is_known_to_be_gone_however_often_it_is_asked() -> None:
    process = RunnerProcess("fake_cuda", "0", {})
    try:
        process.ready()
        os.kill(process.pid, signal.SIGKILL)
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(KernelFailed, match="SIGKILL") as failed:
                process.request({"do": "end"})
            assert failed.value.lost
            assert time.monotonic() - began < 20.0  # not the two minutes that a context may take to begin
    finally:
        process.close()


def test_a_kernel_without_end_does_not_outlive_a_killed_session(tmp_path: Path) -> None:
    script = tmp_path / "session.py"
    script.write_text(
        "import os, signal\n"
        "from app.engine.runner.kernels.process import RunnerProcess\n"
        "process = RunnerProcess('fake_cuda', '0', {})\n"
        "process.request({'do': 'arguments', 'plan': {'arguments': [], 'references': [], 'constants': {}}})\n"
        "launch = {'name': 'scale', 'grid': [1, 1, 1], 'block': [1, 1, 1], 'shared_byte': 0}\n"
        "plan = {'arguments': [{'name': n, 'type': 'float32', 'shape': [4], 'fill': 'ones', 'value': None,\n"
        "        'output': n == 'y', 'constant': False, 'seed': 1} for n in 'yx'], 'references': [], 'constants': {}}\n"
        "process.request({'do': 'arguments', 'plan': plan})\n"
        'image = b\'\\n{"fault": "endless"}\\n\'\n'
        "process.request({'do': 'load', 'id': 'k', 'launch': launch}, [image])\n"
        "process.post({'do': 'check', 'id': 'k'})\n"
        "print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    paths = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    answer = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    runner = int(answer.stdout)
    deadline = time.monotonic() + 15.0
    while alive(runner):
        assert time.monotonic() < deadline, "the runner process outlived the session"
        time.sleep(0.1)


def alive(process: int) -> bool:
    """A zombie is not: nobody may be left to reap it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_kernel_parameter_that_a_constant_replaces_is_named(bench: type[Bench], tmp_path: Path) -> None:
    """`#define n 1000` before `void scale(float *y, int n)` makes the compiler expect a ')'."""
    one = bench("fault = ['broken']")
    (tmp_path / "scale.cu").write_text("__global__ void scale(float *y, const float *x, int n) { }\n")
    [failed] = one.measure().values()
    assert failed.state is State.COMPILE
    assert failed.error.startswith("the kernel's parameter 'n' is also a macro")
    assert 'error: expected a ";"' in failed.error


def test_a_kernel_without_such_a_parameter_has_the_compilers_words_alone(bench: type[Bench], tmp_path: Path) -> None:
    one = bench("fault = ['broken']")
    (tmp_path / "scale.cu").write_text("__global__ void scale(float *y, const float *x, int size) { }\n")
    [failed] = one.measure().values()
    assert "macro" not in failed.error


def test_a_session_in_which_everything_fails_says_why(bench: type[Bench], capsys: pytest.CaptureFixture[str]) -> None:
    from fixtures.engine_fakes import FakeRunner
    from fixtures.engine_fakes import plan as plan_over

    from app.commands.terminal import print_description
    from app.engine.session.describe_session import describe_session
    from app.engine.space.result_table import ResultTable

    one = bench("fault = ['broken']\nblock_size_y = [1, 2, 4]")
    table = ResultTable(one.space)
    table.extend(one.rows())
    plan = plan_over(one.space, FakeRunner(one.space))
    print_description(describe_session(plan, table))
    said = capsys.readouterr().out
    assert "no configuration worked" in said
    assert 'expected a ";"' in said


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("__global__ void scale(float *x, const int n)", ("x", "n")),
        ('extern "C" __global__ void __launch_bounds__(256, 2) scale(float *__restrict__ x, int n[4])', ("x", "n")),
        ("template <int A> __global__ void scale(int /* n */ a, // n\n int b = 3)", ("a", "b")),
        ("__global__ void scale()", ()),
        ("void scale(int n)", ()),
        ("__global__ void scale_other(int n)", ()),
    ],
)
def test_the_parameters_of_a_kernel(source: str, names: tuple[str, ...]) -> None:
    assert parameter_names(source + " {}", "scale") == names


def test_rows_can_be_timed_by_a_few_launches(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    one = bench("launch_ms = [1, 2, 5, 40]", sensors=virtual_board)
    assert one.runner.timed == {"time_s"}, "the metric needs energy"
    timed = list(one.runner.time(range(4), threading.Event()))
    assert sorted(m.row for m in timed) == [0, 1, 2, 3], "as they are compiled"
    for found in timed:
        assert (found.state, found.depth) == (State.OK, Depth.TIME), found.error
        assert found.values["time_s"] == pytest.approx(float(str(found.configuration["launch_ms"])) / 1e3, rel=0.01)
        assert found.values["registers_per_thread"] == 32, "what the compiler says is known, too"
        assert not {"energy_j", "power_w", "J/Mvalue"} & found.values.keys()
        assert (found.window_ns, found.intervals) == (None, {})


def test_timing_costs_the_board_a_fraction_of_measuring(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    one, stop = bench("launch_ms = [1, 2]", sensors=virtual_board), threading.Event()
    one.rows()  # the board is warm
    seconds = []
    for look in (one.runner.time, one.runner.measure):
        began = virtual_board.clock.now_ns()
        assert len(list(look(range(2), stop))) == 2
        seconds.append((virtual_board.clock.now_ns() - began) / 1e9)
    assert seconds[0] < 0.3 * seconds[1]


def test_every_fault_is_found_by_timing_too(bench: type[Bench]) -> None:
    one = bench('fault = ["none", "broken", "wrong", "segfault"]')
    found = {m.configuration["fault"]: m for m in one.runner.time(range(4), threading.Event())}
    states = {fault: m.state for fault, m in found.items()}
    assert states == {
        "none": State.OK,
        "broken": State.COMPILE,
        "wrong": State.CORRECTNESS,
        "segfault": State.RUNTIME,
    }
    assert {m.depth for m in found.values()} == {Depth.TIME}
    [measured] = one.runner.measure([0], threading.Event())
    assert (measured.state, measured.depth) == (State.OK, Depth.ENERGY)


def test_timing_ends_soon_after_a_stop(bench: type[Bench]) -> None:
    one, stop = bench("launch_ms = [1, 2, 3, 4]"), threading.Event()
    timing = one.runner.time(range(4), stop)
    assert next(timing).depth is Depth.TIME
    stop.set()
    assert len(list(timing)) <= 1
