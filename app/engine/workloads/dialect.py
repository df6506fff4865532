"""What a language asks of the text of a kernel, and of how it is launched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..specification.model import OF_THE_HOST


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language."""

    qualifier: str  # regular expression of what stands before the type of a kernel
    reference_suffix: str = ""  # of a file with a reference kernel
    includes: bool = True  # sources are included by their path; otherwise their text is taken
    launched: bool = True  # on a grid of blocks; a function of the host is called
    constant_symbols: bool = False  # arguments in constant memory are symbols of the image, no parameters
    plain_pragmas: bool = False  # macros are not replaced in them
    by_reference: bool = False  # scalars are, unless the function says otherwise


_CALLED: Final = Dialect(r"\b", launched=False)
DIALECTS: Final = {
    "CUDA": Dialect("__global__", ".cu", constant_symbols=True, plain_pragmas=True),
    "OpenCL": Dialect(r"\b(?:__)?kernel\b", ".cl", includes=False),  # not every compiler finds files
    **dict.fromkeys(OF_THE_HOST, _CALLED),
    "Fortran": replace(_CALLED, by_reference=True),
}
