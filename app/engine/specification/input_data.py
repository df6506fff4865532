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

FILLED: Final = ("zeros", "ones", "random", "normal", "range")
_CONSTANT: Final = ("zeros", "ones")
MEASURE_IT: Final = "real data may draw more: wattridge check {} --inputs zeros,random measures by how much"


def parse_inputs(text: str, where: str = "--inputs", folder: Path | None = None) -> tuple[str, ...]:
    """The data that 'zeros,random,file.npy' names; files of that folder by their absolute paths. Raises InputError."""
    data = []
    for name in dict.fromkeys(part.strip() for part in text.split(",")):
        if not is_data(name):
            raise InputError(f"'{name}' is no data", where, f"some of {', '.join((OWN_DATA, *FILLED))}, FILE.npy")
        path = (folder or Path()) / name
        if name.endswith(ARRAY_FILES) and not is_there(path):
            raise InputError("there is no such file", str(path), "write one with numpy.save")
        data.append(str(path.resolve()) if name.endswith(ARRAY_FILES) else name)
    return tuple(data)


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
            chosen = spec.parameters.get(DATA, (OWN_DATA,))
            fill = filled_with(argument, chosen[0]) if len(chosen) == 1 or not _is_input(argument) else f"by {DATA}"
            holds.setdefault(Path(fill).name, []).append(argument.name)
    return "; ".join(f"{', '.join(names)}: {fill}" for fill, names in holds.items())


def note_on_data(spec: Specification) -> str:
    """The remark on arrays that all hold one number; empty where there are others, or none."""
    arrays = [a for a in (spec.kernel.arguments if spec.kernel is not None else ()) if _is_input(a)]
    if not arrays or DATA in spec.parameters or any(argument.fill not in _CONSTANT for argument in arrays):
        return ""
    return f"its arguments are all zeros or constant; {MEASURE_IT.format(spec.path)}"


def _is_input(argument: ArgumentSpec) -> bool:
    numbers = argument.type.startswith(("float", "bfloat", "complex"))
    return bool(argument.shape) and not argument.output and argument.memory != "local" and numbers
