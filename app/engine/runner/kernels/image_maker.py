"""The `ImageMaker` seam: what turns a kernel's text into an image."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from typing import Final, NamedTuple, Protocol

from ...measurement import State
from .process import KernelFailed

COMPILE_S: Final = 300.0
MAX_MESSAGE: Final = 4000  # characters of what a compiler says
_LOOK_S: Final = 0.05  # between looks at a stop
ENDED: Final = "the session ended"
_ERROR: Final = re.compile(r"\berror\b", re.IGNORECASE)


class Compiled(NamedTuple):
    """An image, and what the compiler said of it although it made it: warnings, mostly."""

    image: bytes
    said: str
    compiler_s: float = 0.0  # what it took here, to make it or to find it


class NotCompiled(KernelFailed):
    """This compiler does not compile the text, or ends over it; another one may."""

    def __init__(self, said: str) -> None:
        """`said` by the compiler: its first error comes first, as lists show that line."""
        super().__init__(State.COMPILE, _error_first(said) or "the compiler wrote nothing and said nothing")


class ImageMaker(Protocol):
    """A compiler for one device, used by several threads at once."""

    @property
    def identity(self) -> str:
        """Of the compiler, with its version, and of the device: another one gives other images."""
        ...

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        """Compile a text, in another process. Raises NotCompiled, and KernelFailed where it takes too long."""
        ...

    def close(self) -> None:
        """End what compiles."""
        ...


def once_compiled(image: Future[Compiled], stop: threading.Event | None) -> Compiled:
    """Wait for an image, until a stop comes. Raises KernelFailed."""
    while not wait((image,), _LOOK_S).done:
        if stop is not None and stop.is_set():
            raise session_ended()
    return image.result()


def took_too_long(seconds: float) -> KernelFailed:
    """What is raised of a compiler that was ended then."""
    return KernelFailed(State.COMPILE, f"the compiler took longer than {seconds:g} s")


def session_ended() -> KernelFailed:
    """What is raised once a maker is closed."""
    return KernelFailed(State.COMPILE, ENDED)


def _error_first(said: str) -> str:
    lines = said.splitlines()
    found = next((line for line in lines if _ERROR.search(line)), "")
    return f"{found.strip()}\n{said}" if found and found != lines[0] else said
