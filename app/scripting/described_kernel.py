"""A script's kernel as the engine takes it: a specification whose arrays are files, and the script's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.formats.names import DEVICE_SETTINGS
from ..engine.measurement import Value
from ..engine.specification.model import ArgumentSpec, KernelSpec, Specification, VerifySpec
from ..engine.workloads.cuda_source import parameter_names
from ..engine.workloads.dialect import DIALECTS
from ..engine.workloads.scripted_kernel import AXES, Parameters, ScriptedParts
from ..errors import InputError
from .accuracy import leaves
from .arrays import is_page_locked, to_numpy
from .sources import KernelSource, kernel_symbol
from .surroundings import script_path

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
        plain = not callable(size) and all(isinstance(each, int | str) and "," not in str(each) for each in size)
        return ", ".join(str(each) for each in size) if plain else ""  # type: ignore[union-attr]


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
    """Arrays are written to `folder`, which must outlast the measurements; None where no kernel will run.

    `compare` False leaves the check to a function. Raises InputError naming what cannot be used.
    """
    symbol, template = kernel_symbol(str(kernel_name))
    _check_language(source, template, smem_args, cmem_args)
    parameters, settings = _parameters(tune_params)
    blocks = _block_names(block_size_names, parameters)
    listed = _listed(arguments, "arguments")
    given = [
        _argument_of(next(leaves(each)) if _is_chosen(each) else each, f"arguments[{at}]", source)
        for at, each in enumerate(listed)
    ]
    names = _names(source, symbol, len(given))
    expected = _answer(answer, given, compare=compare)
    described = [
        _argument(folder, name, value, output=expected is not None and expected[at] is not None)
        for at, (name, value) in enumerate(zip(names, given, strict=True))
    ]
    if source.of_the_host:
        described = [
            replace(spec, memory="page-locked") if is_page_locked(each) else spec
            for spec, each in zip(described, listed, strict=True)
        ]
    chosen = {
        described[at].name: _choice(folder, each, described[at], f"arguments[{at}]", source)
        for at, each in enumerate(listed)
        if _is_chosen(each)
    }
    described += [
        replace(_argument(folder, str(name), np.atleast_1d(to_numpy(value, f"cmem_args[{name!r}]"))), memory="constant")
        for name, value in _mapped(cmem_args, "cmem_args").items()
    ]
    verify = None
    if expected is not None and compare and folder is not None:
        references = {
            name: _kept(folder, f"answer_{name}", each)
            for name, each in zip(names, expected, strict=True)
            if each is not None
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
            _divisors(each, block, axis, parameters) for each, block, axis in zip(grid_div, blocks, AXES, strict=True)
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
    for place, each in enumerate(leaves(argument)):
        spec = _argument(folder, f"{like.name}_{place}", _argument_of(each, where, source), output=like.output)
        described[id(each)] = replace(spec, name=like.name)
    return lambda parameters: described[id(argument.select_for_configuration(parameters))]


def _names(source: KernelSource, kernel: str, count: int) -> tuple[str, ...]:
    """Of the arguments, as the source has them; numbered where it does not say."""
    dialect = DIALECTS.get(source.language)
    text = source.text if isinstance(source.text, str) else ""
    found = parameter_names(text, kernel, dialect.qualifier) if dialect is not None else ()
    if len(found) == count and len(set(found)) == count:
        return found
    return tuple(f"argument_{at}" for at in range(count))


# --- inside -----------------------------------------------------------------------------------------------------------


def _check_language(source: KernelSource, template: str, smem_args: Any, cmem_args: Any) -> None:
    """Raises InputError for what only kernels in CUDA have."""
    if source.language == "CUDA":
        return
    own = "declare it in the kernel" if source.language == "OpenCL" else "leave it out"
    for name, given in (("smem_args", smem_args), ("cmem_args", cmem_args)):
        if given:
            raise InputError(f"{name} is for kernels in CUDA, and this one is in {source.language}", name, own)
    if template:
        what = f"'{template}' are arguments of a template, and only kernels in CUDA are instantiated"
        raise InputError(what, "kernel_name", "name a function that is no template")


def _argument_of(given: Any, where: str, source: KernelSource) -> Any:
    """An array or a scalar, on the host. Raises InputError."""
    if source.of_the_host and hasattr(given, "__cuda_array_interface__"):
        what = "it lies on a GPU, and a function of the host is called in another process"
        raise InputError(what, where, "pass a NumPy array, and let the function copy it")
    return to_numpy(given, where)


def _parameters(given: Any) -> tuple[dict[str, tuple[Value, ...]], dict[str, tuple[Value, ...]]]:
    """Parameters, and device settings by our names."""
    parameters: dict[str, tuple[Value, ...]] = {}
    settings: dict[str, tuple[Value, ...]] = {}
    for name, values in _mapped(given, "tune_params").items():
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
    spelt = {each.lower(): each for each in parameters if each not in BLOCK_SIZE_NAMES}
    usual = [spelt.get(each, each) for each in BLOCK_SIZE_NAMES]
    names = [str(each) for each in _listed(usual if given is None else given, "block_size_names")]
    if len(names) > len(BLOCK_SIZE_NAMES):
        raise InputError(f"there are {len(names)}", "block_size_names", "give at most three")
    x, y, z = (*names, *BLOCK_SIZE_NAMES[len(names) :])
    return x, y, z


def _sizes(given: Any) -> tuple[Any, ...]:
    several = given if isinstance(given, tuple | list) else (given,)
    sizes = tuple(each.item() if isinstance(each, np.generic) else each for each in several)
    for each in sizes:
        if isinstance(each, bool) or not (isinstance(each, int | str) or callable(each)):
            raise InputError(f"{each!r} is no size", "problem_size", "pass whole numbers, text or a function")
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
    for at, (each, argument) in enumerate(zip(listed, arguments, strict=True)):
        array = each if each is None or not compare else to_numpy(each, f"answer[{at}]")
        if array is not None and not isinstance(argument, np.ndarray):
            raise InputError("its argument is a scalar, which no kernel writes", f"answer[{at}]", "give None")
        if compare and array is not None and array.shape != argument.shape:
            what = f"it has shape {array.shape}, its argument {argument.shape}"
            raise InputError(what, f"answer[{at}]", "give the argument as it must be afterwards")
        expected.append(array)
    return expected if any(each is not None for each in expected) else None


def _scalars(names: Sequence[str], given: Sequence[Any], parameters: Mapping[str, Any]) -> dict[str, Value]:
    """Numbers that the kernel is called with: a profile of the simulated boards knows its sizes by their names."""
    named = zip(names, given, strict=True)
    return {name: each.item() for name, each in named if isinstance(each, np.generic) and name not in parameters}


def _argument(folder: Path | None, name: str, value: Any, *, output: bool = False) -> ArgumentSpec:
    kind = value.dtype.name
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return ArgumentSpec(name, kind, value=value.item())
    return ArgumentSpec(name, kind, tuple(map(str, value.shape)), _kept(folder, name, value), output=output)


def _kept(folder: Path | None, name: str, array: Any) -> str:
    """The path of a file with the array; zeros where none is needed."""
    if folder is None:
        return "zeros"
    path = folder / f"{name}.npy"
    np.save(path, array, allow_pickle=False)
    return str(path)
