"""A new specification's text: from what a kernel's source says, or from a command line. Guesses are marked as such.

An OpenCL source in CUDA's words, for what reads text and does not compile: `kernel_scan` knows those alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError
from ...base.files import read_text
from ..results.measurement import MEASURED, Value
from .document import relative
from .kernel_scan import Argument, Kernel, Scan, scan_kernels, values_like
from .toml_edit import key_text, toml_of

SUFFIXES: Final = (".cl", ".ocl", ".opencl")
_INDICES: Final = {
    "local_id": "threadIdx",
    "global_id": "threadIdx",
    "group_id": "blockIdx",
    "local_size": "blockDim",
    "global_size": "gridDim",
    "num_groups": "gridDim",
}
_INDEX: Final = re.compile(rf"\bget_({'|'.join(_INDICES)})\s*\(\s*([012])\s*\)")
_WORDS: Final = (
    (re.compile(r"\b(?:__)?kernel\b"), "__global__"),
    (re.compile(r"\b(?:__)?local\b(?!\s*\()"), "__shared__"),
    (re.compile(r"\b__constant\b|\bconstant\b(?=\s+\w+\s*\*)"), "const"),
    (re.compile(r"\b__(?:global|private|generic|read_only|write_only)\b|\bglobal\b(?=\s+\w)"), " "),
    (re.compile(r"\brestrict\b"), "__restrict__"),
    (re.compile(r"\bCLK_\w+\b|\bM_\w+_F\b"), "0"),
)


def in_cudas_words(source: str) -> str:
    """
    >>> in_cudas_words("__kernel void f(__global float *y) { y[get_global_id(0)] = 1; }")
    '__global__ void f(  float *y) { y[threadIdx.x] = 1; }'
    """
    text = _INDEX.sub(lambda found: f"{_INDICES[found[1]]}.{'xyz'[int(found[2])]}", source)
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text


_MAX_BYTES: Final = 1 << 20
_ELEMENTS: Final = 1 << 20  # of an array whose size nobody knows
_DEFAULT_GROUP: Final = 256  # numbers of an array in local memory
CHECK: Final = "check"  # marks a guess in the text
_RESERVED: Final = frozenset(MEASURED)


@dataclass(frozen=True, slots=True)
class NewSpecification:
    """The text, with remarks for the user: the guesses made, and the values that only the user can supply."""

    name: str  # of a file for it, without the suffix
    text: str
    guessed: tuple[str, ...]
    missing: tuple[str, ...]


def read_kernels(path: Path) -> Scan:
    """What is found in a source in CUDA or OpenCL. Raises InputError if it cannot be read or holds no kernel."""
    text, opencl = read_text(path, _MAX_BYTES), path.suffix.lower() in SUFFIXES
    scan = scan_kernels(in_cudas_words(text) if opencl else text)
    if not scan.kernels:
        word = "__kernel" if opencl else "__global__"
        raise InputError(
            f"there is no {word} function in it", str(path), "choose the source of a CUDA or OpenCL kernel"
        )
    return scan


def kernel_called(scan: Scan, name: str | None, source: Path) -> tuple[Kernel, str]:
    """The kernel of that name, the first if none is given, and its name. Raises InputError if there is none."""
    if name is None:
        return scan.kernels[0], scan.kernels[0].names[0]
    for kernel in scan.kernels:
        if name in kernel.names:
            return kernel, name
    choices = ", ".join(value for kernel in scan.kernels for value in kernel.names)
    raise InputError(f"there is no kernel '{name}'", str(source), f"known: {choices}")


def _taken(
    scan: Scan, chosen: Mapping[str, Sequence[Value]] | None
) -> tuple[dict[str, tuple[Value, ...]], dict[str, Value]]:
    """The parameters with their values, as chosen or suggested, and the constants."""
    suggested = [s for s in scan.suggestions if s.tunable]
    asked = {s.name: s.values for s in suggested} if chosen is None else chosen
    taken = {name: tuple(values) for name, values in asked.items() if name not in _RESERVED}
    constants = {s.name: s.values[0] for s in scan.suggestions if not s.tunable and s.name not in taken}
    left = {s.name: s.values[0] for s in suggested if s.name not in taken and s.why.startswith("the source uses")}
    return taken, constants | left  # the source does not compile without those that are left


def _constant_memory(scan: Scan, scope: set[str]) -> Iterator[str]:
    """The lines of arguments in constant memory whose extents are known from names in scope."""
    for symbol, kind, extent in scan.symbols:
        if set(re.findall(r"[A-Za-z_]\w*", extent)) <= scope and re.fullmatch(r"[\w\s*+()-]+", extent):
            entry = {"name": symbol, "type": kind or "float32", "shape": [extent], "fill": "random"}
            yield f"    {toml_of(entry | {'memory': 'constant'})},"


def from_kernel(
    source: Path,
    scan: Scan,
    kernel: Kernel,
    folder: Path,
    name: str = "",
    chosen: Mapping[str, Sequence[Value]] | None = None,
) -> NewSpecification:
    """The specification of a kernel, in a file of that folder. `name` is one of the kernel's own.

    `chosen` has the values of each parameter; without it all that looks tunable is one, with the values suggested.
    """
    name = name or kernel.names[0]
    taken, constants = _taken(scan, chosen)
    renamed = _own_names(kernel, scan, taken)
    for kind, each in kernel.template:
        if each in renamed:
            taken.setdefault(renamed[each], (0, 1) if kind == "bool" else values_like(each))
    guessed: list[str] = []
    missing: list[str] = []
    size = _problem_size(kernel, constants, scan, guessed)
    lines = [f"# Made from {_plain(source.name)}. What is marked '{CHECK}' is a guess."]
    if restrictions := _restrictions(taken):
        lines += ["restrictions = [", *(f"    {toml_of(restriction)}," for restriction in restrictions), "]"]
    lines += ["", "[kernel]", f"name = {toml_of(name)}"]
    if source.suffix.lower() in SUFFIXES:
        lines += ['language = "opencl"']
    lines += [f"source = {toml_of(relative(source.resolve(), folder))}"]
    lines += [f"problem_size = {toml_of(size)} # {CHECK}: how many elements there are along x, y, z"]
    lines += [
        f"grid_divisors = {toml_of(_divisors(taken, kernel.dimensions))} # {CHECK}: what one block covers of them"
    ]
    if len(kernel.names) > 1:
        guessed.append(f"a macro gives the kernel's name: {', '.join(kernel.names)}; {name} is taken")
    if kernel.template:
        lines.append(f"template = {toml_of(_template(kernel, renamed))} # {CHECK}: arguments of the template")
        guessed.append("the arguments of the template: parameters with names of their own stand for its numbers")
    lines += ["arguments = ["]
    for argument in kernel.arguments:
        entry, doubt = _argument(argument, size, constants)
        guessed += [f"{argument.name}: {doubt}"] if doubt else []
        lines.append(f"    {toml_of(entry)}, # {CHECK}{': ' + doubt if doubt else ''}")
    lines += [*_constant_memory(scan, {*taken, *constants}), "]"]
    missing += _reference(scan, kernel, name, lines)
    if constants:
        lines += ["", "[constants]", *(f"{key_text(each)} = {toml_of(value)}" for each, value in constants.items())]
    why = {s.name: s.why for s in scan.suggestions}
    lines += ["", "[parameters]", *_entries(taken)]
    lines += ["", "[objective]", 'minimise = "energy_j"', 'front = ["time_s", "energy_j"]']
    lines += ["", "[search]", 'strategy = "auto"', "max_evaluations = 200", ""]
    guessed += [
        f"{each} = {toml_of(list(values))}: {why.get(each, 'an argument of the template')}"
        for each, values in taken.items()
    ]
    guessed += [f"{item} cannot be tuned as it is: wrap its #define in #ifndef … #endif" for item in scan.fixed]
    missing += [
        "the sizes and contents of the arguments, and which of them are outputs",
        "the problem size and what one block covers of it",
    ]
    return NewSpecification(name, "\n".join(lines), tuple(guessed), tuple(missing))


def from_command(
    run: str, parameters: Mapping[str, Sequence[Value] | str], values: Mapping[str, str]
) -> NewSpecification:
    """The specification of a program: `{name}` in its command line stands for a parameter, `values` has patterns."""
    lines = ["# A program, run once for each configuration.", "[command]", f"run = {toml_of(run)}"]
    if values:
        lines.append(f"values = {toml_of(dict(values))} # regular expressions with one group: the last match counts")
    lines += ["", "[parameters]", *_entries(parameters)]
    figure = next(iter(values), "")
    goal = f"maximise = {toml_of(figure)}" if figure else 'minimise = "energy_j"'
    front = [figure, "energy_j"] if figure and figure != "energy_j" else ["time_s", "energy_j"]
    lines += ["", "[objective]", goal, f"front = {toml_of(front)}"]
    lines += ["", "[search]", 'strategy = "auto"', "max_evaluations = 100", ""]
    program = re.sub(r"\W+", "_", Path(run.split()[0]).stem if run.split() else "").strip("_")
    guessed = (f"{figure} is to be large" if figure else "the energy of a run is to be small",)
    return NewSpecification(program or "command", "\n".join(lines), guessed, ())


def fields_of(run: str) -> tuple[str, ...]:
    """The names in braces in a command line, each once."""
    return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", run)))


def patterns_in(output: str) -> dict[str, str]:
    """A pattern for each figure that a program's output names: 'Result: 12.5 GFLOP/s', 'time = 0.3 s'."""
    result: dict[str, str] = {}
    for label, between in re.findall(r"([A-Za-z][\w ./-]{0,40}?)(\s*[:=]\s*)[-+]?\d", output[: 1 << 16]):
        name = re.sub(r"\W+", "_", label.strip().lower()).strip("_")
        if name and name not in _RESERVED:
            pattern = rf"{re.escape(label.strip())}\s*{between.strip()}\s*([-+0-9.eE]+)".replace(r"\ ", " ")
            result.setdefault(name, pattern)
    return result


