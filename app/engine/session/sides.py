"""What is measured in turns, as a user names it, and opened as contenders: with its own data or other, changed or not.

A `Change` is what a process or a board has other than it is found: a part of the SMs, variables, settings.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError
from ...base.files import is_there
from ...base.processes import is_frozen, original_environment
from ...sensors.gpu import Gpu
from ..control.guard import DeviceGuard
from ..metering.watching import watch
from ..results.objectives import Goal
from ..results.process import SM_COUNT, UNSET
from ..results.settings import in_words
from ..runner.base import PreparationFailed
from ..runner.boards import open_runner
from ..specification.input_data import data_in_words, note_on_data, with_inputs
from ..specification.model import Specification
from ..specification.operator_shapes import LIBRARY, MAKER
from ..specification.plan import SearchOptions
from .contenders import Contender, FunctionContender, KernelContender, Look, ProgramContender
from .load import load_specification
from .named import is_specification, specification_path
from .planning import plan_specification

_CONFIGURED: Final = re.compile(r"(.+?):(\w+=[^,:]*(?:,\w+=[^,:]*)*)")
_FUNCTION: Final = re.compile(r"(.+\.py):([A-Za-z_]\w*)")
Remark = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Named:
    """A side as it was named."""

    name: str  # for the answer
    kind: str  # 'command', 'function' or 'specification'
    words: tuple[str, ...]
    folder: Path
    specification: Specification | None = None
    commit: str = ""  # in full, of a checkout

    @property
    def takes_real_time(self) -> bool:
        """A program runs, whatever board it is measured on; a server may be modelled."""
        return self.specification is None or self.specification.command is not None

    @property
    def data(self) -> list[str]:
        """Remarks on what the arrays of a kernel hold."""
        spec = self.specification
        words = data_in_words(spec) if spec is not None else ""
        return [f"the data are {words}", *filter(None, [note_on_data(spec)])] if spec is not None and words else []


def shlex_split(text: str) -> list[str]:
    """A command line's words. Raises InputError."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"not a command line: {error}", text, "close every quote") from None


def named(text: str, words: Sequence[str], folder: Path, name: str) -> Named:
    """What a text names: a specification with values, FILE.py:FUNCTION or a command line. Raises InputError."""
    found = _CONFIGURED.fullmatch(text)
    path, wanted = (found[1], found[2]) if found else (text, "")
    if is_specification(path) or (found and is_there(Path(path))):
        local = folder / path
        specification = load_specification(local if is_there(local) else specification_path(path))
        return Named(name, "specification", (wanted,), folder, replace(specification, device_settings={}))
    if (function := _FUNCTION.fullmatch(text)) is not None:
        if not is_there(folder / function[1]):
            raise InputError("there is no such file", str(folder / function[1]), "FILE.py:FUNCTION, from here")
        return Named(name, "function", (str(folder / function[1]), function[2]), folder)
    if not words:
        raise InputError("a side is empty", "check", "name a command, a specification or FILE.py:FUNCTION")
    local = folder / words[0]
    program = str(local) if "/" in words[0] and is_there(local) else shutil.which(words[0])
    if program is None:
        raise InputError(f"there is no program '{words[0]}'", name, "give its name or its path")
    return Named(name, "command", (program, *words[1:]), folder)


def target_of(text: str, words: Sequence[str] = ()) -> Named:
    """What a text, or the words of a program, name; a script is run by this Python. Raises InputError."""
    words = words or shlex_split(text)
    here = shutil.which("python3") or "python3" if is_frozen() else sys.executable
    python = [here] if len(words) == 1 and words[0].endswith(".py") else []
    return named(text, [*python, *words], Path.cwd(), text)


def on_data(side: Named, data: str) -> Named:
    """The side on other data. Raises InputError where its data is its own."""
    name = f"{side.name} on {Path(data).name}"
    if side.specification is not None:
        return replace(side, name=name, specification=with_inputs(side.specification, [data]))
    if side.kind == "command":
        remedy = "give it as an argument of theirs: wattridge check './a --zeros' './a --random'"
        raise InputError("the data of a program is its own", "--inputs", remedy)
    return replace(side, name=name, words=(*side.words, data))


@dataclass(frozen=True, slots=True)
class Change:
    """What is other than it is found."""

    sms: int = 0  # that kernels run on; 0: all
    environment: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, float], ...] = ()

    @property
    def words(self) -> str:
        """'64 SMs, graphics clock 1200 MHz'."""
        variables = [f"{name}={value}" for name, value in self.environment]
        settings = [in_words(dict(self.settings))] if self.settings else []
        return ", ".join([*([f"{self.sms} SMs"] if self.sms else []), *variables, *settings]) or "untouched"

    def __or__(self, other: Change) -> Change:
        """Both."""
        return Change(self.sms or other.sms, self.environment + other.environment, self.settings + other.settings)


UNTOUCHED: Final = Change()


Workload = Callable[[Change], Contender]  # a side that can be opened changed and unchanged


