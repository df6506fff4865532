"""Conversion of a document to a specification: keys, types, expressions and names are checked before any build.

An [operator] is replaced by the kernel, space and goals that follow from its kind and shape. Compiler options for
OpenCL and the host's languages are refused where they name another output, another program or a file of options, which
no specification needs; the compiler judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError
from ...sensors.limits import limits_of
from ..metering.external_meters import BOARD, MeterChoice
from ..results.measurement import MEASURED, Configuration, Value
from ..results.objectives import Goal, Limit, Objective, parse_bound
from ..results.process import DATA, UNSET
from ..results.settings import PROFILE, SETTINGS, UNTOUCHED, is_setting
from ..space.array_expressions import parse_array_expression
from ..space.build import BLOCK_SIZE_NAMES, MAX_PARAMETERS
from ..space.device_settings import SettingValues
from ..space.expression import parse, unknown_name
from ..space.values import parse_values
from .input_data import FILLED, parse_inputs
from .model import (
    ARRAY_FILES,
    COMPILERS,
    DEFAULT_STRATEGY,
    DESCRIBED,
    DEVICE_COMPILERS,
    NOTHING,
    OF_THE_HOST,
    OPCODES,
    RETURNED_TIMES,
    ArgumentSpec,
    CommandSpec,
    KernelSpec,
    Specification,
    VerifySpec,
)
from .operator_kernels import document_of_operator
from .operator_shapes import ALGORITHM, AXES, KINDS, MAKER, Operator
from .service import ServiceSpec, read_service
from .toml_section import Section, as_name, check_places, has_one_group, keys_of

_WITH_A_WORD: Final = frozenset(("-D", "-U", "-I", "-L", "-l", "-isystem", "-include", "-x", "-gpu"))
_PASSED_ON: Final = frozenset(("-Xcompiler", "-Xlinker", "-Xptxas"))  # the next word is another program's option
_REFUSED: Final = re.compile(
    r"-(o.*|-output.*|c|S|E|M.*|-?specs?(=.*)?|B.*|wrapper.*|f(pass-)?plugin.*|fuse-ld=.*/.*|-ld-path.*|dumpdir.*"
    r"|ccbin.*|-compiler-bindir.*|save-temps.*|-?run.*|-options-file.*|Xclang|mllvm|load.*|-load.*)"
)
_MOST: Final = 200


def check_options(options: Sequence[str], where: str) -> None:
    """Check compiler options. Raises InputError for the first one that is not allowed."""
    _check_count(options, "options", where, _MOST)
    remaining = iter(options)
    for option in remaining:
        if not option.startswith("-"):
            remedy = "options begin with '-'; more files belong to 'source'"
            raise InputError(f"'{option[:60]}' is no compiler option", where, remedy)
        if _REFUSED.fullmatch(option):
            remedy = "leave it out: Wattridge names the files, and a specification starts no other program this way"
            raise InputError(f"the compiler option '{option[:60]}' cannot be given", where, remedy)
        if option in _PASSED_ON:
            check_options([next(remaining, "")], where)
        elif option in _WITH_A_WORD:
            next(remaining, None)


def _check_count(entries: Sized, noun: str, where: str, most: int) -> None:
    """Raises InputError for more entries than `most`."""
    if len(entries) > most:
        raise InputError(f"{len(entries)} {noun}", where, f"at most {most}")


KEYS: Final = ("kind", "shape", "precision", "layout", "epilogue", "repeats", "timeout_s")


def with_operator(document: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], Operator | None]:
    """The document with its operator expanded, and the operator; the document unchanged and None without one.

    The document's parameters replace the operator's of the same name; its restrictions and metrics come after the
    operator's; its objective and its keys of the search replace the operator's. Raises InputError.
    """
    if "operator" not in document:
        return document, None
    root = Section(document, str(path))
    for key in ("kernel", "command"):
        if key in root:
            raise InputError(f"both an operator and a {key}", str(path), f"keep one of [operator] and [{key}]")
    section = root.table("operator", KEYS)
    operator = _operator(section)
    made = document_of_operator(operator)
    more = {key: section.raw(key) for key in ("repeats", "timeout_s") if key in section}
    parameters = root.table("parameters")
    for name in parameters:
        if name not in made["parameters"]:
            remedy = f"known: {', '.join(made['parameters'])}"
            raise InputError(f"{operator.kind} has no parameter '{name}'", parameters.where, remedy)
    constants = root.table("constants")
    for name in constants:
        if name in made["constants"]:
            raise InputError(f"'{name}' follows from the operator's shape", constants.where, "leave it out")
    merged = {
        **{key: value for key, value in document.items() if key != "operator"},
        "kernel": {**made["kernel"], **more},
        "constants": {**made["constants"], **constants.as_mapping()},
        "parameters": {**made["parameters"], **parameters.as_mapping()},
        "restrictions": [*made["restrictions"], *root.texts("restrictions")],
        "metrics": {**made["metrics"], **root.table("metrics").as_mapping()},
        "objective": document.get("objective", made["objective"]),
        "search": {**made["search"], **root.table("search").as_mapping()},
    }
    return merged, operator


def _operator(section: Section) -> Operator:
    kind = section.text("kind")
    if kind not in KINDS:
        raise section.wrong("kind", f"one of {', '.join(KINDS)}")
    shape = section.items("shape")
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in shape):
        raise section.wrong("shape", f"a list of whole numbers ({', '.join(AXES[kind])})")
    try:
        words = (section.text("precision", "fp32"), section.text("layout", "nn"), section.text("epilogue", ""))
        return Operator(kind, tuple(int(size) for size in shape), *words)
    except InputError as error:
        raise InputError(error.what, section.where, error.remedy) from None


MAX_ENTRIES = 1000  # constants, metrics, restrictions
MAX_METERS = 8
MAX_STARTS = 100  # configurations that a search begins with
MAX_REPEATS = 1000  # measurements of one configuration
TYPES = (
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
_BY_SUFFIX = {".cl": "OpenCL", ".f90": "Fortran", ".f95": "Fortran", ".f03": "Fortran", ".f": "Fortran"}
_LIMITS = tuple(limits_of((8, 0)).as_names())
_SECTIONS = (
    *(
        "restrictions",
        "environment",
        "kernel",
        "operator",
        "command",
        "service",
        "constants",
        "parameters",
        "device_settings",
    ),
    *("metrics", "objective", "limits", "search", "metering"),
)
_SEARCH_KEYS = ("strategy", "options", "max_evaluations", "max_fraction", "max_seconds", "patience", "seed", "start")


def specification_of(document: Mapping[str, Any], path: Path) -> Specification:
    """The specification in a document of this shape, checked; its files are relative to `path`. Raises InputError."""
    document, operator = with_operator(document, path)
    root = Section(document, str(path), _SECTIONS)
    table = _bounded(root.table("constants"))
    constants = {as_name(key, table): table.value(key) for key in table}
    parameters = _parameters(root.table("parameters"))
    settings = _device_settings(root.table("device_settings", SETTINGS))
    if not parameters and not settings:
        raise InputError("there are no parameters", root.place("parameters"), "list at least one with its values")
    _check_unique(root, constants, parameters, settings)
    tunable = (*parameters, *settings)
    _check_parameter_expressions(root, parameters, (*parameters, *constants, *_LIMITS))
    scope = (*tunable, *constants, *_LIMITS)
    restrictions = root.texts("restrictions")
    _check_count(restrictions, "restrictions", root.place("restrictions"), MAX_ENTRIES)
    for index, text in enumerate(restrictions):
        parse(text, f"{root.place('restrictions')}[{index}]").check_names(scope)
    if len(kinds := [kind for kind in ("kernel", "command", "service") if kind in root]) > 1:
        what, tables = (
            " and ".join(f"{before}{kind}{after}" for kind in kinds) for before, after in (("a ", ""), "[]")
        )
        raise InputError(f"both {what}", str(path), f"keep one of {tables}")
    kernel = _kernel(root.table("kernel", keys_of(KernelSpec)), path.parent, scope) if "kernel" in root else None
    environment = _environment(root, parameters)
    if kernel is not None and DATA in parameters:
        parameters[DATA] = parse_inputs(",".join(map(str, parameters[DATA])), f"parameters.{DATA}", path.parent)
    named = (*tunable, *constants)
    if kernel is not None:
        _check_programs(kernel, root.table("kernel"), named)
    command = _command(root.table("command", keys_of(CommandSpec)), named) if "command" in root else None
    service = _service(root, path.parent, named)
    reported = command.values if command else service.figures if service else returned_value(kernel) if kernel else ()
    measured = tuple(dict.fromkeys((*MEASURED, *reported)))
    metrics = _metrics(_bounded(root.table("metrics")), named, measured)
    search = root.table("search", _SEARCH_KEYS)
    return Specification(
        path=path,
        name=operator.name if operator else kernel.name if kernel else path.stem,
        parameters=parameters,
        restrictions=restrictions,
        constants=constants,
        kernel=kernel,
        command=command,
        service=service,
        operator=operator,
        device_settings=settings,
        environment=environment,
        metrics=metrics,
        objective=_objective(root, (*measured, *metrics), measured),
        limits=_limits(_bounded(root.table("limits")), (*measured, *metrics)),
        strategy=search.text("strategy", DEFAULT_STRATEGY),
        strategy_options=search.table("options").values(),
        max_evaluations=search.integer("max_evaluations", None, least=1),
        max_fraction=search.number("max_fraction", None, least=0.0),
        max_seconds=search.number("max_seconds", None, least=0.001),
        patience=search.integer("patience", None, least=1),
        seed=search.integer("seed", 0, least=0) or 0,
        starts=_starts(search, tunable if operator is None else (*tunable, MAKER, ALGORITHM)),
        meters=_meters(root.table("metering", ("meters", "energy_from", "correct_gain"))),
    )


def _environment(root: Section, parameters: Mapping[str, object]) -> tuple[str, ...]:
    """The parameters that are variables of a process's environment."""
    names = root.texts("environment")
    if names and not {"command", "service"} & set(root):
        remedy = "a kernel's process has the environment that Wattridge is started in: set it there"
        raise InputError("an environment is a program's or a service's", root.place("environment"), remedy)
    for name in names:
        if name not in parameters:
            remedy = f'list its values: parameters.{name} = ["{UNSET}", "1"]'
            raise InputError(f"'{name}' is no parameter", root.place("environment"), remedy)
    return names


