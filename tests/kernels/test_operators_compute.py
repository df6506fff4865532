"""Configurations from all over the operators' spaces compute what NumPy does, run on the CPU where there is no GPU."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from fixtures.kernels_on_cpu import KernelOnCpu
from fixtures.operator_definitions import by_definition, operator_specification

from app.engine.space.build import build_space
from app.engine.specification.operator_shapes import parse_operator
from app.engine.workloads.kernel_arguments import make_array
from app.engine.workloads.source_kernel import SourceKernel
from app.sensors.limits import DeviceLimits, limits_of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to build the kernels for the CPU with")
HOPPER, VOLTA = limits_of((9, 0), 5), limits_of((7, 0), 3)
_ROUNDING = 2e-5  # of the largest value: sums in another order differ by that much


@pytest.mark.parametrize(
    ("text", "wanted", "limits"),
    [
        ("mm:1,96,160,200", "split_k == 1 and stream_k == 0 and copy_async == 1", HOPPER),
        ("mm:2,37,50,70", "split_k == 1 and stream_k == 0 and stages == 1", VOLTA),
        ("mm:2,64,64,192", "split_k == 3 and slices_k == 2", HOPPER),
        (
            "mm:1,70,64,96",
            "stages == 2 and slices_k == 2 and block_k == 8 and copy_async == 1",
            HOPPER,
        ),  # one group a step
        ("mm:1,64,70,40", "stages == 4 and block_k == 32 and split_k == 1 and stream_k == 0", HOPPER),  # few steps
        ("mm:3,65,33,131", "stream_k == 2 and slices_k == 4", HOPPER),
        ("mm:1,33,36,129", "stream_k == 1 and stages == 2", VOLTA),
        ("mv:2,1,37,264", "lanes_k == 64 and split_k == 1 and x_shared == 1", HOPPER),
        ("mv:1,1,70,1030", "split_k == 2 and rows_at_once == 4 and lanes_k == 8", HOPPER),
        ("mv:3,1,33,131", "lanes_k == 32 and loads_ahead >= 2", VOLTA),
        ("conv2d:2,7,7,8,12,3,1,1", "stages == 3", HOPPER),
        ("conv2d:1,9,8,14,5,3,2,1", "split_k == 2", HOPPER),
        ("conv2d:2,6,5,16,32,1,1,0", "stages == 2 and copy_async == 0", HOPPER),
        ("conv2d:1,9,11,3,10,5,2,2", "stages == 1", VOLTA),
        ("conv2d:1,5,5,6,8,2,1,0", "block_k == 8", VOLTA),  # channels divide by two, the depth by four
        ("mv:2,1,37,264:fp16", "vector_width == 8 and x_shared == 1 and split_k == 1", HOPPER),
        ("mv:1,1,33,1030:fp16", "split_k == 2 and rows_at_once == 4", HOPPER),
        ("mv:1,1,33,135:fp16", "vector_width == 1 and x_shared == 1", VOLTA),
        ("mv:2,1,37,264:bf16", "lanes_k == 64 and rows_at_once == 2", HOPPER),
    ],
)
def test_a_configuration_computes_what_the_operator_is(
    text: str, wanted: str, limits: DeviceLimits, tmp_path: Path
) -> None:
    spec = operator_specification(text)
    space = build_space(spec.parameters, [*spec.restrictions, wanted], spec.constants, limits)
    configuration = space.configuration(int(np.random.default_rng(len(text)).integers(space.size)))
    prepared = SourceKernel.of(spec, limits, 232448).prepare(configuration)
    constants = {**spec.constants, **limits.as_names()}
    kernel = KernelOnCpu(dataclasses.replace(spec, constants=constants), configuration, tmp_path)
    assert (kernel.grid(), kernel.block()) == (prepared.launch.grid, prepared.launch.block)
    given = {a.name: make_array(a, place) for place, a in enumerate(prepared.calls.arguments)}
    right = by_definition(parse_operator(text), given)
    for outputs in (kernel.run(given), kernel.run(given, backwards=True, launches=2)):  # what a launch leaves is used
        [(_, found)] = outputs.items()
        np.testing.assert_allclose(found, right, rtol=_ROUNDING, atol=_ROUNDING * np.abs(right).max())


def test_a_tile_that_blocks_share_is_the_same_whoever_comes_last_and_whatever_was_left(tmp_path: Path) -> None:
    spec = operator_specification("mm:1,64,64,256")
    wanted = ["split_k == 4", "block_m == 32", "block_n == 32", "stages == 3"]
    space = build_space(spec.parameters, [*spec.restrictions, *wanted], spec.constants, HOPPER)
    configuration = space.configuration(0)
    prepared = SourceKernel.of(spec, HOPPER, 232448).prepare(configuration)
    constants = {**spec.constants, **HOPPER.as_names()}
    kernel = KernelOnCpu(dataclasses.replace(spec, constants=constants), configuration, tmp_path)
    given = {a.name: make_array(a, place) for place, a in enumerate(prepared.calls.arguments)}
    first, again = kernel.run(given)["c"], kernel.run(given, backwards=True)["c"]
    given["workspace"] = np.full_like(given["workspace"], 7.0)
    dirty = kernel.run(given)["c"]
    assert np.array_equal(first, again)
    assert np.array_equal(first, dirty)
