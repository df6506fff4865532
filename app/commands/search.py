"""`wattridge tune`, `replay`, `sessions` and `demo`: searching without a window."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError, WattridgeError
from ..base.files import is_input, is_there
from ..base.paths import data_folder, resources
from ..engine.models.fit_documents import save_fit
from ..engine.results.state import SessionState
from ..engine.session.named import SPECIFICATION, recording_path, session_number, specification_path
from ..scripting.session_progress import watch_session
from .arguments import (
    add_board,
    add_condition,
    add_control,
    add_meters,
    add_out,
    add_repeats,
    add_search,
    add_table,
    columns_of,
    condition_of,
    existing_of,
    meter_choice,
    positive_int,
    search_options,
    store_of,
)
from .pool import add_pool, is_pooled, pooled_gpu, pooled_gpus, selectors_of
from .side_by_side import show_comparison, tuned_by_models
from .terminal import print_description, print_json, print_table, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.control.guard import DeviceGuard
    from ..engine.report.export import Existing
    from ..engine.results.description import Description
    from ..engine.runner.boards import ReadyPlan
    from ..engine.session.live_session import SessionResult
    from ..engine.session.summary import SessionSummary
    from ..engine.store.database import Store
    from ..sensors.gpu import Gpu


def tune_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge tune`."""
    parser.add_argument("specification", nargs="?", metavar="SPEC", help=SPECIFICATION)
    parser.add_argument(
        "--resume",
        metavar="SESSION|FILE",
        help="go on with a stored session, or with SPEC where a cache, T4 results or a CSV file left off",
    )
    what = "the data of its arrays as a dimension: some of own, zeros, ones, random, range, FILE.npy"
    parser.add_argument("--inputs", metavar="DATA,...", help=what)
    add_repeats(parser)
    add_board(parser, speed=float("inf"))
    add_search(parser)
    add_out(parser)
    add_condition(parser)
    add_meters(parser)
    add_control(parser)
    add_pool(parser)


def tune(arguments: Namespace) -> int:
    """Run a specification's session on a board; where a pool has several models, one on each, which are compared."""
    from ..engine.formats.read import read_recording
    from ..engine.session.follow import with_recording
    from ..engine.session.load import load_specification
    from ..engine.session.planning import plan_specification
    from ..engine.session.service_boards import on_boards
    from ..engine.specification.input_data import parse_inputs, with_inputs
    from .control import guarded_board

    if arguments.resume is not None and (session := session_number(arguments.resume)) is not None:
        return _resume(arguments, session)
    if arguments.specification is None:
        if arguments.resume is not None:
            remedy = "to go on from a file: tune SPEC --resume FILE"
            raise InputError(f"'{arguments.resume}' is no session's number", "--resume", remedy)
        raise InputError("no specification", "tune", "name a TOML or T1 file, or --resume a session")
    specification = load_specification(specification_path(arguments.specification))
    if arguments.inputs:
        specification = with_inputs(specification, parse_inputs(arguments.inputs))
    pooled = is_pooled(arguments)
    if specification.service is not None and (selectors := selectors_of(arguments.gpu)) is not None:
        specification, pooled = on_boards(specification, selectors[1:]), False  # they serve together
        arguments.gpu = selectors[0]
    if not pooled and arguments.gpu is None and specification.kernel is not None:
        from ..engine.runner.languages import usual_device
        from ..sensors.select import real_boards

        arguments.gpu = usual_device(specification.kernel, real_boards=bool(real_boards()))
    speed = arguments.speed if specification.command is None else 1.0  # a program takes real time

    def tune_on(gpu: Gpu, guard: DeviceGuard | None) -> int:
        options = replace(search_options(arguments, arguments.repeats), meters=meter_choice(arguments))
        plan = plan_specification(specification, gpu, options, guard=guard)
        if arguments.resume is not None:
            plan = with_recording(plan, specification, read_recording(arguments.resume))
        with store_of(arguments) as store:
            return _run(plan, store, arguments)

    if pooled:
        with pooled_gpus(arguments, speed) as models:
            if len(models) == 1:
                return tune_on(models[0], None)
            show_comparison(tuned_by_models(specification, models, arguments), arguments)
            return 0
    with guarded_board(arguments, speed=speed) as (gpu, guard):
        return tune_on(gpu, guard)