def _meters(section: Section) -> MeterChoice:
    selectors = section.texts("meters") if "meters" in section else ()
    _check_count(selectors, "meters", section.place("meters"), MAX_METERS)
    return MeterChoice(selectors, section.text("energy_from", BOARD), section.flag("correct_gain", False))


def _starts(search: Section, tunable: Sequence[str]) -> tuple[Configuration, ...]:
    """The configurations that a search begins with, from tables of parameters and their values."""
    tables = search.tables("start", tunable)
    _check_count(tables, "configurations", search.place("start"), MAX_STARTS)
    return tuple(table.values() for table in tables)


def _bounded(section: Section) -> Section:
    """The table, of at most MAX_ENTRIES entries, as every entry is later compared with all others."""
    _check_count(section.as_mapping(), "entries", section.where, MAX_ENTRIES)
    return section


def _parameters(section: Section) -> dict[str, tuple[Value, ...] | str]:
    parameters: dict[str, tuple[Value, ...] | str] = {}
    for key in section:
        given = section.raw(key)
        if isinstance(given, str):
            parameters[as_name(key, section)] = given
            continue
        values = tuple(section.plain(key, value) for value in section.items(key))
        if not values:
            raise section.wrong(key, "at least one value")
        parameters[as_name(key, section)] = values
    _check_count(parameters, "parameters", section.where, MAX_PARAMETERS)
    return parameters


