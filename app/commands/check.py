"""`wattridge check A B`: whether B needs more joules than A, measured in turns until it is known."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import InputError, WattridgeError
from ..base.files import is_there
from ..engine.session.named import is_specification, specification_path
from .arguments import add_board, positive_float, positive_int
from .terminal import ProgressBar, Stop, print_description, print_json, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.analysis.in_turns import InTurns, Side
    from ..engine.session.check import Terms
    from ..engine.session.contenders import Contender
    from ..sensors.gpu import Gpu

_CONFIGURED: Final = re.compile(r"(.+?):(\w+=[^,:]*(?:,\w+=[^,:]*)*)")
_FUNCTION: Final = re.compile(r"(.+\.py):([A-Za-z_]\w*)")
_GIT_S: Final = 300.0  # for a checkout


def check_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge check`."""
    parser.usage = (
        "wattridge check [OPTION ...] A B\n       wattridge check [OPTION ...] --commits A,B -- SIDE [ARGUMENT ...]"
    )
    what = (
        "'a command line', FILE.py:FUNCTION, or a specification, an example or an operator, with the values of its"
        " configuration as in sgemm.toml:block_size_x=32,tile_size_x=4"
    )
    parser.add_argument("a", nargs="?", metavar="A", help=f"the side to compare with: {what}")
    parser.add_argument("b", nargs="?", metavar="B", help="the side that may need more")
    parser.add_argument(
        "--commits", metavar="A,B", help="the same in two checkouts of this repository: what follows --"
    )
    parser.add_argument(
        "--history", action="store_true", help="show what --commits has found here so far, and its change points"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="with --history: write it with charts, as HTML")
    parser.add_argument("--prepare", metavar="COMMAND", help="run this in each checkout first, as in 'make -j8'")
    parser.add_argument(
        "--seconds", type=positive_float, default=60.0, metavar="S", help="measure at most so long (60)"
    )
    parser.add_argument(
        "--threshold", type=_percent, default=0.005, metavar="PERCENT", help="more joules than that are worse (0.5)"
    )
    parser.add_argument(
        "--error", type=_percent, default=0.01, metavar="PERCENT", help="how often an interval may be wrong (1)"
    )
    parser.add_argument(
        "--timeout", type=positive_float, default=600.0, metavar="S", help="of one run of a program (600)"
    )
    parser.add_argument("--inputs", metavar="FUNCTION", help="of the same file: makes the arguments of both functions")
    parser.add_argument(
        "--copies",
        type=positive_int,
        default=1,
        metavar="N",
        help="use so many copies of the inputs in turn: with more than the cache holds it is cold at every call (1)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the coins that decide which side begins a pair")
    parser.add_argument(
        "--evidence", type=Path, metavar="FILE", help="write samples and figures, for `wattridge verify`"
    )
    parser.add_argument("--markdown", action="store_true", help="print one line for a pull request")
    add_board(parser, speed=float("inf"))


def check(arguments: Namespace) -> int:
    """Measure A and B in turns. 0: B is no worse, 4: worse, 3: undecided, 1: a side failed, 2: usage."""
    from ..engine.session.check import EXIT, Checked, Terms, in_turns
    from ..sensors.select import open_gpu

    if arguments.history:
        return _history(arguments)
    terms = Terms(arguments.seconds, arguments.threshold, arguments.error, arguments.seed)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_interrupt())
        sides = stack.enter_context(_sides(arguments, stop))
        kernels = all(side.kind == "specification" for side in sides)
        speed = arguments.speed if kernels and not any(side.takes_real_time for side in sides) else 1.0
        board = open_gpu(arguments.gpu, seed=arguments.sim_seed, speed=speed, voltage=False)
        gpu = stack.enter_context(closing(board))
        contenders = _contenders(sides, gpu, arguments, stop, stack)
        bar = ProgressBar(quiet=arguments.json or arguments.markdown)
        result, blocks, remarks = in_turns(contenders, gpu, terms, stop, lambda now: _progress(bar, now, terms))
    if not kernels and not gpu.info.real:
        from ..engine.runner.command import not_its_own

        remarks.append(not_its_own(gpu.info.source))
    (a, b), info = (side.name for side in sides), gpu.info
    unit = contenders["A"].unit
    checked = Checked(a, b, info.name, info.source, unit, result, tuple(blocks), tuple(remarks), time.time())
    if arguments.evidence is not None:
        from ..engine.report.evidence_file import in_turns_evidence, write_evidence

        write_evidence(arguments.evidence, info, [in_turns_evidence(f"{b} against {a}", blocks, result)])
    if arguments.commits is not None:
        from ..engine.session.check_history import keep

        keep(checked, _top(), shlex.join(arguments.program), (sides[0].commit, sides[1].commit))
    if arguments.json:
        print_json(checked)
    elif arguments.markdown:
        show(checked.markdown)
    else:
        print_description(checked.describe())
    return EXIT[checked.verdict]


