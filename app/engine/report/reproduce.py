"""The commands that reproduce what is shown: each option that differs from the file's value, and no other.

Each function returns a `CommandLine`, which is a line for a shell and a script in Python. Raises InputError, with the
reason, where no command gives the same.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ... import __version__
from ...base.errors import InputError
from ...base.files import digest_of, is_there
from ...base.installation import can_be_imported, own_program
from ...sensors.gpu import LIVE
from ..formats.read import read_recording
from ..formats.table_columns import OPTIONS, TableColumns
from ..results.objectives import Goal, Limit
from ..results.state import Purpose
from ..runner.base import setting_names
from ..runner.pool.pool import SELECTOR
from ..session.load import load_specification
from ..session.planning import locked_clocks, own_goals, plan_replay
from ..session.summary import best_of
from ..strategies import base as strategies

if TYPE_CHECKING:
    from ...sensors.gpu import Gpu
    from ..models.clock_fits import ClockFit
    from ..models.roofline.points import Sweep
    from ..session.events import Fit
    from ..session.profiling import Wanted
    from ..space.result_table import ResultTable
    from ..specification.plan import SessionFacts, SessionPlan
    from ..store.database import Store

_PLAIN: Final = re.compile(r"[\w@+=:,./\\-]+", re.ASCII)  # no quotes are needed, in any shell of Windows
# Within double quotes cmd or PowerShell still gives these a meaning, and each another one.
_UNQUOTABLE: Final = re.compile(r'["%$`!\x00-\x1f\x7f]')


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words of a command, without the program's name; `about` says what it gives, in words."""

    words: tuple[str, ...]
    about: str

    def shell(self, *, windows: bool = os.name == "nt") -> str:
        """The line, quoted for the shells of the platform.

        Raises InputError for a word that cmd and PowerShell do not both take as it is.
        """
        words = (own_program(), *self.words)
        return " ".join(map(_quoted_for_windows, words)) if windows else shlex.join(words)

    def python(self) -> str:
        """A script that does the same, and has the result as Python's own types.

        It imports this package where the user's Python has it, and else calls the program.
        """
        head = f'"""{_as_docstring(self.about)}\n\nWritten by Wattridge {__version__}, which it needs.\n"""\n\n'
        imported = can_be_imported()
        if self.words[0] == "monitor" and imported:
            return head + _measuring(self.words)
        listed = "".join(f"    {word!r},\n" for word in self.words)
        program = 'sys.executable, "-m", "wattridge"' if imported else repr(own_program())
        run = _RUN.format(program=program, words=listed)
        return head + run + _LOOK.get(self.words[0], _LOOK_AT_ALL)


_RUN: Final = """\
import json
import subprocess
import sys

words = [
{words}]
command = [{program}, *words, "--json"]
done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
if done.returncode:
    print(done.stdout, file=sys.stderr)  # what failed, where, and the remedy
    sys.exit(done.returncode)
result = json.loads(done.stdout)

"""

_LOOK_AT_ALL: Final = "print(json.dumps(result, indent=2))\n"
_LOOK_AT_SEARCH: Final = """\
front = [{**point["configuration"], **point["values"]} for point in result["front"]]  # pandas.DataFrame(front)
print(f"session {result['session']}: {result['evaluated']} of {result['valid']} configurations measured")
print("best:", result["best"])
for point in front:
    print(point)
"""
_LOOK: Final = {"tune": _LOOK_AT_SEARCH, "replay": _LOOK_AT_SEARCH}

_MEASURE: Final = """\
import time

from wattridge import measure

with measure(gpu=GPU) as m:
    time.sleep(SECONDS)  # or the code to be measured

print(f"{m.gpu} ({m.source}): {m.time_s:.1f} s, {m.energy_j:.1f} J, {m.mean_power_w:.1f} W, {m.unknown}")
trace = {"time_s": m.times_s, "power_w": m.power_w, "clock_mhz": m.clock_mhz}  # pandas.DataFrame(trace)
print(f"{len(m.times_s)} readings")
"""