def _check_unique(root: Section, *groups: Iterable[str]) -> None:
    seen: set[str] = set(MEASURED)
    for group in groups:
        for name in group:
            if name in seen:
                what = "is the name of a measured value" if name in MEASURED else "is defined twice"
                raise InputError(f"'{name}' {what}", root.where, "rename it")
        seen |= set(group)


def _check_parameter_expressions(
    root: Section, parameters: Mapping[str, tuple[Value, ...] | str], scope: tuple[str, ...]
) -> None:
    section = root.table("parameters")
    for name, given in parameters.items():
        if not isinstance(given, str):
            continue
        where = section.place(name)
        for used in parse_values(given, where).names:
            if used not in scope:
                raise unknown_name(
                    used, given, where, scope, f'text is an expression here; write ["{used}"] for a word'
                )


def _device_settings(section: Section) -> dict[str, SettingValues]:
    settings: dict[str, SettingValues] = {}
    for key in section:
        given = section.raw(key)
        if given == "supported" or (given == "ridge" and key == "graphics_clock_mhz"):
            settings[key] = given
        elif key == PROFILE:
            settings[key] = _profiles(section, key)
        elif isinstance(given, dict):
            points = section.table(key, ("points",)).integer("points", None, least=2, most=1000)
            if points is None:
                raise section.wrong(key, "{ points = N }")
            settings[key] = points
        else:
            values = section.items(key)
            numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
            listed = sum(value == UNTOUCHED for value in values)
            if not values or len(numbers) + listed < len(values) or not all(0 < number < 1e6 for number in numbers):
                ridge = ', "ridge"' if key == "graphics_clock_mhz" else ""
                wanted = f'"supported"{ridge}, {{ points = N }} or a list of positive numbers and "{UNTOUCHED}"'
                raise section.wrong(key, wanted)
            settings[key] = tuple(values)
    return settings


