"""A script's kernel for the engine: a specification whose arrays are files, and the functions of the script.

Text, launch and sizes are given as text or as functions of the parameters. The functions are called in the script's
process with a dict of the parameters, and their exceptions reach the script. The grid is the problem's size over the
product of its divisors, divided as real numbers and rounded up. Arguments may be arrays of any library that
`to_numpy` reads.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from ..engine.formats.names import DEVICE_SETTINGS
from ..engine.results.measurement import Configuration, State, Value
from ..engine.space.expression import parse
from ..engine.specification.model import ArgumentSpec, KernelSpec, Specification, VerifySpec
from ..engine.workloads.kernel_arguments import Argument, Launch
from ..engine.workloads.source_kernel import DIALECTS, Build, KernelRefused, SourceKernel, parameter_names
from ..sensors.limits import DeviceLimits
from .accuracy import leaves
from .sources import KernelSource, kernel_symbol
from .surroundings import script_path

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
        """The parameters that the script's functions are given.

        Parameters
        ----------
        configuration : mapping
            Parameters and device settings by name.

        Returns
        -------
        dict
            The parameters alone.
        """
        return {name: value for name, value in configuration.items() if name not in self.settings}


class ScriptedKernel(SourceKernel):
    """The kernel of a specification as a script describes it; its outputs are checked as those of any kernel."""

    def __init__(self, spec: Specification, limits: DeviceLimits, shared_opt_in: int, parts: ScriptedParts) -> None:
        assert spec.kernel is not None, "a script describes a kernel"
        super().__init__(spec, spec.kernel, limits, shared_opt_in)
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
        """Raises KernelRefused if a size is less than the least, or nothing can be divided by its divisor."""
        parts = self._parts
        by = [
            math.prod(self._amount(value, parameters, f"grid_div_{axis}") for value in self._several(given, parameters))
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
            return _NAME.sub(lambda match: str(parameters.get(match[0], match[0])), value)
        return value

    def _sizes(self, parameters: Parameters) -> list[int]:
        given = self._several(self._parts.problem_size, parameters)
        if not 1 <= len(given) <= len(AXES):
            raise InputError(f"problem_size has {len(given)} dimensions", self._where, "give one, two or three")
        sizes = [self._amount(value, parameters, "problem_size") for value in given]
        return [*(int(size) for size in sizes), 1, 1][: len(AXES)]

    def _several(self, given: Any, parameters: Parameters) -> list[Any]:
        """One or several amounts, as the script gives them or its function returns them."""
        amounts = given(parameters) if callable(given) else given
        return list(amounts) if isinstance(amounts, Sequence) and not isinstance(amounts, str) else [amounts]

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


Array = npt.NDArray[Any]
_PAGE_LOCKED = re.compile(r"HostAllocation|RegisteredHostMemory|PinnedMemory")  # what such an array is a view of
_KINDS = "biufc"  # of NumPy types that a kernel can be given


def to_numpy(value: Any, where: str) -> Any:
    """Convert an argument of a script to NumPy.

    What lies on a device is copied to the host.

    Parameters
    ----------
    value : array or NumPy scalar
        An array of NumPy, CuPy, PyTorch, JAX or anything with DLPack, or a scalar of NumPy.
    where : str
        What errors name as the place.

    Returns
    -------
    array or NumPy scalar
        A scalar as it is, an array as a contiguous one of NumPy.

    Raises
    ------
    InputError
        For anything else, for an empty array, a complex scalar, and numbers of no plain type.
    """
    if isinstance(value, np.generic):
        return _checked(value, where)
    if isinstance(value, bool | int | float | complex):
        kind = type(value).__name__
        raise InputError(f"it is {value!r}, a {kind} of Python", where, f"say which one: numpy.int32({value!r}), say")
    return _checked(np.ascontiguousarray(_on_host(value, where)), where)


def write_back(value: Any, host: Array, where: str) -> bool:
    """Copy to an array of CuPy, PyCUDA, Numba or PyTorch that `to_numpy` read what a kernel has made of it.

    Parameters
    ----------
    value : array
        The script's array.
    host : array
        The kernel's output, on the host.
    where : str
        What errors name as the place.

    Returns
    -------
    bool
        False if the array's library lets nobody write to it, as JAX.

    Raises
    ------
    InputError
        If the library does, but not to this array.
    """
    try:
        if hasattr(value, "detach") and hasattr(value, "copy_"):  # PyTorch
            value.detach().copy_(importlib.import_module("torch").from_numpy(host))
            return True
        for copies in ("set", "copy_to_device"):  # CuPy and PyCUDA; Numba
            if hasattr(value, "__cuda_array_interface__") and hasattr(value, copies):
                getattr(value, copies)(host)
                return True
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{type(value).__name__} is not written to: {error}", where, "pass a NumPy array") from None
    return False


def is_page_locked(value: Any) -> bool:
    """Whether an array of the host was made page-locked, by PyCUDA, CuPy or PyTorch: kernels may use it if it is.

    Parameters
    ----------
    value : array
        An array, or a view of one.

    Returns
    -------
    bool
        False also for what is no array.
    """
    if hasattr(value, "is_pinned"):  # PyTorch
        return bool(value.is_pinned())
    while value is not None:
        kind = type(value)
        if kind.__module__.partition(".")[0] in ("pycuda", "cupy") and _PAGE_LOCKED.search(kind.__name__):
            return True
        value = value.obj if isinstance(value, memoryview) else getattr(value, "base", None)
    return False


def _on_host(value: Any, where: str) -> Array:
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "detach") and hasattr(value, "cpu"):  # PyTorch
            return np.asarray(value.detach().cpu().numpy())
        for copies in ("get", "copy_to_host"):  # CuPy and PyCUDA; Numba
            if hasattr(value, "__cuda_array_interface__") and hasattr(value, copies):
                return np.asarray(getattr(value, copies)())
        if hasattr(value, "__array__"):  # JAX
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.asarray(np.from_dlpack(value))
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        remedy = "pass a NumPy array; of a type that NumPy lacks, a view as integers"
        raise InputError(f"{type(value).__name__} does not become a NumPy array: {error}", where, remedy) from None
    remedy = "pass a NumPy, CuPy, PyTorch or JAX array, or a NumPy scalar"
    raise InputError(f"it is of type {type(value).__name__}", where, remedy)


def _checked(value: Any, where: str) -> Any:
    if value.dtype.kind not in _KINDS:
        raise InputError(f"it has type {value.dtype}", where, "pass numbers of a plain type")
    if isinstance(value, np.ndarray) and value.size == 0:
        raise InputError("it is an empty array", where, "pass one with elements")
    if isinstance(value, np.generic) and value.dtype.kind == "c":
        raise InputError("it is a complex scalar", where, "pass its parts, or an array of one element")
    return value


BLOCK_SIZE_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_RESERVED = ("time", *(f"grid_size_{axis}" for axis in AXES))
RTOL = 1e-5  # numpy.allclose's own


@dataclass(frozen=True, slots=True)
class DescribedKernel:
    """The specification, what a script adds to it, and the names of the arguments in their order."""

    spec: Specification
    parts: ScriptedParts
    names: tuple[str, ...]
    answer: tuple[Any, ...] | None

    @property
    def problem_size(self) -> str:
        """As caches write it; '' where functions give it, or a text that a list of sizes cannot hold."""
        size = self.parts.problem_size
        plain = not callable(size) and all(isinstance(value, int | str) and "," not in str(value) for value in size)
        return ", ".join(str(value) for value in size) if plain else ""  # type: ignore[union-attr]


def describe_kernel(
    folder: Path | None,
    kernel_name: str,
    source: KernelSource,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Value]],
    *,
    grid_div: Sequence[Any] = (None, None, None),
    answer: Any = None,
    atol: float = 1e-6,
    compare: bool = True,
    smem_args: Any = None,
    cmem_args: Any = None,
    compiler_options: Any = None,
    block_size_names: Any = None,
    defines: Any = None,
    profile: str = "",
    timeout_s: float = 10.0,
) -> DescribedKernel:
    """Describe a script's kernel as a specification and what the script adds to it.

    Parameters
    ----------
    folder : Path or None
        Arrays are written to it, so it must outlast the measurements; None if no kernel will run.
    kernel_name : str
        The kernel's name; 'name<arguments>' instantiates a template.
    source : KernelSource
        Its source and language.
    problem_size : int, str, sequence of these or of callables, or callable
        The problem's size along x, y and z.
    arguments : sequence
        Arrays that `to_numpy` reads, NumPy scalars, or tunable arguments.
    tune_params : mapping
        Values of each parameter and device setting, by Kernel Tuner's names.
    grid_div : sequence, optional
        Divisors of the grid along x, y and z; None for the block size of that axis.
    answer : sequence or None, optional
        What the kernel must write, one entry for each argument, None for inputs; None for no check.
    atol : float, optional
        Absolute tolerance of the check, beside a relative one of 1e-5.
    compare : bool, optional
        False leaves the check to a function.
    smem_args, cmem_args : mapping or None, optional
        Size of the dynamic shared memory in bytes, and arrays in constant memory by symbol; of kernels in CUDA alone.
    compiler_options : sequence of str or None, optional
        Options that go to the compiler.
    block_size_names : sequence of str or None, optional
        Names of the parameters that are block sizes; None for 'block_size_x' and so on.
    defines : mapping or None, optional
        Definitions in the source in place of the parameters; None for the grid, the block and the parameters.
    profile : str, optional
        How simulated boards cost the kernel; empty for none.
    timeout_s : float, optional
        Longest time of one launch, in seconds.

    Returns
    -------
    DescribedKernel
        The specification with the names of the arguments.

    Raises
    ------
    InputError
        Naming what cannot be used.
    """
    symbol, template = kernel_symbol(str(kernel_name))
    _check_language(source, template, smem_args, cmem_args)
    parameters, settings = _parameters(tune_params)
    blocks = _block_names(block_size_names, parameters)
    listed = _listed(arguments, "arguments")
    given = [
        _argument_of(next(leaves(item)) if _is_chosen(item) else item, f"arguments[{index}]", source)
        for index, item in enumerate(listed)
    ]
    names = _names(source, symbol, len(given))
    expected = _answer(answer, given, compare=compare)
    described = [
        _argument(folder, name, value, output=expected is not None and expected[place] is not None)
        for place, (name, value) in enumerate(zip(names, given, strict=True))
    ]
    if source.of_the_host:
        described = [
            replace(spec, memory="page-locked") if is_page_locked(element) else spec
            for spec, element in zip(described, listed, strict=True)
        ]
    chosen = {
        described[index].name: _choice(folder, item, described[index], f"arguments[{index}]", source)
        for index, item in enumerate(listed)
        if _is_chosen(item)
    }
    described += [
        replace(_argument(folder, str(name), np.atleast_1d(to_numpy(value, f"cmem_args[{name!r}]"))), memory="constant")
        for name, value in _mapped(cmem_args, "cmem_args").items()
    ]
    verify = None
    if expected is not None and compare and folder is not None:
        references = {
            name: _kept(folder, f"answer_{name}", array)
            for name, array in zip(names, expected, strict=True)
            if array is not None
        }
        verify = VerifySpec("", rtol=RTOL, atol=float(atol), references=references)
    kernel = KernelSpec(
        name=symbol,
        sources=(),
        problem_size=(),
        arguments=tuple(described),
        verify=verify,
        profile=profile,
        compiler_options=(*map(str, _listed(compiler_options or (), "compiler_options")), *source.libraries),
        block_size_names=blocks,
        template=template,
        timeout_s=timeout_s,
        language=source.language,
        compiler=source.compiler,
    )
    parts = ScriptedParts(
        source=source.text,
        problem_size=problem_size if callable(problem_size) else _sizes(problem_size),
        grid_divisors=tuple(
            _divisors(given, block, axis, parameters) for given, block, axis in zip(grid_div, blocks, AXES, strict=True)
        ),
        block_size_names=blocks,
        shared_byte=_shared(smem_args),
        defines=None if defines is None else _mapped(defines, "defines"),
        folders=source.folders,
        settings=frozenset(settings),
        chosen=chosen,
    )
    spec = Specification(
        path=script_path(),
        name=symbol,
        parameters=parameters,
        constants=_scalars(names, given, parameters) if profile else {},
        kernel=kernel,
        device_settings=settings,
    )
    return DescribedKernel(spec, parts, names, None if expected is None else tuple(expected))


def _is_chosen(argument: Any) -> bool:
    """Whether it is one of several, chosen by the parameters: ours or Kernel Tuner's own."""
    return hasattr(argument, "select_for_configuration")


