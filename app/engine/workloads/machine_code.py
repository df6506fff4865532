"""Counts instructions in an image's machine code, so that a kernel can be held to the work it claims to do.

An image (cubin) is an ELF file with its kernels in sections `.text.NAME`. From compute capability 7.0 on an
instruction has 16 bytes [Jia2018], and
its lowest 9 bits say what it does whatever its operands are (compared with nvdisasm for 7.5, 8.0, 8.6 and 9.0).
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from ..specification.model import OPCODES

FROM_CAPABILITY: Final = 7.0
_INSTRUCTION_BYTES: Final = 16
_OPCODE_BITS: Final = 0x1FF
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, ...
_PROGRAM: Final = 1  # SHT_PROGBITS


def instructions(image: bytes) -> dict[str, int] | None:
    """How often each of OPCODES occurs in all of an image's kernels together; None where it cannot be looked into."""
    try:
        magic, size, order = struct.unpack_from("<4sBB", image)
        if magic != b"\x7fELF" or (size, order) != (2, 1):
            return None
        (start,) = struct.unpack_from("<Q", image, 40)
        entry, count, names = struct.unpack_from("<HHH", image, 58)
        sections = [_SECTION.unpack_from(image, start + at * entry) for at in range(count)]
        table = sections[names][4]
        found = dict.fromkeys(OPCODES, 0)
        for name, kind, _, _, offset, length, *_ in sections:
            if kind == _PROGRAM and image.startswith(b".text.", table + name):
                whole = length // _INSTRUCTION_BYTES * _INSTRUCTION_BYTES
                words = np.frombuffer(image, "<u8", whole // 8, offset)[::2] & _OPCODE_BITS
                for opcode, code in OPCODES.items():
                    found[opcode] += int((words == code).sum())
    except (struct.error, IndexError, ValueError):  # cut off
        return None
    return found


def shortfall(image: bytes, least: dict[str, int]) -> str:
    """What the image holds too little of, in words; empty where it holds enough, or cannot be looked into."""
    found = instructions(image) if least else None
    if found is None:
        return ""
    short = [f"{found[opcode]} {opcode}, at least {count}" for opcode, count in least.items() if found[opcode] < count]
    return f"the compiler removed work: the machine code holds {'; '.join(short)} are asked for" if short else ""