def _profiles(section: Section, key: str) -> tuple[Value, ...]:
    """Workload power profiles by name or number, -1 and 'none' for none; the board determines which exist."""
    values = section.items(key)
    sound = [isinstance(value, str) or (type(value) is int and is_setting(key, value)) for value in values]
    if not values or not all(sound):
        raise section.wrong(key, '"supported" or a list of profiles, such as ["none", "max_q", 6]')
    return tuple(values)


def _kernel(section: Section, folder: Path, scope: tuple[str, ...]) -> KernelSpec:
    profile = section.text("profile", "")
    sources = section.texts("source")
    generator = section.text("generator", "")
    if sources and generator:
        raise InputError("both a source and a generator", section.where, "keep one of them")
    if not sources and not profile and not generator:
        raise section.wrong("source", "a source file (or a profile, to run on simulated GPUs only)")
    language = _language(section, sources)
    divisors = section.table("grid_divisors", ("x", "y", "z"))
    asked = section.table("instructions", tuple(OPCODES))
    names = section.texts("block_size_names") or BLOCK_SIZE_NAMES
    if len(names) != 3:
        raise section.wrong("block_size_names", "a list of three names")
    if language != "CUDA" and (unfit := next((key for key in ("template", "instructions") if key in section), "")):
        raise InputError(f"'{unfit}' is for CUDA only", section.place(unfit), f"leave it out of a kernel in {language}")
    problem_size = _expressions(section, "problem_size", scope)
    grid_divisors = {axis: _expressions(divisors, axis, scope) for axis in divisors}
    arguments = _arguments(section, folder, scope)
    if language != "OpenCL" and any(argument.memory == "local" for argument in arguments):
        raise InputError("only OpenCL takes arguments in local memory", section.place("arguments"), "use shared_memory")
    options = section.texts("compiler_options")
    if language in ("OpenCL", *OF_THE_HOST):
        check_options(options, section.place("compiler_options"))
    return KernelSpec(
        name=section.text("name"),
        sources=tuple((folder / source).resolve() for source in sources),
        problem_size=problem_size,
        grid_divisors=grid_divisors,
        arguments=arguments,
        verify=_verify(section.table("verify", keys_of(VerifySpec)), arguments) if "verify" in section else None,
        profile=profile,
        compiler_options=options,
        include=tuple((folder / include).resolve() for include in section.texts("include")),
        shared_memory=next(iter(_expressions(section, "shared_memory", scope)), "0"),
        block_size_names=(names[0], names[1], names[2]),
        template=section.text("template", ""),
        repeats=_repeats(section),
        timeout_s=section.number("timeout_s", 10.0, least=0.001) or 10.0,
        instructions={opcode: _expressions(asked, opcode, scope)[0] for opcode in asked},
        language=language,
        generator=generator,
        compiler=_compiler(section, language),
        returns=_returns(section, language),
    )


def _language(section: Section, sources: tuple[str, ...]) -> str:
    """The language in its usual spelling; case is ignored."""
    written = section.text("language", "CUDA")
    language = next((known for known in DESCRIBED if known.lower() == written.lower()), None)
    if language is None:
        raise section.wrong("language", f"one of {', '.join(DESCRIBED)}")
    if "language" not in section and (
        other := next((_BY_SUFFIX[Path(s).suffix.lower()] for s in sources if Path(s).suffix.lower() in _BY_SUFFIX), "")
    ):
        remedy = f'add language = "{other.lower()}"'
        raise InputError(f"a source in {other}, and the language is CUDA", section.place("source"), remedy)
    return language


