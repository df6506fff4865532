"""Where CUDA may lie on this machine: toolkits by the environment or in their usual place, and what pip installed."""

from __future__ import annotations

import ctypes.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_NAMED: Final = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")


def toolkits() -> list[Path]:
    """Folders that hold `bin` and `include`, or would: those that the environment names first."""
    folders = [Path(os.environ[name]) for name in _NAMED if os.environ.get(name)]
    return folders if sys.platform == "win32" else [*folders, Path("/usr/local/cuda")]


def pip_folders() -> list[Path]:
    """Folders of NVIDIA's packages: one for each component up to CUDA 12, one for all of them since."""
    return [folder for path in sys.path for folder in sorted(Path(path or ".").glob("nvidia/*")) if folder.is_dir()]


def library_places(name: str, versions: Sequence[str]) -> Iterator[str]:
    """What to hand to the loader for a library of the toolkit, in turn: of toolkits, the system's, of pip's packages.

    `name` is as in lib*.so; `versions` are the endings of the system's own (`.so.13`), newest first.
    """
    files = (
        *(f"{folder}/lib{name}.so*" for folder in ("lib64", "lib")),
        *(f"{folder}/{name}64_*.dll" for folder in ("bin", "bin/x64", "bin/x86_64")),
    )
    for folders in (toolkits(), None, pip_folders()):
        if folders is None:
            found = ctypes.util.find_library(name)
            yield from (*([found] if found else []), f"lib{name}.so", *(f"lib{name}.so.{each}" for each in versions))
            continue
        for folder in folders:
            for pattern in files:
                yield from map(str, sorted(folder.glob(pattern), reverse=True))
