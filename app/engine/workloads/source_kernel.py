"""The kernel of a specification, in any language: its text, launch, arguments and references for one configuration.

A `Dialect` holds what differs between languages. The text is the `#define`s of the configuration before the source;
names of parameters, and how a Fortran function takes its arguments, are read from the source. `included` lists the
files that a source includes: another text in one of them is another kernel. Nothing here compiles or runs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from os.path import isfile
from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ...base.files import open_input, read_text
from ...sensors.limits import DeviceLimits
from ..results.measurement import Configuration, State, Value
from ..results.process import DATA, OF_LAUNCHES, OWN_DATA, SM_COUNT, SM_PERCENT, pause_asked_s, sms_asked
from ..space.array_expressions import parse_array_expression
from ..space.expression import Expression, parse
from ..specification.input_data import filled_with
from ..specification.model import ARRAY_FILES, OF_THE_HOST, ArgumentSpec, KernelSpec, Specification
from ..specification.operator_shapes import ALGORITHM, MAKER, OURS, TRITON, Operator
from ..specification.triton_kernels import TRITON_KERNEL
from .command import CommandLine
from .kernel_arguments import Argument, CallPlan, Launch, Reference
from .machine_code import FROM_CAPABILITY


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language."""

    qualifier: str  # regular expression of what stands before the type of a kernel
    reference_suffix: str = ""  # of a file with a reference kernel
    includes: bool = True  # sources are included by their path; otherwise their text is taken
    launched: bool = True  # on a grid of blocks; a function of the host is called
    constant_symbols: bool = False  # arguments in constant memory are symbols of the image, no parameters
    plain_pragmas: bool = False  # macros are not replaced in them
    by_reference: bool = False  # scalars are, unless the function says otherwise


_CALLED: Final = Dialect(r"\b", launched=False)
DIALECTS: Final = {
    "CUDA": Dialect("__global__", ".cu", constant_symbols=True, plain_pragmas=True),
    "OpenCL": Dialect(r"\b(?:__)?kernel\b", ".cl", includes=False),  # not every compiler finds files
    **dict.fromkeys(OF_THE_HOST, _CALLED),
    "Fortran": replace(_CALLED, by_reference=True),
}


_MOST: Final = 1 << 20  # characters of a source that are looked at
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")


def define_lines(spec: Specification, configuration: Configuration) -> list[str]:
    """One line for each constant, then for each parameter that is no setting of board or process, and not its maker."""
    apart = {*spec.device_settings, *OF_LAUNCHES, *((MAKER, ALGORITHM) if spec.operator is not None else ())}
    defined = {**spec.constants, **{n: v for n, v in configuration.items() if n not in apart}}
    return [f"#define {name} {_define(value)}" for name, value in defined.items()]


