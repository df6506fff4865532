"""A process that compiles with a library until its input ends: `python -P -m PACKAGE.compile_worker MODULE`.

The module has `compile_text(text, options) -> (image, messages of the compiler)`; the image is empty if it does not
compile. Frames are those of `conversation`: the text and the image are blocks.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ....base.conversation import Parent

ADDRESS_SPACE_BYTE: Final = 16 << 30  # a text that needs more fails, and not the machine

CompilesText = Callable[[str, Sequence[str]], tuple[bytes, str]]


def serve(compile_text: CompilesText, parent: Parent) -> None:
    """Compile the texts of requests; the process ends with its input, also in the middle of a text."""
    while (frame := parent.inbox.get()) is not None:
        message, (text,) = frame
        try:
            image, said = compile_text(text.decode(), message["options"])
        except MemoryError:
            image, said = b"", "the compiler is out of memory"
        reply = {"said": said, "resident_byte": most_resident_byte()}
        parent.send({"reply": reply, "number": message["number"]}, [image])


def most_resident_byte() -> int:
    """The most memory that this program has had; 0 if the system does not report it.

    Not getrusage's: on Linux that counts what the process had before it became this program, which is its parent's.
    """
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) << 10
    return 0


def _bound_memory() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY or most > ADDRESS_SPACE_BYTE:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTE, most))


def main() -> None:
    """The process's life."""
    parent = Parent(orphan_s=0.0, outlasts_signals=True)  # the library lets other threads run while it compiles
    _bound_memory()
    compile_text: CompilesText = importlib.import_module(sys.argv[1]).compile_text
    compile_text("", ())  # the first text takes the library ten times as long as those that follow
    with suppress(OSError):  # the other side has gone
        parent.send({"reply": {}, "number": 0})
        serve(compile_text, parent)


if __name__ == "__main__":
    main()
