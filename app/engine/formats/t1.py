"""T1, the field's format of tuning problems (JSON), read and written: it gives the same specification as TOML.

T1 has no words for constants, device limits, values that depend on other parameters, metrics and objectives. What other
readers (Kernel Tuner, KTT, the field's benchmarks) need of these is written out in numbers; the specification itself is
added under a key of our own, so that it reads back whole. In a file without that key the time is minimised, as Kernel
Tuner does, unless it holds an objective.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ... import __version__
from ...base.errors import InputError
from ...base.files import read_text, text_chunks, write_text
from ...sensors.limits import DeviceLimits
from ..results.measurement import Value
from ..results.settings import UNTOUCHED
from ..space.expression import parse
from ..space.search_space import SearchSpace
from ..space.values import parse_values
from ..specification.check import specification_of
from ..specification.document import document_of, relative
from ..specification.model import ARRAY_FILES, DESCRIBED, ArgumentSpec, KernelSpec, Specification
from ..specification.toml_section import MAX_BYTES, Section
from .entries import OWN
from .json_stream import JsonStream
from .kinds import first_character, is_json_lines, is_trace
from .names import DEVICE_SETTINGS, THEIR_SETTINGS
from .t1_kernel import TYPES, T1Kernel
from .t1_text import T1Text, inlined, values_of

_MARKS = {"ConfigurationSpace", "KernelSpecification"}
_STRATEGIES = {"deterministic": "brute_force", "random": "random_sample", "bruteforce": "brute_force"}
_LIMITS = {"max_evaluations": "max_fevals", "max_seconds": "time_limit"}  # what T1 has among the search's options
_BUDGETS = {
    "ConfigurationCount": "max_evaluations",
    "ConfigurationFraction": "max_fraction",
    "TuningDuration": "max_seconds",
}
_OWN_KEYS = ("version", "digest", "specification")
_OWN_SECTIONS = ("constants", "metrics", "objective")  # of the specification beside it, where T1's part was changed
_OWN_KERNEL = ("profile", "template", "include", "repeats", "timeout_s", "compiler", "returns")
# Where our document has something, and where T1 does.
_PLACES = {
    ": parameters": ": ConfigurationSpace.TuningParameters",
    ": restrictions": ": ConfigurationSpace.Conditions",
    ": kernel.problem_size": ": KernelSpecification.ProblemSize",
    ": kernel.grid_divisors": ": KernelSpecification.GridDiv",
    ": kernel.arguments": ": KernelSpecification.Arguments",
    ": kernel.shared_memory": ": KernelSpecification.SharedMemory",
    ": kernel.verify": ": KernelSpecification.ReferenceArguments",
    ": kernel.name": ": KernelSpecification.KernelName",
    ": kernel": ": KernelSpecification",
}
_TYPE_NAMES = {ours: theirs for theirs, ours in reversed(TYPES.items())}
_WITHOUT_NAME = {"complex64": 8, "complex128": 16, "bfloat16": 2}  # bytes


def is_json(path: Path) -> bool:
    """Whether the file begins as a JSON object does. Raises InputError if it cannot be read."""
    return first_character(path) == "{"


def is_t1(path: Path) -> bool:
    """Whether a JSON file is a T1 specification, by the names of its first keys. Raises InputError."""
    stream = JsonStream(str(path), ("cache", "results", "Results"))
    for chunk in text_chunks(path):
        stream.feed(chunk)
        for member in stream.members():
            if member.inside or member.name in _MARKS:
                return not member.inside
        if stream.opened:
            return False
    return False


def is_specification(path: Path) -> bool:
    """Whether a file is a specification, TOML or T1, and no recording. Raises InputError if it cannot be read."""
    if is_json(path):
        return not is_trace(path) and not is_json_lines(path) and is_t1(path)
    return path.suffix.lower() == ".toml"


StrategyOptions = Mapping[str, Collection[str]]  # of each known strategy, the names of its options


def read_t1(path: Path, strategies: StrategyOptions) -> Specification:
    """The checked specification in a T1 file; a search by another name is left out, with a note.

    Raises InputError naming line or key.
    """
    if not is_t1(path):
        what = "this is no T1 specification: it has no 'ConfigurationSpace'"
        raise InputError(what, str(path), "pass a specification, or replay a recording with: wattridge replay")
    document = _document(path)
    root = Section(document, str(path))
    extension = root.table(OWN, _OWN_KEYS)
    if extension.raw("digest") == digest(document):
        return specification_of(extension.table("specification").as_mapping(), path)
    reading = _Reading(root, extension.table("specification"), path, strategies)
    try:
        spec = specification_of(reading.document, path)
    except InputError as error:
        where = next((error.where.replace(ours, t1) for ours, t1 in _PLACES.items() if ours in error.where), None)
        raise InputError(error.what, where or error.where, error.remedy) from None
    return replace(spec, notes=tuple(reading.notes), refused=reading.refused)


def digest(document: Mapping[str, Any]) -> str:
    """A digest of a file's T1 part, to see whether it is still as this program wrote it."""
    t1 = {key: value for key, value in document.items() if key != OWN}
    return hashlib.sha256(json.dumps(t1, sort_keys=True).encode()).hexdigest()