def _choice(
    folder: Path | None, argument: Any, like: ArgumentSpec, where: str, source: KernelSource
) -> Callable[[Parameters], ArgumentSpec]:
    """What describes the argument for given parameters."""
    described: dict[int, ArgumentSpec] = {}
    for place, leaf in enumerate(leaves(argument)):
        spec = _argument(folder, f"{like.name}_{place}", _argument_of(leaf, where, source), output=like.output)
        described[id(leaf)] = replace(spec, name=like.name)
    return lambda parameters: described[id(argument.select_for_configuration(parameters))]


def _names(source: KernelSource, kernel: str, count: int) -> tuple[str, ...]:
    """Of the arguments, as the source has them; numbered where it does not say."""
    dialect = DIALECTS.get(source.language)
    text = source.text if isinstance(source.text, str) else ""
    result = parameter_names(text, kernel, dialect.qualifier) if dialect is not None else ()
    if len(result) == count and len(set(result)) == count:
        return result
    return tuple(f"argument_{index}" for index in range(count))


# --- inside -----------------------------------------------------------------------------------------------------------


def _check_language(source: KernelSource, template: str, smem_args: Any, cmem_args: Any) -> None:
    """Raises InputError for what only kernels in CUDA have."""
    if source.language == "CUDA":
        return
    remedy = "declare it in the kernel" if source.language == "OpenCL" else "leave it out"
    for name, given in (("smem_args", smem_args), ("cmem_args", cmem_args)):
        if given:
            raise InputError(f"{name} is for kernels in CUDA, and this one is in {source.language}", name, remedy)
    if template:
        what = f"'{template}' are arguments of a template, and only kernels in CUDA are instantiated"
        raise InputError(what, "kernel_name", "name a function that is no template")