def _define(value: Value) -> str:
    """A value as C++ has it; text stands as it is."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def parameter_names(source: str, kernel: str, qualifier: str = "__global__") -> tuple[str, ...]:
    """The parameters of the function of that name with that qualifier, in order; none where it is not found.

    >>> parameter_names("__global__ void add(float *x, const int n) {}", "add")
    ('x', 'n')
    """
    text = _COMMENT.sub(" ", source[:_MOST])
    found = re.search(rf"{qualifier}[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^)]*)\)", text)
    if found is None:
        return ()
    named = (_NAME.search(part.split("=")[0].strip()) for part in found[1].split(","))
    return tuple(match[1] for match in named if match is not None)


_FORTRAN_COMMENT: Final = re.compile(r"!.*")
_CONTINUED: Final = re.compile(r"&[ \t]*\n[ \t]*&?")
_END: Final = re.compile(r"^\s*(?:contains|end(?:\s*(?:subroutine|function)\b.*)?)\s*$", re.MULTILINE)
_VALUE: Final = re.compile(r"(?:^|,)\s*value\s*(?:,|$)")


@lru_cache(maxsize=64)
def passed_by_value(source: str, function: str) -> frozenset[int]:
    """The places of the arguments that the function declares with the attribute `value`; none where it is not found.

    >>> sorted(passed_by_value("subroutine f(x, n)\\ninteger, value :: n\\nend", "f"))
    [1]
    """
    text = _CONTINUED.sub(" ", _FORTRAN_COMMENT.sub("", source[:_MOST])).lower()
    match = re.search(rf"\b(?:subroutine|function)\s+{re.escape(function.lower())}\s*\(([^)]*)\)", text)
    if match is None:
        return frozenset()
    names = [name.strip() for name in match[1].split(",")]
    body = text[match.end() :]
    ended = _END.search(body)
    by_value: set[str] = set()
    for line in (body[: ended.start()] if ended else body).splitlines():
        attributes, declares, declared = line.partition("::")
        if declares and _VALUE.search(attributes.strip()):
            by_value.update(name.strip() for name in declared.split(","))
    return frozenset(place for place, name in enumerate(names) if name in by_value)


MAX_GRID: Final = (2**31 - 1, 65535, 65535)
CALL: Final = Launch("", (1, 1, 1), (1, 1, 1))  # of a function of the host
REFERENCE_BLOCK: Final = 256  # threads; a reference kernel has to be right for any launch


class KernelRefused(Exception):
    """This configuration cannot be launched on the board; known before it is tried."""

    def __init__(self, state: State, message: str) -> None:
        super().__init__(message)
        self.state = state


@dataclass(frozen=True, slots=True)
class Build:
    """What the compiler is given. Equal builds give equal images, where their generators print the same."""

    text: str
    sources: tuple[Path, ...]  # that the text includes
    include: tuple[Path, ...]
    options: tuple[str, ...]
    generator: tuple[str, ...] = ()  # words of a command that prints the source, which comes after the text
    folder: Path | None = None  # in which it runs
    kernel: str = ""  # the one that is wanted of the text, where the others may be left out
    maker: str = ""  # of the image: Triton, or a library that has it; empty: the compiler of the language


@dataclass(frozen=True, slots=True)
class Prepared:
    """One configuration, ready to be compiled and launched."""

    build: Build
    launch: Launch  # its name is the source's; the image may have a mangled one
    reference: Launch | None  # a reference kernel of the same image
    calls: CallPlan
    instructions: dict[str, int]  # that the image must hold at least
    verifier: tuple[str, ...] = ()  # words of a command that checks the outputs; arrays stand in it as `{name}`


class SourceKernel:
    """The kernel of a specification on a board."""

    def __init__(self, spec: Specification, kernel: KernelSpec, limits: DeviceLimits, shared_opt_in: int) -> None:
        if kernel.language != "CUDA" and not {SM_COUNT, SM_PERCENT}.isdisjoint(spec.parameters):
            what = f"a kernel in {kernel.language} runs on all of the device"
            raise InputError(what, str(spec.path), f"leave {SM_COUNT} out")
        self._spec = spec
        self._kernel = kernel
        self._limits = limits
        self._shared_most = max(limits.shared_memory_per_block, shared_opt_in)
        self._where = str(spec.path)
        self._dialect = DIALECTS[kernel.language]
        folder = spec.path.resolve().parent
        self._folder = folder
        self._generator = _command_line(kernel.generator, folder, f"{spec.path}: kernel.generator")
        checked = kernel.verify.command if kernel.verify is not None else ""
        self._verifier = _command_line(checked, folder, f"{spec.path}: kernel.verify.command")

    @classmethod
    def of(cls, spec: Specification, limits: DeviceLimits, shared_opt_in: int = 0) -> SourceKernel:
        """Raises InputError if the specification does not describe a kernel that can run, or a file is missing."""
        kernel = spec.kernel
        if kernel is None or not (kernel.sources or kernel.generator):
            raise InputError(
                "there is no kernel source",
                str(spec.path),
                'add source = "kernel.cu" under [kernel], or choose a simulated GPU',
            )
        for path in kernel.sources:
            if not isfile(path):  # that of a Path raises for a name too long
                raise InputError("there is no such source file", str(path), "check 'source' under [kernel]")
        if not kernel.problem_size and DIALECTS[kernel.language].launched:
            raise InputError("there is no problem_size", str(spec.path), 'add problem_size = ["n"] under [kernel]')
        made = cls(spec, kernel, limits, shared_opt_in)
        made._check_references()
        return made

    def prepare(self, configuration: Configuration) -> Prepared:
        """Raises KernelRefused if the board cannot launch it, InputError for a senseless value."""
        scope: dict[str, Value] = {**self._limits.as_names(), **self._spec.constants, **configuration}
        by_maker = build_by_maker(self._spec.operator, configuration)
        launched = self._dialect.launched and (by_maker is None or by_maker.maker == TRITON)  # not a library's
        launch, size = self._launch(configuration, scope) if launched else (CALL, 1)
        self._check_launch(launch)
        values = {**self._spec.constants, **configuration}
        build = by_maker or self._build(configuration, values, launch)
        return Prepared(
            build=build,
            launch=replace(
                launch,
                name=self._kernel.name,
                sms=sms_asked(configuration, self._limits.multiprocessors),
                pause_s=pause_asked_s(configuration),
            ),
            reference=self._reference_launch(size),
            calls=self._passed(self._calls(scope), build),
            instructions=self._instructions(scope),
            verifier=self._verifying(values),
        )

    def _verifying(self, values: Mapping[str, Value]) -> tuple[str, ...]:
        """The words of the command that checks the outputs; the names of arrays stay in it."""
        if self._verifier is None:
            return ()
        arrays = {argument.name for argument in self._kernel.arguments if argument.value is None}
        return tuple(self._verifier.words({name: value for name, value in values.items() if name not in arrays}))

    def _launch(self, configuration: Configuration, scope: Mapping[str, Value]) -> tuple[Launch, int]:
        """How it is launched, and the size of the problem over all its dimensions. Raises KernelRefused."""
        kernel = self._kernel
        sizes = [self._whole(text, scope, "problem_size") for text in kernel.problem_size]
        block = _three([self._block_size(text, scope) for text in kernel.block_size_names])
        divisors = [kernel.grid_divisors.get(axis, ()) for axis in "xyz"]
        by = [math.prod(self._whole(text, scope, "grid_divisors") for text in texts) for texts in divisors]
        if min(by) < 1 or min(sizes) < 1 or min(block) < 1:
            raise KernelRefused(State.CONSTRAINTS, f"problem {sizes}, grid divisors {by}, block {list(block)}")
        grid = _three([-(-size // divisor) for size, divisor in zip(sizes, by, strict=False)])
        shared = self._whole(kernel.shared_memory, scope, "shared_memory")
        return Launch(kernel.name, grid, block, shared), math.prod(sizes)

    def hidden_parameters(self) -> str:
        """Why a compiler may refuse the source: parameters of the kernel that a #define replaces; empty without any."""
        defined = {**self._spec.constants, **self._spec.parameters}
        taken: dict[str, None] = {}
        for path in self._kernel.sources:
            with suppress(InputError):
                for name in parameter_names(read_text(path), self._kernel.name, self._dialect.qualifier):
                    if name in defined and name not in (*self._spec.device_settings, *OF_LAUNCHES):
                        taken[name] = None
        if not taken:
            return ""
        names = ", ".join(f"'{name}'" for name in taken)
        if len(taken) == 1:
            return (
                f"the kernel's parameter {names} is also a macro (a constant or parameter of the specification is "
                "a #define): rename it in the kernel"
            )
        return (
            f"the kernel's parameters {names} are also macros (constants and parameters of the specification are "
            "#defines): rename them in the kernel"
        )

    # --- inside -----------------------------------------------------------------------------------------------------

    def _instructions(self, scope: Mapping[str, Value]) -> dict[str, int]:
        if self._limits.compute_capability < FROM_CAPABILITY:
            return {}  # another machine code, which is not read
        return {opcode: self._whole(text, scope, "instructions") for opcode, text in self._kernel.instructions.items()}

    def _block_size(self, text: str, scope: Mapping[str, Value]) -> int:
        return self._whole(text, scope, "block_size_names") if text in scope or not text.isidentifier() else 1

    def _check_launch(self, launch: Launch) -> None:
        grid, shared, threads = launch.grid, launch.shared_byte, math.prod(launch.block)
        if threads > self._limits.max_threads_per_block:
            most = self._limits.max_threads_per_block
            raise KernelRefused(State.CONSTRAINTS, f"{threads} threads, {most} are the most per block")
        if not 0 <= shared <= self._shared_most:
            message = f"{shared} bytes of dynamic shared memory, {self._shared_most} are the most per block"
            raise KernelRefused(State.CONSTRAINTS, message)
        if any(size > most for size, most in zip(grid, MAX_GRID, strict=True)):
            raise KernelRefused(State.CONSTRAINTS, f"a grid of {grid} blocks, {MAX_GRID} are the most")

    def _build(self, configuration: Configuration, values: Configuration, launch: Launch) -> Build:
        kernel, references = self._kernel, self._reference_sources()
        lines = define_lines(self._spec, configuration)
        for path in (*kernel.sources, *references):
            if self._dialect.includes:
                lines.append(f'#include "{path.as_posix()}"')
            else:
                lines += [f'#line 1 "{_quoted(path.name)}"', read_text(path)]
        if kernel.template:  # instantiated without saying its signature again
            instance = f"{kernel.name}<{kernel.template}>"
            lines.append(f"template __global__ decltype({instance}) {instance};")
        folders = tuple(dict.fromkeys((*kernel.include, *(path.parent for path in kernel.sources))))
        sources = (*kernel.sources, *references)
        generator = tuple(self._generator.words(values)) if self._generator is not None else ()
        folder = self._folder if generator else None
        return Build("\n".join(lines) + "\n", sources, folders, kernel.compiler_options, generator, folder)

    def _calls(self, scope: Mapping[str, Value]) -> CallPlan:
        arguments = tuple(self._argument(argument, scope) for argument in self._kernel.arguments)
        verify, references = self._kernel.verify, []
        if verify is not None and (verify.references or verify.reference):
            for output, text in (verify.references or {self._checked_output(): verify.reference}).items():
                kind = self._kind(text)
                place = str(self._spec.path.parent / text) if kind == "file" else text
                references.append(Reference(output, place, kind, verify.rtol, verify.atol))
        numbers = {n: float(v) for n, v in scope.items() if isinstance(v, (int, float))}
        named = {name for r in references if r.kind == "expression" for name in _names(r.text)}
        return CallPlan(arguments, tuple(references), {name: numbers[name] for name in numbers if name in named})

    def _passed(self, calls: CallPlan, build: Build) -> CallPlan:
        """With the scalars whose address is passed, where the language passes scalars so."""
        if not self._dialect.by_reference:
            return calls
        by_value = passed_by_value(self._own_text(build), self._kernel.name)
        passed = (
            replace(argument, by_reference=argument.shape is None and place not in by_value)
            for place, argument in enumerate(calls.arguments)
        )
        return replace(calls, arguments=tuple(passed))

    def _own_text(self, build: Build) -> str:
        """The text of the source itself; empty if a command prints it."""
        return "\n".join(read_text(path) for path in build.sources)

    def _argument(self, argument: ArgumentSpec, scope: Mapping[str, Value]) -> Argument:
        where = f"arguments.{argument.name}"
        value: Value | None = argument.value
        if isinstance(value, str):
            value = self._parsed(value, where).number(scope)
        shape = tuple(self._whole(text, scope, where) for text in argument.shape) if value is None else None
        if shape is not None and min(shape, default=0) < 1:
            raise InputError(f"{argument.name} has shape {shape}", self._where, "every extent must be at least 1")
        if argument.output and shape is None:
            raise InputError(f"the output {argument.name} is a scalar", self._where, "give it a shape")
        return Argument(
            name=argument.name,
            type=argument.type,
            shape=shape,
            fill=filled_with(argument, scope.get(DATA, OWN_DATA)),
            value=value,
            output=argument.output,
            constant=argument.memory == "constant" and self._dialect.constant_symbols,
            local=argument.memory == "local",
            page_locked=argument.memory == "page-locked",
            seed=self._spec.seed if argument.seed is None else argument.seed,
        )

    # --- references -------------------------------------------------------------------------------------------------

    def _check_references(self) -> None:
        """What can be known of them before anything runs."""
        verify = self._kernel.verify
        if verify is None or not (verify.references or verify.reference):
            return
        names = {argument.name for argument in self._kernel.arguments} | set(self._spec.constants)
        names |= set(self._spec.parameters) | set(self._limits.as_names())
        for text in verify.references.values() or (verify.reference,):
            kind = self._kind(text)
            if kind == "file" and not text.endswith(ARRAY_FILES):
                raise InputError(f"'{text}' is no .npy file", self._where, "write the reference with numpy.save")
            if kind == "expression":
                for name in _names(text):
                    if name not in names:
                        raise InputError(f"unknown name '{name}' in '{text}'", self._where, "name an argument")
        if not verify.references:
            self._checked_output()

    def _kind(self, text: str) -> str:
        if text.endswith((".cu", ".cl")):
            return "kernel"
        if re.search(r"\.(npy|npz|csv|bin|raw|dat)$", text):
            return "file"
        named = {argument.name for argument in self._kernel.arguments} | set(self._spec.constants)
        return "kernel" if text.isidentifier() and text not in named else "expression"

    def _checked_output(self) -> str:
        """What a single reference is for: the one output; all of them (empty) where it is a kernel."""
        verify = self._kernel.verify
        outputs = [argument.name for argument in self._kernel.arguments if argument.output]
        if verify is not None and outputs and self._kind(verify.reference) == "kernel":
            return ""
        if len(outputs) == 1:
            return outputs[0]
        raise InputError(
            f"there are {len(outputs)} outputs, and one reference",
            self._where,
            'mark arguments with output = true, and write verify = { reference = { name = "expression" } }',
        )

    def _reference_sources(self) -> tuple[Path, ...]:
        verify = self._kernel.verify
        if verify is None or not verify.reference.endswith((".cu", ".cl")):
            return ()
        if not verify.reference.endswith(suffix := self._dialect.reference_suffix or "no file"):
            what = f"'{verify.reference}' is not in {self._kernel.language}"
            raise InputError(what, self._where, f"name a function of the source, or write an expression ({suffix})")
        return ((self._spec.path.parent / verify.reference).resolve(),)

    def _reference_launch(self, size: int) -> Launch | None:
        verify = self._kernel.verify
        if verify is None or not verify.reference or self._kind(verify.reference) != "kernel":
            return None
        if not self._dialect.launched:
            return replace(CALL, name=verify.reference)
        blocks = min(-(-size // REFERENCE_BLOCK), MAX_GRID[1])
        return Launch(Path(verify.reference).stem, (blocks, 1, 1), (REFERENCE_BLOCK, 1, 1))

    # --- expressions ------------------------------------------------------------------------------------------------

    def _parsed(self, text: str, key: str) -> Expression:
        return _parse(text, f"{self._where}: kernel.{key}")

    def _whole(self, text: str, scope: Mapping[str, Value], key: str) -> int:
        value = self._parsed(text, key).number(scope)
        if not math.isfinite(value) or value != int(value):
            raise InputError(f"'{text}' is {value:g}", f"{self._where}: kernel.{key}", "a whole number is needed")
        return int(value)


def build_by_maker(operator: Operator | None, configuration: Configuration) -> Build | None:
    """What makes a configuration of an operator that is no kernel of ours in CUDA C++; None for one that is."""
    if operator is None:
        return None
    maker = str(configuration.get(MAKER, operator.usual_maker))
    chosen = {"operator": operator.notation, **configuration, MAKER: maker}
    if maker == OURS:
        return None
    sources = (TRITON_KERNEL,) if maker == TRITON else ()
    return Build(json.dumps(chosen, sort_keys=True), sources, (), (), maker=maker)


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _command_line(text: str, folder: Path, where: str) -> CommandLine | None:
    return CommandLine(text, folder, where) if text else None


@lru_cache(maxsize=1024)
def _parse(text: str, where: str) -> Expression:
    return parse(text, where)


@lru_cache(maxsize=64)
def _names(text: str) -> tuple[str, ...]:
    return parse_array_expression(text, "verify.reference")


def _three(values: list[int]) -> tuple[int, int, int]:
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


MAX_INCLUDES: Final = 2000
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def included(build: Build) -> Iterator[tuple[Path, bytes]]:
    """The files that a text includes, and those which they include, as far as they are found: not the toolkit's own."""
    waiting = [*build.sources, *_named_in(build.text.encode(), build.include)]
    seen: set[Path] = set()
    while waiting and len(seen) < MAX_INCLUDES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            with open_input(path) as file:
                text = file.read()
        except (OSError, InputError):
            continue
        yield path, text
        waiting += _named_in(text, (path.parent, *build.include))


def _named_in(text: bytes, folders: Sequence[Path]) -> Iterator[Path]:
    """The files that a text includes, each from the first of the folders that has it."""
    for name in _INCLUDE.findall(text):
        candidates = (folder / name.decode("utf-8", "replace") for folder in folders)
        path = next((candidate for candidate in candidates if candidate.is_file()), None)
        if path is not None:
            yield path
