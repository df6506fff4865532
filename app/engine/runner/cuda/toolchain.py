"""The compiler: nvcc where it can work, else NVRTC; and its version, which belongs to every image's key."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ....errors import WattridgeError
from ...children.python import python_command
from .nvrtc import library_version
from .toolkit import toolkits


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler and how it is called: `command`, then options, -o and the source."""

    command: tuple[str, ...]
    version: str

    def call(self, source: Path, image: Path, capability: tuple[int, int], options: Sequence[str]) -> list[str]:
        """The command line that compiles a source to an image for one compute capability."""
        architecture = f"-arch=sm_{capability[0]}{capability[1]}"
        return [*self.command, "-cubin", architecture, *options, "-o", str(image), str(source)]


@dataclass(frozen=True, slots=True)
class CudaTarget:
    """Implements `Target`: a toolchain, for one compute capability."""

    toolchain: Toolchain
    capability: tuple[int, int]
    suffix: str = ".cu"

    @property
    def identity(self) -> str:
        return f"{self.toolchain.version} for {self.capability}"

    def call(self, source: Path, image: Path, options: Sequence[str]) -> list[str]:
        return self.toolchain.call(source, image, self.capability, options)


@lru_cache(maxsize=1)
def find_toolchain() -> Toolchain:
    """Raises WattridgeError where no compiler is found.

    nvcc calls the host's compiler, which may be missing (cl.exe mostly is); NVRTC needs none.
    """
    nvcc = _nvcc()
    version = None if nvcc is not None and _has_host_compiler() else library_version()
    if version is not None:
        return Toolchain(tuple(python_command(f"{__package__}.nvrtc")), f"NVRTC {version}")
    if nvcc is not None:
        return Toolchain((nvcc,), _version(nvcc))
    raise WattridgeError(
        "no CUDA compiler was found",
        "compile",
        "pip install 'wattridge[cuda]', or install the CUDA toolkit and set CUDA_HOME to where it is",
    )


def _nvcc() -> str | None:
    folders = [str(folder / "bin") for folder in toolkits()]
    return shutil.which("nvcc") or next((found for at in folders if (found := shutil.which("nvcc", path=at))), None)


def _has_host_compiler() -> bool:
    return bool(os.environ.get("NVCC_CCBIN") or shutil.which("cl" if sys.platform == "win32" else "gcc"))


def _version(nvcc: str) -> str:
    try:
        answer = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WattridgeError(f"nvcc does not answer: {error}", nvcc, "reinstall the CUDA toolkit") from None
    found = re.search(r"V[\d.]+", answer)
    return f"nvcc {found[0] if found else answer.strip()[-60:]}"
