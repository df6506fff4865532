"""Tuning any program: what reaches its command line, what is read from its output, and how its failures end."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from pathlib import Path

import pytest
from fixtures.engine_fakes import Listener

from app.base.errors import InputError
from app.cli import main
from app.engine.control.guard import DeviceGuard
from app.engine.metering.condition import Condition
from app.engine.metering.thermal import BoardHeat, ThermalModel, keep_heat
from app.engine.results.measurement import Measurement, State
from app.engine.runner.command import CommandRunner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.model import Specification
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.command import Command
from app.engine.workloads.subprocesses import DRAIN_S, MOST_OUTPUT, run_process
from app.sensors.clock import ScaledClock, VirtualClock
from app.sensors.gpu import Gpu, Held
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

PROGRAM = """
import sys, time
size, mode = int(sys.argv[1]), sys.argv[2]
if mode == "fails":
    sys.exit("out of memory")
if mode == "hangs":
    time.sleep(600)
if mode == "silent":
    sys.exit(0)
time.sleep(0.2)
print("Result: 1.0 GFLOP/s")
print(f"Result: {size * 2.5} GFLOP/s")
print("Words: none")
"""

SPECIFICATION = """
[command]
run = "{python} bench.py {{size}} {{mode}}"
timeout_s = 1.0
values = {{ gflops = '^Result: ([0-9.]+) GFLOP/s' }}
[parameters]
size = [10, 20]
mode = ["works"]
[metrics]
"GFLOPS/W" = "gflops / power_w"
[objective]
maximise = "gflops"
front = ["gflops", "GFLOPS/W"]
"""


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.metering.watching.LINGER_S", 0.1)


def written(folder: Path, text: str = SPECIFICATION) -> Specification:
    (folder / "bench.py").write_text(PROGRAM)
    path = folder / "bench.toml"
    path.write_text(text.format(python=sys.executable))
    return load_specification(path)


def board() -> SimulatedGpu:
    return SimulatedGpu(load_twin("h200"), clock=ScaledClock(4.0))


def measured(spec: Specification, gpu: Gpu | None = None, **choice: object) -> Measurement:
    """The only configuration of that choice, measured."""
    gpu = gpu or board()
    space = plan_specification(spec, gpu).space
    [row] = [r for r in range(space.size) if choice.items() <= space.configuration(r).items()]
    runner = CommandRunner(gpu, spec, space, DeviceGuard(gpu))
    try:
        [found] = runner.measure([row], threading.Event())
    finally:
        runner.close()
    return found


def test_a_session_over_a_programs_own_arguments(tmp_path: Path) -> None:
    spec, gpu = written(tmp_path), board()
    plan = plan_specification(spec, gpu, SearchOptions(strategy="brute_force"))
    assert any("draws nothing on a simulated board" in note for note in plan.space.notes)
    begun = time.monotonic()
    with Store() as store:
        result = run_session(plan, store, Listener(), threading.Event())
    took_s = time.monotonic() - begun
    best = result.table.measurement(result.progress.best_index or 0)
    assert len(result.table) == 2
    assert best.configuration == {"size": 20, "mode": "works"}
    assert best.values["gflops"] == 50.0  # the last of the lines that fit
    assert 0.2 < best.values["time_s"] < took_s - 0.2  # the other took as long at least
    assert best.values["power_w"] == pytest.approx(83, rel=0.02)  # the idle board's, as simulated
    assert best.values["energy_j"] == pytest.approx(best.values["power_w"] * best.values["time_s"])
    assert best.values["GFLOPS/W"] == pytest.approx(50.0 / best.values["power_w"])
    assert best.observed_clock_mhz == pytest.approx(345)
    assert best.source == "simulated"
    assert "simulated" in best.power_source


def test_a_session_of_a_program_goes_on_from_the_command_line_in_real_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path).path)
    words = ["--max-evaluations", "1", "--strategy", "brute_force", "--json"]
    assert main(["tune", path, "--gpu", "simulated:h200", *words]) == 0
    begun = json.loads(capsys.readouterr().out)
    assert main(["tune", "--resume", str(begun["session"]), "--max-evaluations", "2", "--json"]) == 0
    ended = json.loads(capsys.readouterr().out)
    assert (begun["evaluated"], ended["evaluated"]) == (1, 2)
    assert ended["best"]["configuration"]["size"] == 20


def test_repeats_give_intervals(tmp_path: Path) -> None:
    spec = written(tmp_path, SPECIFICATION.replace("timeout_s = 1.0", "timeout_s = 5.0\nrepeats = 3"))
    found = measured(spec, size=10)
    for name in ("time_s", "energy_j", "power_w", "GFLOPS/W"):
        low, high = found.intervals[name]
        assert low < found.values[name] < high
    assert "gflops" not in found.intervals  # the same in every run
    for name in ("time_s", "energy_j", "power_w", "gflops"):
        assert found.values[f"min_{name}"] <= found.values[name] <= found.values[f"max_{name}"]
    assert found.values["std_gflops"] == 0.0
    assert found.values["std_time_s"] > 0.0


def test_the_joules_that_a_program_drew_stay_its_energy(tmp_path: Path) -> None:
    spec, choice = written(tmp_path), {"size": 20, "mode": "works"}
    before = measured(spec, **choice)
    assert "energy_at_condition_j" not in before.values, "no session has fixed a condition"
    sure = tuple(tuple(1e10 if row == column else 0.0 for column in range(4)) for row in range(4))
    warming = ThermalModel((0.002, 0.0, 0.0, 0.0), sure)
    keep_heat(board().info, BoardHeat(warming, Condition(gpu_c=before.values["temperature_c"] + 40.0)))
    after = measured(spec, **choice)
    assert after.values["energy_j"] == pytest.approx(after.values["power_w"] * after.values["time_s"])
    assert after.values["power_w"] == pytest.approx(before.values["power_w"], rel=0.01)
    assert "thermal_correction" not in after.values
    warmer = after.values["energy_at_condition_j"] / after.values["energy_j"]
    assert warmer == pytest.approx(math.exp(0.002 * 40.0), rel=0.01)


@pytest.mark.parametrize(
    ("mode", "state", "said"),
    [
        ("fails", State.RUNTIME, "exit status 1\nout of memory"),
        ("hangs", State.TIMEOUT, "1 s, its time limit"),
        ("silent", State.CORRECTNESS, "gflops: it is not in the output"),
    ],
)
def test_a_run_that_fails_is_a_result(tmp_path: Path, mode: str, state: State, said: str) -> None:
    spec = written(tmp_path, SPECIFICATION.replace('"works"', f'"works", "{mode}"'))
    found = measured(spec, size=10, mode=mode)
    assert (found.state, found.values) == (state, {})
    assert said in found.error


def test_text_that_is_no_number_is_told(tmp_path: Path) -> None:
    spec = written(tmp_path, SPECIFICATION.replace("^Result: ([0-9.]+) GFLOP/s", "Words: (.*)"))
    found = measured(spec, size=10)
    assert found.state is State.CORRECTNESS
    assert "'none' is no number" in found.error


def test_a_run_too_short_for_the_sensor_has_time_but_no_energy(tmp_path: Path) -> None:
    spec = written(tmp_path, '[command]\nrun = "true {{x}}"\n[parameters]\nx = [1]\n[objective]\nminimise = "time_s"\n')
    gpu = SimulatedGpu(load_twin("a100"))
    begun = time.monotonic()
    found = measured(spec, gpu)
    assert found.state is State.OK
    assert 0 < found.values["time_s"] < time.monotonic() - begun
    assert not {"energy_j", "power_w"} & set(found.values)
    assert "too short" in found.message
    assert not found.error


def test_clocks_and_caps_are_tuned_with_the_program_and_put_back(tmp_path: Path) -> None:
    text = SPECIFICATION.replace("[metrics]", "[device_settings]\ngraphics_clock_mhz = [1200, 900]\n[metrics]")
    spec, gpu = written(tmp_path, text), board()
    space = plan_specification(spec, gpu).space
    runner = CommandRunner(gpu, spec, space, DeviceGuard(gpu))
    found = list(runner.measure(range(space.size), threading.Event()))
    clocks = [m.configuration["graphics_clock_mhz"] for m in found]
    assert clocks[:2] == ["untouched"] * 2  # as the board is when it begins
    assert clocks[2:] in ([900, 900, 1200, 1200], [1200, 1200, 900, 900])  # as few changes as can be
    runner.close()
    at = [channel.name for channel in gpu.channels].index("requested_graphics_clock_mhz")
    assert math.isnan(gpu.read().values[at])


def test_values_reach_the_command_line_as_they_are_and_never_a_shell(tmp_path: Path) -> None:
    text = """