def _compiler(section: Section, language: str) -> str:
    """A compiler from the list for the language, as a file may not name any other program to run."""
    compiler = section.text("compiler", "")
    allowed = (*COMPILERS.get(language, ()), *(DEVICE_COMPILERS if language in ("C", "C++") else ()))
    if compiler and compiler not in allowed:
        raise section.wrong("compiler", f"one of {', '.join(allowed)}" if allowed else "a kernel in C, C++ or Fortran")
    return compiler


def _returns(section: Section, language: str) -> str:
    """The name of the value that a function of the host returns."""
    if "returns" in section and language not in OF_THE_HOST:
        raise InputError(f"a kernel in {language} returns nothing", section.place("returns"), "leave it out")
    returns = section.text("returns", "time_ms")
    if returns in MEASURED and returns not in RETURNED_TIMES:
        raise InputError(f"'{returns}' is measured", section.place("returns"), "give the value another name")
    return returns if returns in RETURNED_TIMES else as_name(returns, section)


def returned_value(kernel: KernelSpec) -> tuple[str, ...]:
    """The name of the value that a function of the host returns, where that is not its time: one, or none."""
    returned = kernel.language in OF_THE_HOST and kernel.returns not in RETURNED_TIMES and kernel.returns != NOTHING
    return (kernel.returns,) if returned else ()


def _check_programs(kernel: KernelSpec, section: Section, named: tuple[str, ...]) -> None:
    """Check that the commands of a kernel use defined names. Raises InputError."""
    arrays = tuple(argument.name for argument in kernel.arguments if argument.value is None)
    check_places(kernel.generator, section.place("generator"), named)
    if kernel.verify is not None:
        check_places(kernel.verify.command, f"{section.place('verify')}.command", (*arrays, *named))


def _repeats(section: Section) -> int:
    return section.integer("repeats", 1, least=1, most=MAX_REPEATS) or 1


def _expressions(section: Section, key: str, scope: tuple[str, ...]) -> tuple[str, ...]:
    """Texts that are expressions over the scope; numbers stand for themselves."""
    texts = section.texts(key, numbers=True)
    for text in texts:
        parse(text, section.place(key)).check_names(scope)
    return texts


def _arguments(section: Section, folder: Path, scope: tuple[str, ...]) -> tuple[ArgumentSpec, ...]:
    if len(section.items("arguments")) > MAX_ENTRIES:
        raise InputError("too many arguments", section.place("arguments"), f"at most {MAX_ENTRIES}")
    arguments = tuple(_argument(item, folder, scope) for item in section.tables("arguments", keys_of(ArgumentSpec)))
    names = [argument.name for argument in arguments]
    if len(set(names)) < len(names):
        raise section.wrong("arguments", "a list of arguments with different names")
    return arguments


def _argument(section: Section, folder: Path, scope: tuple[str, ...]) -> ArgumentSpec:
    kind = section.text("type")
    if kind not in TYPES:
        raise section.wrong("type", f"one of {', '.join(TYPES)}")
    fill = section.text("fill", "zeros")
    if fill.endswith(ARRAY_FILES):
        fill = str((folder / fill).resolve())
    elif fill not in FILLED:
        remedy = f"one of {', '.join(FILLED)}, a file ({', '.join(ARRAY_FILES)}), or an expression of i and random"
        parse(fill, section.place("fill")).check_names(("i", "random"), remedy)
    memory = section.text("memory", "global")
    if memory not in ("global", "constant", "local"):
        raise section.wrong("memory", "global, constant or local")
    value = section.value("value") if "value" in section else None
    if value is not None and "shape" in section:
        raise InputError("both a shape and a value", section.where, "a value is for a scalar, a shape for an array")
    if isinstance(value, str):
        parse(value, section.place("value")).check_names(scope)
    elif value is None and "shape" not in section:
        raise section.wrong("shape", "a shape for an array, or a value for a scalar,")
    if kind == "bfloat16" and "shape" not in section:
        raise section.wrong("type", "float32 for a scalar: bfloat16 is for arrays,")
    return ArgumentSpec(
        name=as_name(section.text("name"), section),
        type=kind,
        shape=_expressions(section, "shape", scope),
        fill=fill,
        value=value,
        output=section.flag("output", False),
        memory="constant" if memory == "constant" else "local" if memory == "local" else "global",
        seed=section.integer("seed", None, least=0),
    )


