"""A kernel as a Python script describes it: text, launch and sizes by functions of the parameters, or by text.

The functions are the script's own and are called in its process, with a dict of the parameters. What they raise goes
to the script. The grid is the problem's size over the product of its divisors, divided as real numbers and rounded up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ...sensors.device_limits import DeviceLimits
from ..expressions.expression import parse
from ..measurement import Configuration, State, Value
from ..specification.model import ArgumentSpec, KernelSpec, Specification
from .cuda_arguments import Argument, Launch
from .source_kernel import Build, KernelRefused, SourceKernel

Parameters = dict[str, Value]
Amount = int | str | Callable[[Parameters], Any]  # a number, an expression, or a function of the parameters
AXES: Final = ("x", "y", "z")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_USUAL_BLOCK: Final = (256, 1, 1)  # along axes that no parameter names
_UNROLL: Final = "loop_unroll_factor"  # a parameter of such a name is the operand of a #pragma unroll


@dataclass(frozen=True, slots=True)
class ScriptedParts:
    """What a script says of its kernel. Sizes and divisors are along x, y and z."""

    source: str | Callable[[Parameters], str]  # the text itself
    problem_size: Sequence[Amount] | Callable[[Parameters], Any]
    grid_divisors: tuple[Sequence[Amount] | Callable[[Parameters], Any], ...]  # of each axis
    block_size_names: tuple[str, str, str]
    shared_byte: Amount = 0
    defines: Mapping[str, Any] | None = None  # in place of the parameters: text, numbers or functions
    folders: tuple[Path, ...] = field(default=())  # for #include
    settings: frozenset[str] = frozenset()  # device settings, which no kernel is compiled with
    chosen: Mapping[str, Callable[[Parameters], ArgumentSpec]] = field(default_factory=dict)  # arguments by parameters

    def parameters(self, configuration: Configuration) -> Parameters:
        """What the script's functions are given."""
        return {name: value for name, value in configuration.items() if name not in self.settings}


def scripted_kernel(
    spec: Specification, limits: DeviceLimits, shared_opt_in: int, parts: ScriptedParts
) -> ScriptedKernel:
    """The kernel of a specification as a script describes it."""
    assert spec.kernel is not None, "a script describes a kernel"
    return ScriptedKernel(spec, spec.kernel, limits, shared_opt_in, parts)


