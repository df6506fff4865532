"""Images that no compiler of the language made: a line of JSON that says who did and how, and then what they made.

A library makes nothing: its image is the line alone, with the operator and the library's word for an algorithm. That of
Triton is machine code, whose launch the line describes.
"""

from __future__ import annotations

import json
from typing import Any, Final

from .compiler import Compiled

_HEAD: Final = b"WATTRIDGE IMAGE "


def made_image(facts: dict[str, Any], code: bytes = b"") -> bytes:
    """An image of these facts."""
    return _HEAD + json.dumps(facts, sort_keys=True).encode() + b"\n" + code


def facts_of(image: bytes) -> tuple[dict[str, Any], bytes] | None:
    """The facts and the code of an image that a maker made; None for any other."""
    if not image.startswith(_HEAD):
        return None
    line, _, code = image[len(_HEAD) :].partition(b"\n")
    return dict(json.loads(line)), code


class LibraryImages:
    """Implements `ImageMaker` for what a library has: its text is the facts."""

    identity = "library"

    def make(self, text: str, options: object) -> Compiled:
        return Compiled(made_image(json.loads(text)), "")

    def close(self) -> None: ...
