"""Functions in C, C++ and Fortran, compiled and called for real: measured, checked, and every way to fail."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.base.processes import stop_on_interrupt
from app.cli import main
from app.engine.metering import stopwatch
from app.engine.results.measurement import Measurement, State
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.subprocesses import answer_of
from app.sensors.select import open_gpu

NEEDS_C = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
SPECIFICATION = """
[kernel]
name = "scale"
language = "{language}"
source = "{source}"
returns = "{returns}"
arguments = [
    {{ name = "y", type = "float32", shape = ["n"], output = true }},
    {{ name = "x", type = "float32", shape = ["n"], fill = "random" }},
    {{ name = "factor", type = "float32", value = 2 }},
]
verify = {{ reference = "factor * x" }}
timeout_s = 1.0
{kernel}
[constants]
n = 1000
[parameters]
{parameters}
[objective]
minimise = "{objective}"
[search]
strategy = "brute_force"
"""


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is not how well times are known."""
    monkeypatch.setattr(stopwatch, "WINDOW_S", 0.01)
    monkeypatch.setattr(stopwatch, "STEADY_TIME", 1e9)


def tuned(
    folder: Path,
    text: str,
    parameters: str,
    *,
    language: str = "c",
    returns: str = "nothing",
    objective: str = "time_s",
    kernel: str = "",
) -> dict[object, Measurement]:
    """Every configuration, by the value of its last parameter."""
    source = f"scale{ {'c': '.c', 'c++': '.cpp', 'fortran': '.f90'}[language] }"
    (folder / source).write_text(text)
    path = folder / "scale.toml"
    path.write_text(
        SPECIFICATION.format(
            language=language, source=source, returns=returns, parameters=parameters, objective=objective, kernel=kernel
        )
    )
    return measured(path)


def measured(path: Path, gpu: str = "host", most: int | None = None) -> dict[object, Measurement]:
    plan = plan_specification(load_specification(path), open_gpu(gpu), SearchOptions(max_evaluations=most))
    with Store() as store:
        result = run_session(plan, store, lambda event: None, threading.Event())
    assert result.state == "done", result.reason
    name = plan.space.parameters[-1].name
    found = (result.table.measurement(row) for row in range(len(result.table)))
    return {each.configuration[name]: each for each in found}


SCALE = """
float scale(float *y, const float *x, float factor) {
#if fault == 1
    *(volatile int *)0 = 1;
#elif fault == 2
    for (volatile int forever = 1; forever;) ;
#elif fault == 3
    does not compile;
#endif
    for (int i = 0; i < n; i++) y[i] = factor * x[i] + (fault == 4);
    return fault == 5 ? 0.0f : 12.5f;
}
"""


@NEEDS_C
def test_every_fault_costs_one_configuration(tmp_path: Path) -> None:
    found = tuned(tmp_path, SCALE, "fault = [1, 2, 3, 4, 0]")
    assert {fault: each.state for fault, each in found.items()} == {
        0: State.OK,
        1: State.RUNTIME,
        2: State.TIMEOUT,
        3: State.COMPILE,
        4: State.CORRECTNESS,
    }
    assert "SIGSEGV" in found[1].error
    assert "error" in found[3].error.splitlines()[0]
    assert "1000 of 1000 values are wrong" in found[4].error
    assert 0 < found[0].values["time_s"] < 0.01
    assert "energy_j" not in found[0].values
    assert found[0].power_source == "no energy: this device reports none"


@NEEDS_C
def test_a_stop_ends_a_launch_that_may_still_take_long_and_the_runner_goes_on(tmp_path: Path) -> None:
    began = tmp_path / "began"
    (tmp_path / "scale.c").write_text(f"""
        #include <stdio.h>
        #include <unistd.h>
        float scale(float *y, const float *x, float factor) {{
            if (forever) {{ fclose(fopen("{began}", "w")); for (;;) sleep(1); }}
            for (int i = 0; i < n; i++) y[i] = factor * x[i];
            return 12.5f;
        }}""")
    path = tmp_path / "scale.toml"
    filled = SPECIFICATION.format(
        language="c", source="scale.c", returns="nothing", parameters="forever = [1, 0]", objective="time_s", kernel=""
    )
    path.write_text(filled.replace("timeout_s = 1.0", "timeout_s = 600"))
    stop, found = threading.Event(), list[Measurement]()
    with closing(open_gpu("host")) as gpu:
        plan = plan_specification(load_specification(path), gpu, SearchOptions())
        with closing(plan.boards.runner(plan)) as runner:
            running = threading.Thread(target=lambda: found.extend(runner.measure([0], stop)), daemon=True)
            running.start()
            end_s = time.monotonic() + 60
            while not began.exists() and time.monotonic() < end_s:
                time.sleep(0.01)
            stop.set()
            running.join(60)
            assert not running.is_alive()
            assert found == []  # it did not fail
            assert [each.state for each in runner.measure([1], threading.Event())] == [State.OK]


