"""The examples' kernels compute what they say, run on the CPU where there is no GPU: whole tiles and odd edges."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from fixtures.kernels_on_cpu import CUDA_EXAMPLES, EXAMPLES, Arrays, KernelOnCpu

from app.base.paths import resources
from app.engine.results.measurement import Value
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.engine.specification.model import Specification
from app.sensors.limits import limits_of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to build the kernels for the CPU with")
LIMITS = limits_of((8, 0), multiprocessors=3)


def convolved(given: Arrays) -> Arrays:
    image, taps = given["input"].astype(float), given["filter"].astype(float)[::-1, ::-1]
    windows = np.lib.stride_tricks.sliding_window_view(image, taps.shape)
    return {"output": np.einsum("ijkl,kl->ij", windows, taps)}


def heat_flow(given: Arrays) -> Arrays:
    grid = given["input"].astype(float)
    inner = grid[1:-1, 1:-1, 1:-1]
    flow = -6 * inner
    for axis in range(3):
        for side in (slice(None, -2), slice(2, None)):
            at = [slice(1, -1)] * 3
            at[axis] = side
            flow = flow + grid[tuple(at)]
    result = grid.copy()
    result[1:-1, 1:-1, 1:-1] += 0.1 * flow
    return {"output": result}


def gravity(given: Arrays) -> Arrays:
    place, mass = given["bodies"][:, :3].astype(float), given["bodies"][:, 3].astype(float)
    away = place[None, :, :] - place[:, None, :]
    squared = (away**2).sum(axis=2) + 0.05**2
    return {
        "acceleration": np.einsum("ij,ijk->ki", mass / squared**1.5, away),
        "potential": -(mass / np.sqrt(squared)).sum(axis=1),
    }


def some_configuration(spec: Specification, fixed: Mapping[str, Value]) -> dict[str, Value]:
    """A configuration of the space with those values, its block not too large to try here."""
    assert spec.kernel is not None
    restrictions = [*spec.restrictions, *(f"{parameter} == {value!r}" for parameter, value in fixed.items())]
    sizes = [name for name in spec.kernel.block_size_names if name in spec.parameters]
    restrictions.append(f"{' * '.join(sizes)} <= 256")
    space = build_space(spec.parameters, restrictions, spec.constants, LIMITS)
    return space.configuration(int(np.random.default_rng(3).integers(space.size)))


def cases() -> list[tuple[str, dict[str, Value], Callable[[Arrays], Arrays], dict[str, Value]]]:
    """(example, sizes, what it computes, the switches that are held)."""
    matrix: dict[str, Value] = {"n": 64}
    image: dict[str, Value] = {"image_width": 70, "image_height": 37, "filter_width": 5, "filter_height": 3}
    block: dict[str, Value] = {"width": 37, "height": 21, "depth": 11}
    product: Callable[[Arrays], Arrays] = lambda g: {"c": g["a"].astype(float) @ g["b"]}  # noqa: E731
    by_columns: Callable[[Arrays], Arrays] = lambda g: {"c": g["b"].astype(float) @ g["a"]}  # noqa: E731
    turned: Callable[[Arrays], Arrays] = lambda g: {"output": g["input"].T}  # noqa: E731
    added: Callable[[Arrays], Arrays] = lambda g: {"c": g["a"] + g["b"]}  # noqa: E731
    total: Callable[[Arrays], Arrays] = lambda g: {"total": g["values"].astype(float).sum(keepdims=True)}  # noqa: E731
    dotted: Callable[[Arrays], Arrays] = lambda g: {"result": np.array([g["a"].astype(float) @ g["b"]])}  # noqa: E731
    return [
        ("gemm", matrix, product, {"block_size_x": 16, "block_size_y": 4, "tile_size_x": 4, "tile_size_y": 2}),
        ("gemm", matrix, product, {"block_size_x": 32, "block_size_y": 8, "tile_size_x": 1, "tile_size_y": 4}),
        ("sgemm", {"n": 128}, by_columns, {"simd": 1, "blk_m": 64, "blk_k": 16}),
        ("sgemm", {"n": 60}, by_columns, {"simd": 0, "blk_m": 48}),
        ("dgemm", {"n": 96}, by_columns, {"simd": 0, "blk_m": 96, "blk_n": 96}),
        ("dgemm", {"n": 70}, by_columns, {"simd": 1}),
        ("convolution", image, convolved, {"use_shared_memory": 1, "use_padding": 1, "tile_size_x": 3}),
        ("convolution", image, convolved, {"use_shared_memory": 0, "tile_size_y": 2}),
        ("dot", {"n": 10_000}, dotted, {"vector_width": 2, "loop_unroll_factor": 4}),
        ("copy", {"n": 5004}, lambda g: {"b": g["a"]}, {"vector_width": 4, "items_per_thread": 16}),
        ("vector_add", {"n": 5004}, added, {"vector_width": 4, "grid_stride": 1}),
        ("vector_add", {"n": 5003}, added, {"vector_width": 1, "grid_stride": 0}),
        ("reduction", {"n": 20_004}, total, {"use_shuffle": 1, "vector_width": 4, "block_size_x": 128}),
        ("reduction", {"n": 20_001}, total, {"use_shuffle": 0, "vector_width": 1}),
        ("transpose", {"width": 100, "height": 70}, turned, {"use_shared_memory": 1, "use_padding": 1, "diagonal": 1}),
        ("transpose", {"width": 128, "height": 64}, turned, {"use_shared_memory": 0, "diagonal": 0}),
        ("stencil", block, heat_flow, {"use_shared_memory": 1, "keep_planes": 1, "tile_size_z": 4, "tile_size_y": 2}),
        ("stencil", block, heat_flow, {"use_shared_memory": 1, "keep_planes": 0, "tile_size_z": 16}),
        ("stencil", block, heat_flow, {"use_shared_memory": 0, "keep_planes": 1, "tile_size_z": 4, "tile_size_y": 4}),
        ("stencil", block, heat_flow, {"use_shared_memory": 0, "keep_planes": 0, "tile_size_z": 1}),
        ("n_body", {"n": 300}, gravity, {"use_shared_memory": 1, "use_rsqrt": 1, "vector_width": 4, "tile_size_x": 3}),
        ("n_body", {"n": 300}, gravity, {"use_shared_memory": 0, "use_rsqrt": 0, "vector_width": 1}),
    ]


def described(case: tuple[str, dict[str, Value], Callable[[Arrays], Arrays], dict[str, Value]]) -> str:
    return "-".join([case[0], *(f"{name}{value}" for name, value in case[3].items())])


def test_every_example_has_a_case() -> None:
    kernels = {path.stem for path in CUDA_EXAMPLES if EXAMPLES[path].operator is None}  # test_operators_compute
    assert {case[0] for case in cases()} == kernels


@pytest.mark.parametrize("case", cases(), ids=described)
def test_a_kernel_computes_what_its_reference_says(case: tuple, tmp_path: Path) -> None:  # type: ignore[type-arg]
    name, sizes, expected, fixed = case
    spec = load_specification(resources() / "examples" / f"{name}.toml")
    spec = dataclasses.replace(spec, constants={**spec.constants, **LIMITS.as_names(), **sizes})
    kernel = KernelOnCpu(spec, some_configuration(spec, fixed), tmp_path)
    given = filled(spec, kernel)
    wanted = expected(given)
    assert spec.kernel is not None
    assert spec.kernel.verify is not None
    reference = spec.kernel.verify.reference
    runs = [kernel.run(given), kernel.run(given), kernel.run(given, backwards=True)]  # a launch leaves nothing behind
    if reference.endswith("_reference"):
        runs.append(kernel.run(given, reference))
    # of the largest value: sums in another order differ by that much
    accuracy = 1e-11 if spec.constants.get("real") == "double" else 2e-5
    for outputs in runs:
        assert outputs.keys() == wanted.keys()
        for output, values in outputs.items():
            scale = np.abs(wanted[output]).max()
            np.testing.assert_allclose(values, wanted[output], rtol=accuracy, atol=accuracy * scale)


def filled(spec: Specification, kernel: KernelOnCpu) -> Arrays:
    assert spec.kernel is not None
    rng = np.random.default_rng(7)
    inputs = [argument for argument in spec.kernel.arguments if argument.shape and not argument.output]
    return {argument.name: rng.random(kernel.shape(argument)).astype(argument.type) for argument in inputs}
