"""Products of halves in Triton: which configurations there are, which come first, and the file to take home."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.engine.runner.kernels.compiler import Compiler
from app.engine.runner.kernels.made_image import LibraryImages
from app.engine.space.build import build_space
from app.engine.space.expression import parse
from app.engine.space.search_space import SearchSpace
from app.engine.specification.operator_shapes import LAYOUTS, parse_operator
from app.engine.specification.triton_kernels import TRITON_KERNEL, triton_script, triton_space, triton_starts
from app.engine.workloads import source_kernel
from app.sensors.limits import DeviceLimits, limits_of

HOPPER = limits_of((9, 0), 132)
AMPERE = limits_of((8, 0), 108)
SHAPES = (
    "mm:1,1,4096,4096:bf16:nt",
    "mm:1,16,4096,4096:bf16:nt",
    "mm:1,64,14336,4096:bf16:nt",
    "mm:1,4096,4096,4096:bf16:nt:bias+gelu",
    "mm:8,512,512,512:fp16",
    "mm:64,128,64,128:fp16:tt",
    "mm:1,130,511,257:fp16:tn:bias",
    "mm:1,8,8,8:fp16",
    "mm:1,1,1,1:bf16:tt:silu",
)


def space(text: str, limits: DeviceLimits) -> SearchSpace:
    made = triton_space(parse_operator(text))
    return build_space(made.parameters, made.restrictions, made.constants, limits)


def rows(table: SearchSpace) -> list[dict[str, Any]]:
    values = [(parameter.name, parameter.values) for parameter in table.parameters]
    return [{name: those[code] for (name, those), code in zip(values, row, strict=True)} for row in table.codes]


@pytest.mark.parametrize("limits", [HOPPER, AMPERE], ids=["9.0", "8.0"])
@pytest.mark.parametrize("text", SHAPES)
def test_every_shape_has_a_space_that_a_search_can_look_through(text: str, limits: DeviceLimits) -> None:
    assert 1 <= space(text, limits).size <= 10_000


@pytest.mark.parametrize("limits", [HOPPER, AMPERE], ids=["9.0", "8.0"])
@pytest.mark.parametrize("text", [text for text in SHAPES if ",8,8" not in text and ",1,1," not in text])
def test_a_search_begins_with_configurations_that_the_board_takes(text: str, limits: DeviceLimits) -> None:
    operator = parse_operator(text)
    taken = rows(space(text, limits))
    starts = triton_starts(operator)
    assert len(starts) == len({tuple(start.items()) for start in starts})
    assert sum(start in taken for start in starts) >= 2


def test_few_rows_are_cut_small_and_shared_along_k_and_many_rows_are_not() -> None:
    few = triton_starts(parse_operator("mm:1,16,4096,4096:bf16:nt"))
    assert {start["block_m"] for start in few} == {16}
    assert max(int(start["split_k"]) for start in few) > 1
    (first, *_) = triton_starts(parse_operator("mm:1,4096,4096,4096:bf16:nt"))
    assert (first["block_m"], first["block_n"], first["split_k"]) == (128, 256, 1)


def test_descriptors_need_a_board_that_has_them_and_rows_at_multiples_of_16_bytes() -> None:
    def most(text: str, limits: DeviceLimits) -> int:
        return max(row["tma"] for row in rows(space(text, limits)))

    assert most("mm:1,4096,4096,4096:bf16:nt", HOPPER) == 2
    assert most("mm:1,4096,4096,4096:bf16:nt", AMPERE) == 0
    assert most("mm:1,512,516,512:bf16:nt", HOPPER) == 1  # rows of c
    assert most("mm:1,512,516,512:bf16:nn", HOPPER) == 0  # of b, too
    assert most("mm:1,516,512,512:bf16:tn", HOPPER) == 0  # of a


def test_a_product_of_a_batch_is_never_left_to_descriptors_that_stay() -> None:
    table = rows(space("mm:8,2048,2048,512:fp16", HOPPER))
    assert any(row["persistent"] for row in table)
    assert any(row["tma"] for row in table)
    assert not any(row["persistent"] and row["tma"] for row in table)


def test_parts_of_a_tile_fit_into_what_they_are_left_in() -> None:
    text = "mm:1,16,4096,4096:bf16:nt"
    made = triton_space(parse_operator(text))
    for row in rows(space(text, HOPPER)):
        tiles = -(-16 // row["block_m"]) * -(-4096 // row["block_n"])
        assert tiles <= int(made.scratch[1]["shape"][0])
        parts = row["split_k"] * tiles * row["block_m"] * row["block_n"]
        assert row["split_k"] == 1 or parts <= int(made.constants["WORKSPACE"])


# --- the file


class _Anything(ModuleType):
    """Stands for a module of which names are used while functions are defined, none called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda function: function


