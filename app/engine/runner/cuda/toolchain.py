"""What compiles CUDA: NVRTC where it is installed, and nvcc for what NVRTC does not compile.

NVRTC is loaded once and compiles in hundredths of a second, where nvcc takes most of one. The two make different
machine code of one text, even those of one toolkit (`tests/benchmarks/compilers.txt`): a text is given to NVRTC first,
always, so that which of the two compiles it does not depend on anything else; and an image by nvcc says so.
`WATTRIDGE_CUDA_COMPILER` chooses one of them alone.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ....base.configuration import setting
from ....base.errors import InputError, WattridgeError
from ....base.installation import how_to_add
from ...workloads.subprocesses import answer_of
from ..kernels.compiler import (
    Compiled,
    Compiler,
    ImageMaker,
    LibraryMaker,
    NotCompiled,
    ProgramMaker,
    symbol_among,
)
from ..kernels.made_image import LibraryImages, facts_of
from ..kernels.process import KernelFailed
from . import nvrtc, triton_maker
from .toolkit import toolkits
from .triton_maker import triton_version

_KERNEL: Final = re.compile(rb"(?:\.text\.|\.entry )([\w$.]+)[\0(]")  # of machine code, of PTX
_OF_THE_ASSEMBLER: Final = re.compile(r"^ptxas\b.*\b(error|fatal)\b", re.MULTILINE)
CHOICE: Final = "WATTRIDGE_CUDA_COMPILER"
MISSING: Final = f"{how_to_add('cuda')}; or install the CUDA toolkit and set CUDA_HOME to where it is"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Compilers by their versions: nvcc, by the `command` that comes before its options, and NVRTC. One may be missing,
    and is then empty."""

    command: tuple[str, ...] = ()
    nvcc: str = ""
    nvrtc: str = ""

    @property
    def version(self) -> str:
        """Of both, in the order in which a text is given to them."""
        return ", else ".join(filter(None, (self.nvrtc, self.nvcc)))

    def maker(self, capability: tuple[int, int]) -> ImageMaker:
        """What compiles for one compute capability."""
        target = NvccTarget(self.command, self.nvcc, capability)
        if not self.nvrtc:
            return ProgramMaker(target)
        library = LibraryMaker(nvrtc.__name__, f"{self.nvrtc} for {capability}", (target.architecture,))
        return NvrtcElseNvcc(library, ProgramMaker(target)) if self.nvcc else library


@dataclass(frozen=True, slots=True)
class NvccTarget:
    """Implements `Target`: nvcc, for one compute capability."""

    command: tuple[str, ...]
    version: str
    capability: tuple[int, int]
    suffix: str = ".cu"

    @property
    def identity(self) -> str:
        return f"{self.version} for {self.capability}"

    @property
    def architecture(self) -> str:
        """The option that selects it."""
        return f"-arch=sm_{self.capability[0]}{self.capability[1]}"

    def call(self, source: Path, image: Path, options: Sequence[str]) -> list[str]:
        return [*self.command, "-cubin", self.architecture, *options, "-o", str(image), str(source)]


class NvrtcElseNvcc:
    """Implements `ImageMaker`: NVRTC, and nvcc for what NVRTC does not compile.

    Those are texts with headers of the host, or with options of nvcc alone.
    """

    def __init__(self, nvrtc: ImageMaker, nvcc: ImageMaker) -> None:
        self._nvrtc = nvrtc
        self._nvcc = nvcc

    @property
    def identity(self) -> str:
        return f"{self._nvrtc.identity}, else {self._nvcc.identity}"

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        """The message of an image by nvcc states that and why; if neither compiles the text, nvcc's error is raised."""
        try:
            return self._nvrtc.make(text, options)
        except NotCompiled as refused:
            if _OF_THE_ASSEMBLER.search(refused.what):  # which both have, and which comes after all that they differ in
                raise
            why_not = refused
        try:
            made = self._nvcc.make(text, options)
        except KernelFailed:
            raise
        except WattridgeError:  # nvcc does not start
            raise why_not from None
        remark = f"compiled by {self._nvcc.identity}, as NVRTC does not: {why_not.what.splitlines()[0]}"
        return Compiled(made.image, f"{remark}\n{made.said}".strip())

    def close(self) -> None:
        self._nvrtc.close()
        self._nvcc.close()


@lru_cache(maxsize=1)
def find_toolchain() -> Toolchain:
    """Raises WattridgeError if no compiler is found, InputError if the requested one is not installed.

    nvcc calls the host's compiler, which may be missing (cl.exe mostly is); NVRTC needs none.
    """
    choice = setting(CHOICE)
    if choice not in ("", "nvrtc", "nvcc"):
        raise InputError(f"{choice!r} is no compiler of CUDA", CHOICE, "nvrtc or nvcc")
    release = nvrtc.library_version() if choice != "nvcc" else None
    nvcc = _nvcc() if choice != "nvrtc" else None
    if release is None and nvcc is None:
        what = f"{choice} is not here, and {CHOICE} asks for it" if choice else "no CUDA compiler was found"
        raise WattridgeError(what, "compile", MISSING)
    if nvcc is None or (release is not None and not _has_host_compiler()):
        return Toolchain(nvrtc=f"NVRTC {release}")
    return Toolchain((nvcc,), _version(nvcc), f"NVRTC {release}" if release else "")


def _nvcc() -> str | None:
    folders = [str(folder / "bin") for folder in toolkits()]
    return shutil.which("nvcc") or next(
        (path for folder in folders if (path := shutil.which("nvcc", path=folder))), None
    )


def _has_host_compiler() -> bool:
    return bool(os.environ.get("NVCC_CCBIN") or shutil.which("cl" if sys.platform == "win32" else "gcc"))


def _version(nvcc: str) -> str:
    try:
        answer = answer_of([nvcc, "--version"])
    except OSError as error:
        raise WattridgeError(f"nvcc does not answer: {error}", nvcc, "reinstall the CUDA toolkit") from None
    match = re.search(r"V[\d.]+", answer)
    return f"nvcc {match[0] if match else answer.strip()[-60:]}"


def cuda_compiler(capability: tuple[int, int], *, toolchain: Toolchain | None = None, **options: Any) -> Compiler:
    """Compile for one compute capability; `options` are those of Compiler. Raises WattridgeError without a compiler."""

    def other(name: str) -> ImageMaker:
        if name != "triton":
            return LibraryImages()
        identity, options = f"Triton {triton_version()} for {capability}", f"-arch=sm_{capability[0]}{capability[1]}"
        return LibraryMaker(triton_maker.__name__, identity, (options,))

    return Compiler((toolchain or find_toolchain()).maker(capability), others=other, **options)


def symbol(image: bytes, name: str) -> str:
    """The kernel of that name as the image has it. Raises KernelFailed."""
    if (made := facts_of(image)) is not None:
        return str(made[0].get("kernel", name))
    return symbol_among([symbol.decode() for symbol in _KERNEL.findall(image)], name)