[command]
run = "echo --n={{n}} '{{word}} {{flag}}' $HOME {{n}}{{x}} {{other}}"
[constants]
n = 7
other = 0.5
[parameters]
x = [3]
word = ["a b; rm -rf *"]
flag = [true]
"""
    command = Command(written(tmp_path, text))
    words = command.words({"x": 3, "word": "a b; rm -rf *", "flag": True})
    assert words[1:] == ["--n=7", "a b; rm -rf * true", "$HOME", "73", "0.5"]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("no-such-program-here {{x}}", "no program 'no-such-program-here'"),
        ("./bench {{x}}", "no program './bench'"),
        ("echo 'a {{x}}", "not a command line"),
        (" ", "is empty"),
        ("echo {{y}}", "y"),
    ],
)
def test_a_command_line_that_cannot_work_is_told_before_the_session(tmp_path: Path, run: str, said: str) -> None:
    text = f'[command]\nrun = "{run}"\n[parameters]\nx = [1]\n[objective]\nminimise = "time_s"\n'
    with pytest.raises(InputError, match=r"command\.run") as caught:
        plan_specification(written(tmp_path, text), board())
    assert said in str(caught.value)


def test_a_board_without_real_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="real time"):
        plan_specification(written(tmp_path), SimulatedGpu(load_twin("h200"), clock=VirtualClock()))


def test_stopping_a_session_ends_the_program(tmp_path: Path) -> None:
    spec, gpu = written(tmp_path, SPECIFICATION.replace('"works"', '"hangs"').replace("1.0", "600.0")), board()
    space = plan_specification(spec, gpu).space
    runner, stop = CommandRunner(gpu, spec, space, DeviceGuard(gpu)), threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    assert list(runner.measure([0, 1], stop)) == []  # long before its 600 s
    runner.close()
    timer.join()


# --- the program itself -----------------------------------------------------------------------------------------------


def test_the_end_is_stamped_when_it_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the next look at the time limit, which may be far away."""
    monkeypatch.setattr("app.engine.workloads.subprocesses._LOOK_S", 60.0)
    code = "import time; time.sleep(0.31); print(time.monotonic_ns(), flush=True)"
    ended = run_process([sys.executable, "-S", "-c", code], timeout_s=30.0, stop=threading.Event())
    assert 0 <= ended.end_ns - int(ended.output) < 20e9  # the interpreter's own end included, on a busy machine
    assert ended.time_s == pytest.approx((ended.end_ns - ended.start_ns) / 1e9, abs=1e-3)