def _verify(section: Section, arguments: Iterable[ArgumentSpec]) -> VerifySpec:
    """The reference: an array expression, a kernel (of the same source, or `name.cu`) or a file of numbers; or one
    expression or file for each output. Files are looked for when run."""
    rtol, atol = section.number("rtol", 1e-5, least=0) or 0.0, section.number("atol", 0.0, least=0) or 0.0
    command = section.text("command", "")
    if isinstance(section.raw("reference"), dict):
        outputs = section.table("reference", [argument.name for argument in arguments if argument.output])
        return VerifySpec("", rtol, atol, {output: _reference(outputs, output) for output in outputs}, command)
    reference = "" if command and "reference" not in section else _reference(section, "reference")
    return VerifySpec(reference, rtol, atol, command=command)


def _reference(section: Section, key: str) -> str:
    reference = section.text(key)
    if not re.fullmatch(r"[\w./ -]+\.(cu|cl|npy|npz|csv|bin|raw|dat)", reference):
        parse_array_expression(reference, section.place(key))
    return reference


def _command(section: Section, scope: tuple[str, ...]) -> CommandSpec:
    patterns = _bounded(section.table("values"))
    values: dict[str, str] = {}
    for name in patterns:
        pattern = patterns.text(name)
        if not has_one_group(pattern):
            raise patterns.wrong(name, "a regular expression with one group, of at most 500 characters,")
        values[as_name(name, patterns)] = pattern
    run = section.text("run")
    check_places(run, section.place("run"), scope)
    timeout_s = section.number("timeout_s", 300.0, least=0.001) or 300.0
    return CommandSpec(run, values, _repeats(section), timeout_s)


def _service(root: Section, folder: Path, named: tuple[str, ...]) -> ServiceSpec | None:
    if "service" not in root:
        return None
    section = root.table("service", keys_of(ServiceSpec))
    return read_service(section, folder, named, _repeats(section))


def _metrics(section: Section, named: tuple[str, ...], measured: tuple[str, ...]) -> dict[str, str]:
    metrics: dict[str, str] = {}
    for name in section:
        if name in named or name in measured:
            raise InputError(f"the metric '{name}' has the name of something else", section.where, "rename it")
        text = section.texts(name, numbers=True)
        if len(text) != 1:
            raise section.wrong(name, "an expression as text")
        remedy = f"metrics use parameters, constants, earlier metrics and {', '.join(measured)}"
        parse(text[0], section.place(name)).check_names((*named, *measured, *metrics), remedy)
        metrics[name] = text[0]
    return metrics


def _objective(root: Section, names: tuple[str, ...], measured: tuple[str, ...]) -> Objective | None:
    if "objective" not in root:
        return None
    section = root.table("objective", ("maximise", "minimise", "front"))
    if ("maximise" in section) == ("minimise" in section):
        raise InputError("the goal is not clear", section.where, "give either maximise = NAME or minimise = NAME")
    key = "maximise" if "maximise" in section else "minimise"
    goal = Goal(section.text(key), key == "maximise")
    front = tuple(_front_goal(text, goal, measured) for text in section.texts("front"))
    for index, wanted in enumerate((goal, *front)):
        if wanted.name not in names:
            raise unknown_name(wanted.name, wanted.name, section.place("front" if index else key), names)
    if len(front) == 1 or len({wanted.name for wanted in front}) < len(front):
        raise section.wrong("front", "two or more different names")
    return Objective(goal, front)


def _limits(section: Section, names: tuple[str, ...]) -> tuple[Limit, ...]:
    """`ttft_p95_s = "<= 0.5"`: one bound of a figure, or a list of them."""
    limits: list[Limit] = []
    for name in section:
        if name not in names:
            raise unknown_name(name, name, section.where, names)
        limits += [parse_bound(name, text, section.place(name)) for text in section.texts(name)]
    return tuple(limits)


def _front_goal(text: str, goal: Goal, measured: tuple[str, ...]) -> Goal:
    """'max:NAME' or 'min:NAME'. A bare name has the objective's direction if it is the objective; else measured values
    are made small and metrics large."""
    direction, _, name = text.partition(":")
    if direction in ("max", "min") and name:
        return Goal(name.strip(), direction == "max")
    return goal if text == goal.name else Goal(text, text not in measured)
