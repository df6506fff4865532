"""A specification as T1 (JSON): Kernel Tuner, KTT and the field's benchmarks read it; this program reads it back whole.

T1 has no words for constants, device limits, values that depend on other parameters, metrics and objectives. What the
others need of these is written out in numbers; the specification itself is added under a key of our own.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import __version__
from ...base.errors import InputError
from ...base.files import write_text
from ...sensors.limits import DeviceLimits
from ..results.measurement import Value
from ..space.expression import parse
from ..space.search_space import SearchSpace
from ..space.values import parse_values
from ..specification.document import document_of, relative
from ..specification.model import ARRAY_FILES, ArgumentSpec, KernelSpec, Specification
from .entries import OWN
from .names import THEIR_SETTINGS
from .t1 import digest
from .t1_kernel import TYPES
from .t1_text import inlined

_TYPE_NAMES = {ours: theirs for theirs, ours in reversed(TYPES.items())}
_WITHOUT_NAME = {"complex64": 8, "complex128": 16, "bfloat16": 2}  # bytes


def write_t1(
    spec: Specification, space: SearchSpace, limits: DeviceLimits, path: Path, *, overwrite: bool = False
) -> Path:
    """Write a specification whose space was built with these limits; returns the path.

    Raises InputError for a specification of a command, WattridgeError as `write_text` does.
    """
    if spec.command is not None or spec.service is not None:
        raise InputError(
            "T1 describes kernels, not commands or services", str(spec.path), "keep the specification in TOML"
        )
    document = _Writing(spec, space, limits, path.parent).document()
    own = {"version": __version__, "digest": digest(document), "specification": document_of(spec, path.parent)}
    text = json.dumps(document | {OWN: own}, indent=2, ensure_ascii=False)
    return write_text(path, f"{text}\n", overwrite=overwrite)


class _Writing:
    def __init__(self, spec: Specification, space: SearchSpace, limits: DeviceLimits, folder: Path) -> None:
        self._spec = spec
        self._values = {parameter.name: parameter.values for parameter in space.parameters}
        self._folder = folder
        self._known: dict[str, Value] = {**limits.as_names(), **spec.constants}  # names that other readers lack
        self._where = str(spec.path)

    def document(self) -> dict[str, Any]:
        """All but what is ours."""
        spec = self._spec
        attributes = [{"Name": name, "Value": value} for name, value in spec.strategy_options.items()]
        document: dict[str, Any] = {
            "General": {"BenchmarkName": spec.name, "OutputFormat": "JSON"},
            "ConfigurationSpace": {"TuningParameters": self._parameters(), "Conditions": self._conditions()},
            "Search": {"Name": spec.strategy, "Attributes": attributes},
        }
        budget = {
            "ConfigurationCount": spec.max_evaluations,
            "ConfigurationFraction": spec.max_fraction,
            "TuningDuration": spec.max_seconds,
        }
        given = [{"Type": kind, "BudgetValue": value} for kind, value in budget.items() if value is not None]
        if given:
            document["Budget"] = given
        if spec.kernel is not None:
            document["KernelSpecification"] = self._kernel(spec.kernel)
        return document

    # --- the space --------------------------------------------------------------------------------------------------

    def _parameters(self) -> list[dict[str, str]]:
        listed: dict[str, Sequence[Value]] = {}
        for name, given in self._spec.parameters.items():
            listed[name] = self._values[name] if isinstance(given, str) else given
        for name in self._spec.device_settings:
            if name in self._values and name in THEIR_SETTINGS:
                listed[THEIR_SETTINGS[name]] = self._values[name]
        return [{"Name": n, "Type": _type_of(values), "Values": _list_text(values)} for n, values in listed.items()]

    def _conditions(self) -> list[dict[str, Any]]:
        ties = [self._tie(name, given) for name, given in self._spec.parameters.items() if isinstance(given, str)]
        conditions = []
        for text in [*(self._inlined(text) for text in self._spec.restrictions), *filter(None, ties)]:
            names = parse(text, self._where).names
            if names:
                conditions.append({"Expression": text, "Parameters": list(names)})
        return conditions

    def _tie(self, name: str, given: str) -> str:
        """What ties a parameter's values to those it depends on; '' where it depends on none."""
        values = parse_values(given, self._where)
        if not any(needed in self._spec.parameters for needed in values.names):
            return ""
        parts = [f"({self._inlined(ast.unparse(part.tree))})" for part in values.parts]
        if not values.is_range:
            return " or ".join(f"{name} == {part}" for part in parts)
        start, stop, step = parts
        inside = f"({step} > 0 and {start} <= {name} < {stop} or {step} < 0 and {start} >= {name} > {stop})"
        return f"{inside} and ({name} - {start}) % {step} == 0"

    # --- the kernel -------------------------------------------------------------------------------------------------

    def _kernel(self, kernel: KernelSpec) -> dict[str, Any]:
        block = [self._block(text) for text in kernel.block_size_names]
        divisors = {axis: [self._inlined(text) for text in texts] for axis, texts in kernel.grid_divisors.items()}
        sizes = [self._inlined(text) for text in kernel.problem_size]
        document: dict[str, Any] = {
            "Language": kernel.language,
            "CompilerOptions": list(kernel.compiler_options),
            "KernelName": kernel.name,
            "KernelFile": relative(kernel.sources[0], self._folder) if kernel.sources else "",
            "GlobalSizeType": "CUDA",
            "GlobalSize": {
                axis: _blocks(sizes[index : index + 1], divisors.get(axis.lower(), []))
                for index, axis in enumerate("XYZ")
            },
            "LocalSize": dict(zip("XYZ", block, strict=True)),
        }
        if sizes:
            document["ProblemSize"] = [_number(size) for size in sizes]
            document |= {f"GridDiv{axis}": divisors.get(axis.lower(), []) for axis in "XYZ"[: len(sizes)]}
        document["SharedMemory"] = _number(self._inlined(kernel.shared_memory))
        document["Arguments"] = [self._argument(argument) for argument in kernel.arguments]
        return document

    def _block(self, text: str) -> str:
        """A block size; a name that is no parameter stands for 1."""
        known = text in self._spec.parameters or text in self._spec.constants or not text.isidentifier()
        return self._inlined(text) if known else "1"

    def _argument(self, argument: ArgumentSpec) -> dict[str, Any]:
        name = _TYPE_NAMES.get(argument.type)
        document: dict[str, Any] = {"Name": argument.name, "Type": name or "custom"}
        if name is None:
            document["TypeSize"] = _WITHOUT_NAME[argument.type]
        if argument.value is not None:
            value = argument.value
            document |= {"MemoryType": "Scalar", "AccessType": "ReadOnly", "FillType": "Constant"}
            document["FillValue"] = _number(self._inlined(value)) if isinstance(value, str) else value
        else:
            size = " * ".join(f"({self._inlined(text)})" for text in argument.shape) or "1"
            document |= {"MemoryType": "Vector", "Size": _number(size), **_fill(argument.fill, self._folder)}
            document["AccessType"] = "ReadWrite" if argument.output else "ReadOnly"
            if argument.output:
                document["Output"] = 1
        if argument.memory == "local":
            document = {key: document[key] for key in ("Name", "Type", "TypeSize", "Size") if key in document}
            return {**document, "MemoryType": "Local", "AccessType": "ReadWrite"}
        if argument.memory == "constant":
            document["MemType"] = "Constant"
        if argument.seed is not None:
            document["RandomSeed"] = argument.seed
        return document

    def _inlined(self, text: str) -> str:
        return inlined(text, self._where, self._known, THEIR_SETTINGS)


