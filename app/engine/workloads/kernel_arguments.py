"""What a kernel is called with, as plain data that crosses a pipe, and the arrays made of it in the runner process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.files import open_input
from ..space.array_expressions import BFLOAT16, cast, number_type
from ..specification.model import ARRAY_FILES

Array = npt.NDArray[Any]
MAX_BYTES: Final = 1 << 38  # of one array: a larger one is a mistake in a shape


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel of an image, and how it is launched."""

    name: str  # as the image has it
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_byte: int = 0  # dynamic
    sms: int = 0  # that it may run on; 0: all, and nothing is counted
    pause_s: float = 0.0  # of the host after each launch

    def as_message(self, name: str | None = None) -> dict[str, Any]:
        """As plain data, under another name where the image has one."""
        return {**asdict(self), "name": name or self.name}

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> Launch:
        """The reverse of `as_message`."""
        return cls(**{**message, "grid": tuple(message["grid"]), "block": tuple(message["block"])})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, its shape and value calculated. `shape` None: a scalar."""

    name: str
    type: str  # a NumPy type name
    shape: tuple[int, ...] | None
    fill: str  # zeros, ones, random, range, the path of a file, or an expression of `i` and `random`
    value: float | int | bool | None
    output: bool
    constant: bool  # goes to the __constant__ symbol of that name instead of the parameter list
    seed: int
    local: bool = False  # an array of a work-group, which holds nothing before
    by_reference: bool = False  # a scalar whose address is passed
    page_locked: bool = False  # an array of the host that the board reads and writes, too


@dataclass(frozen=True, slots=True)
class Reference:
    """What one output is checked against: an array expression, a .npy file, or a kernel of the same source."""

    output: str  # empty for a kernel: it writes every output
    text: str
    kind: str  # expression, file or kernel
    rtol: float
    atol: float


@dataclass(frozen=True, slots=True)
class CallPlan:
    """All arguments in the kernel's order, and what its outputs are checked against."""

    arguments: tuple[Argument, ...]
    references: tuple[Reference, ...]
    constants: Mapping[str, float]  # numbers that array expressions may name

    def as_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> CallPlan:
        arguments = tuple(
            Argument(**{**given, "shape": None if given["shape"] is None else tuple(given["shape"])})
            for given in message["arguments"]
        )
        return cls(arguments, tuple(Reference(**given) for given in message["references"]), message["constants"])

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.output)


def make_array(argument: Argument, place: int) -> Array:
    """The array of an argument, or a NumPy scalar as an array without dimensions. Raises InputError."""
    kind = number_type(argument.type)
    if argument.shape is None:
        with np.errstate(all="ignore"):
            return cast(np.asarray(argument.value), kind)
    if math.prod(argument.shape) * kind.itemsize > MAX_BYTES:
        raise InputError(f"the array has shape {argument.shape}", argument.name, "make it smaller")
    if argument.fill == "zeros":
        return np.zeros(argument.shape, kind)
    if argument.fill == "ones":
        return cast(np.ones(argument.shape, np.float32), kind)
    if argument.fill == "range":
        return cast(np.arange(math.prod(argument.shape)), kind).reshape(argument.shape)
    if argument.fill == "normal":
        rng = np.random.default_rng([argument.seed, place])
        return cast(rng.standard_normal(argument.shape, np.float32), kind)
    if argument.fill == "random":
        return _random(argument.shape, kind, np.random.default_rng([argument.seed, place]))
    if argument.fill.endswith(ARRAY_FILES):
        return read_array(Path(argument.fill), argument.shape, kind)
    return _calculated_array(argument, kind, np.random.default_rng([argument.seed, place]))


