"""The names of a CUDA kernel's parameters, as far as its source says them plainly."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 1 << 20  # characters of a source that are looked at
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")


def parameter_names(source: str, kernel: str) -> tuple[str, ...]:
    """The parameters of the `__global__` function of that name, in order; none where it is not found.

    >>> parameter_names("__global__ void add(float *x, const int n) {}", "add")
    ('x', 'n')
    """
    text = _COMMENT.sub(" ", source[:_MOST])
    found = re.search(rf"__global__[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^)]*)\)", text)
    if found is None:
        return ()
    named = (_NAME.search(part.split("=")[0].strip()) for part in found[1].split(","))
    return tuple(match[1] for match in named if match is not None)
