"""Looks into an image's machine code, so that a kernel can be held to the work it claims to do.

An image (cubin) is an ELF file with its kernels in sections `.text.NAME`. From compute capability 7.0 on an
instruction has 16 bytes [Jia2018], and
its lowest 9 bits say what it does whatever its operands are (compared with nvdisasm for 7.5, 8.0, 8.6 and 9.0).
"""

from __future__ import annotations

import struct
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
    """How often each of OPCODES occurs in all of an image's kernels together; None where it cannot be looked into."""
    codes = kernel_code(image)
    if codes is None:
        return None
    found = [words[:, 0] & OPCODE_BITS for words in codes.values()]
    return {name: sum(int((words == code).sum()) for words in found) for name, code in OPCODES.items()}


def kernel_code(image: bytes) -> dict[str, Words] | None:
    """The instructions of each kernel of an image, by its name: two words of 64 bits each, shape (instructions, 2).

    None where the image cannot be looked into.
    """
    found = {}
    try:
        for section in _sections(image):
            if section.kind == _PROGRAM and section.name.startswith(_CODE):
                whole = section.size // _INSTRUCTION_BYTES * _INSTRUCTION_BYTES
                code = np.frombuffer(image, "<u8", whole // 8, section.offset)
                found[section.name.removeprefix(_CODE)] = code.reshape(-1, 2)
    except (struct.error, IndexError, ValueError):  # cut off
        return None
    return found


class Granted(NamedTuple):
    """What the compiler granted a kernel."""

    registers: int  # per thread
    shared_byte: int  # static, per block; from compute capability 9.0 on with the 1 KiB that the system has of it
    local_byte: int  # per thread: spills, and arrays that do not fit into registers


def granted(image: bytes) -> dict[str, Granted] | None:
    """What the compiler granted each kernel of an image, by its name; None where that cannot be read."""
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
    """What the image holds too little of, in words; empty where it holds enough, or cannot be looked into."""
    found = instructions(image) if least else None
    if found is None:
        return ""
    short = [f"{found[opcode]} {opcode}, at least {count}" for opcode, count in least.items() if found[opcode] < count]
    return f"the compiler removed work: the machine code holds {'; '.join(short)} are asked for" if short else ""


# --- ELF --------------------------------------------------------------------------------------------------------------


class _Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int


def _sections(image: bytes) -> list[_Section]:
    """Raises struct.error, IndexError or ValueError where the image is none, or is cut off."""
    magic, size, order = struct.unpack_from("<4sBB", image)
    if magic != b"\x7fELF" or (size, order) != (2, 1):
        raise ValueError("no ELF file of 64 bits")
    (start,) = struct.unpack_from("<Q", image, 40)
    if start > len(image):  # beyond 2^63, unpack_from() raises OverflowError
        raise ValueError("the headers of the sections lie behind the end")
    entry, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [_SECTION.unpack_from(image, start + at * entry) for at in range(count)]
    table = headers[names][4]
    found = [_Section(_text(image, table + name), kind, at, long) for name, kind, _, _, at, long, *_ in headers]
    if any(section.offset > len(image) for section in found):
        raise ValueError("a section lies behind the end")
    return found


def _text(image: bytes, at: int) -> str:
    return image[at : image.index(b"\0", at)].decode("utf-8", "replace")


def _noted(image: bytes, notes: _Section, symbols: _Section, texts: _Section) -> tuple[dict[str, int], dict[str, int]]:
    """Registers per thread, and bytes of a thread's stack, by kernel; from pairs of a symbol's number and a figure."""
    found: dict[int, dict[str, int]] = {_REGISTER_NOTE: {}, _STACK_NOTE: {}}
    at, end = notes.offset, notes.offset + notes.size
    while at + 4 <= end:
        form, what, size = struct.unpack_from("<BBH", image, at)
        if form == _WITH_SIZE and what in found and size == 8:
            symbol, figure = struct.unpack_from("<II", image, at + 4)
            (name,) = struct.unpack_from("<I", image, symbols.offset + _SYMBOL_BYTES * symbol)
            found[what][_text(image, texts.offset + name)] = figure
        at += 4 + (size if form == _WITH_SIZE else 0)
    return found[_REGISTER_NOTE], found[_STACK_NOTE]
