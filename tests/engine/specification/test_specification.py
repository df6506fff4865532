"""Specifications: what a user writes is read as written, and whatever is wrong is one line with file, key, remedy."""

from __future__ import annotations

import contextlib
import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.results.objectives import Goal
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.engine.specification.check import specification_of
from app.engine.specification.document import document_of
from app.engine.specification.model import Specification, evaluate_metrics
from app.engine.specification.toml_edit import text_of
from app.sensors.limits import limits_of

EXAMPLES = sorted((resources() / "examples").glob("*.toml"))
WHOLE = """
restrictions = ["32 <= block_size_x * block_size_y <= 1024", "tile <= limit"]
[kernel]
name = "sgemm"
source = ["sgemm.cu", "util/common.cu"]
problem_size = ["n", "n // 2", 1]
grid_divisors = { x = ["block_size_x", "tile"], y = ["block_size_y"] }
arguments = [ { name = "c", type = "float32", shape = ["n", "n"], fill = "zeros", output = true },
              { name = "count", type = "int32", value = 7 } ]
verify = { reference = "a @ b", rtol = 1e-3 }
profile = "gemm"
compiler_options = "-O3"
shared_memory = "4 * block_size_x"
[constants]
n = 4096
limit = 4
layout = "row"
[parameters]
block_size_x = [16, 32, 64]
block_size_y = 4
tile = "range(1, block_size_y + 1)"
order = ["row", "column"]
exact = true
[device_settings]
graphics_clock_mhz = { points = 7 }
memory_clock_mhz = "supported"
power_limit_w = [200, 300]
[metrics]
"GFLOP/s" = "2 * n**3 / time_s / 1e9"
watts = "energy_j / time_s"
"GFLOPS/W" = "2 * n**3 / (watts * time_s) / 1e9 if layout == 'row' else 0"
[objective]
maximise = "GFLOPS/W"
front = ["GFLOP/s", "GFLOPS/W", "time_s", "max:watts"]
[search]
strategy = "genetic_algorithm"
options = { population_size = 10 }
max_evaluations = 500
max_seconds = 60
patience = 40
seed = 3
start = [{ block_size_x = 32, tile = 2 }, { order = "row" }]
"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "spec.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load(folder: Path, text: str | bytes) -> Specification:
    return load_specification(write(folder, text))


def test_every_section_is_read(tmp_path: Path) -> None:
    spec = load(tmp_path, WHOLE)
    assert spec.name == "sgemm"
    assert spec.parameters == {
        "block_size_x": (16, 32, 64),
        "block_size_y": (4,),
        "tile": "range(1, block_size_y + 1)",
        "order": ("row", "column"),
        "exact": (True,),
    }
    assert spec.device_settings == {
        "graphics_clock_mhz": 7,
        "memory_clock_mhz": "supported",
        "power_limit_w": (200, 300),
    }
    assert spec.kernel is not None
    assert spec.kernel.sources == (tmp_path / "sgemm.cu", tmp_path / "util/common.cu")
    assert spec.kernel.problem_size == ("n", "n // 2", "1")
    assert spec.kernel.grid_divisors == {"x": ("block_size_x", "tile"), "y": ("block_size_y",)}
    assert [(a.name, a.type, a.output, a.value) for a in spec.kernel.arguments] == [
        ("c", "float32", True, None),
        ("count", "int32", False, 7),
    ]
    assert spec.kernel.compiler_options == ("-O3",)
    assert spec.objective is not None
    assert spec.objective.goal == Goal("GFLOPS/W", True)
    assert spec.objective.front == (
        Goal("GFLOP/s", True),
        Goal("GFLOPS/W", True),
        Goal("time_s", False),
        Goal("watts", True),
    )
    assert (spec.strategy, spec.strategy_options) == ("genetic_algorithm", {"population_size": 10})
    assert (spec.max_evaluations, spec.max_seconds, spec.patience, spec.seed) == (500, 60.0, 40, 3)
    assert spec.starts == ({"block_size_x": 32, "tile": 2}, {"order": "row"})


def test_a_space_alone_is_a_specification_too(tmp_path: Path) -> None:
    spec = load(tmp_path, "restrictions = 'a < b'\n[parameters]\na = [1, 2]\nb = 'range(a, warp_size // 8)'")
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((8, 0)))
    assert [tuple(space.configuration(row).values()) for row in range(space.size)] == [(1, 2), (1, 3), (2, 3)]
    assert spec.kernel is None
    assert spec.objective is None


def test_a_command_instead_of_a_kernel(tmp_path: Path) -> None:
    text = """
