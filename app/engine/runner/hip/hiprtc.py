"""hipRTC: the processes of `compile_worker` compile with it, this one reads its version alone.

Not yet run on a real board.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from ....base.installation import load_library
from ....sensors.amd.library import library_places
from ..cuda.nvrtc import RuntimeCompiler

LIBRARY: Final = "libhiprtc.so"


@lru_cache(maxsize=1)
def _library() -> RuntimeCompiler | None:
    for place in library_places(LIBRARY):
        with suppress(OSError):
            return RuntimeCompiler(load_library(place), "hiprtc", "hipRTC")
    return None


def library_version() -> str | None:
    """The library's version; None if it is not here."""
    library = _library()
    return None if library is None else ".".join(map(str, library.version()))


def compile_text(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The image (empty if it does not compile) and the compiler's messages."""
    library = _library()
    if library is None:
        return b"", f"{LIBRARY} is not here: install ROCm's hipRTC"
    return library.image(text, options, "kernel.hip", "Code")