def _measuring(words: Sequence[str]) -> str:
    given = dict(zip(words[1::2], words[2::2], strict=True))
    gpu = repr(given["--gpu"]) if "--gpu" in given else "None"
    return _MEASURE.replace("GPU)", f"{gpu})").replace("SECONDS", given.get("--duration", "10"))


def _as_docstring(text: str) -> str:
    """One line that ends no string."""
    return " ".join(text.replace("\\", "/").replace('"', "'").split())


def _quoted_for_windows(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    match = _UNQUOTABLE.search(word)
    if match is not None:
        raise InputError(
            f"{match[0]!r} in '{word}' means something else to each shell of Windows", "copy", "copy it as Python"
        )
    return f'"{word}{_closing_backslashes(word)}"'


def _closing_backslashes(word: str) -> str:
    """Those before a closing quote are doubled, or they would escape it."""
    return "\\" * (len(word) - len(word.rstrip("\\")))


_POINTS: Final = 10  # of a sweep, the number that `fit` takes by itself


def run_command(plan: SessionPlan, store: Store | None = None) -> CommandLine:
    """Run the session of a plan, one that is set up, runs or ran; `store` holds the one that it continues, if it does.

    Reads the plan's file: off Qt's thread.
    """
    about = f"Search of {plan.title} on {plan.board}"
    if plan.purpose is Purpose.ROOFLINE:
        precision = plan.origin.get("precision", "")
        clocks = ",".join(locked_clocks(plan))
        set_here = [*_option("--clock", clocks), *(["--allow-control"] if plan.source in LIVE else [])]
        words_of = [*_board(plan.origin), *_option("--precision", precision), *(set_here if clocks else ())]
        return CommandLine(("roofline", *words_of), about)
    if plan.resume is not None:
        return CommandLine(_resumed(plan, store), f"Session {plan.resume}, continued")
    path = Path(plan.origin.get("file", ""))
    if plan.origin.get("kind") not in ("specification", "replay") or not is_there(path):
        raise InputError("the file it was set up from is gone", str(path), "put it back")
    if plan.follow is None and digest_of(path) != plan.origin.get("sha256"):
        raise InputError("its file has changed since it was set up", str(path), "open it again")
    words = _replayed(plan, path) if plan.purpose is Purpose.REPLAY else _tuned(plan, path)
    return CommandLine(words, about)


def analyse_command(plan: SessionFacts, session: int) -> CommandLine:
    """Analyse a stored session."""
    return CommandLine(("analyse", _number(session)), f"Analysis of session {session}, {plan.title} on {plan.board}")


def counters_command(plan: SessionFacts, session: int, wanted: Wanted) -> CommandLine:
    """Take the hardware counters of configurations of a stored session."""
    about = f"Hardware counters of session {session}, {plan.title} on {plan.board}"
    return CommandLine(("counters", _number(session), *wanted.words), about)


def export_command(plan: SessionFacts, session: int, table: ResultTable, index: int) -> CommandLine:
    """Export a stored session with a configuration of it."""
    words = ("export", _number(session), *_configuration(plan, table, index))
    return CommandLine(words, f"Export of session {session}, {plan.title} on {plan.board}")


def report_command(plan: SessionFacts, session: int, table: ResultTable, index: int) -> CommandLine:
    """The report of a stored session with a configuration of it."""
    words = ("report", _number(session), *_configuration(plan, table, index))
    return CommandLine(words, f"Report of session {session}, {plan.title} on {plan.board}")


def compare_command(sources: Sequence[int | Path]) -> CommandLine:
    """Compare stored sessions and files."""
    words = [_number(source) if isinstance(source, int) else str(source.resolve()) for source in sources]
    if not words:
        raise InputError("nothing is compared", "Compare", "tick two or more sessions")
    return CommandLine(("compare", *words), f"Comparison of {len(words)} sessions")


def monitor_command(uuid: str, name: str, seconds: float) -> CommandLine:
    """Watch a board for as long as its traces show."""
    return CommandLine(("monitor", "--gpu", uuid, "--duration", f"{seconds:g}"), f"What {name} draws")


def fit_command(fit: ClockFit | None) -> CommandLine:
    """Fit the same again: to a file, a session, or a sweep that runs again."""
    if fit is None:
        raise InputError("no fit is shown", "Model", "fit a clock sweep or the session")
    if not fit.words:
        what = f"no command gives this fit of {fit.origin}"
        raise InputError(what, "Model", "it is one of several in its file, which `--series` picks, or was made earlier")
    return CommandLine(("fit", *fit.words), f"Frequency model of {fit.label}, {fit.origin}")


def sweep_words(sweep: Fit, gpu: Gpu) -> tuple[str, ...]:
    """The words of `fit` that make a sweep of a board again."""
    words = _board({"gpu": gpu.info.uuid, "sim_seed": str(getattr(gpu, "seed", 0))})
    words += _option("--points", str(sweep.points)) if sweep.points != _POINTS else []
    words += ["--memory-clocks"] if sweep.memory_clocks else []
    words += ["--caps"] if sweep.power_limits else []
    return (*words, *(["--allow-control"] if gpu.info.live else []))


def roofline_command(sweep: Sweep | None) -> CommandLine:
    """The roofline of a session or a file; all that are on file, and the published ones, where it is among these."""
    words = (sweep.opened_as,) if sweep is not None and sweep.opened_as else ()
    return CommandLine(("roofline", *words), f"Energy roofline of {sweep.label}" if sweep else "Energy rooflines")


# --- of a specification, a recording, a stored session ----------------------------------------------------------------


def _tuned(plan: SessionPlan, path: Path) -> tuple[str, ...]:
    if "device_settings" in plan.origin:
        names = plan.origin["device_settings"]
        raise InputError(
            f"{names}: the window chose other values than the specification has",
            str(path),
            "use all clocks again, or write those values into [device_settings]",
        )
    spec = load_specification(path)
    defaults = spec.search_in(plan.space.size)
    words = ["tune", str(path), *_boards(plan)]
    if plan.origin.get("repeats", str(spec.repeats)) != str(spec.repeats):
        words += _option("--repeats", plan.origin["repeats"])
    words += _option("--condition", plan.origin["chosen_condition"]) if "chosen_condition" in plan.origin else []
    words += _taken_over(plan.origin)
    words += _search(plan, defaults)
    goal, front = own_goals(spec)
    words += _goal(plan.objective.goal, goal)
    words += _front(plan.objective.front, front)
    words += _limits(plan.objective.limits, spec.limits)
    if plan.source in LIVE and setting_names(plan.space):
        words.append("--allow-control")
    return tuple(words)


def _replayed(plan: SessionPlan, path: Path) -> tuple[str, ...]:
    columns = {name: plan.origin[name] for name in OPTIONS if name in plan.origin}
    default_plan = plan_replay(
        path, read=read_recording(path, TableColumns.parse(*(plan.origin.get(name, "") for name in OPTIONS)))
    )
    words = ["replay", str(path)]
    for name, column in columns.items():
        words += [word for text in column.split("\n") for word in (f"--{name.replace('_', '-')}", text)]
    if plan.follow is not None:
        words.append("--follow")
    else:
        words += _search(plan, default_plan.facts())
    front = _front(plan.objective.front, default_plan.objective.front)
    expected = plan.objective.front[0] if front else default_plan.objective.goal  # the first of a front that is named
    limits = _limits(plan.objective.limits, default_plan.objective.limits)
    return (*words, *_goal(plan.objective.goal, expected), *front, *limits)


def _resumed(plan: SessionPlan, store: Store | None) -> tuple[str, ...]:
    assert plan.resume is not None
    assert store is not None
    record = store.session(plan.resume)
    words = ["tune", "--resume", str(plan.resume)]
    if plan.pool is not None or plan.origin.get("gpu") != record.origin.get("gpu"):
        words += _boards(dataclasses.replace(plan, origin={"gpu": plan.origin.get("gpu", "")}))
    words += _budget(plan, record.facts())
    if plan.source in LIVE and setting_names(plan.space):
        words.append("--allow-control")
    return tuple(words)


def _search(plan: SessionPlan, own: Mapping[str, Any]) -> list[str]:
    """Strategy, options, limits and seed, where they are not the file's own."""
    words = [] if plan.strategy == own["strategy"] else _option("--strategy", plan.strategy)
    chosen = strategies.get(plan.strategy)
    given = strategies.make_options(chosen, dict(plan.strategy_options))
    usual = strategies.make_options(chosen, {} if words else dict(own["strategy_options"]))
    for field in dataclasses.fields(given):
        value = getattr(given, field.name)
        if value != getattr(usual, field.name):
            words += _option("--strategy-option", f"{field.name}={_text(value)}")
    words += _budget(plan, own)
    return words + ([] if plan.seed == own["seed"] else _option("--seed", str(plan.seed)))


def _budget(plan: SessionPlan, own: Mapping[str, Any]) -> list[str]:
    """A limit that the file has and the session has not is written as one that is never met, where there is one."""
    size, words = plan.space.size, []
    if plan.budget != min(own["max_evaluations"] or size, size):
        words += _option("--max-evaluations", str(plan.budget))
    if plan.max_seconds is None and own["max_seconds"] is not None:
        what = f"no option lifts the limit of {own['max_seconds']:g} s that the file or session has"
        raise InputError(what, plan.title, "give another limit of time")
    if plan.max_seconds != own["max_seconds"]:
        words += _option("--max-seconds", _text(plan.max_seconds))
    if plan.patience != own["patience"]:
        words += _option("--patience", str(plan.patience or size))
    return words


# --- words ------------------------------------------------------------------------------------------------------------


def _boards(plan: SessionPlan) -> list[str]:
    """The board, or the several that share the session. Raises InputError if it is not known which those were."""
    if plan.pool:
        return list(plan.pool)
    if plan.origin.get("gpu") == SELECTOR:
        remedy = "name the boards yourself: --pool SCHEDULER, or --gpu 0,1"
        raise InputError("it was measured on boards that shared the session", plan.title, remedy)
    return _board(plan.origin)


def _board(origin: Mapping[str, str]) -> list[str]:
    """Always said: which board is the first one depends on the machine."""
    seed = origin.get("sim_seed", "0")
    words = _option("--gpu", origin["gpu"]) if origin.get("gpu") else []
    return words + (_option("--sim-seed", seed) if seed != "0" else [])


def _taken_over(origin: Mapping[str, str]) -> list[str]:
    return _option("--resume", origin["taken_over"]) if "taken_over" in origin else []


def _goal(goal: Goal, own: Goal | None) -> list[str]:
    return [] if goal == own else _option("--maximise" if goal.maximise else "--minimise", goal.name)


def _front(front: tuple[Goal, ...], own: tuple[Goal, ...]) -> list[str]:
    if front == own:
        return []
    names = [goal.name for goal in front]
    if len(front) < 2 or any("," in name or name != name.strip() for name in names):
        raise InputError(f"no option gives a front of {' and '.join(names) or 'nothing'}", "--front", "choose two")
    return _option("--front", ",".join(map(str, front)))


def _limits(limits: tuple[Limit, ...], own: tuple[Limit, ...]) -> list[str]:
    """Those of a session, where they are not those that it has without any option. Raises InputError."""
    if limits == own:
        return []
    if not limits:
        raise InputError("no option takes the limits away", "--limit", "leave them out of the specification")
    return [word for limit in limits for word in _option("--limit", str(limit).replace(" ", ""))]


def _configuration(plan: SessionFacts, table: ResultTable, index: int) -> list[str]:
    """Which one; nothing for the best, which a command takes by itself."""
    if index == best_of(plan, table):
        return []
    configuration = table.measurement(index).configuration
    _check_values((str(part) for pair in configuration.items() for part in pair), plan.title)
    return _option("--configuration", ",".join(f"{name}={value}" for name, value in configuration.items()))


def _check_values(parts: Iterable[str], where: str) -> None:
    unfit = next((part for part in parts if "," in part or "=" in part), None)
    if unfit is not None:
        raise InputError(f"'{unfit}' cannot be named on a command line", where, "choose the best configuration instead")


def _number(session: int) -> str:
    if not session:
        raise InputError("a file that is followed is no session yet", "copy", "wait until its tuner is done")
    return str(session)


def _option(name: str, value: str) -> list[str]:
    """A value that begins like an option is written in one word with its name."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _text(value: Any) -> str:
    """As the command line reads it: a float without digits that say nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
