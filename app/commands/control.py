"""`wattridge apply` and `restore`: setting a board's clocks and cap, and putting them back."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..base.errors import InputError, PermissionRefused, WattridgeError
from ..base.formatting import UNKNOWN
from ..engine.results.settings import (
    PROFILE,
    SETTINGS,
    UNTOUCHED,
    WORDS,
    BoardSettings,
    Setting,
    in_words,
    profile_number,
    unit,
    with_unit,
)
from ..sensors.remote.address import SCHEME
from .arguments import add_board, add_control, add_force, board_of, clock_or_range, positive_float
from .terminal import agrees, ask, at_terminal, print_json, print_table, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.control.client import Asking
    from ..engine.control.guard import DeviceGuard
    from ..engine.control.left_over import LeftOver
    from ..engine.control.obeying import Observation
    from ..engine.report.export import Choice
    from ..engine.specification.plan import SessionPlan
    from ..engine.store.record import SessionRecord
    from ..sensors.gpu import Gpu


def guard_of(gpu: Gpu, arguments: Namespace | None = None, *, by: str = "by hand") -> DeviceGuard:
    """The guard of a command: a password is asked for on a terminal only, and every change is written down.

    The options of `add_control` say what it may do; without them it may set the board.
    """
    from ..engine.control.device_log import keep
    from ..engine.control.guard import DeviceGuard

    allow_control = arguments is None or arguments.allow_control
    recorded, line = describe_left_over(gpu)
    if recorded is not None and recorded.unfinished and not allow_control:
        say(line)  # what is measured now is measured under those settings
    on_change = keep if gpu.info.live else None
    guard = DeviceGuard(gpu, allow_control=allow_control, asking=asking_here(), by=by, on_change=on_change)
    guard.over_locks = arguments is not None and arguments.over_locks
    return guard


def asking_here() -> Asking:
    """The way in which a password may be requested: on a terminal only."""
    from ..engine.control.client import Asking

    return Asking.TERMINAL if at_terminal() else Asking.NEVER


@contextmanager
def guarded_board(
    arguments: Namespace, *, by: str = "by hand", speed: float | None = None
) -> Iterator[tuple[Gpu, DeviceGuard]]:
    """The board of a command with its guard; at the end what the guard changed is put back and both are closed."""
    with board_of(arguments, speed=speed) as gpu, closing(guard_of(gpu, arguments, by=by)) as guard:
        yield gpu, guard


# --- apply ------------------------------------------------------------------------------------------------------------


def apply_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge apply`."""
    add_board(parser)
    parser.add_argument(
        "--clock", type=clock_or_range, metavar="MHZ", help="the graphics clock, or a range as LOW:HIGH"
    )
    parser.add_argument("--memory-clock", type=positive_float, metavar="MHZ", help="the memory clock")
    parser.add_argument("--power-limit", type=positive_float, metavar="W", help="the power limit")
    parser.add_argument(
        "--workload-power-profile",
        metavar="NAME",
        help="a workload power profile of newer boards, by name or number; none (see: wattridge gpus --verbose)",
    )
    parser.add_argument("--profile", metavar="NAME", help="settings that were kept under this name in the window")
    parser.add_argument("--session", type=int, metavar="SESSION", help="take them from a configuration of this session")
    parser.add_argument("--configuration", metavar="NAME=VALUE,...", help="that configuration (default: the best)")
    keep = "confirm at once: they stay until `wattridge restore` or a restart of the machine"
    parser.add_argument("--keep", action="store_true", help=keep)
    parser.add_argument(
        "--countdown", type=positive_float, default=10.0, metavar="S", help="put back unless confirmed by then (10)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="set nothing: write a script and a systemd unit that do")
    add_force(parser)
    add_control(parser)


def apply(arguments: Namespace) -> int:
    """Set a board by hand, look whether it obeys, and put it back unless that is confirmed."""
    from ..sensors.select import open_gpu

    named, found_on = _named(arguments)
    remote = arguments.gpu is not None  # what a session's file names is not the user's own word
    selector = found_on.origin.get("gpu") if found_on is not None else None
    with closing(open_gpu(arguments.gpu or selector, seed=arguments.sim_seed, remote=remote)) as gpu:
        if found_on is not None:
            _require_board(found_on, gpu, named)
        chosen = {**_of_profile(arguments.profile, gpu), **named}
        if arguments.workload_power_profile is not None:
            chosen[PROFILE] = float(profile_number(gpu, arguments.workload_power_profile))
        if arguments.out:
            return _write(arguments, gpu, chosen)
        with closing(guard_of(gpu, arguments)) as guard:
            return _apply(arguments, gpu, guard, chosen)


def _apply(arguments: Namespace, gpu: Gpu, guard: DeviceGuard, chosen: BoardSettings) -> int:
    from ..engine.metering import limit_effect

    for name in chosen:
        if why := guard.why_not(name):
            raise WattridgeError(f"the {WORDS[name]} cannot be set: {why}", gpu.info.label, "leave it out")
    for note in guard.open():
        say(note)
    guard.require_unlocked(chosen)
    with stop_on_interrupt() as stop:
        guard.apply(**chosen)
        prior, applied = guard.prior, guard.applied
        seen = guard.watch(stop)
        if not arguments.json:
            _print(gpu, prior, applied, seen)
        limit_w = applied.get("power_limit_w")
        effect = limit_effect.look_at_effect(gpu, limit_w, stop) if limit_w is not None and gpu.info.live else None
        if effect is not None and effect.without_effect:
            say(f"As the board runs now, {limit_effect.in_words([effect])}.")
        kept = arguments.keep or (not stop.is_set() and _confirmed(arguments.countdown, stop, arguments.json))
    if kept:
        guard.confirm()
        lasting = "until a restart of the machine, or: wattridge restore"
        say(f"The settings stay, {'only as long as this command runs' if gpu.info.source == 'simulated' else lasting}.")
        if gpu.info.source == "nvml" and PROFILE not in chosen:
            say("For a unit that sets them at every start of the machine: the same command with --out FOLDER.")
    else:
        guard.restore()
        say("Not confirmed: everything is as it was before (--keep keeps it).")
    if arguments.json:
        print_json({**_document(gpu, prior, applied, seen), "kept": kept, "limit_effect": effect})
    return 0 if seen.obeyed else 1


def _require_board(found_on: SessionRecord, gpu: Gpu, named: BoardSettings) -> None:
    """Raises InputError if a session's settings were found on another model; says where on another board of it.

    A simulated board is another model: it has the name of a real one.
    """
    session, info = f"session {found_on.id}", gpu.info
    if (found_on.gpu, found_on.source == "simulated") != (info.name, info.source == "simulated"):
        what = f"the settings of {session} were found on {found_on.board}, and say nothing of this board"
        raise InputError(what, info.label, f"leave out --session and name what to set: {in_words(named)}")
    if (board := found_on.origin.get("gpu", "")) != info.uuid:
        where = f"on another {info.name}" if board else f"on some {info.name}, it is not known which"
        say(f"The settings of {session} were found {where}: boards of one model differ.")


def _named(arguments: Namespace) -> tuple[BoardSettings, SessionRecord | None]:
    """The settings that are named, and the session that they come from. Raises InputError without any."""
    given: dict[str, Setting | None] = {
        "power_limit_w": arguments.power_limit,
        "memory_clock_mhz": arguments.memory_clock,
        "graphics_clock_mhz": arguments.clock,
    }
    chosen: BoardSettings = {name: value for name, value in given.items() if value is not None}
    found_on = None
    if arguments.session is not None:
        of_session, found_on = _of_session(arguments.session, arguments.configuration)
        chosen = {**of_session, **chosen}
    if not chosen and arguments.profile is None and arguments.workload_power_profile is None:
        remedy = "name --clock, --memory-clock, --power-limit, --workload-power-profile, a --profile or a --session"
        raise InputError("nothing to set", "apply", remedy)
    return chosen, found_on


def _of_profile(name: str | None, gpu: Gpu) -> BoardSettings:
    """The settings of a profile for boards of this kind."""
    from ..engine.control.profiles import profiles_of

    profiles = profiles_of(gpu.info.name)
    if name is not None and name not in profiles:
        there = (
            f"there are {', '.join(profiles)}" if profiles else "profiles are kept in the window, of each kind of board"
        )
        raise InputError(f"no profile of {gpu.info.name} is called that", name, there)
    return {} if name is None else profiles[name]


def _of_session(session: int, configuration: str | None) -> tuple[BoardSettings, SessionRecord]:
    choice, _, record = _chosen(session, configuration)
    settings = {
        name: float(value)
        for name, value in choice.device_settings.items()
        if name in SETTINGS and isinstance(value, int | float)
    }
    if not settings and UNTOUCHED in choice.device_settings.values():
        what, remedy = "this configuration is of the untouched board: there is nothing to set", "wattridge restore"
        raise InputError(what, f"session {session}", f"to put back what this program has set: {remedy}")
    if not settings:
        raise InputError("this configuration names no clock and no cap", f"session {session}", "name another session")
    return {**settings}, record


def _chosen(session: int, configuration: str | None) -> tuple[Choice, SessionPlan, SessionRecord]:
    """The configuration that is named, or the best one, with the plan and the record of its session."""
    from ..engine.report.export import choose
    from ..engine.session.named import chosen_index
    from ..engine.session.planning import plan_of
    from ..engine.store.database import Store

    with Store() as store:
        loaded = store.load(session)
    plan = plan_of(loaded)
    return choose(plan, loaded.table, session, chosen_index(configuration, loaded.table)), plan, loaded.record


def _confirmed(countdown_s: float, stop: threading.Event, quiet: bool) -> bool:
    """Ask for so long whether the settings should stay; without a terminal they never do."""
    asks = sys.stdin.isatty() and not quiet and os.name == "posix"
    until = time.monotonic() + countdown_s
    while (left_s := until - time.monotonic()) > 0 and not stop.is_set():
        if not asks:
            stop.wait(left_s)
            continue
        ask(f"Keep these settings? Enter within {left_s:2.0f} s, else they are put back. ")
        if select.select([sys.stdin], [], [], min(1.0, left_s))[0]:
            return bool(sys.stdin.readline())
    if asks:
        ask("")
    return False


def _write(arguments: Namespace, gpu: Gpu, chosen: BoardSettings) -> int:
    """The settings as files: a script, and a unit for the start of the machine."""
    from ..base.files import refuse_taken, write_text
    from ..engine.formats.nvidia_smi import board_script, clock_unit, service_unit
    from ..engine.report.export import file_stem
    from ..engine.results.settings import nearest_supported
    from ..sensors.select import open_gpu

    folder = Path(arguments.out)
    names = ["wattridge-clocks.sh", "wattridge-clocks.service"]
    for name in names:
        refuse_taken(folder / name, force=arguments.force)
    settings = {name: nearest_supported(gpu, name, value)[0] for name, value in chosen.items()}
    files = [
        write_text(folder / names[0], board_script(gpu, settings), overwrite=True, executable=True),
        write_text(folder / names[1], clock_unit(gpu, settings), overwrite=True),
    ]
    started = None if arguments.session is None else _service_of(arguments.session, arguments.configuration)
    if started is not None:
        title, words, selectors = started
        with ExitStack() as opened:
            others = [opened.enter_context(closing(open_gpu(selector, voltage=False))) for selector in selectors]
            unit = service_unit(gpu, settings, words, title, others)
        path = folder / f"{file_stem(title)}-service.service"
        refuse_taken(path, force=arguments.force)
        files.append(write_text(path, unit, overwrite=True))
    if not gpu.info.live:
        say(f"No unit can set {gpu.info.label}: it is no real board. Name one with --gpu for files that work.")
    if arguments.json:
        print_json({"files": [str(file.resolve()) for file in files]})
    else:
        show(*(str(file) for file in files))
    return 0


def _service_of(session: int, configuration: str | None) -> tuple[str, list[str], list[str]] | None:
    """The title of a session, the command that its service was started with, and which boards it had beside its own.

    None if it started none.
    """
    from ..base.files import is_input
    from ..engine.session.load import load_specification
    from ..engine.session.service_boards import boards_of_service
    from ..engine.workloads.command import fill_places

    choice, plan, _ = _chosen(session, configuration)
    path = Path(plan.origin.get("file", ""))
    if plan.origin.get("kind") != "specification" or not is_input(path):
        return None
    service = load_specification(path).service
    if service is None or not service.start:
        return None
    port = str(urlsplit(service.url.replace("{free_port}", "8000")).port or 8000)
    words = fill_places(shlex.split(service.start), {**choice.measurement.configuration, "free_port": port})
    program = shutil.which(words[0])  # systemd looks along a path of its own
    others = [item["selector"] for item in boards_of_service(plan.origin)[1:]]
    return plan.title, [program or words[0], *words[1:]], others


# --- restore ----------------------------------------------------------------------------------------------------------


def restore_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge restore`."""
    parser.add_argument("--gpu", metavar="GPU", help="this board only (default: every board that needs it)")
    parser.add_argument(
        "--defaults",
        action="store_true",
        help="where the record cannot be read: unlock the clocks, set the default power limit",
    )


def restore(arguments: Namespace) -> int:
    """Put back what was there before this program changed it, also after a crash."""
    from ..engine.control.left_over import all_left_over

    if arguments.gpu and arguments.gpu.lower().startswith(SCHEME):
        return _restore_there(arguments)
    recorded = [] if arguments.gpu else all_left_over()
    selectors, documents = ([arguments.gpu], []) if arguments.gpu else _here(recorded)
    for selector in selectors:
        try:
            documents.append(_restore(selector, defaults=arguments.defaults, quiet=arguments.json))
        except WattridgeError as error:  # the other boards are put back all the same
            if len(selectors) == 1 and not documents:
                raise
            say(str(error))
            documents.append({**_nothing(None), "obeyed": False, "message": str(error)})
    if not documents:
        documents = [_nothing(None)]
        if not recorded:
            say("Nothing is left over.")
    if arguments.json:
        print_json(documents[0] if len(documents) == 1 else {"boards": documents})
    return 0 if all(document["obeyed"] for document in documents) else 1


def _restore_there(arguments: Namespace) -> int:
    """A board of another machine: the command there, whose output and exit status are ours."""
    from ..sensors.remote.address import parse_address
    from ..sensors.remote.run_there import run_there

    address = parse_address(arguments.gpu)
    more = [*(["--defaults"] if arguments.defaults else []), *(["--json"] if arguments.json else [])]
    ended = run_there(address, ["restore", "--gpu", address.board, *more])
    for line in ended.errors:
        say(f"{address.machine}: {line}")
    show(*ended.output.splitlines())
    return ended.status


def _here(recorded: list[LeftOver]) -> tuple[list[str], list[dict[str, Any]]]:
    """Of the boards that something is recorded of, those in this machine; and a failure per other unreadable record."""
    from ..sensors.pci import asleep, wake
    from ..sensors.select import gpu_selectors

    wake(*(asleep() if recorded else ()))
    there = {selector for selector, _ in gpu_selectors()} if recorded else set()
    failures = []
    for match in recorded:
        if match.uuid not in there:
            name = match.name or "A board"
            say(f"{name} ({match.uuid}) is not in this machine now; what it had before stays recorded.")
            if match.unreadable:
                say(f"{match.unreadable}.")
                failures.append({**_nothing(None), "obeyed": False, "message": match.unreadable})
    return [match.uuid for match in recorded if match.uuid in there], failures


def _restore(selector: str, *, defaults: bool, quiet: bool) -> dict[str, Any]:
    from ..engine.control.left_over import left_over
    from ..sensors.select import open_gpu

    with closing(open_gpu(selector)) as gpu:
        record = left_over(gpu.info.uuid)
        if record is None:
            say(f"{gpu.info.label}: nothing is left over.")
            return _nothing(gpu)
        if record.held_by is not None:
            raise PermissionRefused(
                f"a session sets this board just now (process {record.held_by})", gpu.info.label, "end it first"
            )
        for line in record.differences(gpu):
            say(f"{gpu.info.label}: {line}")
        if record.unreadable:
            say(f"{gpu.info.label}: its settings before are not known: {record.unreadable}.")
            defaults = defaults or (not quiet and agrees("Unlock its clocks and set its default power limit?"))
        return _put_back(gpu, record, defaults=defaults and bool(record.unreadable), quiet=quiet)


def _put_back(gpu: Gpu, record: LeftOver, *, defaults: bool, quiet: bool) -> dict[str, Any]:
    with closing(guard_of(gpu)) as guard:
        guard.restore_prior(defaults=defaults)
        seen = guard.watch()
    if not quiet:
        _print(gpu, record.prior, {}, seen)
    return _document(gpu, record.prior, {}, seen)


def _nothing(gpu: Gpu | None) -> dict[str, Any]:
    named = {} if gpu is None else {"gpu": gpu.info.name, "source": gpu.info.source}
    return {**named, "prior": {}, "applied": {}, "observed": {}, "obeyed": True, "message": "nothing is left over"}


# --- output ----------------------------------------------------------------------------------------------------------


def _document(gpu: Gpu, prior: dict[str, Any], applied: dict[str, Any], seen: Observation) -> dict[str, Any]:
    return {
        "gpu": gpu.info.name,
        "source": gpu.info.source,
        "prior": prior,
        "applied": applied,
        "observed": seen.observed,
        "obeyed": seen.obeyed,
        "message": seen.message,
    }


def _print(gpu: Gpu, prior: dict[str, Any], applied: dict[str, Any], seen: Observation) -> None:
    show(f"{gpu.info.label}: {'obeyed' if seen.obeyed else 'NOT OBEYED'}; {seen.message}")
    rows = [
        (_named_with_unit(name), _shown(prior, name), _shown(applied, name), seen.observed.get(name))
        for name in SETTINGS
        if name in prior or name in applied or seen.observed.get(name) is not None
    ]
    print_table(rows, ("setting", "before", "applied", "observed"))


def _named_with_unit(name: str) -> str:
    return f"{WORDS[name]} ({unit(name)})" if unit(name) else WORDS[name]


def _shown(settings: dict[str, Any], name: str) -> Any:
    """A value for the table; a lock, which cannot be read, is 'not locked'."""
    if name not in settings:
        return UNKNOWN
    if name == PROFILE:
        return "several" if settings[name] is None else with_unit(name, settings[name])
    return "not locked" if settings[name] is None else settings[name]


def describe_left_over(gpu: Gpu) -> tuple[LeftOver | None, str]:
    """The record of a board's changed settings, and a line about it with the remedy; empty without a record."""
    from ..engine.control.client import UNREADABLE_REMEDY
    from ..engine.control.left_over import left_over

    record = left_over(gpu.info.uuid)
    if record is None:
        return None, ""
    before = in_words({name: value for name, value in record.prior.items() if value is not None}) or "clocks not locked"
    if record.held_by is not None:
        return record, f"{gpu.info.label}: a session sets it just now (process {record.held_by})"
    if record.unreadable:
        message = f"{gpu.info.label}: it may still be set, and its settings before are not known: {record.unreadable}"
        return record, f"{message}. To put back what can be read: wattridge restore; {UNREADABLE_REMEDY}"
    message = "left set by a session that ended badly" if record.unfinished else "set and confirmed"
    now = "; ".join(record.differences(gpu)) or "it looks as before"
    return record, f"{gpu.info.label}: {message} ({now}); before: {before}. Put back with: wattridge restore"


def report_unreadable(boards: Sequence[str]) -> bool:
    """Say, for `gpus`, which records of other boards than these cannot be read; whether there are any."""
    from ..engine.control.left_over import all_left_over

    try:
        unreadable = [record for record in all_left_over() if record.unreadable and record.uuid not in boards]
    except WattridgeError as error:
        say(str(error))
        return True
    for match in unreadable:
        say(f"A board that is not in this machine now: {match.unreadable}")
    return bool(unreadable)
