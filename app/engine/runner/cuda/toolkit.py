"""Where CUDA may lie on this machine: toolkits by the environment or in their usual place, and what pip installed."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_NAMED: Final = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")


def toolkits() -> list[Path]:
    """Folders that hold `bin` and `include`, or would: those that the environment names first."""
    return [*_named_toolkits(), *_usual_toolkits()]


def _named_toolkits() -> list[Path]:
    return [Path(os.environ[name]) for name in _NAMED if os.environ.get(name)]


def _usual_toolkits() -> list[Path]:
    return [] if sys.platform == "win32" else [Path("/usr/local/cuda")]


def pip_folders() -> list[Path]:
    """Folders of NVIDIA's packages: one for each component up to CUDA 12, one for all of them since."""
    return [folder for path in sys.path for folder in sorted(Path(path or ".").glob("nvidia/*")) if folder.is_dir()]


def library_places(name: str, versions: Sequence[str]) -> Iterator[str]:
    """What to hand to the loader for a library of the toolkit, in turn: of the toolkits that the environment names, of
    pip's packages, of the toolkit in its usual place, the system's.

    What was installed for this Python comes before what the machine happens to have: a board may need its release.
    `name` is as in lib*.so; `versions` are the endings of the system's own (`.so.13`), newest first.
    """
    files = (
        *(f"{folder}/lib{name}.so*" for folder in ("lib64", "lib")),
        *(f"{folder}/{name}64_*.dll" for folder in ("bin", "bin/x64", "bin/x86_64")),
    )
    for folder in (*_named_toolkits(), *pip_folders(), *_usual_toolkits()):
        for pattern in files:
            yield from map(str, sorted(folder.glob(pattern), reverse=True))
    located = ctypes.util.find_library(name)
    yield from (*([located] if located else []), f"lib{name}.so", *(f"lib{name}.so.{version}" for version in versions))


def load_first(name: str, versions: Sequence[str], function: str) -> ctypes.CDLL | None:
    """The first library of that name that loads and has the function; None if there is none."""
    for place in library_places(name, versions):
        with suppress(OSError):
            library = ctypes.CDLL(place)
            if hasattr(library, function):
                return library
    return None