@pytest.mark.skipif(os.name != "posix", reason="a shell's script stands for a compiler")
def test_a_signal_ends_the_wait_for_a_compiler_that_does_not_say_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, compiler = tmp_path / "asked", tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n: > '{asked}'\nsleep 600\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    begun_s = time.monotonic()

    def interrupt() -> None:
        while not asked.exists() and time.monotonic() < begun_s + 60:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    with stop_on_interrupt() as stop:
        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        with pytest.raises(TimeoutError, match="stopped"):
            answer_of([str(compiler), "--version"], limit_s=600)
        assert stop.is_set()
        thread.join(60)


@NEEDS_C
def test_what_a_function_returns_is_its_time_in_its_unit(tmp_path: Path) -> None:
    found = tuned(tmp_path, SCALE, "fault = [0, 5]", returns="time_ms")
    assert found[0].values["time_s"] == pytest.approx(0.0125, rel=1e-6)
    assert found[5].state is State.CORRECTNESS
    assert "returned 0 as its time_ms" in found[5].error


@NEEDS_C
def test_what_a_function_returns_is_a_value_where_the_file_names_one(tmp_path: Path) -> None:
    text = SCALE.replace("12.5f", "100.0f / (fault + 1)").replace("fault", "part")
    found = tuned(
        tmp_path, text.replace("part == ", "-part == "), "part = [0, 1, 3]", returns="error", objective="error"
    )
    assert {part: each.values["error"] for part, each in found.items()} == {0: 100.0, 1: 50.0, 3: 25.0}
    assert all(each.values["time_s"] < 0.01 for each in found.values())


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_a_function_in_cpp_is_found_by_its_name(tmp_path: Path) -> None:
    text = "template <int N> static void go(float *y, const float *x, float f) {\n"
    text += "    for (int i = 0; i < N; i++) y[i] = f * x[i];\n}\n"
    text += "float scale(float *y, const float *x, float factor) { go<n>(y, x, factor + wrong); return 1.0f; }\n"
    found = tuned(tmp_path, text, "wrong = [0, 1]", language="c++")
    assert (found[0].state, found[1].state) == (State.OK, State.CORRECTNESS)


FORTRAN = """
{head}
    use iso_c_binding
    real(c_float), intent(out) :: y(n)
    real(c_float), intent(in) :: x(n)
    real(c_float), {scalar} :: factor
    y = (factor + wrong) * x
end subroutine
"""


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="there is no gfortran")
@pytest.mark.parametrize(
    ("head", "scalar"),
    [
        ("subroutine scale(y, x, factor)", "intent(in)"),
        ("subroutine scale(y, x, factor) bind(c)", "value"),
        ("subroutine scale(y, x, &\n    & factor) ! (y)", "intent(in), value"),
        ("subroutine scale(y, x, factor) bind(c)", "intent(in)"),
    ],
    ids=["by reference", "bind(c), by value", "by value", "bind(c), by reference"],
)
def test_fortran_takes_scalars_as_the_procedure_says(tmp_path: Path, head: str, scalar: str) -> None:
    text = FORTRAN.format(head=head, scalar=scalar)
    found = tuned(tmp_path, text, "wrong = [0, 1]", language="fortran")
    assert (found[0].state, found[1].state) == (State.OK, State.CORRECTNESS), found[0].error


# --- programs of the file


