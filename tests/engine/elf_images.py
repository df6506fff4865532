"""Images as a CUDA compiler writes them, as far as the program looks into them: ELF files with sections of code."""

from __future__ import annotations

import struct
from collections.abc import Mapping

# The low eight bytes of instructions as a disassembler tells them of images for compute capability 8.0 and 9.0.
INSTRUCTIONS = {
    "FFMA": 0x0000000808137223,
    "DFMA": 0x0000000A0A12722B,
    "HMMA": 0x0000000C080C723C,
    "BRA": 0x0000000400680947,
    "LDG": 0x0000000408087981,
}


def code(*opcodes: str) -> bytes:
    """The machine code of these, one after the other."""
    return b"".join(struct.pack("<QQ", INSTRUCTIONS[opcode], 0x000FCA0000000000) for opcode in opcodes)


def elf_image(sections: Mapping[str, bytes]) -> bytes:
    """An ELF file of 64 bits, little endian, with these sections of program bits."""
    names = ["", *sections, ".shstrtab"]
    table = b"".join(name.encode() + b"\0" for name in names)
    places = [len(b"".join(name.encode() + b"\0" for name in names[:index])) for index in range(len(names))]
    bodies, headers, offset = b"", struct.pack("<IIQQQQIIQQ", *(0,) * 10), 64
    for name, kind, body in zip(places[1:], (*(1,) * len(sections), 3), (*sections.values(), table), strict=True):
        headers += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset + len(bodies), len(body), 0, 0, 16, 0)
        bodies += body
    start = offset + len(bodies)
    head = struct.pack("<4sBBBB8xHHIQQQI", b"\x7fELF", 2, 1, 1, 51, 2, 190, 1, 0, 0, start, 0)
    head += struct.pack("<HHHHHH", 64, 0, 0, 64, len(names), len(names) - 1)
    return head + bodies + headers