def test_a_chatty_program_takes_no_memory_and_never_waits() -> None:
    code = f"import sys; sys.stdout.write('x' * {8 * MOST_OUTPUT}); sys.stderr.write('y' * 100000); print('end')"
    ended = run_process([sys.executable, "-c", code], timeout_s=30.0)
    assert ended.exit_status == 0
    assert len(ended.output) == MOST_OUTPUT
    assert ended.output.endswith("end\n")
    assert len(ended.errors) == 100000


def test_what_a_program_started_ends_with_it() -> None:
    """A grandchild that holds the pipes neither outlives the time limit nor keeps us waiting."""
    timed_out = run_process(["sh", "-c", "sleep 600 & sleep 600"], timeout_s=0.3)
    assert timed_out.timed_out
    begun = time.monotonic()
    left_behind = run_process(["sh", "-c", "sleep 600 & echo done"], timeout_s=30.0)
    took_s = time.monotonic() - begun
    assert (left_behind.exit_status, left_behind.output) == (0, "done\n")
    assert left_behind.time_s < took_s - DRAIN_S, "waiting for its pipes is not its time"


def test_a_program_that_ignores_being_asked_is_ended() -> None:
    ended = run_process(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout_s=0.3)
    assert ended.timed_out
    assert ended.how == "ended by SIGKILL"


class Slow(SimulatedGpu):
    """Its voltage is asked for so seldom that none of its answers is known to be of the program's own time."""

    def held(self, channel: str) -> Held | None:
        return Held(self.clock.now_ns(), 100.0) if channel == "core_voltage_mv" else None


def test_voltage_and_memory_clock_of_a_program_are_of_its_own_time(tmp_path: Path) -> None:
    spec = written(tmp_path)
    a100 = measured(spec, SimulatedGpu(load_twin("a100"), clock=ScaledClock(4.0)), size=10)
    assert a100.values["core_voltage_mv"] == pytest.approx(712.0)
    assert a100.values["observed_memory_clock_mhz"] > 0
    held = measured(spec, Slow(load_twin("a100"), clock=ScaledClock(4.0)), size=10)
    assert "core_voltage_mv" not in held.values
    assert held.values["observed_memory_clock_mhz"] > 0
    assert "core_voltage_mv" not in measured(spec, size=10).values, "an H200 reports none"