@NEEDS_C
def test_a_generator_prints_the_source_and_a_program_checks_the_output(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(
        "import sys\n"
        "if sys.argv[1] == '3': sys.exit('cannot make it')\n"
        "print('float scale(float *y, const float *x, float f) {'\n"
        "      '  for (int i = 0; i < n; i++) y[i] = f * x[i] + (%s == 2); return 1; }' % sys.argv[1])\n"
    )
    (tmp_path / "check.py").write_text(
        "import sys, numpy\n"
        "y, x = map(numpy.load, sys.argv[1:3])\n"
        "sys.exit(None if numpy.allclose(y, 2 * x) else 'off by %g' % abs(y - 2 * x).max())\n"
    )
    python = json.dumps(f"{sys.executable} make.py {{kind}}")
    check = json.dumps(f"{sys.executable} check.py {{y}} {{x}}")
    path = tmp_path / "scale.toml"
    text = SPECIFICATION.format(
        language="c", source="", returns="nothing", parameters="kind = [1, 2, 3]", objective="time_s", kernel=""
    )
    text = text.replace('source = ""', f"generator = {python}")
    path.write_text(text.replace('verify = { reference = "factor * x" }', f"verify = {{ command = {check} }}"))
    found = measured(path)
    assert {kind: each.state for kind, each in found.items()} == {
        1: State.OK,
        2: State.CORRECTNESS,
        3: State.COMPILE,
    }, [each.error for each in found.values()]
    assert "off by 1" in found[2].error
    assert "cannot make it" in found[3].error


@NEEDS_C
@pytest.mark.parametrize("name", ["matrix_product_c", "smooth_fortran", "polynomial_generated"])
def test_an_example_runs_on_this_processor(name: str) -> None:
    if "fortran" in name and shutil.which("gfortran") is None:
        pytest.skip("there is no gfortran")
    found = measured(resources() / "examples" / f"{name}.toml", most=2)
    assert {each.state for each in found.values()} == {State.OK}, [each.error for each in found.values()]


# --- what cannot run is one line


def refusal(folder: Path, gpu: str = "host", **changes: str) -> WattridgeError:
    given = {"language": "c", "source": "scale.c", "returns": "nothing", "parameters": "a = [1]", "objective": "time_s"}
    (folder / "scale.c").write_text("")
    path = folder / "scale.toml"
    path.write_text(SPECIFICATION.format(**{**given, "kernel": "", **changes}))
    with pytest.raises(WattridgeError) as refused:
        plan_specification(load_specification(path), open_gpu(gpu))
    return refused.value


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"language": "pascal"}, "'language' is 'pascal'"),
        ({"kernel": 'compiler = "./mine"'}, "'compiler' is './mine'"),
        ({"kernel": 'compiler_options = ["-O2", "-fplugin=evil.so"]'}, "the compiler option '-fplugin=evil.so'"),
        ({"kernel": 'compiler_options = ["other.c"]'}, "'other.c' is no compiler option"),
        ({"kernel": 'compiler_options = ["-o", "/etc/passwd"]'}, "the compiler option '-o'"),
        ({"kernel": 'generator = "true"'}, "both a source and a generator"),
        ({"kernel": 'template = "int"'}, "'template' is for CUDA only"),
        ({"returns": "energy_j"}, "'energy_j' is measured"),
        ({"objective": "energy_j"}, "'energy_j' needs energy"),
        ({"language": "opencl", "returns": "time_s"}, "returns nothing"),
        ({"language": "cuda", "returns": "time_s"}, "returns nothing"),
    ],
)
def test_what_a_file_may_not_say_is_one_line_when_it_is_read(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    if "objective" in changes and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    error = refusal(tmp_path, **changes)
    assert said in error.what
    assert error.remedy


def test_a_missing_compiler_is_one_line_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refusal(tmp_path, language="fortran")
    assert error.what == "there is no compiler for Fortran (gfortran, flang, ifx, nvfortran)"
    assert error.remedy == "install gfortran"


def test_a_function_needs_a_device_that_calls_it(tmp_path: Path) -> None:
    assert "--gpu host" in refusal(tmp_path, gpu="simulated:a100").remedy


def test_cuda_does_not_run_on_the_processor(tmp_path: Path) -> None:
    path = tmp_path / "scale.toml"
    (tmp_path / "scale.cu").write_text("")
    path.write_text(
        '[kernel]\nname = "f"\nsource = "scale.cu"\nproblem_size = [1]\n[parameters]\na = [1]\n'
        '[objective]\nminimise = "time_s"\n'
    )
    with pytest.raises(WattridgeError, match="CUDA kernels run on NVIDIA's GPUs"):
        plan_specification(load_specification(path), open_gpu("host"))


def test_a_device_without_sensors_can_be_watched_and_says_why_it_shows_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["monitor", "--gpu", "host", "--duration", "0.2", "--json"]) == 0
    watched = json.loads(capsys.readouterr().out)
    assert watched["source"] == "unmetered"
    assert watched["energy_j"] is None
    assert main(["measure", "--gpu", "host", "--", sys.executable, "-c", ""]) == 0
    said = capsys.readouterr()
    assert "the board reports no power" in said.out + said.err
    assert "recording" not in said.out + said.err


def test_a_command_is_timed_on_a_device_without_sensors(tmp_path: Path) -> None:
    path = tmp_path / "command.toml"
    words = json.dumps(f"{sys.executable} -c \"print('points', {{k}})\"")
    path.write_text(
        f'[command]\nrun = {words}\nvalues = {{ points = "points ([0-9]+)" }}\n[parameters]\nk = [1, 2]\n'
        '[objective]\nmaximise = "points"\n[search]\nstrategy = "brute_force"\n'
    )
    found = measured(path)
    assert {k: each.values["points"] for k, each in found.items()} == {1: 1.0, 2: 2.0}
    assert all(each.values["time_s"] > 0 and "energy_j" not in each.values for each in found.values())


def test_a_device_without_sensors_has_no_speed_of_ours() -> None:
    with pytest.raises(InputError, match="its own speed"):
        open_gpu("host", speed=10.0)