@dataclass(frozen=True, slots=True)
class _Given:
    """A side as it was named."""

    name: str  # for the answer
    kind: str  # 'command', 'function' or 'specification'
    words: tuple[str, ...]
    folder: Path
    specification: Any = None
    commit: str = ""  # in full, of a checkout

    @property
    def takes_real_time(self) -> bool:
        return self.specification is not None and self.specification.kernel is None


@contextmanager
def _sides(arguments: Namespace, stop: Stop) -> Iterator[tuple[_Given, _Given]]:
    """Both sides as they are named; checkouts are removed at the end. Raises InputError."""
    if arguments.commits is None:
        if arguments.program and (arguments.a or arguments.b):
            raise InputError("a program stands after -- and A is named too", "check", "use --commits, or quote A and B")
        named = [text for text in (arguments.a, arguments.b, *arguments.program) if text is not None]
        if len(named) != 2:
            remedy = "as in: wattridge check 'python a.py' 'python b.py'"
            raise InputError(f"two sides are compared, not {len(named)}", "check", f"name both, {remedy}")
        a, b = (_given(text, shlex_split(text), Path.cwd(), text) for text in named)
        yield _alike(a, b)
        return
    revisions = [text.strip() for text in arguments.commits.split(",")]
    words = arguments.program or [text for text in (arguments.a, arguments.b) if text is not None]
    if len(revisions) != 2 or not all(revisions) or any(text.startswith("-") for text in revisions):
        raise InputError(f"'{arguments.commits}' are no two commits", "--commits", "as in --commits main,HEAD")
    if not words:
        raise InputError("nothing to run", "--commits", "name it: wattridge check --commits main,HEAD -- ./bench")
    with ExitStack() as stack:
        commits = [_commit(revision) for revision in revisions]
        folders = [_checkout(commit, stack, stop) for commit in commits]
        if arguments.prepare:
            for folder in folders:
                _run(shlex_split(arguments.prepare), folder, stop, "--prepare", arguments.timeout)
        text = words[0] if len(words) == 1 else shlex.join(words)
        a, b = (_given(text, words, folder, name) for folder, name in zip(folders, revisions, strict=True))
        _alike(a, b)
        yield replace(a, commit=commits[0]), replace(b, commit=commits[1])


