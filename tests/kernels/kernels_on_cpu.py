"""Runs the examples' kernels on the CPU (see cuda_on_cpu.h), launched as their specification says."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.base.paths import resources
from app.engine.results.measurement import Value
from app.engine.session.load import load_specification
from app.engine.space.array_expressions import number_type
from app.engine.space.expression import parse
from app.engine.specification.model import ArgumentSpec, Specification

HERE = Path(__file__).parent
EXAMPLES = {path: load_specification(path) for path in sorted((resources() / "examples").glob("*.toml"))}
CUDA_EXAMPLES = [path for path, spec in EXAMPLES.items() if spec.kernel is not None and spec.kernel.language == "CUDA"]
_C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned"}
_C_TYPES |= dict.fromkeys(("float16", "bfloat16"), "unsigned short")
_SHARED = "alignas(16) thread_local float shared[232448 / 4];"  # of dynamic size: under that name
_MARGIN = 256  # numbers before and behind every array, which nobody may touch

Arrays = dict[str, npt.NDArray[np.generic]]


def _nobody(kind: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """What stands where nobody may write."""
    return np.full(1, np.nan, kind) if kind.kind == "f" else np.frombuffer(b"\x5a" * kind.itemsize, kind)


def defines(values: Mapping[str, Value]) -> list[str]:
    """How constants and parameters reach a kernel's text."""
    return [f"#define {name} {int(value) if isinstance(value, bool) else value}" for name, value in values.items()]


class KernelOnCpu:
    """A specification's source, compiled for the CPU with one configuration's defines."""

    def __init__(self, spec: Specification, configuration: Mapping[str, Value], folder: Path) -> None:
        assert spec.kernel is not None
        self._kernel = spec.kernel
        self._scope = {**spec.constants, **configuration}
        source, library = folder / "kernel.cpp", folder / "kernel.so"
        source.write_text(self._text())
        command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{HERE}", "-o", str(library), str(source)]
        subprocess.run(command, check=True, timeout=60)
        self._library = ctypes.CDLL(str(library))

    def run(self, arrays: Arrays, name: str = "", backwards: bool = False, launches: int = 1) -> Arrays:
        """The outputs after that many launches on the same arrays, outputs empty before each.

        `name`: another kernel of the source. `backwards`: the last thread first.
        """
        arguments = self._kernel.arguments
        guarded = {argument.name: self._guarded(argument, arrays) for argument in arguments}
        pointers = [
            guarded[a.name].ctypes.data + (_MARGIN * guarded[a.name].itemsize if a.shape else 0) for a in arguments
        ]
        launch = getattr(self._library, f"launch_{name or self._kernel.name}")
        grid, block = (ctypes.c_uint * 3)(*self.grid()), (ctypes.c_uint * 3)(*self.block())
        for _ in range(launches):
            for argument in arguments:
                if argument.output:
                    guarded[argument.name][_MARGIN:-_MARGIN] = 0
            launch(grid, block, (ctypes.c_void_p * len(pointers))(*pointers), int(backwards))
        for argument in arguments:
            whole = guarded[argument.name]
            ends = np.concatenate([whole[:_MARGIN], whole[-_MARGIN:]]) if argument.shape else whole[:0]
            untouched = np.isnan(ends) if whole.dtype.kind == "f" else ends == _nobody(whole.dtype)
            assert untouched.all(), f"{argument.name} was written beyond its ends"
        return {a.name: guarded[a.name][_MARGIN:-_MARGIN].reshape(self.shape(a)) for a in arguments if a.output}

    def shape(self, argument: ArgumentSpec) -> tuple[int, ...]:
        return tuple(self._whole(text) for text in argument.shape)

    def grid(self) -> tuple[int, ...]:
        sizes = [self._whole(text) for text in self._kernel.problem_size]
        divisors = [self._kernel.grid_divisors.get(axis, ()) for axis in "xyz"]
        blocks = [-(-n // math.prod(map(self._whole, by))) for n, by in zip(sizes, divisors, strict=False)]
        return (*blocks, 1, 1)[:3]

    def block(self) -> tuple[int, ...]:
        names = self._kernel.block_size_names
        return tuple(1 if name.isidentifier() and name not in self._scope else self._whole(name) for name in names)

    def _whole(self, text: str) -> int:
        return int(parse(text, "test").number(self._scope))

    def _guarded(self, argument: ArgumentSpec, arrays: Arrays) -> npt.NDArray[np.generic]:
        if not argument.shape:
            return np.array([argument.value], dtype=argument.type)
        shape = self.shape(argument)
        kind = number_type(argument.type)
        whole = np.empty(math.prod(shape) + 2 * _MARGIN, dtype=kind)
        whole[:_MARGIN] = whole[-_MARGIN:] = _nobody(kind)
        whole[_MARGIN:-_MARGIN] = 0 if argument.output else arrays[argument.name].ravel()
        return whole

    def _text(self) -> str:
        lines = ['#include "cuda_on_cpu.h"', *defines(self._scope)]
        lines += [f'#include "{source}"' for source in self._kernel.sources]
        listed = [(f"({_C_TYPES[a.type]} *)given[{i}]", a) for i, a in enumerate(self._kernel.arguments)]
        casts = ", ".join(cast if a.shape else f"*{cast}" for cast, a in listed if a.memory == "global")
        constant = "".join(f"memcpy({a.name}, {cast}, sizeof {a.name}); " for cast, a in listed if a.memory != "global")
        lines += [_SHARED, "static void **given;"]
        reference = self._kernel.verify.reference if self._kernel.verify else ""
        for name in (self._kernel.name, *([reference] if reference.endswith("_reference") else [])):
            lines.append(f"static void call_{name}() {{ {name}({casts}); }}")
            lines.append(
                f'extern "C" void launch_{name}(unsigned *grid, unsigned *block, void **arguments, int backwards) '
                f"{{ given = arguments; {constant}cpu::run_grid(grid, block, call_{name}, backwards); }}"
            )
        return "\n".join(lines) + "\n"
