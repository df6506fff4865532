"""Parameters that a process takes and no kernel's text: SMs, a pause, the data, variables of the environment."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.cli import main
from app.engine.results.process import changed_environment, pause_asked_s, sms_asked
from app.engine.runner.boards import open_runner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.specification.input_data import data_in_words, note_on_data, parse_inputs, with_inputs
from app.engine.specification.model import Specification
from app.engine.workloads.source_kernel import SourceKernel, define_lines
from app.sensors.limits import limits_of
from app.sensors.select import open_gpu

KERNEL = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
profile = "copy"
arguments = [
    {{ name = "y", type = "float32", shape = ["n"], output = true }},
    {{ name = "x", type = "float32", shape = ["n"], fill = "{fill}" }},
    {{ name = "at", type = "int32", shape = ["n"], fill = "range" }},
]
[constants]
n = 1000
[parameters]
block_size_x = [64]
{parameters}
[objective]
minimise = "energy_j"
"""


def specification(folder: Path, parameters: str = "", fill: str = "random", text: str = KERNEL) -> Specification:
    (folder / "scale.cu").write_text("")
    (folder / "scale.toml").write_text(text.format(parameters=parameters, fill=fill))
    return load_specification(folder / "scale.toml")


@given(st.integers(1, 300), st.integers(1, 300))
def test_a_count_is_one_of_the_board_s_and_a_percentage_at_least_one(every: int, count: int) -> None:
    if count <= every:
        assert sms_asked({"sm_count": count}, every) == count
    else:
        with pytest.raises(InputError, match="cannot be had"):
            sms_asked({"sm_count": count}, every)
    share = min(100, count)
    assert 1 <= sms_asked({"cuda_sm_percentage": share}, every) <= every
    assert sms_asked({"cuda_sm_percentage": 100}, every) == every
    assert sms_asked({"sm_count": 0}, every) == sms_asked({}, every) == 0


@pytest.mark.parametrize("value", [-1, 2.5, "few"])
def test_what_is_no_count_of_sms_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="1 to 8, or 0 for all"):
        sms_asked({"sm_count": value}, 8)  # type: ignore[dict-item]


def test_a_pause_is_bounded() -> None:
    assert pause_asked_s({"launch_pause_ms": 2}) == 0.002
    assert pause_asked_s({}) == 0.0
    for value in (-1, 1001, "long"):
        with pytest.raises(InputError, match="a pause of"):
            pause_asked_s({"launch_pause_ms": value})


def test_none_of_them_is_part_of_the_text_and_so_all_have_one_image(tmp_path: Path) -> None:
    spec = specification(tmp_path, 'sm_count = [8, 16]\nlaunch_pause_ms = [0, 1]\ninput_data = ["zeros", "own"]')
    configuration = {"block_size_x": 64, "sm_count": 8, "launch_pause_ms": 1, "input_data": "zeros"}
    assert define_lines(spec, configuration) == ["#define n 1000", "#define block_size_x 64"]
    kernel = SourceKernel.of(spec, limits_of((9, 0), 132))
    prepared, whole = kernel.prepare(configuration), kernel.prepare({"block_size_x": 64, "input_data": "own"})
    assert prepared.build == whole.build
    assert (prepared.launch.sms, prepared.launch.pause_s) == (8, 0.001)
    assert [argument.fill for argument in prepared.calls.arguments] == ["zeros", "zeros", "range"]
    assert [argument.fill for argument in whole.calls.arguments] == ["zeros", "random", "range"]


def test_what_data_the_figures_hold_for_is_said_and_that_constant_data_draw_less(tmp_path: Path) -> None:
    assert data_in_words(specification(tmp_path)) == "x: random; at: range"
    assert note_on_data(specification(tmp_path)) == ""
    constant = specification(tmp_path, fill="ones")
    asked = f"wattridge check {tmp_path / 'scale.toml'} --inputs zeros,random measures by how much"
    assert note_on_data(constant).endswith(asked)
    assert data_in_words(with_inputs(constant, ["random"])) == "x: random; at: range"
    assert data_in_words(with_inputs(constant, ["random", "zeros"])) == "x: by input_data; at: range"
    board = open_gpu("simulated:a100", speed=float("inf"))
    plan = plan_specification(constant, board)
    assert plan.origin["data"] == "x: ones; at: range"
    assert not any("real data may draw more" in note for note in plan.space.notes)  # they do not change that board
    board.close()


