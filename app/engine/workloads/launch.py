"""`Launch`: how a kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel of an image, and how it is launched."""

    name: str  # as the image has it
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_byte: int = 0  # dynamic
