"""What is known of a kernel without running it: from its image on a real board, by its formulas on a simulated one."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from elf_images import code, elf_image

from app.base.paths import resources
from app.engine.runner.cuda.language import image_features
from app.engine.runner.kernels.process import KernelFailed
from app.engine.session.load import load_specification
from app.engine.session.planning import space_of
from app.engine.workloads.kernel_arguments import Argument, CallPlan, Launch
from app.engine.workloads.machine_code import FEATURES
from app.engine.workloads.profiled import ProfiledKernel
from app.engine.workloads.source_kernel import Build, Prepared
from app.sensors.limits import limits_of
from app.sensors.simulated.twin import load_twin


def image(registers: int, shared_byte: int) -> bytes:
    notes = struct.pack("<BBHII", 4, 0x2F, 8, 1, registers)
    return elf_image(
        {
            ".text.product": code("LDG", "FFMA", "FFMA", "FFMA"),
            ".text.other": code("DFMA"),
            ".nv.shared.product": bytes(shared_byte),
            ".symtab": b"".join(struct.pack("<IBBHQQ", name, 0, 0, 0, 0, 0) for name in (0, 1)),
            ".strtab": b"\0product\0",
            ".nv.info": notes,
        }
    )


def prepared(blocks: int, threads: int, dynamic_byte: int = 0) -> Prepared:
    array = Argument("a", "float32", (1000, 10), "random", None, False, False, 0)
    scalar = replace(array, name="n", shape=None, value=3)
    launch = Launch("product", (blocks, 1, 1), (threads, 1, 1), dynamic_byte)
    return Prepared(Build("", (), (), ()), launch, None, CallPlan((array, scalar), (), {}), {})


def test_an_image_and_a_launch_tell_registers_waves_and_instructions() -> None:
    found = image_features(image(64, 4096), prepared(blocks=1000, threads=256), limits_of((8, 0)))
    assert found["registers_per_thread"] == 64
    assert found["shared_memory_byte"] == 4096
    assert found["blocks_per_multiprocessor"] == 4  # 65536 registers / (64 x 256)
    assert found["occupancy"] == 0.5
    assert found["waves"] == math.ceil(1000 / (4 * 108))
    assert found["argument_byte"] == 40_000
    assert (found["code_fp32_fma"], found["code_global_load"], found["code_fp64"]) == (3, 1, 0)
    assert found["code_flop_per_global_byte"] == 6  # the loads of these images are of one byte
    assert set(found) <= set(FEATURES)


def test_the_shared_memory_that_the_system_takes_is_not_the_kernels() -> None:
    hopper = limits_of((9, 0))
    found = image_features(image(32, 4096 + 1024), prepared(10, 128, dynamic_byte=512), hopper)
    assert found["shared_memory_byte"] == 4096 + 512
    assert image_features(image(32, 0), prepared(10, 128), hopper)["shared_memory_byte"] == 0


def test_what_an_image_does_not_tell_is_left_out() -> None:
    bare = elf_image({".text.product": code("FFMA")})
    assert "registers_per_thread" not in image_features(bare, prepared(10, 128), limits_of((8, 0)))
    with pytest.raises(KernelFailed):
        image_features(elf_image({".text.else": code("FFMA")}), prepared(10, 128), limits_of((8, 0)))


@pytest.mark.parametrize("example", ["gemm", "convolution", "stencil", "transpose", "reduction", "n_body", "dot"])
def test_a_simulated_board_tells_what_a_compiler_would_and_nothing_of_its_costs(example: str) -> None:
    spec = load_specification(resources() / "examples" / f"{example}.toml")
    twin = load_twin("a100")
    kernel, space = ProfiledKernel.of(spec, twin.limits), space_of(replace(spec, device_settings={}))
    for row in np.linspace(0, space.size - 1, 5).astype(int).tolist():
        found = kernel.features(space.configuration(row))
        assert not found or set(found) == {name for name, feature in FEATURES.items() if feature.simulated}
        if found:
            assert 0 < found["occupancy"] <= 1
            assert found["block_threads"] * found["blocks_per_multiprocessor"] <= 2048


def test_a_configuration_that_is_refused_has_no_features() -> None:
    spec = load_specification(resources() / "examples" / "gemm.toml")
    kernel = ProfiledKernel.of(spec, load_twin("a100").limits)
    refused = {"block_size_x": 64, "block_size_y": 64, "tile_size_x": 1, "tile_size_y": 1}
    assert kernel.features(refused) == {}
