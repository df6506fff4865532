"""Our Triton kernel: what Triton's interpreter computes with it, and what Triton's compiler makes of it without a GPU.

The interpreter multiplies FP16 alone: of BF16 it takes the bits for whole numbers.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine.runner.cuda import triton_maker
from app.engine.runner.cuda.triton_maker import triton_version
from app.engine.runner.kernels.compiler import LibraryMaker, NotCompiled
from app.engine.runner.kernels.made_image import facts_of
from app.engine.space.expression import parse
from app.engine.specification.operator_shapes import EPILOGUES, LAYOUTS, Operator, parse_operator
from app.engine.specification.triton_kernels import TRITON_KERNEL, triton_constants, triton_space, triton_starts
from app.engine.workloads.machine_code import granted
from app.sensors.limits import limits_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
INTERPRETED = Path(__file__).with_name("interpreted_triton.py")
FEW = 3  # multiprocessors: persistent programs take several tiles
SHAPE = {"block_m": 32, "block_n": 32, "block_k": 32, "stages": 2, "warps": 4, "group_m": 4}
TILE = {**SHAPE, "persistent": 0, "tma": 0, "split_k": 1, "swap": 0}


def case(notation: str, **chosen: int) -> dict[str, Any]:
    """What the interpreter is asked: the launch of a configuration, as the space describes it."""
    operator = parse_operator(notation)
    configuration = {**TILE, **chosen}
    space = triton_space(operator)
    scope = {**limits_of((9, 0), FEW).as_names(), **space.constants, **configuration}
    made = triton_constants(operator, configuration)
    return {
        "shape": operator.shape,
        "layout": operator.layout,
        "dtype": "float16",
        "bias": operator.has_bias,
        "constants": {**made["SIZES"], **made["TILE"]},
        "programs": int(parse(space.problem_size[0], "programs").evaluate(scope)),
        "workspace": int(space.constants["WORKSPACE"]),
        "arrived": int(space.scratch[1]["shape"][0]),
        "launches": 2 if configuration["split_k"] > 1 else 1,
    }


CASES = {
    "whole tiles": case("mm:1,64,64,64:fp16:nt"),
    "odd sizes": case("mm:2,33,65,47:fp16:nt"),
    "odd sizes, both across": case("mm:2,33,65,47:fp16:tt:bias+gelu"),
    "a across": case("mm:1,40,71,80:fp16:tn:bias+silu"),
    "row by row": case("mm:1,40,71,80:fp16:nn:gelu"),
    "a row": case("mm:1,1,70,100:fp16:nt:silu", block_m=16),
    "descriptors": case("mm:2,40,72,80:fp16:nt:bias", tma=1),
    "descriptors, both across": case("mm:1,40,72,80:fp16:tt", tma=1),
    "descriptors for c": case("mm:2,40,72,80:fp16:nn:bias+gelu", tma=2),
    "persistent": case("mm:3,40,71,80:fp16:nt:bias+silu", persistent=1),
    "two of a multiprocessor": case("mm:1,100,130,80:fp16:tn", persistent=2, group_m=1),
    "persistent, descriptors": case("mm:1,104,136,80:fp16:nt:gelu", persistent=1, tma=2),
    "shared": case("mm:1,5,100,300:fp16:nt:bias", block_m=16, split_k=3),
    "shared, of a batch": case("mm:2,5,104,304:fp16:nn:bias+silu", block_m=16, split_k=4, tma=1),
    "shared, columns as rows": case("mm:1,5,104,304:fp16:nt:bias", block_m=16, split_k=3, swap=1, tma=2),
    "columns as rows": case("mm:1,13,71,80:fp16:nt", block_m=16, block_n=64, swap=1),
}


@pytest.fixture(scope="module")
def interpreted() -> dict[str, tuple[float, int]]:
    """Of each case the largest difference, 1 where rounding is to blame, and what its counters hold afterwards."""
    answer = subprocess.run(
        [sys.executable, str(INTERPRETED), str(TRITON_KERNEL)],
        input=json.dumps(list(CASES.values())),
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    if "only 0-dimensional arrays can be converted" in answer.stderr:
        pytest.skip(f"the interpreter of Triton {triton_version()} does not work with this NumPy")
    assert answer.returncode == 0, answer.stderr[-2000:]
    return dict(zip(CASES, json.loads(answer.stdout), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_numpy(name: str, interpreted: dict[str, tuple[float, int]]) -> None:
    difference, left = interpreted[name]
    assert difference <= 1
    assert left == 0  # counters are ready for the next launch


# --- the compiler


@pytest.fixture(scope="module")
def maker() -> Iterator[LibraryMaker]:
    made = LibraryMaker(triton_maker.__name__, f"Triton {triton_version()}")
    yield made
    made.close()


def text(operator: Operator, **chosen: int) -> str:
    return json.dumps({"operator": operator.notation, **TILE, **chosen})


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_and_epilogue_compiles_for_boards_that_are_not_here(
    layout: str, architecture: int, maker: LibraryMaker
) -> None:
    for epilogue in EPILOGUES:
        operator = Operator("mm", (1, 64, 64, 64), "bf16", layout, epilogue)
        made = facts_of(maker.make(text(operator, block_m=64), [f"-arch=sm_{architecture}"]).image)
        assert made is not None
        facts, code = made
        assert (facts["maker"], facts["threads"]) == ("triton", 128)
        assert code[:4] == b"\x7fELF"
        assert facts["kernel"] in (granted(code) or {})
        assert 0 < facts["shared_byte"] <= 48 << 10


def test_descriptors_take_scratch_and_addresses_take_none(maker: LibraryMaker) -> None:
    operator = parse_operator("mm:1,512,512,512:bf16:nt")
    scratch = []
    for tma in (0, 1, 2):
        made = facts_of(maker.make(text(operator, block_m=64, block_n=64, tma=tma), ["-arch=sm_90"]).image)
        assert made is not None
        scratch.append(made[0]["scratch_byte"])
    assert scratch[0] == 0 < scratch[1] < scratch[2]


@pytest.mark.parametrize(
    ("capability", "notation"), [((9, 0), "mm:1,1024,1024,1024:bf16:nt"), ((8, 0), "mm:1,16,4096,4096:fp16:nt")]
)
def test_what_comes_first_takes_no_more_shared_memory_than_the_space_says(
    capability: tuple[int, int], notation: str, maker: LibraryMaker
) -> None:
    operator = parse_operator(notation)
    space = triton_space(operator)
    limits = limits_of(capability, 100)
    starts = [start for start in triton_starts(operator) if capability >= (9, 0) or not start["tma"]]
    for start in starts[:4]:
        given = json.dumps({"operator": notation, **start})
        made = facts_of(maker.make(given, [f"-arch=sm_{capability[0]}{capability[1]}"]).image)
        assert made is not None
        estimate = parse(space.shared_memory, "shared").evaluate({**limits.as_names(), **space.constants, **start})
        assert made[0]["shared_byte"] <= estimate


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "JSONDecodeError"),
        ('{"operator": "mm:1,2"}', "mm takes batch, M, N, K"),
        ('{"operator": "mm:1,64,64,64:bf16"}', "block_m"),
        (text(parse_operator("mm:1,64,64,64:bf16"), block_m=24), "power of 2"),
        (text(parse_operator("mm:1,64,64,64:bf16"), split_k=2, persistent=1), "persistent"),
    ],
)
def test_what_does_not_compile_says_why_and_the_process_stays(given: str, said: str, maker: LibraryMaker) -> None:
    with pytest.raises(NotCompiled, match=said):
        maker.make(given, ["-arch=sm_90"])
    assert maker.make(text(parse_operator("mm:1,64,64,64:fp16:nt")), ["-arch=sm_80"]).image


def test_nothing_stays_of_tritons_own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = LibraryMaker(triton_maker.__name__, "another process")
    try:
        assert own.make(text(parse_operator("mm:1,64,64,64:bf16:nt")), ["-arch=sm_90"]).image
    finally:
        own.close()
    assert not list(tmp_path.rglob("*"))