def _blocks(size: Sequence[str], divisors: Sequence[str]) -> str:
    """The grid along one axis, in blocks."""
    if not size:
        return "1"
    by = " * ".join(f"({divisor})" for divisor in divisors)
    return f"-(-({size[0]}) // ({by}))" if divisors else size[0]


def _fill(fill: str, folder: Path) -> dict[str, Any]:
    if fill.endswith(ARRAY_FILES):
        return {"FillType": "BinaryRaw", "DataSource": relative(Path(fill), folder)}
    if fill in ("zeros", "ones"):
        return {"FillType": "Constant", "FillValue": float(fill == "ones")}
    if fill == "random":
        return {"FillType": "Random", "FillValue": 1.0}
    scaled = fill.removeprefix("random * ")
    if scaled != fill and isinstance(_number(scaled), float | int):
        return {"FillType": "Random", "FillValue": _number(scaled)}
    if isinstance(_number(fill), float | int):
        return {"FillType": "Constant", "FillValue": _number(fill)}
    return {"FillType": "Generator", "DataSource": "i" if fill == "range" else fill}


def _number(text: str) -> int | float | str:
    """The number that an expression stands for; the expression where it needs a parameter."""
    expression = parse(text, "")
    if expression.names:
        return text
    value = expression.number({})
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _type_of(values: Sequence[Value]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    return "float" if kinds <= {int, float} else "string"


def _list_text(values: Sequence[Value]) -> str:
    """A list that Python and this program read alike."""
    if all(isinstance(value, str) or not isinstance(value, bool) for value in values):
        return json.dumps(list(values))
    return repr(list(values))
