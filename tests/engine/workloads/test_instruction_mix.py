"""Machine code is told apart by class, width and loop, and what the compiler granted is read from the image."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from elf_images import elf_image
from hypothesis import example, given
from hypothesis import strategies as st

from app.base.paths import resources
from app.engine.workloads.machine_code import (
    CLASSES,
    FEATURES,
    MEMORIES,
    Granted,
    LaunchShape,
    as_rows,
    code_features,
    granted,
    instruction_mix,
)

# Both words of instructions as nvdisasm 13.5 shows them of images for compute capability 8.0.
FFMA = (0x0000000808137223, 0x000FCA0000000013)
LDG_128 = (0x0000000408087981, 0x000EA8000C1E1D00)
LDS_64 = (0x0000000408087984, 0x000E280000000A00)
STG = (0x0000000408007986, 0x0003E8000C101904)
NOP = (0x0000000000007918, 0x000FC00000000000)
EXIT = (0x000000000000794D, 0x000FEA0003800000)


def branch(back: int, capability: float = 8.0) -> tuple[int, int]:
    """A branch over so many instructions back, itself counted, as the assembler encodes it."""
    offset = -16 * (back + 1) // 4
    if capability >= 9.0:
        low, rest = offset & 0xFF, (offset >> 8) & ((1 << 48) - 1)
        return 0x7947 | low << 16 | (rest & 0x3FFFFFFF) << 34, rest >> 30
    rest = offset & ((1 << 48) - 1)
    return 0x7947 | (rest & 0x3FFFFFFF) << 34, rest >> 30


def words(*code: tuple[int, int]) -> np.ndarray:
    return np.array(code, dtype=np.uint64).reshape(-1, 2)


def test_instructions_are_counted_by_class_and_their_bytes_by_memory() -> None:
    whole, innermost = instruction_mix(words(LDG_128, FFMA, FFMA, LDS_64, STG, EXIT, NOP, NOP), 8.0)
    assert (whole.counts["fp32_fma"], whole.counts["global_load"], whole.counts["other"]) == (2, 1, 1)
    assert whole.total == 6  # what fills the last line of code is none of it
    assert whole.byte["global_load"] == 16.0
    assert whole.byte["shared_load"] == 8.0
    assert whole.byte["global_store"] == 4.0
    assert whole.flop == 4.0
    assert innermost.total == 0


@pytest.mark.parametrize("capability", [7.5, 8.0, 9.0, 10.0])
def test_the_innermost_loop_is_told_from_what_is_around_it(capability: float) -> None:
    loop = (FFMA, LDS_64, FFMA, branch(3, capability))
    around = (LDG_128, *loop, branch(5, capability), EXIT, branch(0, capability))  # the last one waits for ever
    _, innermost = instruction_mix(words(*around), capability)
    assert innermost.counts["fp32_fma"] == 2
    assert innermost.counts["global_load"] == 0
    assert innermost.counts["branch"] == 1


@pytest.mark.parametrize(("capability", "size"), [(8.0, 6), (9.0, 6), (10.0, 4)])
def test_the_width_of_a_copy_to_shared_memory_is_that_of_its_board(capability: float, size: int) -> None:
    copy = (0x00000000050B7FAE, 0x0003E20008101000 & ~(7 << 9) | size << 9)
    whole, _ = instruction_mix(words(copy), capability)
    assert whole.byte["async_copy"] == 16.0


def test_no_instruction_is_of_two_classes() -> None:
    codes = [code for each in (*CLASSES.values(), *MEMORIES.values()) for code in each]
    assert len(set(codes)) == len(codes)


@given(st.binary(max_size=512).map(lambda data: data[: len(data) // 16 * 16]), st.sampled_from([7.0, 8.6, 9.0, 12.0]))
def test_any_bits_are_counted_without_an_error(data: bytes, capability: float) -> None:
    code = np.frombuffer(data, "<u8").reshape(-1, 2)
    whole, innermost = instruction_mix(code, capability)
    assert 0 <= innermost.total <= whole.total <= len(code)
    assert set(code_features(whole, innermost)) <= set(FEATURES)


def image_with_notes() -> bytes:
    """An image of two kernels with what the compiler notes of them."""
    texts = b"\0one\0two\0"
    symbols = b"".join(struct.pack("<IBBHQQ", name, 0, 0, 0, 0, 0) for name in (0, 1, 5))
    notes = struct.pack("<BBHII", 4, 0x2F, 8, 1, 40) + struct.pack("<BBHII", 4, 0x2F, 8, 2, 255)
    notes += struct.pack("<BBH", 3, 0x1B, 0xFF) + struct.pack("<BBHII", 4, 0x12, 8, 2, 96)
    return elf_image(
        {
            ".text.one": b"\0" * 16,
            ".text.two": b"\0" * 16,
            ".nv.shared.one": b"\0" * 2048,
            ".symtab": symbols,
            ".strtab": texts,
            ".nv.info": notes,
        }
    )


IMAGE = image_with_notes()


def test_registers_shared_memory_and_stack_are_read_from_the_image() -> None:
    assert granted(IMAGE) == {"one": Granted(40, 2048, 0), "two": Granted(255, 0, 96)}
    assert granted(b"PTX text") is None


@given(st.integers(0, len(IMAGE) - 1), st.binary(min_size=1, max_size=8))
@example(40, b"\xff" * 8)  # where the headers begin: more than a C integer holds
@example(len(IMAGE) - 40, b"\xff" * 8)  # where the last section begins
def test_a_damaged_image_grants_nothing_or_something_but_never_an_error(at: int, by: bytes) -> None:
    granted(IMAGE[:at] + by + IMAGE[at + len(by) :])


def test_a_launch_fills_waves_of_blocks() -> None:
    shape = LaunchShape(
        grid_blocks=100,
        block_threads=256,
        blocks_per_multiprocessor=4,
        multiprocessors=20,
        max_threads_per_multiprocessor=2048,
        registers_per_thread=64.0,
        shared_memory_byte=0.0,
        local_memory_byte=0.0,
    )
    found = shape.features()
    assert set(found) == {name for name, feature in FEATURES.items() if feature.simulated}
    assert (found["waves"], found["wave_share"], found["occupancy"]) == (2.0, 100 / 160, 0.5)
    assert found["grid_blocks_per_multiprocessor"] == 5.0
    assert found["busy_multiprocessors"] == 1.0


def test_features_in_rows_are_nan_where_unknown() -> None:
    rows = as_rows(("waves", "occupancy"), [{"waves": 2.0}, {}])
    assert rows.shape == (2, 2)
    assert rows[0, 0] == 2.0
    assert np.isnan(rows).sum() == 3
    assert as_rows(("waves",), []).shape == (0, 1)
    assert math.isnan(rows[1, 1])


def test_the_guide_has_every_feature_with_its_unit() -> None:
    guide = (resources() / "guide" / "strategies.md").read_text()
    for name, feature in FEATURES.items():
        part, _, rest = name.partition("_")
        if part not in ("code", "loop"):
            known = "yes" if feature.simulated else "no"
            assert f"| `{name}` | {feature.unit} | {feature.meaning} | {known} |" in guide
            continue
        ending = next((end for end in ("_byte", "_width") if rest.endswith(end)), "")
        bare = rest.removesuffix(ending)
        kind = "CLASS" if bare in (*CLASSES, "other") else "MEMORY" if bare in MEMORIES else rest
        shown = f"{kind}{ending}" if kind != rest else rest
        row = next(line for line in guide.splitlines() if f"`{part}_{shown}`" in line)
        assert f" | {feature.unit} | " in row
        assert kind == rest or f"`{bare}`" in guide