[command]
run = "./bench --size {n}"
[command.values]
gflops = 'Result: ([0-9.]+) GFLOP/s'
[parameters]
n = [64, 128]
[metrics]
share = "gflops / 100"
[objective]
minimise = "energy_j"
"""
    spec = load(tmp_path, text)
    assert spec.command is not None
    assert spec.command.values == {"gflops": "Result: ([0-9.]+) GFLOP/s"}
    with pytest.raises(InputError, match="unknown name 'm'"):
        load(tmp_path, text.replace("{n}", "{m}"))
    with pytest.raises(InputError, match="one group"):
        load(tmp_path, text.replace("([0-9.]+)", "([0-9"))


def test_metrics_use_parameters_constants_measured_values_and_earlier_metrics(tmp_path: Path) -> None:
    spec = load(tmp_path, WHOLE)
    found = evaluate_metrics(spec, {"order": "row"}, {"time_s": 0.01, "energy_j": 2.0})
    assert found["GFLOP/s"] == pytest.approx(2 * 4096**3 / 0.01 / 1e9)
    assert found["watts"] == pytest.approx(200)
    assert found["GFLOPS/W"] == pytest.approx(2 * 4096**3 / 2.0 / 1e9)
    assert math.isnan(evaluate_metrics(spec, {}, {"time_s": 0.0, "energy_j": 1.0})["watts"])
    assert evaluate_metrics(spec, {}, {"time_s": 0.01}) == {"GFLOP/s": found["GFLOP/s"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_built_in_examples_load_and_their_space_is_small_enough_to_start_at_once(path: Path) -> None:
    spec = load_specification(path)
    assert spec.kernel is not None
    assert all(source.is_file() for source in spec.kernel.sources)
    assert spec.objective is not None
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((8, 0)))
    least, most = (100, 10_000) if spec.kernel.language == "CUDA" else (2, 20_000)
    assert least <= space.size <= (most if spec.operator is None else 200_000)
    assert set(space.names) == set(spec.parameters)


def test_the_built_in_examples_are_there() -> None:
    operators = ["conv2d", "mm", "mv"]
    names = ["convolution", "copy", "dgemm", "dot", "gemm", "n_body", "reduction", "sgemm", "stencil", "transpose"]
    others = ["clblast_gemm", "matrix_product_c", "polynomial_generated", "smooth_fortran", "vector_add_opencl"]
    assert sorted(path.stem for path in EXAMPLES) == sorted([*operators, *names, *others, "vector_add"])
    languages = {spec.kernel.language for path in EXAMPLES if (spec := load_specification(path)).kernel is not None}
    assert languages == {"CUDA", "OpenCL", "C", "Fortran"}


# dim_m, dim_n, blk_m, blk_n, blk_k, blk_m_a, blk_n_a, blk_m_b, blk_n_b of Anzt et al. (2015), table II
PUBLISHED_DGEMM = """
16 16 64 96 16 64 4 16 16
32 16 128 128 16 32 16 8 64
16 16 128 128 8 64 4 8 32
16 16 128 128 8 32 8 4 64
16 16 64 256 8 32 8 4 64
16 16 128 128 2 128 2 2 128
16 16 64 128 4 64 4 2 128
48 16 48 96 16 48 16 8 96
64 16 64 64 16 64 16 16 64
16 48 96 48 16 48 16 16 48
64 16 64 64 48 64 16 16 64
32 16 64 64 24 64 8 8 64
16 16 64 80 16 32 8 16 16
16 16 80 80 16 16 16 16 16
"""


def test_the_dgemm_example_has_every_published_kernel_in_its_space_on_a_k20() -> None:
    spec = load_specification(resources() / "examples" / "dgemm.toml")
    kepler = limits_of((3, 5), multiprocessors=13)
    space = build_space(spec.parameters, spec.restrictions, spec.constants, kepler)
    published = [tuple(map(int, line.split())) for line in PUBLISHED_DGEMM.split("\n") if line]
    assert len(published) == 14
    valid = {tuple(space.configuration(row).values()) for row in range(space.size)}
    assert {(*shape, 0) for shape in published} <= valid
    assert space.cartesian > 10**12  # never enumerated
    assert space.size == len(valid) < 2000


def _changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[parameters\na = 1", "", "line 1"),
        ("[parameters]\na = [1, 2", "", "end of document"),
        ("[parametres]\na = [1]", "", "did you mean 'parameters'"),
        ("[parameters]", "parameters", "no parameters"),
        ("a = [1]", "", "unknown key 'a'"),
        ("parameters = 3", "parameters", "a table is needed"),
        ("[parameters]\na = []", "parameters.a", "at least one value"),
        ("[parameters]\na = [[1]]", "parameters.a", "number, text, true or false"),
        ("[parameters]\na = [1, inf]", "parameters.a", "finite"),
        ("[parameters]\na = 1979-05-27", "parameters.a", "number, text, true or false"),
        ("[parameters]\n'a b' = 1", "parameters", "not a name"),
        ("[parameters]\na = 'row'", "parameters.a", "unknown name 'row'"),
        ("[parameters]\na = 'range(1, b)'", "parameters.a", "unknown name 'b'"),
        ("[parameters]\na = 'open(1)'", "parameters.a", "the call of 'open'"),
        ("[parameters]\ntime_s = 1", "", "measured value"),
        (_changed("limit = 4", "tile = 4"), "", "'tile' is defined twice"),
        (_changed("tile <= limit", "tile <= limt"), "restrictions[1]", "did you mean 'limit'"),
        (_changed("tile <= limit", "__import__('os').system('touch x')"), "restrictions[1]", "a call of something"),
        (_changed("tile <= limit", "tile.real > 1"), "restrictions[1]", "'Attribute' is not allowed"),
        (_changed('"n // 2"', '"n // m"'), "kernel.problem_size", "unknown name 'm'"),
        (_changed('"block_size_x", "tile"', '"block_size_x", true'), "kernel.grid_divisors.x", "texts"),
        (_changed("y = [", "w = ["), "kernel.grid_divisors", "unknown key 'w'"),
        (_changed('"float32"', '"float31"'), "kernel.arguments[0].type", "one of float16"),
        (_changed('fill = "zeros"', 'fill = "noise"'), "kernel.arguments[0].fill", "one of zeros"),
        (_changed("output = true", 'output = "yes"'), "kernel.arguments[0].output", "true or false"),
        (_changed("value = 7", "value = 7, shape = [1]"), "kernel.arguments[1]", "both"),
        (_changed("a @ b", "open('x')"), "kernel.verify.reference", "not allowed"),
        (_changed("rtol = 1e-3", 'rtol = "small"'), "kernel.verify.rtol", "a number"),
        (_changed('name = "sgemm"', "name = 3"), "kernel.name", "text is needed"),
        (_changed("source = [", 'source = ["\\u0000.cu", '), "kernel.source", "without the null character"),
        (_changed('name = "sgemm"', 'name = "a\\u0000"'), "kernel.name", "without the null character"),
        (_changed("rtol = 1e-3", f"rtol = {10**400}"), "kernel.verify.rtol", "a number of at least 0"),
        (_changed("n = 4096", 'n = "\\u0000"'), "constants.n", "without the null character"),
        (_changed("[constants]", "[command]\nrun = 'x'\n[constants]"), "", "both a kernel and a command"),
        (_changed("{ points = 7 }", "{ points = 1 }"), "graphics_clock_mhz.points", "from 2"),
        (_changed("{ points = 7 }", '"fastest"'), "device_settings.graphics_clock_mhz", "supported"),
        (_changed("graphics_clock_mhz", "grafics_clock_mhz"), "device_settings", "did you mean 'graphics_clock_mhz'"),
        (_changed("[200, 300]", '"ridge"'), "device_settings.power_limit_w", "needed"),
        (_changed("[200, 300]", '[200, "own"]'), "device_settings.power_limit_w", 'positive numbers and "untouched"'),
        (_changed("[200, 300]", '["untouched", 0]'), "device_settings.power_limit_w", "positive"),
        (_changed("energy_j / time_s", "energy / time_s"), "metrics.watts", "did you mean 'energy_j'"),
        (_changed("energy_j / time_s", "later / time_s"), "metrics.watts", "earlier metrics"),
        (_changed("watts =", "time_s ="), "metrics", "name of something else"),
        (_changed('maximise = "GFLOPS/W"', 'maximise = "GFLOP/W"'), "objective.maximise", "did you mean"),
        (_changed("maximise", "maximize"), "objective", "did you mean 'maximise'"),
        (_changed('maximise = "GFLOPS/W"', 'maximise = "watts"\nminimise = "watts"'), "objective", "either"),
        (_changed(', "GFLOPS/W", "time_s", "max:watts"', ""), "objective.front", "two or more"),
        (_changed("max_evaluations = 500", "max_evaluations = 0"), "search.max_evaluations", "from 1"),
        (_changed("max_evaluations = 500", "max_evaluations = 2.5"), "search.max_evaluations", "whole number"),
        (_changed("max_seconds = 60", "max_seconds = nan"), "search.max_seconds", "at least"),
        (_changed("patience = 40", "patience = 0"), "search.patience", "from 1"),
        (_changed("seed = 3", "seed = true"), "search.seed", "whole number"),
        (_changed('{ order = "row" }', '{ ordre = "row" }'), "search.start[1]", "did you mean 'order'"),
        (_changed('{ order = "row" }', "3"), "search.start", "a list of tables"),
        (_changed('{ order = "row" }', "{ order = [1] }"), "search.start[1].order", "a finite number"),
        (_changed("[search]", "[serch]"), "", "did you mean 'search'"),
        ("[parameters]\na = " + "[" * 5000, "", "nested"),
        ("[parameters]\na = " + "9" * 5000, "", "not TOML"),
        ("[parameters]\na = " + "9" * 30, "parameters.a", "finite number"),
        (b"[parameters]\na = '\xff\xfe'", "", "UTF-8"),
        (b"\x00" * 100, "", "not TOML"),
        ("#" * (2 * 1024 * 1024), "", "MiB"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_key_and_remedy(
    tmp_path: Path, text: str | bytes, place: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    error = caught.value
    assert error.where.startswith(str(tmp_path / "spec.toml"))
    assert error.where.endswith(place)
    assert words in str(error)
    assert error.remedy
    assert "\n" not in str(error)
    assert len(str(error)) < 700


@pytest.mark.parametrize("listed", [["untouched", 1200], [1200, "untouched", 900.5], ["untouched"]])
def test_a_setting_may_list_the_level_untouched_and_its_document_is_read_again(
    tmp_path: Path, listed: list[object]
) -> None:
    document = {"parameters": {"n": [1, 2]}, "device_settings": {"graphics_clock_mhz": listed}}
    spec = specification_of(document, tmp_path / "spec.toml")
    assert spec.device_settings == {"graphics_clock_mhz": tuple(listed)}
    written = document_of(spec, tmp_path)
    assert list(written["device_settings"]["graphics_clock_mhz"]) == listed
    assert specification_of(tomllib.loads(text_of(written)), tmp_path / "spec.toml") == spec


def test_untouched_alone_needs_no_list(tmp_path: Path) -> None:
    spec = load(tmp_path, _changed("[200, 300]", '"untouched"'))
    assert spec.device_settings["power_limit_w"] == ("untouched",)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_specification(tmp_path / "absent.toml")
    with pytest.raises(InputError):
        load_specification(tmp_path)


def test_errors_found_while_building_the_space_name_the_file(tmp_path: Path) -> None:
    spec = load(tmp_path, "restrictions = ['a > 2']\n[parameters]\na = [1, 2]")
    with pytest.raises(InputError, match=r"spec.toml: restrictions\[0\]: no configuration is valid"):
        build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((8, 0)), where=str(spec.path))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_a_damaged_specification_is_read_or_refused_never_a_crash(tmp_path: Path, data: st.DataObject) -> None:
    text = bytearray(WHOLE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        kind = data.draw(st.sampled_from(["cut", "drop", "change", "repeat"]))
        if kind == "cut":
            del text[max(1, at) :]
        elif kind == "drop":
            del text[at : at + data.draw(st.integers(1, 20))]
        elif kind == "change":
            text[at] = data.draw(st.integers(0, 255))
        else:
            text[at:at] = text[at : at + 40]
        text = text or bytearray(b"#")
    with contextlib.suppress(InputError):
        spec = load(tmp_path, bytes(text))
        build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((8, 0)))
        evaluate_metrics(spec, {}, {"time_s": 1.0, "energy_j": 1.0})