class _Reading:
    """One T1 file, read into a document as TOML would give it."""

    def __init__(self, root: Section, extension: Section, path: Path, strategies: StrategyOptions) -> None:
        self._strategies = strategies
        self.notes: list[str] = []
        self.refused = ""
        if extension.as_mapping():
            self.notes.append("changed since this program wrote it: ranges, shapes and checks are T1's")
        space = root.table("ConfigurationSpace")
        parameters, settings = self._parameters(space)
        self.document: dict[str, Any] = {
            "objective": {"minimise": "time_s"},
            **{key: extension.raw(key) for key in _OWN_SECTIONS if key in extension},
            "parameters": parameters,
            "device_settings": settings,
            "search": self._search(root),
        }
        lists = {name: values for name, values in parameters.items() if isinstance(values, list)}
        text = T1Text((), lists)
        language = root.table("KernelSpecification").text("Language", "CUDA")
        if language not in DESCRIBED:  # such as the 'Hypertuner', whose kernels are none
            self.refused = f"its kernel is written in {language[:80]}"
        elif "KernelSpecification" in root:
            kernel = T1Kernel(root.table("KernelSpecification"), path, lists)
            more = extension.table("kernel")
            self.notes += kernel.notes
            self.refused = kernel.refused
            self.document["kernel"] = kernel.document | {key: more.raw(key) for key in _OWN_KERNEL if key in more}
            text = kernel.text
        self.document["restrictions"] = [
            text.translated(given.text("Expression"), given.place("Expression")) for given in space.tables("Conditions")
        ]

    def _parameters(self, space: Section) -> tuple[dict[str, list[Value] | str], dict[str, list[Value]]]:
        parameters: dict[str, list[Value] | str] = {}
        settings: dict[str, list[Value]] = {}
        for given in space.tables("TuningParameters"):
            name, kind = given.text("Name"), given.text("Type", "int")
            values = values_of(given.raw("Values"), given.place("Values"))
            if name in parameters or DEVICE_SETTINGS.get(name, name) in settings:
                raise InputError(f"the parameter '{name[:80]}' is listed twice", given.where, "remove one of them")
            if isinstance(values, str):
                parameters[name] = values
            elif name in DEVICE_SETTINGS or name in DEVICE_SETTINGS.values():
                settings[DEVICE_SETTINGS.get(name, name)] = list(values)
            else:
                parameters[name] = [_typed(value, kind) for value in values]
        return parameters, settings

    def _search(self, root: Section) -> dict[str, Any]:
        search: dict[str, Any] = {}
        if "Search" in root:
            given = root.table("Search")
            name = given.text("Name")
            strategy = _STRATEGIES.get(name.lower(), name.lower())
            options = {item.text("Name"): item.raw("Value") for item in given.tables("Attributes")}
            search = {ours: options.pop(theirs) for ours, theirs in _LIMITS.items() if theirs in options}
            known = self._strategies.get(strategy, ())
            if strategy in self._strategies:
                search |= {"strategy": strategy, "options": {key: options[key] for key in options if key in known}}
            else:
                self.notes.append(f"the search '{name[:80]}' is not known here and left out")
            left_out = [key[:40] for key in options if key not in known]
            if left_out:
                self.notes.append(f"left out of the search: {', '.join(left_out)}")
        return search | _budget(root)


