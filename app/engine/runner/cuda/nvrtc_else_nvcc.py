"""NVRTC, and nvcc for what NVRTC does not compile: texts with headers of the host, or with options of nvcc alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....base.errors import WattridgeError
from ..kernels.compiler import Compiled, ImageMaker, NotCompiled
from ..kernels.process import KernelFailed

_OF_THE_ASSEMBLER: Final = re.compile(r"^ptxas\b.*\b(error|fatal)\b", re.MULTILINE)


class NvrtcElseNvcc:
    """Implements `ImageMaker` by two others."""

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
        words = f"compiled by {self._nvcc.identity}, as NVRTC does not: {why_not.what.splitlines()[0]}"
        return Compiled(made.image, f"{words}\n{made.said}".strip())

    def close(self) -> None:
        self._nvrtc.close()
        self._nvcc.close()
