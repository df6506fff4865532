"""What is known of a kernel without running it: its launch, what its compiler granted, and its machine code.

`FEATURES` says what each is, in which unit, and is the table of the user guide. Of a kernel on a real board all are
known once it is compiled and loaded; of one on a simulated board what a compiler would report of it, never what the
board is made to do. Unknown ones are NaN. Tiles, unrolling and vector widths are parameters of the configuration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .instruction_mix import CLASSES, MEMORIES, OTHER, InstructionMix

_WIDTHS: Final = ("global_load", "global_store", "shared_load", "shared_store", "async_copy")


@dataclass(frozen=True, slots=True)
class Feature:
    """One of them."""

    unit: str
    meaning: str
    simulated: bool = False  # known of a kernel on a simulated board too


def _of_code() -> dict[str, Feature]:
    found: dict[str, Feature] = {}
    for part, where in (("code", "the kernel's code"), ("loop", "its innermost loops")):
        for name in (*CLASSES, *MEMORIES, OTHER):
            found[f"{part}_{name}"] = Feature("instructions", f"{name.replace('_', ' ')} instructions in {where}")
        for name in MEMORIES:
            what = f"moved by the {name.replace('_', ' ')} instructions in {where}, each run once"
            found[f"{part}_{name}_byte"] = Feature("byte/thread", what)
        for name in _WIDTHS:
            found[f"{part}_{name}_width"] = Feature("byte", f"width of a mean {name.replace('_', ' ')} in {where}")
        found[f"{part}_flop_per_global_byte"] = Feature("flop/byte", f"arithmetic over device memory in {where}")
        found[f"{part}_flop_per_shared_byte"] = Feature("flop/byte", f"arithmetic over shared memory in {where}")
    return found


FEATURES: Final[Mapping[str, Feature]] = {
    "grid_blocks": Feature("blocks", "of the launch", simulated=True),
    "block_threads": Feature("threads", "of a block", simulated=True),
    "registers_per_thread": Feature("registers", "granted by the compiler", simulated=True),
    "shared_memory_byte": Feature("byte/block", "of shared memory, static and dynamic", simulated=True),
    "local_memory_byte": Feature("byte/thread", "of spills, and arrays that do not fit into registers", simulated=True),
    "blocks_per_multiprocessor": Feature("blocks", "that fit on a multiprocessor", simulated=True),
    "occupancy": Feature("0..1", "threads that fit on a multiprocessor over the most it can hold", simulated=True),
    "grid_blocks_per_multiprocessor": Feature("blocks", "of the launch over the multiprocessors", simulated=True),
    "waves": Feature("waves", "rounds that the blocks take, places filled one after another", simulated=True),
    "wave_share": Feature("0..1", "of the places of all waves that have a block", simulated=True),
    "busy_multiprocessors": Feature("0..1", "of the multiprocessors that have a block at all", simulated=True),
    "argument_byte": Feature("byte", "of all arrays: what device memory moves at least where each is used once"),
    **_of_code(),
}


# What other tuners' files hold of them, by the names there.
RECORDED: Final[Mapping[str, str]] = {
    **{name: name for name in FEATURES},
    "num_regs": "registers_per_thread",
    "shared_size_bytes": "shared_memory_byte",
    "local_size_bytes": "local_memory_byte",
}


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """How a kernel sits on a board."""

    grid_blocks: int
    block_threads: int
    blocks_per_multiprocessor: int
    multiprocessors: int
    max_threads_per_multiprocessor: int
    registers_per_thread: float
    shared_memory_byte: float
    local_memory_byte: float

    def features(self) -> dict[str, float]:
        """Those of FEATURES that do not need the machine code."""
        places = self.blocks_per_multiprocessor * self.multiprocessors
        waves = math.ceil(self.grid_blocks / places) if places else 0
        resident = self.blocks_per_multiprocessor * self.block_threads
        return {
            "grid_blocks": float(self.grid_blocks),
            "block_threads": float(self.block_threads),
            "registers_per_thread": self.registers_per_thread,
            "shared_memory_byte": self.shared_memory_byte,
            "local_memory_byte": self.local_memory_byte,
            "blocks_per_multiprocessor": float(self.blocks_per_multiprocessor),
            "occupancy": min(1.0, resident / self.max_threads_per_multiprocessor),
            "grid_blocks_per_multiprocessor": self.grid_blocks / self.multiprocessors,
            "waves": float(waves),
            "wave_share": self.grid_blocks / (waves * places) if waves else math.nan,
            "busy_multiprocessors": min(1.0, self.grid_blocks / self.multiprocessors),
        }


def as_rows(names: Sequence[str], found: Sequence[Mapping[str, float]]) -> npt.NDArray[np.float64]:
    """Features of some kernels as an array, shape (kernels, names); NaN where one is unknown."""
    rows = [[each.get(name, math.nan) for name in names] for each in found]
    return np.array(rows, dtype=np.float64).reshape(len(found), len(names))


def code_features(whole: InstructionMix, innermost: InstructionMix) -> dict[str, float]:
    """Those of FEATURES that the machine code gives. Without a loop those of the innermost one are 0."""
    found: dict[str, float] = {}
    for part, mix in (("code", whole), ("loop", innermost)):
        found |= {f"{part}_{name}": float(count) for name, count in mix.counts.items()}
        found |= {f"{part}_{name}_byte": byte for name, byte in mix.byte.items()}
        found |= {f"{part}_{name}_width": mix.width(name) for name in _WIDTHS}
        from_device = mix.byte["global_load"] + mix.byte["global_store"] + mix.byte["async_copy"]
        from_shared = mix.byte["shared_load"] + mix.byte["shared_store"] + mix.byte["async_copy"]
        found[f"{part}_flop_per_global_byte"] = mix.flop / from_device if from_device else math.nan
        found[f"{part}_flop_per_shared_byte"] = mix.flop / from_shared if from_shared else math.nan
    return found
