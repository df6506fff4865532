"""T1, the field's format of tuning problems (JSON): read as a specification, as if it had been written in TOML.

A key of our own, written by `t1_writer`, adds what T1 has no words for: constants, metrics, an
objective, how a simulated board costs the kernel. Without an objective the time is minimised, as Kernel Tuner does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.files import read_text, text_chunks
from ..results.measurement import Value
from ..specification.check import specification_of
from ..specification.model import DESCRIBED, Specification
from ..specification.toml_section import MAX_BYTES, Section
from .entries import OWN
from .json_stream import JsonStream
from .kinds import first_character, is_json_lines, is_trace
from .names import DEVICE_SETTINGS
from .t1_kernel import kernel_of
from .t1_text import T1Text, values_of

_MARKS = {"ConfigurationSpace", "KernelSpecification"}
_STRATEGIES = {"deterministic": "brute_force", "random": "random_sample", "bruteforce": "brute_force"}
_BUDGETS = {
    "ConfigurationCount": "max_evaluations",
    "TuningDuration": "max_seconds",
    "ConfigurationFraction": "max_fraction",
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
    own = root.table(OWN, _OWN_KEYS) if OWN in root else Section({}, root.where)
    if own.raw("digest") == digest(document):
        return specification_of(own.table("specification").as_mapping(), path)
    reading = _Reading(root, own.table("specification"), path, strategies)
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

    def __init__(self, root: Section, own: Section, path: Path, strategies: StrategyOptions) -> None:
        self._strategies = strategies
        self.notes: list[str] = []
        self.refused = ""
        if any(True for _ in own):
            self.notes.append("changed since this program wrote it: ranges, shapes and checks are T1's")
        space = root.table("ConfigurationSpace")
        parameters, settings = self._parameters(space)
        self.document: dict[str, Any] = {
            "objective": {"minimise": "time_s"},
            **{key: own.raw(key) for key in _OWN_SECTIONS if key in own},
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
            kernel = kernel_of(root.table("KernelSpecification"), path, lists)
            more = own.table("kernel")
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
            known = _STRATEGIES.get(name.lower(), name.lower())
            options = {item.text("Name"): item.raw("Value") for item in given.tables("Attributes")}
            for ours, theirs in (("max_evaluations", "max_fevals"), ("max_seconds", "time_limit")):
                if theirs in options:
                    search[ours] = options.pop(theirs)
            if known in self._strategies:
                search["strategy"] = known
                fields = self._strategies[known]
                search["options"] = {key: value for key, value in options.items() if key in fields}
                options = {key: value for key, value in options.items() if key not in fields}
            else:
                self.notes.append(f"the search '{name[:80]}' is not known here and left out")
            if options:
                self.notes.append(f"left out of the search: {', '.join(key[:40] for key in options)}")
        return search | _budget(root)


def _budget(root: Section) -> dict[str, Any]:
    if "Budget" not in root:
        return {}
    budget: dict[str, Any] = {}  # some write a list of one without its brackets
    for given in root.tables("Budget") if isinstance(root.raw("Budget"), list) else [root.table("Budget")]:
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

    text = read_text(path, MAX_BYTES)
    try:
        document = json.loads(text, object_pairs_hook=once)
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        what = f"{place}: not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise InputError(what, where, "correct that place") from None
    except UnicodeEncodeError:
        raise InputError("a text holds half a character (a lone surrogate)", where, "remove it") from None
    except RecursionError:
        raise InputError("nested too deeply", where, "nest it less") from None
    except ValueError:
        raise InputError("a number of thousands of digits", where, "write a smaller one") from None
    if not isinstance(document, dict):
        raise InputError("an object in braces is needed", where, "pass a specification, TOML or T1")
    return document


def _typed(value: Value, kind: str) -> Value:
    """A value as its type has it, where that loses nothing."""
    if kind == "bool" and value in (0, 1):
        return bool(value)
    if kind in ("int", "uint") and isinstance(value, float) and value.is_integer():
        return int(value)
    return value