def _resume(arguments: Namespace, session: int) -> int:
    """Go on with a stored session on its own kind of board; what it has measured is not measured again."""
    from ..engine.runner.pool.pool import SELECTOR as POOL
    from ..engine.session.planning import plan_resume
    from ..sensors.select import open_gpu
    from .control import guard_of

    if arguments.repeats is not None:
        raise InputError("a resumed session keeps its repeats", "--repeats", "leave it out, or start a new session")
    if arguments.condition is not None:
        remedy = "state it for another one afterwards: wattridge sessions N --condition"
        raise InputError("a resumed session keeps its condition", "--condition", remedy)
    if meter_choice(arguments) is not None:
        raise InputError("a resumed session keeps its meters", "--meter", "leave it out, or start a new session")
    options = search_options(arguments)
    kept = {
        "objective": options.objective,
        "front": options.front,
        "limits": options.limits,
        "strategy": options.strategy or options.strategy_options,
        "seed": options.seed,
    }
    if ignored := [name for name, asked in kept.items() if asked or asked == 0]:
        remedy = "leave it out, or start a new session; analyse and report take an objective and limits"
        raise InputError(f"a resumed session keeps its {', '.join(ignored)}", f"session {session}", remedy)
    with store_of(arguments) as store:
        origin = store.session(session).origin
        named = arguments.specification
        if named is not None and specification_path(named).resolve() != Path(origin.get("file", "")):
            raise InputError(f"session {session} is of another file, {origin.get('file', '')}", named, "leave it out")
        if is_pooled(arguments):
            with pooled_gpu(arguments, arguments.speed) as boards:
                return _run(plan_resume(store, session, options, gpu=boards), store, arguments)
        if arguments.gpu is None and origin.get("gpu") == POOL:
            remedy = "name the boards: --pool SCHEDULER, or --gpu 0,1; or one of the same model: --gpu 0"
            raise InputError("it was measured on the boards of a pool", f"session {session}", remedy)
        selector, seed = arguments.gpu or origin.get("gpu"), int(origin.get("sim_seed", "0"))
        if selector is None:
            return _run(plan_resume(store, session, options), store, arguments)
        speed = 1.0 if _runs_program(origin) else arguments.speed
        with (
            closing(open_gpu(selector, seed=seed, speed=speed)) as gpu,
            closing(guard_of(gpu, arguments)) as guard,
        ):
            return _run(plan_resume(store, session, options, gpu=gpu, guard=guard), store, arguments)


def _runs_program(origin: Mapping[str, str]) -> bool:
    """Whether a session runs a program, which takes real time; False if its file is gone."""
    from ..engine.session.load import load_specification

    path = Path(origin.get("file", ""))
    return origin.get("kind") == "specification" and is_input(path) and load_specification(path).command is not None


