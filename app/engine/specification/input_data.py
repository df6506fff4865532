"""What the arrays of a kernel hold. A board draws more for numbers at random than for zeros: fewer bits change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ...base.files import is_there
from ..results.process import DATA, OWN_DATA
from .model import ARRAY_FILES, ArgumentSpec, Specification

FILLED: Final = ("zeros", "ones", "random", "range")
_CONSTANT: Final = ("zeros", "ones")
MEASURE_IT: Final = "real data may draw more: wattridge check {} --inputs zeros,random measures by how much"


def parse_inputs(text: str, where: str = "--inputs") -> tuple[str, ...]:
    """The data that 'zeros,random,file.npy' names; files by their absolute paths. Raises InputError."""
    named = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in named:
        if name.endswith(ARRAY_FILES) and not is_there(Path(name)):
            raise InputError("there is no such file", name, "write one with numpy.save")
        if not is_data(name):
            raise InputError(f"'{name}' is no data", where, f"some of {', '.join((OWN_DATA, *FILLED))}, FILE.npy")
    return tuple(str(Path(name).resolve()) if name.endswith(ARRAY_FILES) else name for name in named)


def is_data(text: str) -> bool:
    """Whether it names what arrays may hold: a fill, a file or 'own'."""
    return text in (OWN_DATA, *FILLED) or text.endswith(ARRAY_FILES)


def with_inputs(spec: Specification, inputs: Sequence[str]) -> Specification:
    """The specification with its data as a dimension. Raises InputError where its arguments have no numbers."""
    if spec.kernel is None or not any(map(_is_input, spec.kernel.arguments)):
        remedy = "the data of a program or a service is its own: give it as one of their parameters"
        raise InputError("there are no arrays of floating-point numbers to fill", str(spec.path), remedy)
    return replace(spec, parameters={**spec.parameters, DATA: tuple(inputs)})


def filled_with(argument: ArgumentSpec, data: object) -> str:
    """The fill of an argument for a value of `input_data`; whole numbers, which may be places, keep their own."""
    return argument.fill if data == OWN_DATA or not _is_input(argument) else str(data)


def data_in_words(spec: Specification) -> str:
    """'a, b: random; c: zeros'; empty without arrays."""
    holds: dict[str, list[str]] = {}
    for argument in spec.kernel.arguments if spec.kernel is not None else ():
        if argument.shape and not argument.output:
            varied = DATA in spec.parameters and _is_input(argument)
            fill = Path(argument.fill).name if argument.fill.endswith(ARRAY_FILES) else argument.fill
            holds.setdefault(f"by {DATA}" if varied else fill, []).append(argument.name)
    return "; ".join(f"{', '.join(names)}: {fill}" for fill, names in holds.items())


def note_on_data(spec: Specification) -> str:
    """The remark on arrays that all hold one number; empty where there are others, or none."""
    arrays = [a for a in (spec.kernel.arguments if spec.kernel is not None else ()) if _is_input(a)]
    if not arrays or DATA in spec.parameters or any(argument.fill not in _CONSTANT for argument in arrays):
        return ""
    return f"its arguments are all zeros or constant; {MEASURE_IT.format(spec.path.name)}"


def _is_input(argument: ArgumentSpec) -> bool:
    numbers = argument.type.startswith(("float", "bfloat", "complex"))
    return bool(argument.shape) and not argument.output and argument.memory != "local" and numbers
