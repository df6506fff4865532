"""An OpenCL source in CUDA's words, for what reads text and does not compile: `kernel_scan` knows those alone."""

from __future__ import annotations

import re
from typing import Final

SUFFIXES: Final = (".cl", ".ocl", ".opencl")
_INDICES: Final = {
    "local_id": "threadIdx",
    "global_id": "threadIdx",
    "group_id": "blockIdx",
    "local_size": "blockDim",
    "global_size": "gridDim",
    "num_groups": "gridDim",
}
_INDEX: Final = re.compile(rf"\bget_({'|'.join(_INDICES)})\s*\(\s*([012])\s*\)")
_WORDS: Final = (
    (re.compile(r"\b(?:__)?kernel\b"), "__global__"),
    (re.compile(r"\b(?:__)?local\b(?!\s*\()"), "__shared__"),
    (re.compile(r"\b__constant\b|\bconstant\b(?=\s+\w+\s*\*)"), "const"),
    (re.compile(r"\b__(?:global|private|generic|read_only|write_only)\b|\bglobal\b(?=\s+\w)"), " "),
    (re.compile(r"\brestrict\b"), "__restrict__"),
    (re.compile(r"\bCLK_\w+\b|\bM_\w+_F\b"), "0"),
)


def in_cudas_words(source: str) -> str:
    """
    >>> in_cudas_words("__kernel void f(__global float *y) { y[get_global_id(0)] = 1; }")
    '__global__ void f(  float *y) { y[threadIdx.x] = 1; }'
    """
    text = _INDEX.sub(lambda found: f"{_INDICES[found[1]]}.{'xyz'[int(found[2])]}", source)
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text