class ScriptedKernel(SourceKernel):
    """Prepares what the compiler and the launch need; checks its outputs as any kernel does."""

    def __init__(
        self, spec: Specification, kernel: KernelSpec, limits: DeviceLimits, shared_opt_in: int, parts: ScriptedParts
    ) -> None:
        super().__init__(spec, kernel, limits, shared_opt_in)
        self._parts = parts

    def hidden_parameters(self) -> str:
        return ""  # its source may differ from one configuration to the next

    def _launch(self, configuration: Configuration, scope: Mapping[str, Value]) -> tuple[Launch, int]:
        parameters = self._parts.parameters(configuration)
        sizes = self._sizes(parameters)
        launch = self._grid(parameters, sizes, least=1)
        shared = int(self._amount(self._parts.shared_byte, parameters, "smem_args"))
        return replace(launch, shared_byte=shared), math.prod(sizes)

    def _grid(self, parameters: Parameters, sizes: Sequence[int], least: int) -> Launch:
        """Raises KernelRefused where a size is less than the least, or nothing can be divided by its divisor."""
        parts = self._parts
        by = [
            math.prod(self._amount(each, parameters, f"grid_div_{axis}") for each in self._several(given, parameters))
            for axis, given in zip(AXES, parts.grid_divisors, strict=True)
        ]
        block = [
            int(parameters.get(name, usual)) for name, usual in zip(parts.block_size_names, _USUAL_BLOCK, strict=True)
        ]
        if not (min(sizes) >= least and min(by) > 0 and min(block) >= least):
            raise KernelRefused(State.CONSTRAINTS, f"problem {list(sizes)}, grid divisors {by}, block {block}")
        x, y, z = (math.ceil(size / divisor) for size, divisor in zip(sizes, by, strict=True))
        return Launch(self._kernel.name, (x, y, z), (block[0], block[1], block[2]))

    def _build(self, configuration: Configuration, values: Configuration, launch: Launch) -> Build:
        kernel, parameters = self._kernel, self._parts.parameters(configuration)
        if not self._dialect.launched:  # a function of the host finds a grid defined all the same
            launch = self._grid(parameters, self._sizes(parameters), least=0)
        source = self._parts.source
        text = source if isinstance(source, str) else source(parameters)
        if not isinstance(text, str):
            what = f"the function of the kernel's source returned {type(text).__name__}"
            raise InputError(what, self._where, "it must return the text")
        lines = []
        for name, value in self._defines(parameters, launch).items():
            if self._dialect.plain_pragmas and _UNROLL in name and name in parameters:
                if value == "0":  # leave it to the compiler
                    text = re.sub(rf"^[ \t]*#pragma\s+unroll\s*\(?\s*{re.escape(name)}\b.*$", "", text, flags=re.M)
                else:
                    lines.append(f"constexpr int {name} = {value};")  # a macro is not replaced in the #pragma
            else:
                lines.append(f"#define {name} {value}")
        lines += ["#line 1", text]
        if kernel.template:
            instance = f"{kernel.name}<{kernel.template}>"
            lines.append(f"template __global__ decltype({instance}) {instance};")
        wanted = "" if kernel.template else kernel.name
        return Build("\n".join(lines) + "\n", (), self._parts.folders, kernel.compiler_options, kernel=wanted)

    def _own_text(self, build: Build) -> str:
        return build.text

    def _argument(self, argument: ArgumentSpec, scope: Mapping[str, Value]) -> Argument:
        choose = self._parts.chosen.get(argument.name)
        if choose is not None:
            argument = choose({name: scope[name] for name in self._spec.parameters})
        return super()._argument(argument, scope)

    def _defines(self, parameters: Parameters, launch: Launch) -> dict[str, str]:
        """What the source finds defined: grid, block and parameters, unless the script says what."""
        if self._parts.defines is None:
            given: dict[str, Any] = {f"grid_size_{axis}": size for axis, size in zip(AXES, launch.grid, strict=True)}
            given |= dict(zip(self._parts.block_size_names, launch.block, strict=True))
            given |= {**parameters, "kernel_tuner": 1}
        else:
            given = {name: self._own(value, parameters) for name, value in self._parts.defines.items()}
        return {name: _as_c(value) for name, value in given.items()}

    def _own(self, value: Any, parameters: Parameters) -> Any:
        """One of the script's own definitions; in a text the names of parameters stand for their values."""
        if callable(value):
            return value(parameters)
        if isinstance(value, str):
            return _NAME.sub(lambda found: str(parameters.get(found[0], found[0])), value)
        return value

    def _sizes(self, parameters: Parameters) -> list[int]:
        given = self._several(self._parts.problem_size, parameters)
        if not 1 <= len(given) <= len(AXES):
            raise InputError(f"problem_size has {len(given)} dimensions", self._where, "give one, two or three")
        sizes = [self._amount(each, parameters, "problem_size") for each in given]
        return [*(int(size) for size in sizes), 1, 1][: len(AXES)]

    def _several(self, given: Any, parameters: Parameters) -> list[Any]:
        """One or several amounts, as the script gives them or its function returns them."""
        found = given(parameters) if callable(given) else given
        return list(found) if isinstance(found, Sequence) and not isinstance(found, str) else [found]

    def _amount(self, given: Any, parameters: Parameters, what: str) -> float:
        value = given(parameters) if callable(given) else given
        if isinstance(value, str):
            return parse(value, f"{self._where}: {what}").number(parameters)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"{what} is {value!r}", self._where, "a number, text or a function is needed") from None


def _as_c(value: Any) -> str:
    """A value as C++ has it; text stands as it is."""
    return str(int(value)) if isinstance(value, bool) else str(value).replace("\n", "\\\n")
