"""A specification, checked and frozen: its metrics, and the programs that starting it runs besides its kernels.

Loading or viewing a specification and building its space run no program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from ...base.text import shortened
from ..metering.external_meters import NO_METERS, MeterChoice
from ..results.measurement import Configuration, Value
from ..results.objectives import Limit, Objective
from ..results.settings import UNTOUCHED
from ..space.device_settings import SettingValues
from ..space.expression import Expression, parse
from .operator_kernels import starts_of
from .operator_shapes import Operator
from .service import ServiceSpec

OPCODES: Final = {"FFMA": 0x023, "DFMA": 0x02B, "HMMA": 0x03C}  # fused multiply-adds, and products of tensor cores
ARRAY_FILES = (".npy", ".bin", ".raw", ".dat")  # all but the first hold the bare numbers


LANGUAGES: Final = ("CUDA", "OpenCL", "C", "C++", "Fortran")  # that kernels are run in
DESCRIBED: Final = (*LANGUAGES, "HIP", "Vulkan")  # the others can be described and searched in recordings
OF_THE_HOST: Final = ("C", "C++", "Fortran")  # functions that are called, not launched
RETURNED_TIMES: Final = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6, "time_ns": 1e-9}  # name -> s
NOTHING: Final = "nothing"
COMPILERS: Final = {  # of functions of the host; the first that is there is used where the file names none
    "C": ("cc", "gcc", "clang", "icx", "nvc"),
    "C++": ("c++", "g++", "clang++", "icpx", "nvc++"),
    "Fortran": ("gfortran", "flang", "ifx", "nvfortran"),
}
DEVICE_COMPILERS: Final = ("nvcc", "hipcc")  # of C and C++ that holds kernels of its own and launches them


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """One argument of the kernel. `shape` holds expressions; empty for a scalar."""

    name: str
    type: str  # a NumPy type name
    shape: tuple[str, ...] = ()
    fill: str = "zeros"  # zeros, ones, random, range, an absolute path, or an expression of `i` and `random`
    value: Value | None = None
    output: bool = False
    # constant: in CUDA the __constant__ symbol of that name, no parameter; local: in OpenCL an array of a work-group;
    # page-locked: of a function of the host, whose kernels use it, as a script's own array is
    memory: Literal["global", "constant", "local", "page-locked"] = "global"
    seed: int | None = None  # of a random fill; None: the specification's


@dataclass(frozen=True, slots=True)
class VerifySpec:
    """How outputs are checked: an array expression over the arguments, a kernel, or a file; and by a program.

    `references` has one for each of several outputs; `reference` is empty then, or where only a program checks.
    """

    reference: str = ""
    rtol: float = 1e-5
    atol: float = 0.0
    references: Mapping[str, str] = field(default_factory=dict)
    command: str = ""  # ends with status 0 if all is right; `{y}` stands for the file of an array


@dataclass(frozen=True, slots=True)
class KernelSpec:
    name: str
    sources: tuple[Path, ...]  # absolute
    problem_size: tuple[str, ...]  # expressions
    grid_divisors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # "x" -> expressions
    arguments: tuple[ArgumentSpec, ...] = ()
    verify: VerifySpec | None = None
    profile: str = ""  # how the simulated GPUs cost it; see sensors.simulated.profiles
    compiler_options: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    shared_memory: str = "0"
    # parameters, or expressions over them; a name that is no parameter stands for 1
    block_size_names: tuple[str, str, str] = ("block_size_x", "block_size_y", "block_size_z")
    template: str = ""  # arguments of a kernel that is a template, as C++ has them
    repeats: int = 1  # measurements of each configuration; from two on their scatter is kept
    timeout_s: float = 10.0  # of one launch
    # machine instructions that an image must hold, by opcode, and how many at least: that the compiler removed no work
    instructions: Mapping[str, str] = field(default_factory=dict)  # "FFMA" -> expression
    language: str = "CUDA"  # one of LANGUAGES
    generator: str = ""  # a command that prints the source, instead of `sources`; `{name}` stands for a parameter
    compiler: str = ""  # of a function of the host, one of COMPILERS; empty: the system's for its language
    returns: str = "time_ms"  # what a function of the host returns, as float: its time, a value, or nothing


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command instead of a kernel: `{name}` stands for a parameter; values are read by regular expressions."""

    run: str
    values: Mapping[str, str] = field(default_factory=dict)
    repeats: int = 1  # runs per configuration; from two on there are confidence intervals, and their scatter is kept
    timeout_s: float = 300.0  # of one run


