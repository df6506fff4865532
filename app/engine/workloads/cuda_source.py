"""The text of a kernel: the #defines before its source, and what the source says plainly of its parameters."""

from __future__ import annotations

import re
from typing import Final

from ..measurement import Configuration, Value
from ..specification.model import Specification

_MOST: Final = 1 << 20  # characters of a source that are looked at
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")


def define_lines(spec: Specification, configuration: Configuration) -> list[str]:
    """One line for each constant, then for each parameter; device settings are no part of the text."""
    settings = spec.device_settings
    defined = {**spec.constants, **{n: v for n, v in configuration.items() if n not in settings}}
    return [f"#define {name} {_define(value)}" for name, value in defined.items()]


def _define(value: Value) -> str:
    """A value as C++ has it; text stands as it is."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def parameter_names(source: str, kernel: str, qualifier: str = "__global__") -> tuple[str, ...]:
    """The parameters of the function of that name with that qualifier, in order; none where it is not found.

    >>> parameter_names("__global__ void add(float *x, const int n) {}", "add")
    ('x', 'n')
    """
    text = _COMMENT.sub(" ", source[:_MOST])
    found = re.search(rf"{qualifier}[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^)]*)\)", text)
    if found is None:
        return ()
    named = (_NAME.search(part.split("=")[0].strip()) for part in found[1].split(","))
    return tuple(match[1] for match in named if match is not None)
