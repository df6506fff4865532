"""A kind and a shape become an ordinary specification: space, kernel, metrics and goals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.operator_definitions import operator_specification

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.runner.kernels.reference import Baseline
from app.engine.session.describe_session import describe_search
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification, space_of
from app.engine.space.array_expressions import evaluate_array
from app.engine.space.result_table import ResultTable
from app.engine.specification.document import document_of
from app.engine.specification.model import Specification
from app.engine.specification.operator_kernels import kept_specification
from app.engine.specification.operator_shapes import EPILOGUES, EXAMPLES, LAYOUTS, Operator, parse_operator
from app.engine.specification.plan import SessionPlan
from app.engine.strategies import base
from app.engine.strategies.base import Background
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.select import open_gpu
from app.sensors.simulated import laws
from app.sensors.simulated.gpu import SimulatedGpu


def test_the_shapes_of_the_literature_are_counted_as_it_counts_them() -> None:
    assert EXAMPLES["MM1"].work_flop == 2 * 512**3
    assert EXAMPLES["MV1"].least_byte == pytest.approx(4 * 49512 * 12288, rel=1e-3)
    conv = EXAMPLES["CONV1"]
    assert conv.product == (1, 8 * 7 * 7, 512, 9 * 512)
    assert conv.numbers == (8 * 7 * 7 * 512, 8 * 7 * 7 * 512, 9 * 512 * 512)
    assert EXAMPLES["CONV3"].least_byte == 4 * (2 * 64 * 56 * 56 * 64 + 64 * 64)


def test_halves_are_two_bytes_and_only_products_of_matrices_run_on_tensor_cores() -> None:
    assert parse_operator("mv:8,1,4096,1024:fp16").least_byte == 8 * (2 * (4096 * 1024 + 1024) + 4 * 4096)
    kinds = {"mm:1,64,64,64": "_tensor", "mv:1,1,64,64": ""}
    for text, unit in kinds.items():
        assert parse_operator(text).arithmetic == "fp32"
        for precision in ("fp16", "bf16"):
            found = parse_operator(f"{text}:{precision}")
            assert parse_operator(found.notation) == found
            assert found.arithmetic == (f"{precision}{unit}" if unit else "fp32")
    with pytest.raises(InputError, match="a kernel of 1 x 1 is mm in halves"):
        parse_operator("conv2d:8,7,7,64,64,3,1,1:fp16")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_the_notation_and_a_specification_say_layout_and_epilogue(layout: str, epilogue: str) -> None:
    operator = Operator("mm", (2, 16, 40, 24), "bf16", layout, epilogue)
    assert parse_operator(operator.notation) == operator
    spec = load_specification(kept_specification(operator))
    assert spec.operator == operator
    assert document_of(spec, spec.path.parent)["operator"]["layout"] == layout
    assert document_of(spec, spec.path.parent)["operator"]["epilogue"] == epilogue
    words = operator.notation.split(":")
    assert parse_operator(":".join([*words[:2], *reversed(words[2:])])) == operator, "in any order"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_what_a_product_is_verified_with_is_its_definition(layout: str, epilogue: str) -> None:
    """Layout and epilogue by loops over the formula that PyTorch states for each."""
    spec = operator_specification("mm:2,3,5,4:fp16", operator={"layout": layout, "epilogue": epilogue})
    assert spec.operator is not None
    assert spec.kernel is not None
    assert spec.kernel.verify is not None
    rng = np.random.default_rng(2)
    shapes = {"a": (2, 4, 3) if layout[0] == "t" else (2, 3, 4), "b": (2, 5, 4) if layout[1] == "t" else (2, 4, 5)}
    listed = {argument.name: argument for argument in spec.kernel.arguments}
    given = {name: rng.normal(size=shape) for name, shape in shapes.items()} | {"bias": rng.normal(size=5)}
    assert ("bias" in listed) == epilogue.startswith("bias")
    reference = spec.kernel.verify.reference
    assert reference is not None
    found = evaluate_array(reference, "verify", {name: each for name, each in given.items() if name in listed})
    for b, m, n in np.ndindex(2, 3, 5):
        a_row = given["a"][b, :, m] if layout[0] == "t" else given["a"][b, m]
        b_column = given["b"][b, n] if layout[1] == "t" else given["b"][b, :, n]
        x = float(a_row @ b_column) + (given["bias"][n] if "bias" in listed else 0.0)
        if epilogue.endswith("gelu"):
            x = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        if epilogue.endswith("silu"):
            x = x / (1 + math.exp(-x))
        assert found[b, m, n] == pytest.approx(x, rel=1e-6, abs=1e-9)


def test_a_notation_names_the_operator_that_it_was_made_of() -> None:
    for name, operator in EXAMPLES.items():
        assert parse_operator(operator.notation) == operator == parse_operator(name.lower())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mm:1,2,3", "mm takes batch, M, N, K"),
        ("mm:1,2,3,0", "K is 0"),
        ("mm:1,2,3,x", "no shape"),
        ("fft:1,2", "one of mm, mv, conv2d"),
        ("mv:1,2,3,4", "mm:1,2,3,4"),
        ("mm:1,2,3,4:fp12", "fp12"),
        ("conv2d:1,3,3,4,4,5,1,0", "larger than the padded image"),
        ("conv2d:1,3,3,4,4,3,0,0", "stride is 0"),
        ("mm:1,16777216,16777216,1", "smaller"),
        ("mm", "no operator"),
        ("mm:1,64,64,64:nt", "no layout or epilogue"),
        ("mm:1,64,64,64:gelu", "no layout or epilogue"),
        ("mv:1,1,64,64:bf16:nt", "no layout or epilogue"),
        ("mv:1,1,64,64:fp16:bias", "no layout or epilogue"),
        ("conv2d:8,7,7,64,64,3,1,1:bf16", "no conv2d in bf16"),
        ("mm:1,64,64,64:bf16:xt", "neither a layout nor an epilogue"),
        ("mm:1,64,64,64:bf16:nt:tn", "neither a layout nor an epilogue"),
    ],
)
def test_an_operator_that_makes_no_sense_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_operator(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


HALVES = (
    "mm:1,1024,1024,1024:bf16",
    "mm:1,16,4096,4096:fp16:nt:silu",
    "mv:8,1,4096,1024:fp16",
    "mv:1,1,999,4100:bf16",
)


@pytest.mark.parametrize(
    ("name", "board"),
    [*((name, board) for name in EXAMPLES for board in ("h200", "k20x")), *((t, "h200") for t in HALVES)],
)
def test_a_simulated_board_costs_every_configuration_and_none_beats_its_roofs(name: str, board: str) -> None:
    gpu = open_gpu(f"simulated:{board}", speed=float("inf"))
    assert isinstance(gpu, SimulatedGpu)
    operator = parse_operator(name)
    spec = operator_specification(operator.notation)
    space, kernel = space_of(spec, gpu), ProfiledKernel.of(spec, gpu.limits)
    memory, top = gpu.twin.clocks.memory_mhz[-1], gpu.twin.clocks.graphics_mhz[-1]
    unit = "fp16_tensor" if operator.arithmetic.endswith("tensor") else "fp32"
    peak, bandwidth = gpu.twin.rate.flop_per_clock[unit] * top * 1e6, gpu.twin.rate.bandwidth_gb_s * 1e9
    for row in np.random.default_rng(1).choice(space.size, 60, replace=False):
        load = kernel.prepare(space.configuration(int(row)))
        assert load.work_flop == operator.work_flop
        assert load.traffic_byte >= operator.least_byte
        seconds = laws.launch_time_s(gpu.twin, load, top, memory)[0]
        assert max(operator.work_flop / peak, operator.least_byte / bandwidth) < seconds < 1.0


@pytest.mark.parametrize("board", ["h200", "a100", "v100", "k20x"])
def test_the_space_fits_the_board(board: str) -> None:
    with_board = open_gpu(f"simulated:{board}", speed=float("inf"))
    limits, space = with_board.limits, space_of(operator_specification("mm:1,512,512,512"), with_board)  # type: ignore[attr-defined]
    assert space.size > 1000
    for row in range(0, space.size, space.size // 200):
        c = {name: int(value) for name, value in space.configuration(row).items()}
        threads = c["slices_k"] * c["block_m"] * c["block_n"] // (c["thread_m"] * c["thread_n"])
        shared = 4 * c["stages"] * (c["block_m"] * (c["block_k"] + 4) + c["block_k"] * c["block_n"])
        assert threads <= limits.max_threads_per_block
        assert shared <= limits.shared_memory_per_multiprocessor
        assert not c["copy_async"] or limits.compute_capability >= 8.0


def test_what_a_specification_says_itself_goes_before_what_follows_from_the_operator() -> None:
    spec = operator_specification(
        "mm:1,64,64,64",
        parameters={"block_m": [32], "split_k": [1]},
        restrictions=["stages == 2"],
        metrics={"uJ": "energy_j * 1e6"},
        objective={"minimise": "time_s"},
        search={"seed": 7},
    )
    assert (spec.parameters["block_m"], spec.seed, spec.strategy) == ((32,), 7, "auto")
    assert spec.objective is not None
    assert spec.objective.goal.name == "time_s"
    assert {"uJ", "GFLOP/s"} <= spec.metrics.keys()
    assert spec.operator == Operator("mm", (1, 64, 64, 64))
    space = space_of(spec)
    assert {space.configuration(row)["stages"] for row in range(space.size)} == {2}


def test_the_library_stands_in_a_sessions_description_beside_the_best_and_says_what_it_is() -> None:
    gpu = open_gpu("simulated:h200", speed=float("inf"))
    plan = plan_specification(load_specification(resources() / "examples" / "mm.toml"), gpu)
    known = Baseline("cuBLAS 13.0.1", {"time_s": 1.24e-5, "energy_j": 5.6e-3})
    missing = Baseline(why_not="cuBLAS was not found: pip install nvidia-cublas")
    shown = {}
    for baseline in (known, missing):
        described = describe_search(
            replace(plan, origin={**plan.origin, **baseline.to_origin()}), ResultTable(plan.space)
        )
        [shown[baseline.library]] = [figure for figure in described.figures if figure.label == "Vendor library"]
    assert shown["cuBLAS 13.0.1"].value == "cuBLAS 13.0.1: 0.0124 ms, 0.0056 J"
    assert "a model" in shown["cuBLAS 13.0.1"].note, "the board is simulated"
    assert (shown[""].value, shown[""].unknown) == (None, missing.why_not)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kernel": {"name": "k"}}, "both an operator and a kernel"),
        ({"command": {"run": "x"}}, "both an operator and a command"),
        ({"parameters": {"block_q": [1]}}, "no parameter 'block_q'"),
        ({"constants": {"M": 3}}, "follows from the operator's shape"),
    ],
)
def test_what_contradicts_the_operator_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        operator_specification("mm:1,64,64,64", **more)


def planned(spec: Specification, folder: Path) -> SessionPlan:
    path = folder / "operator.toml"
    path.touch()
    return plan_specification(replace(spec, path=path), open_gpu("simulated:h200"))


@pytest.mark.parametrize("text", ["MM1", "MM4", "CONV3", "mm:1,4096,4096,4096:fp16"])
def test_a_search_begins_with_tiles_as_hand_written_kernels_cut_them(text: str, tmp_path: Path) -> None:
    plan = planned(operator_specification(text), tmp_path)
    assert len(plan.suggestions) >= 10
    suggested = [plan.space.configuration(row) for row in plan.suggestions]
    makers = {"wattridge"} if ":" not in text else {"triton", "cublaslt"}
    assert {each["maker"] for each in suggested} == makers
    assert all(each.get("copy_async", 1) == 1 for each in suggested)
    for strategy in ("energy_aware", "auto"):
        asked, alike = (
            next(chosen.search(plan.space, np.random.default_rng(1), 16, base.make_options(chosen, {})))
            for chosen in (base.get(strategy).informed(Background(starts=starts)) for starts in (plan.suggestions, ()))
        )
        assert set(plan.suggestions[:5]) <= set(asked), f"{strategy} begins with them"
        assert len(set(asked)) == len(asked) >= 2 * len(set(asked) & set(plan.suggestions)), "most are drawn at random"
        assert len(asked) == len(alike), "they cost nothing more"


def test_own_starts_take_the_place_of_the_operators_and_what_is_not_valid_is_left_out(tmp_path: Path) -> None:
    best = {"block_m": 64, "block_n": 64, "stages": 2}
    own = [best, {"block_m": 64, "block_n": 48}, {"block_m": 16, "min_blocks": 4}]
    plan = planned(operator_specification("MM1", search={"start": own}), tmp_path)
    row, *others, library = plan.starts
    assert plan.space.configuration(row).items() >= best.items()
    assert all(plan.space.configuration(other)["block_m"] == 16 for other in others)
    assert plan.space.configuration(library)["maker"] == "library", "it is a start of every session"
    assert not plan.suggestions
    clocks = {"graphics_clock_mhz": [1000, 1980]}
    plan = planned(operator_specification("MM1", search={"start": own[:1]}, device_settings=clocks), tmp_path)
    for row in plan.starts:
        assert plan.space.configuration(row)["graphics_clock_mhz"] == "untouched", "of what is left open the last"


def test_a_start_that_names_no_maker_is_no_row_of_another(tmp_path: Path) -> None:
    """cuBLASLt has tiles that Triton's space leaves out for this shape; who means them names the maker."""
    product, tile = "mm:1,16,4096,4096:bf16:nt", {"block_m": 16, "block_n": 64}
    both = [tile, {"maker": "cublaslt", **tile}]
    plan = planned(operator_specification(product, search={"start": both}), tmp_path)
    makers = [plan.space.configuration(row)["maker"] for row in plan.starts]
    assert makers == ["triton", "cublaslt", "library"]
    only_theirs = {"block_n": 64, "block_k": 64, "warps": 0}
    plan = planned(operator_specification(product, search={"start": [only_theirs]}), tmp_path)
    assert [plan.space.configuration(row)["maker"] for row in plan.starts] == ["library"]
    assert any("a start is left out" in note for note in plan.space.notes)


def test_a_specification_of_an_operator_does_not_list_what_the_operator_begins_with(tmp_path: Path) -> None:
    assert "start" not in document_of(operator_specification("MM1"), tmp_path)["search"]
    own = [{"block_m": 64}]
    assert document_of(operator_specification("MM1", search={"start": own}), tmp_path)["search"]["start"] == own