# --- inside -----------------------------------------------------------------------------------------------------------

_WHOLE: Final = frozenset(("int", "unsigned", "unsigned int", "size_t", "bool", "uint32_t", "int32_t", "uint"))


def _plain(text: str) -> str:
    """A file's name in a comment: nothing in it ends the line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _entries(parameters: Mapping[str, Sequence[Value] | str]) -> list[str]:
    return [f"{key_text(n)} = {toml_of(v if isinstance(v, str) else list(v))}" for n, v in parameters.items()]


def _free(name: str, used: Iterable[str]) -> str:
    while name in used:
        name += "_"
    return name


def _problem_size(kernel: Kernel, constants: dict[str, Value], scan: Scan, guessed: list[str]) -> list[str]:
    """Expressions of the problem's size; a constant that the source does not know where it names none."""
    named = [name for name in constants if name in ("width", "height", "depth") or name.endswith(("_width", "_height"))]
    if len(named) >= kernel.dimensions > 1:
        return named[:3] if set(named[:3]) == {"width", "height", "depth"} else named[: kernel.dimensions]
    sizes = [n for n, value in constants.items() if isinstance(value, int) and value > 1 and n not in named] or named
    if not sizes:
        name = _free("elements", scan.names)
        constants[name] = _ELEMENTS if kernel.dimensions == 1 else 1024
        guessed.append(f"{name}: the source does not say how large its problem is; {constants[name]} is taken")
        sizes = [name]
    return [sizes[0]] * kernel.dimensions


