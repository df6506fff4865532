"""Frames between a process and its runner: a JSON object and blocks of bytes. Nothing is ever unpickled.

A frame is its header's length (4 bytes, big endian), the header (JSON, UTF-8; `blocks` holds the blocks' lengths) and
the blocks one after the other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import IO, Any, Final

MAX_HEADER: Final = 4 << 20
MAX_BLOCK: Final = 1 << 30
_LENGTH: Final = struct.Struct(">I")

Message = dict[str, Any]


class WireError(Exception):
    """What came is no frame: the other side is not what we took it for."""


def send(stream: IO[bytes], message: Message, blocks: Sequence[bytes] = ()) -> None:
    """Write one frame and flush. Raises OSError where the other side has gone."""
    header = json.dumps({**message, "blocks": [len(block) for block in blocks]}).encode()
    stream.write(_LENGTH.pack(len(header)))
    stream.write(header)
    for block in blocks:
        stream.write(block)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Message, list[bytes]] | None:
    """The next frame, or None at the end of the stream. Raises WireError."""
    prefix = stream.read(_LENGTH.size)
    if len(prefix) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(prefix)
    if length > MAX_HEADER:
        raise WireError(f"a header of {length} bytes")
    try:
        message = json.loads(stream.read(length))
        sizes = message.pop("blocks")
    except (ValueError, KeyError, AttributeError) as error:
        raise WireError(f"a header that is not one: {error}") from None
    if not all(isinstance(size, int) and 0 <= size <= MAX_BLOCK for size in sizes):
        raise WireError(f"blocks of {sizes} bytes")
    blocks = [stream.read(size) for size in sizes]
    if any(len(block) < size for block, size in zip(blocks, sizes, strict=True)):
        return None
    return message, blocks
