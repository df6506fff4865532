"""Features of a kernel without running it: its launch, its resources, and the instructions of its machine code.

An image (cubin) is an ELF file with its kernels in sections `.text.NAME`. From compute capability 7.0 on an instruction
has 16 bytes [Jia2018], and its lowest 9 bits give the operation whatever its operands are (compared with nvdisasm for
7.5, 8.0, 8.6 and 9.0). So a kernel can be checked against the work that it claims to do.

Instructions are counted by kind, with the bytes of loads and stores, and apart within loops. Counts are of the code,
not of the execution: the number of iterations of a loop is not in it. The innermost loops tell more of a kernel's work
than the whole. Opcodes, widths and branch targets were compared with nvdisasm for compute capabilities 7.5, 8.0, 8.6,
8.9, 9.0, 10.0 and 12.0, on the kernels of `resources/kernels` and one of every instruction below; 7.0 shares the
encoding of 7.5 [Jia2018].

`FEATURES` defines each feature with its unit, and is the table of the user guide. Of a kernel on a real board all are
known once it is compiled and loaded; on a simulated board they are what a compiler would report, never what the board
is made to do. Unknown ones are NaN. Tiles, unrolling and vector widths are parameters of the configuration.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..specification.model import OPCODES

Words = npt.NDArray[np.uint64]

FROM_CAPABILITY: Final = 7.0
_INSTRUCTION_BYTES: Final = 16
OPCODE_BITS: Final = np.uint64(0x1FF)  # of the lower word
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, ...
_PROGRAM: Final = 1  # SHT_PROGBITS
_CODE: Final = ".text."
_SHARED: Final = ".nv.shared."
_REGISTER_NOTE: Final = 0x2F  # EIATTR_REGCOUNT of .nv.info
_STACK_NOTE: Final = 0x12  # EIATTR_MIN_STACK_SIZE
_WITH_SIZE: Final = 4  # EIFMT_SVAL: as many bytes follow as the note says
_SYMBOL_BYTES: Final = 24


def instructions(image: bytes) -> dict[str, int] | None:
    """How often each of OPCODES occurs in all of an image's kernels together; None if it cannot be looked into."""
    codes = kernel_code(image)
    if codes is None:
        return None
    opcodes = [text[:, 0] & OPCODE_BITS for text in codes.values()]
    return {name: sum(int((label == code).sum()) for label in opcodes) for name, code in OPCODES.items()}