def shlex_split(text: str) -> list[str]:
    """A command line's words. Raises InputError."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"not a command line: {error}", text, "close every quote") from None


def _given(text: str, words: Sequence[str], folder: Path, name: str) -> _Given:
    from ..engine.session.load import load_specification

    found = _CONFIGURED.fullmatch(text)
    path, wanted = (found[1], found[2]) if found else (text, "")
    if is_specification(path) or (found and is_there(Path(path))):
        local = folder / path
        specification = load_specification(local if is_there(local) else specification_path(path))
        return _Given(name, "specification", (wanted,), folder, replace(specification, device_settings={}))
    if (function := _FUNCTION.fullmatch(text)) is not None:
        if not is_there(folder / function[1]):
            raise InputError("there is no such file", str(folder / function[1]), "FILE.py:FUNCTION, from here")
        return _Given(name, "function", (str(folder / function[1]), function[2]), folder)
    if not words:
        raise InputError("a side is empty", "check", "name a command, a specification or FILE.py:FUNCTION")
    local = folder / words[0]
    program = str(local) if "/" in words[0] and is_there(local) else shutil.which(words[0])
    if program is None:
        raise InputError(f"there is no program '{words[0]}'", name, "give its name or its path")
    return _Given(name, "command", (program, *words[1:]), folder)


def _alike(a: _Given, b: _Given) -> tuple[_Given, _Given]:
    if a.kind != b.kind:
        raise InputError(f"A is a {a.kind} and B a {b.kind}", "check", "compare what does the same work")
    return a, b


# --- checkouts --------------------------------------------------------------------------------------------------------


def _top() -> str:
    return _git("rev-parse", "--show-toplevel", what="this is no repository").strip()


def _commit(revision: str) -> str:
    return _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", what=f"no commit '{revision}'").strip()


def _checkout(commit: str, stack: ExitStack, stop: Stop) -> Path:
    """A checkout of a commit in a temporary folder, and in it the folder that is the present one here."""
    from ..engine.children.scratch import scratch_folder

    top, below = _top(), _git("rev-parse", "--show-prefix", what="this is no repository").strip()
    folder = scratch_folder()
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    place = folder / "checkout"
    stack.callback(_remove, top, place)
    _run(["git", "-C", top, "worktree", "add", "--detach", "--force", str(place), commit], folder, stop, commit, _GIT_S)
    return place / below


def _remove(top: str, place: Path) -> None:
    subprocess.run(["git", "-C", top, "worktree", "remove", "--force", str(place)], capture_output=True, timeout=_GIT_S)


def _git(*words: str, what: str) -> str:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=_GIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WattridgeError(f"git does not run: {error}", "--commits", "install git") from None
    if done.returncode:
        raise InputError(what, "--commits", "name two commits of the repository that you are in")
    return done.stdout


def _run(words: Sequence[str], folder: Path, stop: Stop, where: str, timeout_s: float) -> None:
    from ..engine.workloads.command import CommandFailed, run_command

    try:
        if run_command(list(words), folder, timeout_s, stop=stop, now_ns=time.monotonic_ns).stopped:
            raise KeyboardInterrupt
    except CommandFailed as failure:
        raise WattridgeError(f"{words[0]}: {failure}", where, "run it by itself to see why") from None


def _history(arguments: Namespace) -> int:
    """Show the stored comparisons of this repository."""
    from ..engine.report.html import figure, section, titled
    from ..engine.report.page import whole_page, write_page
    from ..engine.report.svg import drawn
    from ..engine.session.check_history import describe_history, histories, history_chart

    found = histories(_top(), shlex.join(arguments.program) or None)
    if not found:
        remedy = "compare two commits first: wattridge check --commits A,B -- SIDE"
        raise InputError("nothing was compared here", "--history", remedy)
    if arguments.out is not None:
        charts = [(one, history_chart(one)) for one in found]
        parts = [
            section(one.what, figure(drawn(chart), chart.caption), titled([describe_history(one)]))
            for one, chart in charts
        ]
        write_page(whole_page("Joules over commits", "", _top(), *parts), arguments.out)
    if arguments.json:
        print_json(found)
        return 0
    for one in found:
        print_description(describe_history(one))
    return 0


# --- what is measured -------------------------------------------------------------------------------------------------


def _contenders(
    sides: Sequence[_Given], gpu: Gpu, arguments: Namespace, stop: Stop, stack: ExitStack
) -> Mapping[Side, Contender]:
    from ..engine.analysis.in_turns import SIDES
    from ..engine.session.contenders import FunctionContender, ProgramContender

    if sides[0].kind == "specification":
        return {side: _kernel(given, gpu, stop, stack) for side, given in zip(SIDES, sides, strict=True)}
    from ..engine.metering.watching import watch

    watched = watch(gpu)
    stack.callback(watched.release)
    contenders: dict[Side, Contender] = {}
    for side, given in zip(SIDES, sides, strict=True):
        if given.kind == "command":
            contenders[side] = ProgramContender(given.words, given.folder, watched, timeout_s=arguments.timeout)
            continue
        asked = {"file": given.words[0], "function": given.words[1], "folder": str(given.folder), "seed": 0}
        asked |= {"inputs": arguments.inputs or "", "copies": arguments.copies}
        contenders[side] = FunctionContender(asked, watched)
        stack.callback(contenders[side].close)
    return contenders


def _kernel(given: _Given, gpu: Gpu, stop: Stop, stack: ExitStack) -> Contender:
    """One configuration of a specification, its device opened. Raises InputError where it singles out none."""
    from ..engine.results.objectives import Goal
    from ..engine.runner.boards import open_runner
    from ..engine.session.contenders import KernelContender
    from ..engine.session.planning import plan_specification
    from ..engine.specification.plan import SearchOptions

    plan = plan_specification(given.specification, gpu, SearchOptions(objective=Goal("energy_j", maximise=False)))
    space, wanted = plan.space, dict(part.split("=", 1) for part in given.words[0].split(",") if part)
    values = {parameter.name: {str(value): value for value in parameter.values} for parameter in space.parameters}
    for name, text in wanted.items():
        if text not in values.get(name, {}):
            known = f"values of {name}: {', '.join(values[name])}" if name in values else f"names: {', '.join(values)}"
            raise InputError(f"no configuration has {name}={text}", given.name, known)
    rows = space.rows_with({name: values[name][text] for name, text in wanted.items()})
    suggested = [row for row in (*plan.starts, *plan.suggestions) if row in rows]
    if len(rows) != 1 and not suggested:
        remedy = f"add its values: {given.name}:{','.join(f'{name}=...' for name in space.names if name not in wanted)}"
        raise InputError(f"{len(rows)} configurations match", given.name, remedy)
    row = int(rows[0]) if len(rows) == 1 else suggested[0]
    if len(rows) != 1:
        chosen = ", ".join(f"{name}={value}" for name, value in space.configuration(row).items())
        say(f"{given.name}: of {len(rows)} configurations the one that its search would begin with: {chosen}")
    runner = stack.enter_context(open_runner(plan, plan.boards))
    runner.prepare([row], stop, lambda *_: None)
    return KernelContender(runner, row, given.name)


def _progress(bar: ProgressBar, now: InTurns, terms: Terms) -> None:
    if sys.stderr.isatty():
        bar.show(min(round(now.seconds), round(terms.seconds)), round(terms.seconds), f"s  {now.words}")


def _percent(text: str) -> float:
    value = float(text) / 100
    if not 0 < value < 1:
        raise ArgumentTypeError(f"'{text}' is not between 0 and 100")
    return value
