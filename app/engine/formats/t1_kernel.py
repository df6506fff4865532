"""The `KernelSpecification` of T1 as the `[kernel]` of our own specification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np

from ..results.measurement import Value
from ..space.build import BLOCK_SIZE_NAMES
from ..space.expression import parse
from ..specification.model import ARRAY_FILES
from ..specification.toml_section import Section
from .t1_text import PROBLEM_SIZE, T1Text

_AXES = ("X", "Y", "Z")
TYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "uint": "uint32",
}
_VECTOR = re.compile(r"([a-z]+)(2|3|4|8|16)")
_RUNS_A_PROGRAM = "is filled by a program, and none is run"


class T1Kernel:
    """The kernel's part of a file."""

    def __init__(self, given: Section, path: Path, lists: Mapping[str, Sequence[Value]]) -> None:
        """Read it; `lists` are the values of the parameters that have a list. Raises InputError."""
        self._given, self._lists = given, lists
        sizes = T1Text((), lists).under(given, PROBLEM_SIZE)
        self.text = T1Text(sizes, lists, given.place(PROBLEM_SIZE))  # for the rest of the file
        self.notes: list[str] = []
        self.refused = ""  # why the kernel cannot be run here
        self._arguments: list[dict[str, Any]] = []
        self._shared: list[str] = []  # bytes of dynamic shared memory, of arguments in local memory
        self._tolerances: dict[str, float] = {}
        for argument in given.tables("Arguments"):
            self._take(argument, is_opencl=given.raw("Language") == "OpenCL")
        block = [self._axis("LocalSize", axis) for axis in _AXES]
        self._shared += (size for size in self.text.under(given, "SharedMemory") if size != "0")
        self.document: dict[str, Any] = {
            "name": given.text("KernelName"),
            "source": [_source(given.text("KernelFile"), path)],
            "language": given.text("Language"),
            "compiler_options": [option for option in given.texts("CompilerOptions") if option],
            "shared_memory": " + ".join(self._shared) or "0",
            "block_size_names": [size or name for size, name in zip(block, BLOCK_SIZE_NAMES, strict=True)],
            "arguments": self._arguments,
            **self._grid(sizes, block),
        }
        references: dict[str, str] = {}
        for reference in given.tables("ReferenceArguments"):
            references |= self._reference(reference)
        if references:
            self.document["verify"] = {"reference": references, **self._tolerances}

    def _axis(self, key: str, axis: str) -> str:
        """One axis of LocalSize or GlobalSize as an expression; '' where it is not there."""
        section = self._given.table(key)
        written = self.text.under(section, axis)
        if len(written) > 1:
            raise section.wrong(axis, "an expression as text")
        return written[0] if written else ""

    def _grid(self, sizes: Sequence[str], block: Sequence[str]) -> dict[str, Any]:
        """Problem size and grid divisors.

        With a ProblemSize they are what they are for Kernel Tuner, whose divisors are the block sizes if none are
        given; else GlobalSize is the grid, in blocks, or for OpenCL and Vulkan in threads.
        """
        given, divisors = self._given, dict[str, list[str]]()
        if sizes:
            for axis, name in zip(_AXES[: len(sizes)], BLOCK_SIZE_NAMES, strict=False):
                key = f"GridDiv{axis}"
                written = list(given.texts(key, numbers=True)) if key in given else [name]
                used = [value for value in written if value in self._lists or value not in BLOCK_SIZE_NAMES]
                divisors[axis.lower()] = [self.text.translated(item, given.place(key)) for item in used]
            return {"problem_size": list(sizes), "grid_divisors": divisors}
        problem = [self._axis("GlobalSize", axis) or "1" for axis in _AXES]
        if given.text("GlobalSizeType", given.text("Language")) != "CUDA":
            divisors = {axis.lower(): [size] for axis, size in zip(_AXES, block, strict=True) if size}
        return {"problem_size": problem, "grid_divisors": divisors}

    def _take(self, given: Section, *, is_opencl: bool) -> None:
        """Read one argument, which in OpenCL may be an array in local memory. Raises InputError."""
        name = given.text("Name", f"argument_{len(self._arguments) + 1}")
        kind, lanes = self._type(given)
        memory = given.text("MemoryType")
        if memory == "Local" and is_opencl:
            shape = self._size(given, lanes)
            self._arguments.append({"name": name, "type": kind, "shape": shape, "memory": "local"})
            return
        if memory == "Local":
            size = self._size(given, [])
            self._shared.append(f"({' * '.join([*size, str(np.dtype(kind).itemsize), *lanes])})")
            return
        if memory not in ("Scalar", "Vector", "Symbol"):
            raise given.wrong("MemoryType", "Scalar, Vector, Local or Symbol")
        document: dict[str, Any] = {"name": name, "type": kind}
        if memory == "Scalar" or (memory == "Symbol" and "Size" not in given):
            if lanes:
                raise given.wrong("Type", "a scalar of one number")
            value = given.value("FillValue") if "FillValue" in given else 0
            if isinstance(value, str):
                value = self.text.translated(value, given.place("FillValue"))
            document["value"] = value
        else:
            document["shape"] = self._size(given, lanes)
            document["fill"] = self._fill(given, name)
            document["output"] = bool(given.raw("Output")) or given.text("AccessType", "ReadOnly") != "ReadOnly"
        if memory == "Symbol" or given.text("MemType", "") == "Constant":
            document["memory"] = "constant"
        if "RandomSeed" in given:
            document["seed"] = abs(given.integer("RandomSeed", 0, least=-(2**62)) or 0)
        self._arguments.append(document)

    def _reference(self, given: Section) -> dict[str, str]:
        """What one output must be, as far as that can be checked here."""
        name, target = given.text("Name", "reference"), given.text("TargetName")
        threshold = given.number("ValidationThreshold", None, least=0)
        if threshold is not None:
            relative = given.text("ValidationMethod", "") == "SideBySideRelativeComparison"
            self._tolerances["rtol" if relative else "atol"] = threshold
        kind, source = given.text("FillType"), given.text("DataSource", "")
        if kind == "Constant":
            return {target: repr(given.number("FillValue", 0.0))}
        if kind == "BinaryRaw" and source.endswith(ARRAY_FILES):
            return {target: source}
        self.notes.append(f"'{target[:80]}' is not checked: its reference '{name[:80]}' is of kind {kind[:40]}")
        return {}

    def _type(self, given: Section) -> tuple[str, list[str]]:
        """The type of the numbers, and how many make one element."""
        written = given.text("Type")
        if written == "custom":
            return "uint8", [str(given.integer("TypeSize", 1, least=1, most=2**20) or 1)]
        if written in TYPES:
            return TYPES[written], []
        vector = _VECTOR.fullmatch(written)
        if vector is None or vector[1] not in TYPES:
            raise given.wrong("Type", f"one of {', '.join(TYPES)}, these with 2, 3, 4, 8 or 16 behind, or custom")
        return TYPES[vector[1]], [vector[2]]

    def _size(self, given: Section, lanes: Sequence[str]) -> list[str]:
        size = self.text.under(given, "Size")
        if len(size) != 1:
            raise given.wrong("Size", "a number, or an expression as text,")
        return [*size, *lanes]

    def _fill(self, given: Section, name: str) -> str:
        kind = given.text("FillType", "Constant")
        source = given.text("DataSource", "")
        if kind == "Constant":
            value = given.number("FillValue", 0.0) or 0.0
            return {0.0: "zeros", 1.0: "ones"}.get(value, repr(value))
        if kind == "Random":
            most = given.number("FillValue", 1.0)
            return "random" if most in (1.0, 0.0) else f"random * {most!r}"
        if kind == "Generator":
            parse(source, given.place("DataSource")).check_names(("i",), "use i, the element's place")
            return "range" if source.strip() == "i" else source
        if kind == "BinaryRaw" and source.endswith(ARRAY_FILES):
            return source
        if kind in ("Script", "BinaryHDF", "BinaryRaw"):
            why = _RUNS_A_PROGRAM if kind == "Script" else f"is filled from '{source[:80]}', which cannot be read here"
            self.refused = f"the argument '{name[:80]}' {why}"
            return "zeros"
        raise given.wrong("FillType", "Constant, Random, Generator, Script, BinaryRaw or BinaryHDF")


def _source(name: str, path: Path) -> str:
    """The kernel's file beside the specification, or where the folder above it is meant."""
    for folder in (".", ".."):
        if isfile(path.parent / folder / name):
            return str(Path(folder) / name)
    return name