@dataclass(frozen=True, slots=True)
class Opening:
    """What sides are opened with."""

    gpu: Gpu
    stop: threading.Event
    stack: ExitStack
    remark: Remark
    timeout_s: float = 600.0  # of one run of a program
    inputs: str = ""  # the function that makes a function's arguments
    copies: int = 1


def opened(side: Named, opening: Opening, changes: Sequence[Change] = ()) -> Workload:
    """A side on a board, closed with the stack; a specification takes no other changes than those announced.

    Settings are not made by it. What it gives raises InputError and WattridgeError.
    """
    return _rows(side, opening, changes) if side.kind == "specification" else partial(_process, side, opening)


class Held(Contender):
    """A contender whose board has settings of its own in its blocks."""

    def __init__(self, inner: Contender, guard: DeviceGuard, settings: Mapping[str, float]) -> None:
        self._inner, self._guard, self._settings, self.unit = inner, guard, dict(settings), inner.unit

    def block(self, stop: threading.Event) -> Look | None:
        self._guard.hold(**self._settings)
        if self._guard.gpu.clock.wait(self._guard.settling_s, stop):
            return None
        return self._inner.block(stop)


def _process(side: Named, opening: Opening, change: Change) -> Contender:
    """A program, or a function in a process of its own for each change."""
    variables = {name: value for name, value in change.environment if value != UNSET}
    watched = watch(opening.gpu)
    opening.stack.callback(watched.release)
    if side.kind == "command":
        environment = {**original_environment(), **variables} if change.environment else None
        limit_s = opening.timeout_s
        return ProgramContender(side.words, side.folder, watched, timeout_s=limit_s, environment=environment)
    file, function, *data = side.words
    asked = {"file": file, "function": function, "folder": str(side.folder), "seed": 0, "sms": change.sms}
    asked |= {"inputs": opening.inputs, "copies": opening.copies, "data": "".join(data)}
    contender = FunctionContender(asked, watched, variables)
    opening.stack.callback(contender.close)
    return contender


def _rows(side: Named, opening: Opening, changes: Sequence[Change]) -> Workload:
    """One configuration of a specification, on one runner; each change is a row. Raises InputError."""
    assert side.specification is not None, "a specification was named"
    spec, options = side.specification, SearchOptions(objective=Goal("energy_j", maximise=False))
    plan = plan_specification(spec, opening.gpu, options)
    row = _single_row(plan, side, opening.remark)
    added: dict[str, tuple[Any, ...]] = {}
    if sms := sorted({change.sms for change in changes} - {0}):
        added[SM_COUNT] = (0, *sms)
    for name, value in (variable for change in changes for variable in change.environment):
        added[name] = (*added.get(name, (UNSET,)), value)
    if added:
        fixed = {name: (value,) for name, value in plan.space.configuration(row).items()}
        environment = (*spec.environment, *(name for name in added if name != SM_COUNT))
        spec = replace(spec, parameters={**fixed, **added}, environment=environment, starts=(), restrictions=())
        plan = plan_specification(spec, opening.gpu, options)
        row = 0  # what comes first is untouched
    runner = opening.stack.enter_context(open_runner(plan, plan.boards))
    try:
        runner.prepare([row], opening.stop, lambda *_: None)
    except PreparationFailed as failure:  # it can measure all the same
        opening.remark(str(failure))

    def contender(change: Change) -> Contender:
        chosen = {SM_COUNT: change.sms or None, **dict(change.environment)}
        wanted = {name: chosen.get(name) or values[0] for name, values in added.items()}
        return KernelContender(runner, int(plan.space.rows_with(wanted)[0]) if added else row, side.name)

    return contender


def _single_row(plan: Any, side: Named, remark: Remark) -> int:
    """The row that a side names, else the one that its search would begin with. Raises InputError without one."""
    space, wanted = plan.space, dict(part.split("=", 1) for part in side.words[0].split(",") if part)
    values = {parameter.name: {str(value): value for value in parameter.values} for parameter in space.parameters}
    for name, text in wanted.items():
        if text not in values.get(name, {}):
            known = f"values of {name}: {', '.join(values[name])}" if name in values else f"names: {', '.join(values)}"
            raise InputError(f"no configuration has {name}={text}", side.name, known)
    rows = space.rows_with({name: values[name][text] for name, text in wanted.items()})
    libraries = set(space.rows_with({MAKER: LIBRARY}).tolist()) if MAKER in space.names else set()
    suggested = [row for row in (*plan.starts, *plan.suggestions) if row in rows and row not in libraries]
    if len(rows) != 1 and not suggested:
        remedy = f"add its values: {side.name}:{','.join(f'{name}=...' for name in space.names if name not in wanted)}"
        raise InputError(f"{len(rows)} configurations match", side.name, remedy)
    row = int(rows[0]) if len(rows) == 1 else suggested[0]
    if len(rows) != 1:
        chosen = ", ".join(f"{name}={value}" for name, value in space.configuration(row).items())
        remark(f"{side.name}: of {len(rows)} configurations the one that its search would begin with: {chosen}")
    return int(row)
