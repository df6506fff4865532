"""What a kernel's space consists of, and the values of its parameters that a shape has use for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..results.measurement import Value


@dataclass(frozen=True, slots=True)
class KernelSpace:
    """A kernel's parameters and launch, as expressions of a specification."""

    constants: dict[str, Value]
    parameters: dict[str, list[Value]]
    restrictions: list[str]
    problem_size: list[str]  # of the grid: blocks
    block: list[str]  # threads
    shared_memory: str  # bytes
    scratch: list[dict[str, Any]]  # arguments that hold what blocks leave for each other


def useful_extents(size: int, candidates: tuple[int, ...]) -> list[Value]:
    """The candidates that are not twice as large as they need be; the smallest in any case."""
    return [candidate for candidate in candidates if candidate == candidates[0] or candidate < 2 * size]