def _divisors(parameters: Iterable[str], dimensions: int) -> dict[str, list[str]]:
    """The parameters whose names say that they belong to an axis."""
    names = list(parameters)
    result: dict[str, list[str]] = {}
    for axis, also in zip("xyz"[:dimensions], "mnk"[:dimensions], strict=True):
        belonging = [
            n for n in names if n.lower() in (f"block_size_{axis}", f"tile_size_{axis}", f"work_per_thread_{axis}")
        ]
        belonging = belonging or [n for n in names if n.lower() == f"blk_{also}"]
        if not belonging and axis == "x":
            belonging = [n for n in names if "block" in n.lower()][:1]
        if belonging:
            result[axis] = belonging
    if dimensions == 1 and "items_per_thread" in names:
        result.setdefault("x", []).append("items_per_thread")
    return result


def _restrictions(parameters: Mapping[str, Sequence[Value]]) -> list[str]:
    sizes = [name for name in parameters if name.startswith("block_size_")]
    return [f"32 <= {' * '.join(sizes)} <= max_threads_per_block"] if len(sizes) > 1 else []


def _argument(argument: Argument, size: Sequence[str], constants: Mapping[str, Value]) -> tuple[dict[str, Any], str]:
    """The entry of an argument, and what is doubtful about it."""
    kind = argument.type or "float32"
    doubts = [] if argument.type else [f"its type '{_plain(argument.declared)}' is not known, float32 is taken"]
    entry: dict[str, Any] = {"name": argument.name, "type": kind}
    if not argument.pointer:
        named = argument.name if argument.name in constants else None
        entry["value"] = named or (
            size[0] if "int" in kind and not argument.constant else 1.0 if "float" in kind else 1
        )
        return entry, "; ".join([*doubts, "its value"])
    if "__shared__" in argument.declared:  # of OpenCL: an array of the work-group
        return {**entry, "shape": [_DEFAULT_GROUP], "memory": "local"}, "; ".join([*doubts, "its size"])
    entry["shape"] = [*dict.fromkeys(size), argument.width] if argument.width > 1 else list(size)
    entry["fill"] = "random" if argument.constant else "zeros"
    if argument.constant:
        return entry, "; ".join(doubts)
    entry["output"] = True
    return entry, "; ".join([*doubts, "an output, as the kernel may write to it"])