def _argument_of(given: Any, where: str, source: KernelSource) -> Any:
    """An array or a scalar, on the host. Raises InputError."""
    if source.of_the_host and hasattr(given, "__cuda_array_interface__"):
        what = "it lies on a GPU, and a function of the host is called in another process"
        raise InputError(what, where, "pass a NumPy array, and let the function copy it")
    return to_numpy(given, where)


def _parameters(given: Any) -> tuple[dict[str, Any], dict[str, tuple[Value, ...]]]:
    """Parameters, whose values may be a function of others, and device settings by our names."""
    parameters: dict[str, Any] = {}
    settings: dict[str, tuple[Value, ...]] = {}
    for name, values in _mapped(given, "tune_params").items():
        if callable(values) and name not in (*DEVICE_SETTINGS, *_RESERVED):
            parameters[name] = values
            continue
        plain = tuple(_plain(value, f"tune_params[{name!r}]") for value in _listed(values, f"tune_params[{name!r}]"))
        if not plain:
            raise InputError("it has no values", f"tune_params[{name!r}]", "list at least one")
        if name in _RESERVED:
            raise InputError(f"'{name}' is the name of something else", "tune_params", "rename it")
        (settings if name in DEVICE_SETTINGS else parameters)[DEVICE_SETTINGS.get(name, str(name))] = plain
    return parameters, settings