def kernel_code(image: bytes) -> dict[str, Words] | None:
    """The instructions of each kernel of an image, by its name: two words of 64 bits each, shape (instructions, 2).

    None if the image cannot be looked into.
    """
    result = {}
    try:
        for section in _sections(image):
            if section.kind == _PROGRAM and section.name.startswith(_CODE):
                whole = section.size // _INSTRUCTION_BYTES * _INSTRUCTION_BYTES
                code = np.frombuffer(image, "<u8", whole // 8, section.offset)
                result[section.name.removeprefix(_CODE)] = code.reshape(-1, 2)
    except (struct.error, IndexError, ValueError):  # cut off
        return None
    return result


class Granted(NamedTuple):
    """What the compiler granted a kernel."""

    registers: int  # per thread
    shared_byte: int  # static, per block; from compute capability 9.0 on with the 1 KiB that the system has of it
    local_byte: int  # per thread: spills, and arrays that do not fit into registers


def granted(image: bytes) -> dict[str, Granted] | None:
    """What the compiler granted each kernel of an image, by its name; None if that cannot be read."""
    try:
        sections = _sections(image)
        named = {section.name: section for section in sections}
        symbols, texts, notes = named[".symtab"], named[".strtab"], named[".nv.info"]
        registers, local = _noted(image, notes, symbols, texts)
    except (struct.error, IndexError, ValueError, KeyError):
        return None
    kernels = [section.name.removeprefix(_CODE) for section in sections if section.name.startswith(_CODE)]
    shared = {name: named[_SHARED + name].size if _SHARED + name in named else 0 for name in kernels}
    return {n: Granted(registers[n], shared[n], local.get(n, 0)) for n in kernels if n in registers}


def shortfall(image: bytes, least: dict[str, int]) -> str:
    """What the image holds too little of, in words; empty if it holds enough, or cannot be looked into."""
    codes = instructions(image) if least else None
    if codes is None:
        return ""
    short = [f"{codes[opcode]} {opcode}, at least {count}" for opcode, count in least.items() if codes[opcode] < count]
    return f"the compiler removed work: the machine code holds {'; '.join(short)} are asked for" if short else ""


# --- ELF --------------------------------------------------------------------------------------------------------------


class _Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int


def _sections(image: bytes) -> list[_Section]:
    """Raises struct.error, IndexError or ValueError if the image is none, or is cut off."""
    magic, size, order = struct.unpack_from("<4sBB", image)
    if magic != b"\x7fELF" or (size, order) != (2, 1):
        raise ValueError("no ELF file of 64 bits")
    (start,) = struct.unpack_from("<Q", image, 40)
    if start > len(image):  # beyond 2^63, unpack_from() raises OverflowError
        raise ValueError("the headers of the sections lie behind the end")
    entry, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [_SECTION.unpack_from(image, start + index * entry) for index in range(count)]
    table = headers[names][4]
    results = [
        _Section(_text(image, table + name), kind, offset, long) for name, kind, _, _, offset, long, *_ in headers
    ]
    if any(section.offset > len(image) for section in results):
        raise ValueError("a section lies behind the end")
    return results


def _text(image: bytes, offset: int) -> str:
    return image[offset : image.index(b"\0", offset)].decode("utf-8", "replace")


def _noted(image: bytes, notes: _Section, symbols: _Section, texts: _Section) -> tuple[dict[str, int], dict[str, int]]:
    """Registers per thread, and bytes of a thread's stack, by kernel; from pairs of a symbol's number and a figure."""
    found: dict[int, dict[str, int]] = {_REGISTER_NOTE: {}, _STACK_NOTE: {}}
    offset, end = notes.offset, notes.offset + notes.size
    while offset + 4 <= end:
        form, what, size = struct.unpack_from("<BBH", image, offset)
        if form == _WITH_SIZE and what in found and size == 8:
            symbol, figure = struct.unpack_from("<II", image, offset + 4)
            (name,) = struct.unpack_from("<I", image, symbols.offset + _SYMBOL_BYTES * symbol)
            found[what][_text(image, texts.offset + name)] = figure
        offset += 4 + (size if form == _WITH_SIZE else 0)
    return found[_REGISTER_NOTE], found[_STACK_NOTE]


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
        return sum(value * self.counts[name] for name, value in FLOP.items())

    def width(self, memory: str) -> float:
        """Bytes of a mean access to that memory; 0 if there is none."""
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
    indices = np.flatnonzero(opcodes == _BRANCH)
    low, high = words[indices, 0], words[indices, 1]
    offset = (low >> np.uint64(34)) | ((high & np.uint64(0x3FFFF)) << np.uint64(30))
    bits = 48
    if compute_capability >= _LONG_TARGETS:
        offset = (offset << np.uint64(8)) | ((low >> np.uint64(16)) & np.uint64(0xFF))
        bits = 56
    shift = np.uint64(64 - bits)
    signed = (offset << shift).astype(np.int64) >> np.int64(64 - bits)
    targets = indices + 1 + signed * 4 // _INSTRUCTION_BYTES
    ends = np.zeros(len(words) + 1, dtype=np.int64)
    for target, branch in {(int(t), int(b)) for t, b in zip(targets, indices, strict=True) if 0 <= t < b}:
        ends[target] += 1
        ends[branch + 1] -= 1
    return np.cumsum(ends)[:-1]


_WIDTHS: Final = ("global_load", "global_store", "shared_load", "shared_store", "async_copy")


@dataclass(frozen=True, slots=True)
class Feature:
    """One of them."""

    unit: str
    meaning: str
    simulated: bool = False  # known of a kernel on a simulated board too


def _of_code() -> dict[str, Feature]:
    result: dict[str, Feature] = {}
    for part, where in (("code", "the kernel's code"), ("loop", "its innermost loops")):
        for name in (*CLASSES, *MEMORIES, OTHER):
            result[f"{part}_{name}"] = Feature("instructions", f"{name.replace('_', ' ')} instructions in {where}")
        for name in MEMORIES:
            what = f"moved by the {name.replace('_', ' ')} instructions in {where}, each run once"
            result[f"{part}_{name}_byte"] = Feature("byte/thread", what)
        for name in _WIDTHS:
            result[f"{part}_{name}_width"] = Feature("byte", f"width of a mean {name.replace('_', ' ')} in {where}")
        result[f"{part}_flop_per_global_byte"] = Feature("flop/byte", f"arithmetic over device memory in {where}")
        result[f"{part}_flop_per_shared_byte"] = Feature("flop/byte", f"arithmetic over shared memory in {where}")
    return result


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


def as_rows(names: Sequence[str], features: Sequence[Mapping[str, float]]) -> npt.NDArray[np.float64]:
    """Features of some kernels as an array, shape (kernels, names); NaN if one is unknown."""
    rows = [[match.get(name, math.nan) for name in names] for match in features]
    return np.array(rows, dtype=np.float64).reshape(len(features), len(names))


def code_features(whole: InstructionMix, innermost: InstructionMix) -> dict[str, float]:
    """Those of FEATURES that the machine code gives. Without a loop those of the innermost one are 0."""
    result: dict[str, float] = {}
    for part, mix in (("code", whole), ("loop", innermost)):
        result |= {f"{part}_{name}": float(count) for name, count in mix.counts.items()}
        result |= {f"{part}_{name}_byte": byte for name, byte in mix.byte.items()}
        result |= {f"{part}_{name}_width": mix.width(name) for name in _WIDTHS}
        from_device = mix.byte["global_load"] + mix.byte["global_store"] + mix.byte["async_copy"]
        from_shared = mix.byte["shared_load"] + mix.byte["shared_store"] + mix.byte["async_copy"]
        result[f"{part}_flop_per_global_byte"] = mix.flop / from_device if from_device else math.nan
        result[f"{part}_flop_per_shared_byte"] = mix.flop / from_shared if from_shared else math.nan
    return result