def _own_names(kernel: Kernel, scan: Scan, taken: Iterable[str]) -> dict[str, str]:
    """The parameters that stand for a template's numbers: names of their own, as parameters become macros."""
    names: dict[str, str] = {}
    for kind, each in kernel.template:
        if kind in _WHOLE:
            block = "block" in each.lower() and "block_size_x" in taken and "block_size_x" not in names.values()
            names[each] = "block_size_x" if block else _free(f"{each.lower()}_value", scan.names)
    return names


def _template(kernel: Kernel, own: Mapping[str, str]) -> str:
    """The arguments of the template."""
    return ", ".join(own.get(each, "float" if kind in ("typename", "class") else "1") for kind, each in kernel.template)


def _reference(scan: Scan, kernel: Kernel, name: str, lines: list[str]) -> list[str]:
    """A line for a kernel of the source that is called a reference; else what is missing."""
    for other in scan.kernels:
        for item in other.names:
            same = len(other.arguments) == len(kernel.arguments)
            if (
                item != name
                and same
                and item.lower() in (f"{name}_reference".lower(), f"{name}_ref".lower(), f"{name}_naive".lower())
            ):
                lines.append(f"verify = {{ reference = {toml_of(item)}, rtol = 1e-3 }} # a kernel of the same source")
                return []
    lines.append(
        '# verify = { reference = "a @ b", rtol = 1e-3 } # fill in: an expression, a kernel or a file of results'
    )
    return ["a reference for the results (verify): without one a wrong result counts as a good one"]
