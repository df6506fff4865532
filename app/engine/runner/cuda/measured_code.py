"""The machine code that a finished session measured, and whether nvcc makes the same of the exported source.

NVRTC and nvcc make different code of one text (`tests/benchmarks/compilers.txt`): who builds the exported source with
nvcc may have another kernel than the one whose figures stand above it.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np

from ....base.errors import WattridgeError
from ...workloads.machine_code import granted, kernel_code
from ...workloads.source_kernel import Build
from ..kernels.compiler import ProgramMaker, kept_image
from .toolchain import NvccTarget, cuda_compiler, find_toolchain, symbol

_CAPABILITY: Final = re.compile(r" for \((\d+), (\d+)\)")


@dataclass(frozen=True, slots=True)
class MeasuredCode:
    """An image as it was measured, for boards of one compute capability."""

    image: bytes
    kernel: str  # its name in the image
    compiler: str  # that made it, with the compute capability
    again: bool  # made again now by that compiler, as the image was no longer kept

    @property
    def sha256(self) -> str:
        """Of the image, hexadecimal."""
        return hashlib.sha256(self.image).hexdigest()


@dataclass(frozen=True, slots=True)
class ByNvcc:
    """What nvcc makes of the exported source, beside what was measured."""

    version: str
    same: bool  # machine code, registers and memory


def capability_of(compiler: str) -> tuple[int, int] | None:
    """The compute capability that a compiler made images for, as a session names both; None if it names none."""
    match = _CAPABILITY.search(compiler)
    return (int(match[1]), int(match[2])) if match else None


def measured_code(build: Build, kernel: str, compiler: str) -> MeasuredCode | None:
    """What `compiler`, as a session names it, made of this; None if it is not kept and cannot be made again."""
    if build.generator:
        return None  # what it printed then is not known, and an export runs no program of the user's
    made, again = kept_image(compiler, build), False
    try:
        if made is None:
            made, again = _made_again(build, compiler), True
        return MeasuredCode(made, symbol(made, kernel), compiler, again) if made else None
    except WattridgeError:  # no compiler here, or it fails
        return None


def by_nvcc(source: str, options: tuple[str, ...], code: MeasuredCode) -> ByNvcc | None:
    """What nvcc makes of an exported source; None if it is not here, or where one of both cannot be looked into."""
    capability = capability_of(code.compiler)
    try:
        toolchain = find_toolchain()
        if not toolchain.nvcc or capability is None:
            return None
        with closing(ProgramMaker(NvccTarget(toolchain.command, toolchain.nvcc, capability))) as maker:
            other = maker.make(source, options).image
    except WattridgeError:
        return None
    same = same_code(code.image, other, code.kernel)
    return None if same is None else ByNvcc(toolchain.nvcc, same)


def same_code(one: bytes, other: bytes, kernel: str) -> bool | None:
    """Whether a kernel's machine code and what it takes is the same in two images; None if that cannot be read."""
    code, other_code = ((kernel_code(image) or {}).get(kernel) for image in (one, other))
    grant, other_grant = ((granted(image) or {}).get(kernel) for image in (one, other))
    if code is None or other_code is None or grant is None or other_grant is None:
        return None
    return grant == other_grant and np.array_equal(code, other_code)


def _made_again(build: Build, compiler: str) -> bytes | None:
    capability = capability_of(compiler)
    if capability is None:
        return None
    with closing(cuda_compiler(capability, jobs=1)) as same:
        return same.image(build) if same.identity == compiler else None