DEFAULT_STRATEGY: Final = "auto"
PATIENCE: Final = 100  # of a search by it that has no limit of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The strategy of a search and when it ends."""

    strategy: str = DEFAULT_STRATEGY
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    max_evaluations: int | None = None
    max_seconds: float | None = None
    patience: int | None = None  # evaluations without an improvement after which the session ends
    seed: int = 0

    def search(self) -> dict[str, Any]:
        """These fields by name, without those of subclasses."""
        return {member.name: getattr(self, member.name) for member in fields(Search)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOfAnySize(Search):
    """A search whose budget may be a share of the space."""

    max_fraction: float | None = None  # of the valid configurations

    def search_in(self, size: int) -> dict[str, Any]:
        """The fields of `Search` for a space of that many configurations."""
        if self.max_evaluations is not None or self.max_fraction is None:
            return self.search()
        return {**self.search(), "max_evaluations": max(1, min(size, math.ceil(self.max_fraction * size)))}


@dataclass(frozen=True, slots=True)
class Specification(SearchOfAnySize):
    """A checked specification. Expressions are kept as text; they were parsed once to check them."""

    path: Path
    name: str
    parameters: Mapping[str, tuple[Value, ...] | str]  # a list, or a range/expression as text, in the user's order
    restrictions: tuple[str, ...] = ()
    constants: Mapping[str, Value] = field(default_factory=dict)
    kernel: KernelSpec | None = None
    command: CommandSpec | None = None
    service: ServiceSpec | None = None
    operator: Operator | None = None  # that the kernel was made of
    device_settings: Mapping[str, SettingValues] = field(default_factory=dict)  # resolved when a session is planned
    metrics: Mapping[str, str] = field(default_factory=dict)
    objective: Objective | None = None  # without limits: these stand beside it, as in the file
    environment: tuple[str, ...] = ()  # parameters that are variables of a program's or a service's environment
    limits: tuple[Limit, ...] = ()
    starts: tuple[Configuration, ...] = ()  # that are measured first, the best guess first; each names parameters
    meters: MeterChoice = NO_METERS  # beside the board
    notes: tuple[str, ...] = ()  # what the user should know of how the file was read
    refused: str = ""  # why it cannot be measured, though its space can be looked at

    @property
    def suggestions(self) -> tuple[Configuration, ...]:
        """What the maker of its kernel expects much of; the user's starts take their place."""
        return () if self.operator is None or self.starts else tuple(starts_of(self.operator))

    @property
    def repeats(self) -> int:
        """How often each configuration is measured."""
        measured = self.kernel or self.command or self.service
        return measured.repeats if measured is not None else 1

    def repeated(self, repeats: int) -> Specification:
        """A copy with `repeats` measurements of each configuration."""
        if self.kernel is not None:
            return replace(self, kernel=replace(self.kernel, repeats=repeats))
        if self.command is not None:
            return replace(self, command=replace(self.command, repeats=repeats))
        if self.service is not None:
            return replace(self, service=replace(self.service, repeats=repeats))
        return self

    @property
    def uses(self) -> frozenset[str]:
        """The names that its metrics, its objective and its limits use."""
        goals = (self.objective.goal, *self.objective.front) if self.objective else ()
        in_metrics = (name for key, text in self.metrics.items() for name in _parsed(text, f"metrics.{key}").names)
        return frozenset((*in_metrics, *(goal.name for goal in goals), *(limit.name for limit in self.limits)))


def evaluate_metrics(
    spec: Specification, configuration: Configuration, values: Mapping[str, float]
) -> dict[str, float]:
    """The metrics of one measurement, in the specification's order.

    `values` holds what was measured, named with units. A metric is NaN if it is undefined (a division by zero) and
    left out where something it needs was not measured, or is a setting that was left untouched.
    """
    numbers = {n: v for n, v in configuration.items() if v != UNTOUCHED or n not in spec.device_settings}
    scope: dict[str, Value] = {**spec.constants, **numbers, **values}
    metrics: dict[str, float] = {}
    for name, text in spec.metrics.items():
        expression = _parsed(text, f"metrics.{name}")
        if all(needed in scope for needed in expression.names):
            metrics[name] = scope[name] = expression.number(scope)
    return metrics


def names_at_time(spec: Specification, parameters: Sequence[str]) -> frozenset[str]:
    """The values available once a configuration is timed: its time per launch, and the metrics that need no more."""
    scope = {*spec.constants, *parameters, "time_s"}
    for name, text in spec.metrics.items():
        if all(needed in scope for needed in _parsed(text, f"metrics.{name}").names):
            scope.add(name)
    return frozenset(scope & {"time_s", *spec.metrics})


@lru_cache(maxsize=1024)
def _parsed(text: str, where: str) -> Expression:
    return parse(text, where)


_MOST = 200  # characters of a command that are shown


def programs_of(spec: Specification) -> tuple[str, ...]:
    """One line for each program, to be shown before a start; empty if a start runs none."""
    kernel = spec.kernel
    lines = []
    if spec.command is not None:
        lines.append(("each configuration", spec.command.run))
    if spec.service is not None:
        lines += _of_service(spec.service)
    if kernel is not None and kernel.generator:
        lines.append(("for the source of each configuration", kernel.generator))
    if kernel is not None and kernel.verify is not None and kernel.verify.command:
        lines.append(("to check each output", kernel.verify.command))
    for selector in spec.meters.selectors:
        if selector.startswith("command:"):
            lines.append(("as a meter beside the board", selector.removeprefix("command:")))
    remarks = [f"starting it runs, {when}: {shortened(command, _MOST)}" for when, command in lines]
    if spec.service is not None and not spec.service.client.run:
        client = spec.service.client
        sent = [f"the prompts of {client.prompts}"] if client.prompts is not None else []
        sent += [f"the key that {client.key_from} holds"] if client.key_from else []
        extras = f", with {' and '.join(sent)}" if sent else ""
        remarks.append(f"starting it sends requests to {spec.service.attach or spec.service.url}{extras}")
    if kernel is not None and kernel.language in OF_THE_HOST:
        remarks.append(f"starting it runs {kernel.name} of its source as a program on this computer")
    return tuple(remarks)


def _of_service(service: ServiceSpec) -> list[tuple[str, str]]:
    """Its commands, and the address that is asked."""
    lines = [("once, and again for each change of its arguments", service.start)]
    lines += [("to end the service", service.stop), ("as its client, for each configuration", service.client.run)]
    return [(when, command) for when, command in lines if command]
