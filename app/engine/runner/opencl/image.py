"""An image of OpenCL: the names of its kernels, as one line of JSON, and the device's own binary."""

from __future__ import annotations

import json
from collections.abc import Sequence


def make_image(names: Sequence[str], binary: bytes) -> bytes:
    """The reverse of `read_image`."""
    return json.dumps(list(names)).encode() + b"\n" + binary


def read_image(image: bytes) -> tuple[list[str], bytes]:
    """The names of the kernels, and the binary. Raises ValueError for what is no image."""
    names, separator, binary = image.partition(b"\n")
    if not separator:
        raise ValueError("no image of OpenCL")
    return [str(name) for name in json.loads(names)], binary
