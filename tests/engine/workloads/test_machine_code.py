"""Instructions are counted in the machine code of an image, and too few of them are told."""

from __future__ import annotations

import pytest
from elf_images import code, elf_image
from hypothesis import given
from hypothesis import strategies as st

from app.engine.workloads.machine_code import instructions, shortfall

IMAGE = elf_image(
    {
        ".text.one": code("LDG", "FFMA", "FFMA", "BRA"),
        ".nv.info": code("FFMA"),
        ".text.two": code("DFMA", "HMMA", "HMMA", "HMMA", "FFMA"),
    }
)


def test_the_code_of_every_kernel_counts_and_nothing_else() -> None:
    assert instructions(IMAGE) == {"FFMA": 3, "DFMA": 1, "HMMA": 3}


def test_too_few_are_told_with_how_many_there_are() -> None:
    assert shortfall(IMAGE, {"FFMA": 3, "DFMA": 1}) == ""
    assert shortfall(IMAGE, {}) == ""
    told = shortfall(IMAGE, {"FFMA": 4, "DFMA": 2, "HMMA": 1})
    assert "3 FFMA, at least 4; 1 DFMA, at least 2" in told
    assert "HMMA" not in told


@pytest.mark.parametrize("image", [b"", b"PTX text", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(58), IMAGE[:-40]])
def test_what_cannot_be_looked_into_is_not_held_against_a_kernel(image: bytes) -> None:
    assert instructions(image) is None
    assert shortfall(image, {"FFMA": 1}) == ""


@given(st.integers(0, len(IMAGE) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_image_is_counted_or_not_but_never_an_error(at: int, by: bytes) -> None:
    told = instructions(IMAGE[:at] + by + IMAGE[at + len(by) :])
    assert told is None or set(told) == {"FFMA", "DFMA", "HMMA"}