def replay_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge replay`."""
    parser.add_argument(
        "cache",
        metavar="FILE",
        help="a Kernel Tuner cache, T4 results or a session as CSV, plain or .gz, or h200-sgemm-session",
    )
    parser.add_argument(
        "--follow", action="store_true", help="show a cache while a tuner writes it, until that is done or Ctrl+C"
    )
    add_search(parser)
    add_out(parser)
    add_table(parser)


def replay(arguments: Namespace) -> int:
    """Run a session against a recording instead of a board, or follow one that another program still writes."""
    from ..engine.formats.read import read_recording
    from ..engine.session.planning import plan_replay
    from ..engine.store.database import Store

    path = recording_path(arguments.cache)
    if arguments.follow:
        return _follow(path, arguments)
    plan = plan_replay(path, search_options(arguments), read=read_recording(path, columns_of(arguments)))
    with Store() as store:
        return _run(plan, store, arguments)


def _follow(path: Path, arguments: Namespace) -> int:
    """Show a growing cache until its tuner closes it, or Ctrl+C."""
    from ..engine.session.follow import plan_follow
    from ..engine.store.database import Store

    options = search_options(arguments)
    unfit = [*options.given(), *(["strategy_option"] if options.strategy_options else [])]
    if unfit:
        option = f"--{unfit[0].replace('_', '-')}"
        raise InputError(f"{option} does not go with --follow", "replay", "a followed file is shown as it was measured")
    if not is_there(path):
        say(f"waiting for {path}")
    with stop_on_interrupt() as stop:
        plan = plan_follow(path, stop, options)
    with Store() as store:
        return _run(plan, store, arguments)


def _run(plan: ReadyPlan, store: Store, arguments: Namespace) -> int:
    from ..engine.report.export import export_session

    existing = _refuse_taken(plan, arguments)
    for note in plan.space.notes:  # programs that are run are among them
        say(note)
    result = watch_session(plan, store, quiet=arguments.json)
    document = _summary(result)
    if arguments.out and document["best"] is not None:
        table, number, folder = result.table, result.session, Path(arguments.out)
        files = export_session(plan, table, number, None, folder, on_remark=say, existing=existing, state=result.state)
        document["files"] = [str(file) for file in files]
    if arguments.json:
        print_json(document)
    else:
        print_description(_description(result))
    if result.state is SessionState.FAILED:
        error = WattridgeError(result.reason or "the session failed", f"session {result.session}", "see the line above")
        say(f"wattridge: {error}")
        return error.exit_code
    failed = sum(document["failed"].values())
    if result.state is SessionState.DONE and failed and failed == document["evaluated"] + document["timed"]:
        say(f"wattridge: session {result.session}: every configuration failed ({_most_frequent(document)})")
        return 1
    return 0


def _refuse_taken(plan: ReadyPlan, arguments: Namespace) -> Existing:
    """What becomes of files of an earlier export at the session's end. Raises WattridgeError before it begins."""
    from ..engine.report.export import KINDS, refuse_files

    existing = existing_of(arguments)
    if arguments.out:
        refuse_files(Path(arguments.out), plan.title, KINDS, existing)
    return "beside" if existing == "refuse" else existing  # what is measured is exported, whatever came meanwhile


def _most_frequent(document: SessionSummary) -> str:
    """Of the failures, in a few words."""
    failure = document["most_frequent_failure"]
    return f"most often: {failure['message'] or failure['state']}" if failure else "without a message"


def _summary(result: SessionResult) -> SessionSummary:
    from ..engine.session.summary import session_summary

    return session_summary(
        result.table,
        result.plan,
        session=result.session,
        seconds=result.progress.elapsed_s,
        state=result.state,
        reason=result.reason,
    )


def _description(result: SessionResult) -> Description:
    from ..engine.session.describe_session import describe_session

    seconds, reason = result.progress.elapsed_s, result.reason
    return describe_session(result.plan, result.table, session=result.session, seconds=seconds, reason=reason)


def sessions_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge sessions`."""
    parser.add_argument("session", nargs="?", type=positive_int, metavar="SESSION", help="this one, and what it found")
    add_condition(parser)


def sessions(arguments: Namespace) -> int:
    """The sessions kept on disk, newest first; or what one of them found, stated for a condition."""
    from ..engine.store.database import Store

    if arguments.session is not None:
        return _show_session(arguments.session, arguments)
    if arguments.condition is not None:
        raise InputError("no session to state for it", "--condition", "name one: wattridge sessions 3 --condition 55C")
    with Store() as store:
        records = list(store.sessions())
        for line in store.damage():
            say(line)
    documents = [
        {
            "session": r.id,
            "title": r.title,
            "name": r.label.name,
            "tags": list(r.label.tags),
            "favourite": r.label.favourite,
            "gpu": r.gpu,
            "source": r.source,
            "strategy": r.strategy,
            "state": r.state,
            "evaluated": r.evaluated,
            "timed": r.timed,
            "created": datetime.fromtimestamp(r.created_s, UTC).isoformat(timespec="seconds"),
        }
        for r in records
    ]
    if arguments.json:
        print_json(documents)
    elif not documents:
        show("no sessions yet; `wattridge demo` makes one")
    else:
        rows = [
            [r.id, ("* " if r.label.favourite else "") + r.shown_name, *list(d.values())[5:], ", ".join(r.label.tags)]
            for r, d in zip(records, documents, strict=True)
        ]
        print_table(rows, ["session", "title", *list(documents[0])[5:], "tags"])
    return 0


def _show_session(session: int, arguments: Namespace) -> int:
    """What a stored session found, for another condition than its own where one is named. The store stays as it is."""
    from ..engine.session.describe_session import describe_session
    from ..engine.session.opened import stored_session
    from ..engine.session.stored import restated
    from ..engine.session.summary import session_summary
    from ..engine.store.database import Store

    with Store() as store:
        opened = stored_session(store, session)
        record, plan, table = opened.record, opened.plan, opened.table
        if (condition := condition_of(arguments)) is not None:
            plan, table = restated(store, session, condition)
    assert record is not None, "it comes from the store"
    seconds, state, reason = record.elapsed_s, record.state, record.reason
    if arguments.json:
        print_json(session_summary(table, plan, session=session, seconds=seconds, state=state, reason=reason))
    else:
        print_description(describe_session(plan, table, session=session, seconds=seconds, reason=reason))
    return 0


def demo_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge demo`."""
    add_board(parser)
    add_search(parser)
    add_out(parser)
    add_condition(parser)
    parser.add_argument("--no-window", action="store_true", help="stay in the terminal even with a display")


def demo(arguments: Namespace) -> int:
    """The GEMM example on the simulated A100: session, front, fitted ridge, exports."""
    from ..engine.models.clock_fits import fit_of_sweep
    from ..engine.models.describe_fits import describe_fit
    from ..engine.report.export import export_session
    from ..engine.session.load import load_specification
    from ..engine.session.planning import plan_specification
    from ..sensors.select import open_gpu

    specification = load_specification(resources() / "examples" / "gemm.toml")
    with closing(open_gpu(arguments.gpu or "simulated:a100", seed=arguments.sim_seed, speed=float("inf"))) as gpu:
        plan = plan_specification(specification, gpu, search_options(arguments))
        existing = _refuse_taken(plan, arguments)
        with store_of(arguments) as store:
            result = watch_session(plan, store, quiet=arguments.json)
            document = _summary(result)
            if document["best"] is None:
                raise WattridgeError("no configuration worked", "demo", "raise --max-evaluations")
            folder = Path(arguments.out) if arguments.out else data_folder() / "exports"
            files = export_session(
                plan, result.table, result.session, None, folder, existing=existing, state=result.state
            )
            fit, source = fit_of_sweep(gpu)
            save_fit(store, fit, source, result.session, uuid=gpu.info.uuid)
    document["files"] = [str(file) for file in files]
    if arguments.json:
        print_json({**document, "fit": fit})
        return 0
    print_description(_description(result))
    show()
    print_description(describe_fit(fit, source))
    show("", "exports of the best configuration (simulated):")
    show(*(f"  {file}" for file in document["files"]))
    return 0