def _plain(value: Any, where: str) -> Value:
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, bool | int | float | str):
        raise InputError(f"the value {plain!r} is of type {type(plain).__name__}", where, "list numbers, flags or text")
    return plain


def _listed(given: Any, where: str) -> list[Any]:
    if isinstance(given, str | Mapping) or not hasattr(given, "__iter__"):
        raise InputError(f"it is of type {type(given).__name__}", where, "pass a list")
    return list(given)


def _mapped(given: Any, where: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"it is of type {type(given).__name__}", where, "pass a dict")
    return {str(name): value for name, value in given.items()}


def _block_names(given: Any, parameters: Mapping[str, Any]) -> tuple[str, str, str]:
    """As they are given, else the usual ones, as the parameters spell them: BLOCK_SIZE_X is one, too."""
    spelt = {parameter.lower(): parameter for parameter in parameters if parameter not in BLOCK_SIZE_NAMES}
    usual = [spelt.get(value, value) for value in BLOCK_SIZE_NAMES]
    names = [str(entry) for entry in _listed(usual if given is None else given, "block_size_names")]
    if len(names) > len(BLOCK_SIZE_NAMES):
        raise InputError(f"there are {len(names)}", "block_size_names", "give at most three")
    x, y, z = (*names, *BLOCK_SIZE_NAMES[len(names) :])
    return x, y, z


