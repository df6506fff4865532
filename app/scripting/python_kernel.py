"""`PythonKernel`, as Kernel Tuner's `kernelbuilder` has it: one configuration of a kernel as a Python function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .arrays import write_back
from .kernel_tuner import run_kernel


class PythonKernel:
    """A kernel to be called with its arguments. Each call compiles what is not kept, and launches in a new process."""

    def __init__(
        self,
        kernel_name: str,
        kernel_string: Any,
        problem_size: Any,
        arguments: Sequence[Any],
        params: Mapping[str, Any] | None = None,
        inputs: Sequence[bool] | None = None,
        outputs: Sequence[bool] | None = None,
        device: int = 0,
        platform: int = 0,
        block_size_names: Sequence[str] | None = None,
        grid_div_x: Any = None,
        grid_div_y: Any = None,
        grid_div_z: Any = None,
        verbose: bool = True,
        lang: str | None = None,
        results_file: str | None = None,
    ) -> None:
        """`inputs` are the arguments that a call brings, by default all; the others stay as the call before left them.

        `outputs` are those that it returns, by default all arrays. One of CuPy, PyCUDA, Numba or PyTorch is not
        returned, but holds after a call what the kernel has written. Raises InputError.
        """
        if results_file is not None:
            raise InputError("results_file is not supported", "PythonKernel", "pass the best parameters as params")
        for name, given in (("inputs", inputs), ("outputs", outputs)):
            if given is not None and len(given) != len(arguments):
                what = f"it has {len(given)} entries, and there are {len(arguments)} arguments"
                raise InputError(what, name, "give one for each")
        self.params = dict(params or {})
        self._inputs = list(inputs or [True] * len(arguments))
        self._outputs = list(outputs or [True] * len(arguments))
        self._held = list(arguments)
        self._kernel = (kernel_name, kernel_string, problem_size)
        self._options = {
            "device": device,
            "platform": platform,
            "block_size_names": block_size_names,
            "grid_div_x": grid_div_x,
            "grid_div_y": grid_div_y,
            "grid_div_z": grid_div_z,
            "lang": lang,
            "quiet": True,
        }

    def run_kernel(self, args: Sequence[Any]) -> list[Any]:
        """Launch it once; the outputs, always as a list. Raises as `run_kernel` of a script does."""
        if len(args) != len(self._held):
            what = f"it is called with {len(args)} arguments instead of {len(self._held)}"
            raise InputError(what, self._kernel[0], "give all of them")
        given = [
            arg if brought or not isinstance(held, np.ndarray) else held
            for arg, held, brought in zip(args, self._held, self._inputs, strict=True)
        ]
        name, source, size = self._kernel
        self._held = run_kernel(name, source, size, given, self.params, **self._options)
        returned = []
        for at, (arg, written, wanted) in enumerate(zip(args, self._held, self._outputs, strict=True)):
            if not wanted or not isinstance(written, np.ndarray):
                continue
            if isinstance(arg, np.ndarray) or not write_back(arg, written, f"arguments[{at}]"):
                returned.append(written)
        return returned

    def __call__(self, *args: Any) -> list[Any]:
        """As `run_kernel` with these arguments."""
        return self.run_kernel(args)
