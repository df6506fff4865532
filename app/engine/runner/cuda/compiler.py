"""Compiling CUDA: for one compute capability; and the names that an image has."""

from __future__ import annotations

import re
from typing import Any, Final

from ...results.measurement import State
from ..kernels.compiler import Compiler
from ..kernels.process import KernelFailed
from .toolchain import Toolchain, find_toolchain

_KERNEL: Final = re.compile(rb"(?:\.text\.|\.entry )([\w$.]+)[\0(]")  # of machine code, of PTX


def cuda_compiler(capability: tuple[int, int], *, toolchain: Toolchain | None = None, **options: Any) -> Compiler:
    """The `options` are those of Compiler. Raises WattridgeError if there is no compiler."""
    return Compiler((toolchain or find_toolchain()).maker(capability), **options)


def symbol(image: bytes, name: str) -> str:
    """The kernel of that name as the image has it: C++ mangles names that are not extern "C". Raises KernelFailed."""
    names: list[str] = [name_bytes.decode() for name_bytes in _KERNEL.findall(image)]
    if name in names:
        return name
    mangled = re.compile(rf"_Z(N[\w$]*?)?{len(name)}{re.escape(name)}(?!\d)")
    for match in names:
        if mangled.match(match):
            return match
    raise KernelFailed(State.COMPILE, f"the source has no kernel '{name}'")