def test_files_of_data_lie_beside_the_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.ones(1000, np.float32))
    spec = specification(tmp_path, 'input_data = ["x.npy", "zeros"]')
    assert spec.parameters["input_data"] == (str(tmp_path / "x.npy"), "zeros")
    monkeypatch.chdir(tmp_path)
    assert parse_inputs("zeros, x.npy") == ("zeros", str(tmp_path / "x.npy"))
    with pytest.raises(InputError, match="'7' is no data"):
        specification(tmp_path, "input_data = [7]")


@pytest.mark.parametrize(
    ("name", "why"), [("input_data", "the same for any data"), ("launch_pause_ms", "without a pause")]
)
def test_a_simulated_board_refuses_what_it_does_not_model(tmp_path: Path, name: str, why: str) -> None:
    spec = specification(tmp_path, f"{name} = {['zeros'] if name == 'input_data' else [1]}".replace("'", '"'))
    board = open_gpu("simulated:h200", speed=float("inf"))
    with pytest.raises(InputError, match=why):
        plan_specification(spec, board)
    board.close()


def test_a_simulated_board_models_a_part_of_its_sms_and_says_so(tmp_path: Path) -> None:
    """A copy is as fast on half of them, and slower on a sixteenth; each draws less than all."""
    of_copy = "sm_count = [0, 8, 66]\nitems_per_thread = [4]\nvector_width = [4]\nloop_unroll_factor = [1]"
    spec = specification(tmp_path, of_copy, text=KERNEL.replace("n = 1000", "n = 67108864"))
    board = open_gpu("simulated:h200", speed=float("inf"))
    plan = plan_specification(spec, board)
    with open_runner(plan, plan.boards) as runner:
        rows = {one.configuration["sm_count"]: one for one in runner.measure(range(3), threading.Event())}
    board.close()
    assert rows[66].values["time_s"] == pytest.approx(rows[0].values["time_s"], rel=0.05)
    assert rows[8].values["time_s"] > 1.5 * rows[0].values["time_s"]
    assert rows[8].values["power_w"] < rows[66].values["power_w"] < rows[0].values["power_w"]
    assert "is modelled" in rows[66].message
    assert not rows[0].message


def test_a_kernel_in_another_language_has_no_part_of_the_sms(tmp_path: Path) -> None:
    text = KERNEL.replace('source = "scale.cu"', 'source = "scale.cl"\nlanguage = "opencl"')
    (tmp_path / "scale.cl").write_text("")
    spec = specification(tmp_path, "sm_count = [8]", text=text)
    with pytest.raises(InputError, match="a kernel in OpenCL runs on all of the device"):
        SourceKernel.of(spec, limits_of((9, 0), 132))


COMMAND = """
environment = ["DEPTH"]
[command]
run = "sh -c 'echo depth=${{DEPTH:-0}}'"
values = {{ depth = 'depth=(\\d+)' }}
[parameters]
DEPTH = ["unset", "3"]
{parameters}
[objective]
minimise = "time_s"
"""


def test_variables_of_a_program_s_environment_are_dimensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPTH", "7")
    spec = specification(tmp_path, text=COMMAND)
    board = open_gpu("simulated:h200")
    plan = plan_specification(spec, board)
    with open_runner(plan, plan.boards) as runner:
        rows = {one.configuration["DEPTH"]: one for one in runner.measure(range(2), threading.Event())}
    board.close()
    assert {name: row.values["depth"] for name, row in rows.items()} == {"unset": 0.0, "3": 3.0}
    assert changed_environment(("DEPTH",), {"DEPTH": "3"}, {"A": "1", "DEPTH": "7"}) == {"A": "1", "DEPTH": "3"}
    assert changed_environment(("DEPTH",), {}, {"A": "1"}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COMMAND.replace('environment = ["DEPTH"]', 'environment = ["WIDTH"]'), "'WIDTH' is no parameter"),
        ('environment = ["block_size_x"]' + KERNEL, "an environment is a program's or a service's"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        specification(tmp_path, text=text)


def test_an_exported_header_says_what_launches_had_and_does_not_define_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specification(tmp_path, "sm_count = [66]\nitems_per_thread = [4]\nvector_width = [4]\nloop_unroll_factor = [1]")
    words = ["tune", str(tmp_path / "scale.toml"), "--gpu", "simulated:h200", "--out", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    (header,) = (tmp_path / "out").glob("*.h")
    text = header.read_text()
    assert "Of its launches: sm_count = 66" in text
    assert "sm_count" not in "".join(line for line in text.splitlines() if line.startswith("#define"))
    assert "#define items_per_thread 4" in text
    assert json.loads(capsys.readouterr().out)["best"]["configuration"]["sm_count"] == 66