def _budget(root: Section) -> dict[str, Any]:
    budget: dict[str, Any] = {}  # some write a list of one without its brackets
    for given in [root.table("Budget")] if isinstance(root.raw("Budget"), dict) else root.tables("Budget"):
        kind, value = given.text("Type"), given.number("BudgetValue", None)
        if kind not in _BUDGETS:
            raise given.wrong("Type", f"one of {', '.join(_BUDGETS)}")
        budget[_BUDGETS[kind]] = round(value or 0) if kind == "ConfigurationCount" else value
    return budget


def _document(path: Path) -> dict[str, Any]:
    """The JSON object in the file, without nulls, which stand for missing keys.

    Raises InputError naming line and column, or the key that is there twice.
    """
    where = str(path)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"the key '{twice[:80]}' is there twice in one object", where, "remove one of them")
        return {name: value for name, value in pairs if value is not None}

    stream = JsonStream(where, pairs_hook=once, remedy="correct that place")
    stream.feed(read_text(path, MAX_BYTES))
    members = [(member.name, member.value) for member in stream.members(final=True)]
    stream.end()
    return once(members)


def _typed(value: Value, kind: str) -> Value:
    """A value as its type has it, where that loses nothing."""
    if kind == "bool" and value in (0, 1):
        return bool(value)
    if kind in ("int", "uint") and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


# --- writing -------------------------------------------------------------------------------------------------------


def write_t1(
    spec: Specification,
    space: SearchSpace,
    limits: DeviceLimits,
    path: Path,
    *,
    overwrite: bool = False,
    receipt: Mapping[str, Any] | None = None,
) -> Path:
    """Write a specification whose space was built with these limits, with the receipt of its export; returns the path.

    Raises InputError for a specification of a command, WattridgeError as `write_text` does.
    """
    if spec.command is not None or spec.service is not None:
        raise InputError(
            "T1 describes kernels, not commands or services", str(spec.path), "keep the specification in TOML"
        )
    document = _Writing(spec, space, limits, path.parent).document()
    extension = {"version": __version__, "digest": digest(document), "specification": document_of(spec, path.parent)}
    extension |= {} if receipt is None else {"receipt": receipt}
    text = json.dumps(document | {OWN: extension}, indent=2, ensure_ascii=False)
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
        budget = {kind: getattr(spec, name) for kind, name in _BUDGETS.items()}
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
            if name in self._values and name in THEIR_SETTINGS:  # T1 has no word for a setting that is left alone
                listed[THEIR_SETTINGS[name]] = [value for value in self._values[name] if value != UNTOUCHED]
        return [{"Name": n, "Type": _type_of(values), "Values": _list_text(values)} for n, values in listed.items()]

    def _conditions(self) -> list[dict[str, Any]]:
        ties = [self._tie(name, given) for name, given in self._spec.parameters.items() if isinstance(given, str)]
        texts = [*map(self._inlined, self._spec.restrictions), *filter(None, ties)]
        names_in = {text: list(parse(text, self._where).names) for text in texts}
        return [{"Expression": text, "Parameters": names_in[text]} for text in texts if names_in[text]]

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
        defined = text in self._spec.parameters or text in self._spec.constants or not text.isidentifier()
        return self._inlined(text) if defined else "1"

    def _argument(self, argument: ArgumentSpec) -> dict[str, Any]:
        name = _TYPE_NAMES.get(argument.type)
        document: dict[str, Any] = {"Name": argument.name, "Type": name or "custom"}
        if name is None:
            document["TypeSize"] = _WITHOUT_NAME[argument.type]
        size = _number(" * ".join(f"({self._inlined(text)})" for text in argument.shape) or "1")
        if argument.memory == "local":
            return document | {"Size": size, "MemoryType": "Local", "AccessType": "ReadWrite"}
        if argument.value is not None:
            value = argument.value
            document |= {"MemoryType": "Scalar", "AccessType": "ReadOnly", "FillType": "Constant"}
            document["FillValue"] = _number(self._inlined(value)) if isinstance(value, str) else value
        else:
            document |= {"MemoryType": "Vector", "Size": size, **_fill(argument.fill, self._folder)}
            document["AccessType"] = "ReadWrite" if argument.output else "ReadOnly"
            if argument.output:
                document["Output"] = 1
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
    number = _number(fill.removeprefix("random * "))
    if not isinstance(number, str):
        return {"FillType": "Random" if fill.startswith("random * ") else "Constant", "FillValue": number}
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
    with_booleans = any(isinstance(value, bool) for value in values)
    return repr(list(values)) if with_booleans else json.dumps(list(values))