def imported(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The file as a module, on a machine that has neither PyTorch nor Triton."""
    stand_ins = {name: _Anything(name) for name in ("torch", "triton", "triton.language")}
    stand_ins["triton"].language = stand_ins["triton.language"]
    for name, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    (folder / "taken_home.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "taken_home", raising=False)
    return importlib.import_module("taken_home")


@pytest.mark.parametrize("text", ["mm:1,16,4096,4096:bf16:nt", "mm:3,384,500,300:fp16:tn:bias+gelu"])
def test_the_file_launches_as_many_programs_as_the_space_says(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = parse_operator(text)
    (programs,) = triton_space(operator).problem_size
    table = rows(space(text, HOPPER))
    module = imported(triton_script(operator, table[0]), tmp_path, monkeypatch)
    for row in table[:: max(1, len(table) // 50)]:
        tile = {name: row[name] for name in module.TILE}
        wanted = parse(programs, "programs").evaluate({**HOPPER.as_names(), **row})
        assert module.grid(tile, module.SIZES, HOPPER.multiprocessors) == wanted


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_file_holds_all_that_it_uses(layout: str) -> None:
    operator = parse_operator(f"mm:1,512,512,512:bf16:{layout}:bias+silu")
    text = triton_script(operator, triton_starts(operator)[0])
    tree = ast.parse(text)
    assert ast.get_docstring(tree, clean=True)
    known = {"sys", "torch", "triton", "tl", "__name__", *dir(builtins)}
    known |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    known |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (known if isinstance(node.ctx, ast.Store) else used).add(node.id)
    assert used <= known
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imports == {"sys", "torch", "triton", "triton.language"}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


def test_the_file_says_which_operator_and_configuration_it_is() -> None:
    operator = parse_operator("mm:1,16,4096,4096:bf16:nt:bias")
    start = triton_starts(operator)[0]
    tree = ast.parse(triton_script(operator, start))
    said = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }
    assert said["SIZES"] | {"M": 16, "N": 4096, "K": 4096, "A_ACROSS": 0, "B_ACROSS": 1} == said["SIZES"]
    assert said["TILE"]["block_n"] == start["block_n"]
    assert said["OPTIONS"] == {"num_warps": start["warps"], "num_stages": start["stages"]}
    assert (said["TYPE"], said["HAS_BIAS"]) == ("bfloat16", True)
    assert operator.notation in (ast.get_docstring(tree) or "")


def test_another_text_of_the_kernel_is_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = parse_operator("mm:1,64,64,64:bf16:nt")
    text = TRITON_KERNEL.read_text(encoding="utf-8")
    keys = set()
    for place, content in enumerate((text, text, text + "# changed\n")):
        copy = tmp_path / "mm_triton.py"
        copy.write_text(content, encoding="utf-8")
        monkeypatch.setattr(source_kernel, "TRITON_KERNEL", copy)
        build = source_kernel.build_by_maker(operator, triton_starts(operator)[0])
        assert build is not None
        with closing(
            Compiler(LibraryImages(), others=lambda _: LibraryImages(), folder=tmp_path / str(place))
        ) as compiler:
            keys.add(compiler.key(build))
    assert len(keys) == 2