def _sizes(given: Any) -> tuple[Any, ...]:
    several = given if isinstance(given, tuple | list) else (given,)
    sizes = tuple(item.item() if isinstance(item, np.generic) else item for item in several)
    for size in sizes:
        if isinstance(size, bool) or not (isinstance(size, int | str) or callable(size)):
            raise InputError(f"{size!r} is no size", "problem_size", "pass whole numbers, text or a function")
    return sizes


def _divisors(given: Any, block: str, axis: str, parameters: Mapping[str, Any]) -> Any:
    if given is None:
        return (block,) if block in parameters else ()
    if callable(given):
        return given
    return tuple(_listed([given] if isinstance(given, str) else given, f"grid_div_{axis}"))


def _shared(given: Any) -> Any:
    named = _mapped(given, "smem_args")
    unknown = set(named) - {"size"}
    if unknown:
        raise InputError(f"'{sorted(unknown)[0]}' is not known", "smem_args", "give size, in bytes")
    size = named.get("size", 0)
    return size.item() if isinstance(size, np.generic) else size


def _answer(given: Any, arguments: Sequence[Any], *, compare: bool) -> list[Any] | None:
    """What is expected of each argument; for a function that compares, whatever it wants to see."""
    if given is None:
        return None
    listed = _listed(given, "answer")
    if len(listed) != len(arguments):
        what = f"it has {len(listed)} entries, and there are {len(arguments)} arguments"
        raise InputError(what, "answer", "give one for each, None for inputs")
    expected: list[Any] = []
    for index, (value, argument) in enumerate(zip(listed, arguments, strict=True)):
        array = value if value is None or not compare else to_numpy(value, f"answer[{index}]")
        if array is not None and not isinstance(argument, np.ndarray):
            raise InputError("its argument is a scalar, which no kernel writes", f"answer[{index}]", "give None")
        if compare and array is not None and array.shape != argument.shape:
            what = f"it has shape {array.shape}, its argument {argument.shape}"
            raise InputError(what, f"answer[{index}]", "give the argument as it must be afterwards")
        expected.append(array)
    return expected if any(item is not None for item in expected) else None


def _scalars(names: Sequence[str], given: Sequence[Any], parameters: Mapping[str, Any]) -> dict[str, Value]:
    """Numbers that the kernel is called with: a profile of the simulated boards knows its sizes by their names."""
    named = zip(names, given, strict=True)
    return {name: value.item() for name, value in named if isinstance(value, np.generic) and name not in parameters}


def _argument(folder: Path | None, name: str, value: Any, *, output: bool = False) -> ArgumentSpec:
    kind = value.dtype.name
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return ArgumentSpec(name, kind, value=value.item())
    return ArgumentSpec(name, kind, tuple(map(str, value.shape)), _kept(folder, name, value), output=output)


def _kept(folder: Path | None, name: str, array: Any) -> str:
    """The path of a file with the array; zeros if none is needed."""
    if folder is None:
        return "zeros"
    path = folder / f"{name}.npy"
    np.save(path, array, allow_pickle=False)
    return str(path)
