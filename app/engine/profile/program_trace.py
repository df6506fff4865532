"""`ProgramTrace`: what a program ran on one board and when, with the ranges that the program named.

Slices are what the board did: launches of kernels, copies and sets. Ranges are what the host names: `record_function`
of PyTorch, its steps and optimizers, and NVTX. Each slice belongs to the innermost range in which it was launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Times = npt.NDArray[np.int64]

KINDS: Final = ("kernel", "copy", "set")
KERNEL, COPY, SET = range(3)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """The operator of a framework that launched something, as far as the trace names it."""

    name: str  # 'aten::mm'
    dims: tuple[tuple[int, ...], ...] = ()  # of each input; () of one that is no tensor, and where none was recorded
    types: tuple[str, ...] = ()  # of each input: 'c10::BFloat16'
    inputs: tuple[str, ...] = ()  # the values of those that are no tensors, as text: '[1, 1]'
    backend: str = ""  # what compiled its kernel, where that is said: 'triton'


@dataclass(frozen=True, slots=True)
class ProgramTrace:
    """What ran on one board. Slices ascend by start; -1 stands for none in `operator`, `instance`, `range_parent`."""

    title: str
    device: int
    boards: Mapping[int, str]  # the names of the devices, by number; those that are not named are missing
    on_wall: bool  # times are since 1970
    names: tuple[str, ...]  # of what ran, in full
    operators: tuple[OperatorCall, ...]
    paths: tuple[tuple[str, ...], ...]  # of ranges: the names from the outermost range inward

    kind: npt.NDArray[np.uint8]  # of each slice: place in KINDS
    name: Ints  # place in `names`
    operator: Ints  # place in `operators`
    stream: Ints
    start_ns: Times
    duration_ns: Times
    moved_bytes: Times  # of copies and sets
    instance: Ints  # the range in which the slice was launched

    range_path: Ints  # of each range, on the host: place in `paths`
    range_parent: Ints
    range_start_ns: Times
    range_duration_ns: Times

    notes: tuple[str, ...] = ()  # what the user should know of the file

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def board(self) -> str:
        """The name of the board; '' if the trace does not say."""
        return self.boards.get(self.device, "")

    @property
    def span_ns(self) -> tuple[int, int]:
        """From the start of the first slice to the end of the last."""
        return int(self.start_ns[0]), int((self.start_ns + self.duration_ns).max())
