"""What kinds of instructions a kernel's machine code holds, how much its loads and stores move, and what lies in loops.

Counts are of the code, not of what runs: how often a loop goes round is not in it. What the innermost loops hold says
more of a kernel's work than the whole. Opcodes, widths and branch targets were compared with nvdisasm for compute
capabilities 7.5, 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0, on the kernels of `resources/kernels` and one of every instruction
below; 7.0 shares the encoding of 7.5 [Jia2018].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .machine_code import OPCODE_BITS, Words

# The lowest nine bits of an instruction, by what it does. One that no class names is `other`: moves, flags, no-ops.
CLASSES: Final[Mapping[str, tuple[int, ...]]] = {
    "fp32_fma": (0x023,),
    "fp32_other": (0x020, 0x021, 0x00B, 0x009),  # FMUL, FADD, FSETP, FMNMX
    "fp64": (0x028, 0x029, 0x02A, 0x02B),  # DMUL, DADD, DSETP, DFMA
    "fp16": (0x030, 0x031, 0x032),  # HADD2, HFMA2, HMUL2
    "tensor": (0x037, 0x03C, 0x03F),  # IMMA, HMMA, DMMA
    "integer": (0x010, 0x011, 0x017, 0x024, 0x025, 0x026, 0x027, 0x036, 0x046, 0x048, 0x109),  # IADD3, LEA, IMAD, ...
    "logic": (0x007, 0x008, 0x00C, 0x012, 0x016, 0x019, 0x01C),  # SEL, FSEL, ISETP, LOP3, PRMT, SHF, PLOP3
    "uniform": (0x082, 0x086, 0x087, 0x08C, 0x090, 0x091, 0x092, 0x097, 0x099, 0x0A4, 0x0A5),  # of a warp as a whole
    "conversion": (0x03E, 0x045, 0x104, 0x105, 0x106, 0x110, 0x111, 0x112),  # F2F, F2I, I2F, ...
    "special": (0x108,),  # MUFU: roots, sines, exponentials
    "shuffle": (0x189, 0x1C4),
    "atomic": (0x18C, 0x18D, 0x18E, 0x1A3, 0x1A6, 0x1A8),  # on shared and device memory
    "barrier": (0x11D, 0x145, 0x141, 0x148, 0x1AF),  # BAR, BSSY, BSYNC, WARPSYNC, LDGDEPBAR
    "branch": (0x144, 0x147, 0x150),
}
# Loads and stores by the memory they reach.
MEMORIES: Final[Mapping[str, tuple[int, ...]]] = {
    "global_load": (0x180, 0x181),
    "global_store": (0x185, 0x186),
    "async_copy": (0x1AE,),  # LDGSTS, from device to shared memory
    "shared_load": (0x184, 0x03B),  # LDS, LDSM
    "shared_store": (0x188,),
    "local": (0x183, 0x187),  # spills, and arrays that do not fit into registers
    "constant": (0x182, 0x0B9, 0x0BB, 0x1AC),
}
FLOP: Final[Mapping[str, float]] = {"fp32_fma": 2.0, "fp32_other": 1.0, "fp64": 2.0, "fp16": 4.0}  # per thread, at most
OTHER: Final = "other"

_BRANCH: Final = np.uint64(0x147)
_ASYNC_COPY: Final = 0x1AE
_MATRIX_LOAD: Final = 0x03B
_PADDING: Final = np.uint64(0x118)  # NOP, behind the code
_BYTES: Final = np.array([1, 1, 2, 2, 4, 8, 16, 16], dtype=np.float64)  # by three bits of the upper word
_NEW_COPY_BYTES: Final = np.array([4, 4, 8, 8, 16, 16, 16, 16], dtype=np.float64)  # of LDGSTS from 10.0 on
_INSTRUCTION_BYTES: Final = 16
_LONG_TARGETS: Final = 9.0  # compute capability from which a branch's offset has eight bits more
_NEW_OPCODES: Final = 10.0  # before it, 0x035 is HFMA2.MMA; from it on IADD.64


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """Of one kernel: how many instructions of each class, and how many bytes its loads and stores move per thread."""

    counts: Mapping[str, int]  # by class, and by memory
    byte: Mapping[str, float]  # by memory: of each access once, per thread

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def flop(self) -> float:
        """Floating-point operations of a thread if each instruction runs once; those of tensor cores are not in it."""
        return sum(each * self.counts[name] for name, each in FLOP.items())

    def width(self, memory: str) -> float:
        """Bytes of a mean access to that memory; 0 where there is none."""
        return self.byte[memory] / self.counts[memory] if self.counts[memory] else 0.0


def instruction_mix(words: Words, compute_capability: float) -> tuple[InstructionMix, InstructionMix]:
    """(the whole kernel, its innermost loops) of code, shape (instructions, 2). The second is empty without a loop."""
    opcodes = words[:, 0] & OPCODE_BITS
    depth = _depth(words, opcodes, compute_capability)
    kept = opcodes != _PADDING
    innermost = kept & (depth == depth.max(initial=0)) & (depth > 0)
    return _mix(words[kept], compute_capability), _mix(words[innermost], compute_capability)


def _mix(words: Words, compute_capability: float) -> InstructionMix:
    opcodes = (words[:, 0] & OPCODE_BITS).astype(np.int64)
    size = ((words[:, 1] >> np.uint64(9)) & np.uint64(7)).astype(np.int64)
    new = compute_capability >= _NEW_OPCODES
    moved = np.where(opcodes == _ASYNC_COPY, _NEW_COPY_BYTES[size], _BYTES[size]) if new else _BYTES[size]
    moved[opcodes == _MATRIX_LOAD] = 4.0  # a matrix of 8 x 8 halves over a warp; loads of two and four hold more
    times = np.bincount(opcodes, minlength=int(OPCODE_BITS) + 1)
    counts = {name: int(times[list(codes)].sum()) for name, codes in (*CLASSES.items(), *MEMORIES.items())}
    counts["integer" if new else "fp16"] += int(times[0x035])
    counts[OTHER] = len(words) - sum(counts.values())
    byte = {name: float(moved[np.isin(opcodes, codes)].sum()) for name, codes in MEMORIES.items()}
    return InstructionMix(counts, byte)


def _depth(words: Words, opcodes: npt.NDArray[np.uint64], compute_capability: float) -> npt.NDArray[np.int64]:
    """In how many loops each instruction lies, shape (instructions,). A loop ends with a branch back to its start."""
    at = np.flatnonzero(opcodes == _BRANCH)
    low, high = words[at, 0], words[at, 1]
    offset = (low >> np.uint64(34)) | ((high & np.uint64(0x3FFFF)) << np.uint64(30))
    bits = 48
    if compute_capability >= _LONG_TARGETS:
        offset = (offset << np.uint64(8)) | ((low >> np.uint64(16)) & np.uint64(0xFF))
        bits = 56
    shift = np.uint64(64 - bits)
    signed = (offset << shift).astype(np.int64) >> np.int64(64 - bits)
    targets = at + 1 + signed * 4 // _INSTRUCTION_BYTES
    ends = np.zeros(len(words) + 1, dtype=np.int64)
    for target, branch in {(int(t), int(b)) for t, b in zip(targets, at, strict=True) if 0 <= t < b}:
        ends[target] += 1
        ends[branch + 1] -= 1
    return np.cumsum(ends)[:-1]