def _calculated_array(argument: Argument, kind: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Every element by an expression of its place `i` and of `random`, evenly spread over [0, 1). Raises InputError."""
    from ..space.expression import parse

    assert argument.shape is not None
    size = math.prod(argument.shape)
    expression = parse(argument.fill, f"arguments.{argument.name}.fill")
    scope = {"i": np.arange(size, dtype=np.int64), "random": rng.random(size)}
    with np.errstate(all="ignore"):
        elements = cast(np.asarray(expression.evaluate({name: scope[name] for name in expression.names})), kind)
    return np.ascontiguousarray(np.broadcast_to(elements, (size,)).reshape(argument.shape))


def _random(shape: Sequence[int], kind: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Floats evenly spread over [0, 1), whole numbers over 0..99, flags even."""
    if kind == BFLOAT16:
        return cast(rng.random(shape, dtype=np.float32), kind)
    if kind.kind == "f":
        return rng.random(shape, dtype=np.float64 if kind.itemsize == 8 else np.float32).astype(kind, copy=False)
    if kind.kind == "c":
        return (rng.random(shape) + 1j * rng.random(shape)).astype(kind)
    return rng.integers(0, 2 if kind.kind == "b" else 100, shape).astype(kind)


def read_array(path: Path, shape: Sequence[int] | None, kind: np.dtype[Any] | None = None) -> Array:
    """An array from a .npy file, or from one of bare numbers, of that shape and type. Raises InputError."""
    if path.suffix != ".npy" and shape is not None and kind is not None:
        return _bare_numbers(path, shape, kind)
    try:
        with open_input(path) as file:
            loaded = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"not a .npy file: {error}", str(path), "write it with numpy.save") from None
    if not isinstance(loaded, np.ndarray) or (shape is not None and loaded.shape != tuple(shape)):
        shaped = getattr(loaded, "shape", "no array")
        raise InputError(f"it has shape {shaped} instead of {tuple(shape or ())}", str(path), "write it in that shape")
    return cast(np.ascontiguousarray(loaded), kind or loaded.dtype)


def _bare_numbers(path: Path, shape: Sequence[int], kind: np.dtype[Any]) -> Array:
    size = math.prod(shape)
    try:
        with open_input(path) as file:
            content = file.read(size * kind.itemsize)
        loaded = np.frombuffer(content, kind, len(content) // kind.itemsize).copy()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(path), "check the path") from None
    if loaded.size != size:
        what = f"it holds {loaded.size} numbers of type {kind} instead of {size}"
        raise InputError(what, str(path), "write it as long as the argument")
    return loaded.reshape(shape)


def make_references(plan: CallPlan, arrays: Mapping[str, Array], scratch: Path | None) -> dict[str, Array]:
    """What outputs must be, of their shapes and types, where an expression or a file says so.

    `scratch` keeps what was calculated, for the process that takes over. Raises InputError.
    """
    result: dict[str, Array] = {}
    for reference in plan.references:
        if reference.kind == "kernel":
            continue
        like = arrays[reference.output]
        if reference.kind == "file":
            result[reference.output] = read_array(Path(reference.text), like.shape, like.dtype)
            continue
        kept = scratch / f"{reference.output}.npy" if scratch else None
        if kept is not None and kept.is_file():
            result[reference.output] = read_array(kept, like.shape, like.dtype)
            continue
        result[reference.output] = _calculated(reference, plan, arrays, like)
        if kept is not None:
            unfinished = kept.with_suffix(".part")
            with unfinished.open("wb") as file:
                np.save(file, result[reference.output])
            unfinished.replace(kept)
    return result


def _calculated(reference: Reference, plan: CallPlan, arrays: Mapping[str, Array], like: Array) -> Array:
    from ..space.array_expressions import evaluate_array

    value = evaluate_array(reference.text, "verify.reference", {**plan.constants, **arrays})
    if value.size != like.size and value.size != 1:
        raise InputError(
            f"'{reference.text}' has shape {value.shape}, but {reference.output} has {like.shape}",
            "verify.reference",
            "write an expression of the output's shape",
        )
    with np.errstate(all="ignore"):
        shaped = np.broadcast_to(value, like.shape) if value.size == 1 else value.reshape(like.shape)
        return np.ascontiguousarray(cast(shaped, like.dtype))
